"""The tier of public names: the traced forward runs in segments, some in checkpoints.

It serves a PyTorch whose compiler offers no control over what is saved. torch.compile
still passes the forward as a graph. The graph is cut where few values are alive, and
each segment runs once on the first call's arguments, to see what autograd saves in it.
The planner then decides: a segment is one node that makes its results, one that makes
what it saves and may run again, and one of the backward. Segments that run again run in
torch.utils.checkpoint. Operators are PyTorch's eager ones, in their order. Nothing is
copied to the host, and memory inside a segment is estimated by its largest tensor.
Tested by tests/plugins/python/torch_tiers_test.py.
"""
from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from loadline.errors import LoadlineError, Unsupported
from loadline.machine import Machine
from loadline.planning import Plan
from loadline.torch.problem.document import Document
from torch.autograd.graph import saved_tensors_hooks
from torch.fx.passes.split_module import split_module
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

SEGMENTS = 24  # few enough to plan in a moment


def _in_place(node: torch.fx.Node) -> bool:
    """If so, its first argument must come from the same segment."""
    name = node.target if isinstance(node.target, str) else getattr(
        node.target, "__name__", "")
    return bool(node.kwargs.get("inplace")) or "out" in node.kwargs or (
        name.endswith("_") and not name.endswith("__")) or name == "setitem" or (
        node.target in _IN_PLACE)


_IN_PLACE = {getattr(operator, name) for name in dir(operator)
             if name.startswith("i") and not name.startswith("is")
             and name not in ("index", "indexOf", "inv", "invert", "itemgetter")}


def _cuts(graph: torch.fx.Graph) -> dict[torch.fx.Node, int]:
    """The segment of each node: of about equal length, cut where few values are alive."""
    nodes = [n for n in graph.nodes if n.op not in ("placeholder", "output")]
    last = {}
    for at, node in enumerate(nodes):
        for argument in node.all_input_nodes:
            last[argument] = at
    place = {node: at for at, node in enumerate(nodes)}
    together = {between for at, node in enumerate(nodes) if _in_place(node)
                for argument in node.all_input_nodes[:1] if argument in place
                for between in range(place[argument], at)}
    live: list[int] = []
    passing: dict[torch.fx.Node, None] = {}  # computed so far and read later
    for at, node in enumerate(nodes):
        if node.users:
            passing[node] = None
        for dead in node.all_input_nodes:
            if last[dead] == at:
                passing.pop(dead, None)
        tensors = all(isinstance(n.meta["example_value"], torch.Tensor)
                      for n in passing if "example_value" in n.meta)
        live.append(len(passing) if tensors and at not in together else
                    len(nodes) + len(passing))
    width = max(1, -(-len(nodes) // SEGMENTS))
    ends = {min(range(start, min(start + width, len(nodes))),
                key=lambda at: (live[at], -at))
            for start in range(0, len(nodes), width)}
    segment, number = {}, 0
    for at, node in enumerate(nodes):
        segment[node] = number
        number += at in ends and live[at] < len(nodes)
    return segment


@dataclasses.dataclass
class _Found:
    """What a run of one segment showed. Storages are named by their address."""

    saved_bytes: int = 0  # computed and saved inside
    reads: list[int] = dataclasses.field(default_factory=list)
    makes: dict[int, int] = dataclasses.field(default_factory=dict)  # with bytes
    kept: list[int] = dataclasses.field(default_factory=list)  # of these, saved
    gradients: list[int] = dataclasses.field(default_factory=list)  # for what it reads
    writes: list[int] = dataclasses.field(default_factory=list)  # inputs it changes
    largest_bytes: int = 0  # of the tensors that are saved or made
    several: bool = False  # has more than one operator
    time_ns: int = 0


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values if isinstance(values, (tuple, list)) else [values]:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)


def _key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _apart(value: Any) -> Any:
    """The value as a segment's input, without its autograd history."""
    if isinstance(value, torch.Tensor):
        return value if value.is_leaf else value.detach().requires_grad_()
    return value


def _run_once(part: torch.fx.GraphModule, inputs: list[Any], machine: Machine
              ) -> tuple[_Found, Any]:
    found, saved = _Found(), dict[int, torch.Tensor]()
    found.several = sum(n.op not in ("placeholder", "output", "get_attr")
                        for n in part.graph.nodes) > 1
    before = [(t, t.detach().clone()) for t in _tensors(inputs)]

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved[_key(tensor)] = tensor.detach()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor), \
            FlopCounterMode(display=False) as counter:
        result = part(*map(_apart, inputs))
    for tensor, old in before:
        if not torch.equal(tensor, old):
            found.writes.append(_key(tensor))
            with torch.no_grad():
                tensor.copy_(old)
    found.reads = list(dict.fromkeys(_key(t) for t in _tensors(inputs)))
    found.makes = {_key(t): t.untyped_storage().nbytes() for t in _tensors(result)
                   if _key(t) not in found.reads}
    found.kept = [k for k in saved if k in found.reads or k in found.makes]
    found.saved_bytes = sum(t.untyped_storage().nbytes() for k, t in saved.items()
                            if k not in found.kept)
    found.largest_bytes = max([0, *found.makes.values(), *(
        t.untyped_storage().nbytes() for t in saved.values())])
    found.gradients = list(dict.fromkeys(
        _key(t) for t in _tensors(inputs) if t.requires_grad))
    moved = found.saved_bytes + sum(found.makes.values())
    found.time_ns = machine.launch_ns + int(
        1e9 * counter.get_total_flops() / (machine.matmul_flop_per_s.get("f32") or 1e11)
        + 1e9 * moved / (machine.memory_bytes_per_s or 5e10))
    return found, result


def _once(ids: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(ids))


def make_segment_problem(found: list[_Found], inputs: dict[int, int],
                         outputs: list[int]) -> tuple[dict[str, Any], list[int]]:
    """The problem, and for each segment the node that makes what it saves. inputs: bytes
    by storage."""
    writer = Document("torch segments", offload=False)
    value_of = {key: writer.value(f"input.{number}", bytes_, persistent=True)
                for number, (key, bytes_) in enumerate(inputs.items())}
    bytes_of = dict(inputs)
    written = {key for about in found for key in about.writes}
    saves, saved = [], []
    for number, about in enumerate(found):
        reads = _once(value_of[key] for key in about.reads)
        inner = writer.value(f"saved.{number}", about.saved_bytes)
        token = writer.value(f"after.{number}", 0)
        # Its results, which are briefly alive when it runs again.
        passing = writer.value(f"passing.{number}", about.largest_bytes)
        saves.append(writer.node(
            f"segment.{number}", about.time_ns, reads,
            [inner, token, passing],
            recompute=not written & {*about.reads}))
        saved.append(inner)
        made = list[int]()
        for key, bytes_ in about.makes.items():
            value_of[key] = writer.value(f"result.{number}.{len(made)}", bytes_)
            bytes_of[key] = bytes_
            made.append(value_of[key])
        writer.node(f"results.{number}", 0, [*reads, token], made, recompute=False)
    returned = [value_of[key] for key in dict.fromkeys(outputs) if key in value_of]
    tangents = [writer.value(f"tangent.{n}", writer.values[v]["bytes"])
                for n, v in enumerate(returned)]
    writer.node("boundary", 0, _once(returned), tangents, recompute=False)
    gradients = {key: [tangent] for key, tangent in zip(dict.fromkeys(outputs), tangents)}
    for number in reversed(range(len(found))):
        about = found[number]
        reads = [saved[number], *(value_of[key] for key in about.kept)]
        reads += [g for key in about.makes for g in gradients.get(key, ())]
        made = []
        for key in about.gradients:
            made.append(writer.value(f"gradient.{number}.{len(made)}", bytes_of[key]))
            gradients.setdefault(key, []).append(made[-1])
        if made:
            # Memory inside: a derivative has at most two factors that are neither saved
            # nor gradients passed on; between operators there is one more gradient.
            made.append(writer.value(
                f"within.{number}", (3 if about.several else 2) * about.largest_bytes))
            writer.node(f"backward.{number}", 2 * about.time_ns, _once(reads), made,
                        recompute=False)
    held = [*returned, *(g for key in inputs for g in gradients.get(key, ()))]
    return writer.problem(_once(held)), saves


def _merged(found: list[_Found], outputs: list[int]) -> _Found:
    """Several segments as one. outputs: what is read after them."""
    one = _Found(several=len(found) > 1 or found[0].several)
    bytes_of: dict[int, int] = {}
    for about in found:
        one.reads += [key for key in about.reads if key not in bytes_of]
        one.gradients += [key for key in about.gradients if key not in bytes_of]
        one.writes += about.writes
        one.kept += about.kept
        one.saved_bytes += about.saved_bytes
        one.largest_bytes = max(one.largest_bytes, about.largest_bytes)
        one.time_ns += about.time_ns
        bytes_of.update(about.makes)
    one.makes = {key: bytes_of[key] for key in outputs if key in bytes_of}
    one.reads, one.gradients, one.writes, kept = (list(dict.fromkeys(keys)) for keys in (
        one.reads, one.gradients, one.writes, one.kept))
    one.kept = [key for key in kept if key in one.reads or key in one.makes]
    one.saved_bytes += sum(bytes_of[key] for key in kept if key not in one.kept)
    return one


def _groups(found: list[_Found], width: int, outputs: list[int]) -> list[_Found]:
    groups = []
    for begin in range(0, len(found), width):
        read_later = [key for about in found[begin + width:] for key in about.reads]
        groups.append(_merged(found[begin:begin + width],
                              list(dict.fromkeys([*read_later, *outputs]))))
    return groups


class Segments:
    """What the backend returns. decide: from problems to the number of the one with the
    best plan, and that plan. The first problem has the smallest segments; a budget as a
    share refers to it."""

    def __init__(self, module: torch.fx.GraphModule, machine: Machine,
                 decide: Callable[[list[dict[str, Any]]], tuple[int, Plan]]):
        self.segment = _cuts(module.graph)
        self.whole = module
        self.machine, self.decide = machine, decide
        self.split = self.parts(1)
        self.again: set[str] | None = None  # parts in a checkpoint; None: not planned yet

    def parts(self, width: int) -> torch.fx.GraphModule:
        """The graph in parts of `width` segments each."""
        return split_module(self.whole, self.whole,
                            lambda node: self.segment[node] // width,
                            keep_original_order=True)

    def __call__(self, *arguments: Any) -> Any:
        if not torch.is_grad_enabled() or not any(
                t.requires_grad for t in _tensors(arguments)):
            return self.whole(*arguments)
        if self.again is None:
            self.plan(arguments)
        return self.run(arguments, self.step)

    def step(self, name: str, part: Callable[..., Any], inputs: list[Any]) -> Any:
        assert self.again is not None
        if name in self.again:
            return checkpoint(part, *inputs, use_reentrant=False)
        return part(*inputs)

    def run(self, arguments: tuple[Any, ...],
            step: Callable[[str, Any, list[Any]], Any]) -> Any:
        """Runs part by part; values are freed after their last use."""
        graph = self.split.graph
        last: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in graph.nodes:
            for argument in node.all_input_nodes:
                last[argument] = node
        values: dict[torch.fx.Node, Any] = {}
        given = iter(arguments)
        for node in graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = getattr(self.split, node.target)
            elif node.op == "output":
                return torch.fx.map_arg(node.args[0], values.__getitem__)
            else:
                inputs = torch.fx.map_arg(node.args, values.__getitem__)
                values[node] = (
                    step(node.target, getattr(self.split, node.target), list(inputs))
                    if node.op == "call_module" else
                    node.target(*inputs, **node.kwargs))  # an element of a tuple
                del inputs
            for dead in node.all_input_nodes:
                if last[dead] is node:
                    values.pop(dead, None)
        raise LoadlineError("a graph without an output")

    def plan(self, arguments: tuple[Any, ...]) -> None:
        found: list[_Found] = []
        alive: list[Any] = []  # keeps results, so that no address is reused

        def look(name: str, part: Any, inputs: list[Any]) -> Any:
            about, result = _run_once(part, inputs, self.machine)
            found.append(about)
            result = tuple(map(_apart, result)) if isinstance(
                result, (tuple, list)) else _apart(result)
            alive.append(result)
            return result

        devices = {t.device for t in _tensors(arguments) if t.device.type == "cuda"}
        with torch.random.fork_rng(devices=list(devices)):
            try:
                outputs = self.run(arguments, look)
            except RuntimeError as error:
                raise Unsupported(
                    f"the model cannot run in segments: {error}") from error
        inputs = {_key(t): t.untyped_storage().nbytes() for t in _tensors(arguments)}
        returned = [_key(t) for t in _tensors(outputs) if t.requires_grad]
        widths = [1]
        while 2 * widths[-1] < len(found):
            widths.append(2 * widths[-1])
        traced = [make_segment_problem(_groups(found, width, returned), inputs, returned)
                 for width in widths]
        del alive
        at, plan = self.decide([problem for problem, _ in traced])
        self.split = self.parts(widths[at])
        self.again = {f"submod_{number}" for number, node in enumerate(traced[at][1])
                      if plan.sequence.count(node) > 1}
