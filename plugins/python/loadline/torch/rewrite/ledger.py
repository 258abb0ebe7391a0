"""A virtual device on the CPU: records which storages are alive after each operation.

Modules run node by node. Every storage that an operation reads or makes is watched by a
weak reference, so the ledger counts what is really alive, whoever holds it, and not what
a plan says. Memory inside a kernel is not seen. What runs outside of modules (a loss, the
optimizer's step) is counted on request.
Tested by tests/plugins/python/torch_step_test.py and torch_whole_step_test.py.
"""
from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from loadline.errors import Unsupported
from loadline.torch.compat import dynamo_internals, torch_internals
from loadline.torch.problem.joint import result_bytes
from loadline.torch.rewrite import copies, parameter_moves
from loadline.torch.rewrite.state_moves import MOVE_STATE, STATE_TOKEN

# Operators that return tokens, which are no device memory.
_TOKENS = (copies.OFFLOAD, copies.WAIT, MOVE_STATE, STATE_TOKEN,
           parameter_moves.BEGIN_PARAMETERS, parameter_moves.CHECK_EPOCH,
           parameter_moves.KEEP_PARAMETER, parameter_moves.STORE_PARAMETER)

# Of parameters that are in host memory: no ledger counts these storages.
_host: dict[int, Any] = {}


def is_left_out(tensor: torch.Tensor) -> bool:
    return torch_internals.storage_key(tensor) in _host


def leave_out(tensor: torch.Tensor) -> None:
    """The tensor's storage is host memory, whatever its device."""
    for key in [key for key, storage in _host.items() if storage.expired()]:
        del _host[key]
    _host[torch_internals.storage_key(tensor)] = torch_internals.StorageWeakRef(
        tensor.untyped_storage())


class Ledger:
    def __init__(self) -> None:
        self._watched: dict[int, tuple[Any, int]] = {}
        self.peak_bytes = 0
        self.peak_at = ""
        self.live_bytes: list[tuple[str, int]] = []  # after each operation
        # By node name, results whose storages differ from the trace: bytes predicted,
        # bytes found.
        self.surprises: dict[str, tuple[int, int]] = {}
        self.whole_step = False  # operators outside of modules are counted too
        self.paused = 0  # more than 0: WatchedCalls does not count

    def watch(self, values: Any) -> None:
        for value in torch_internals.pytree.tree_leaves(values):
            if isinstance(value, torch.Tensor) and value.layout is torch.strided:
                storage = value.untyped_storage()
                if is_left_out(value):
                    continue
                self._watched[torch_internals.storage_key(value)] = (
                    torch_internals.StorageWeakRef(storage), storage.nbytes())

    def compare(self, node: torch.fx.Node, found: Any) -> None:
        real = sum({torch_internals.storage_key(value):
                    value.untyped_storage().nbytes()
                    for value in torch_internals.pytree.tree_leaves(found)
                    if isinstance(value, torch.Tensor)}.values())
        if "val" in node.meta and result_bytes(node) != real:
            self.surprises[node.name] = (result_bytes(node), real)

    def sample(self, name: str) -> int:
        """The bytes that are alive now."""
        gone = [key for key, (reference, _) in self._watched.items()
                if reference.expired()]
        for key in gone:
            del self._watched[key]
        live = sum(bytes_ for _, bytes_ in self._watched.values())
        self.live_bytes.append((name, live))
        if live > self.peak_bytes:
            self.peak_bytes, self.peak_at = live, name
        return live


class WatchedCalls(torch_internals.TorchDispatchMode):  # type: ignore[misc, valid-type]
    """Every operator that is called inside is recorded in the ledger. Tensors without
    dimensions are not counted: an optimizer's step counts are on the host."""

    # PyTorch asks: an operator of a higher order, such as torch.cond, is one operator here too.
    supports_higher_order_operators = True

    def __init__(self, ledger: Ledger):
        super().__init__()
        self.ledger = ledger

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """PyTorch asks: compiled code runs inside, instead of falling back to eager."""
        return True

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if not self.ledger.paused:
            self.ledger.watch([value for value in torch_internals.pytree.tree_leaves(
                (args, kwargs, result)) if isinstance(value, torch.Tensor) and value.dim()])
            self.ledger.sample(str(function))
        return result


# With the thread that opened each, the innermost last.
_open: list[tuple[int, Ledger]] = []
_open_lock = threading.Lock()


@contextlib.contextmanager
def virtual_device(whole_step: bool = False) -> Iterator[Ledger]:
    """Records what modules compiled with inner="aot_eager" do inside, in this thread and
    in those that open no ledger, as autograd's for a GPU.

    whole_step: also records what this thread computes outside of modules, such as a loss
    and the optimizer's step."""
    if whole_step and not dynamo_internals.compiles_inside_modes():
        raise Unsupported("virtual_device(whole_step=True): inside of it this PyTorch would "
                          "run compiled models uncompiled; use a newer one")
    ledger = Ledger()
    ledger.whole_step = whole_step
    entry = threading.get_ident(), ledger
    with _open_lock:
        _open.append(entry)
    try:
        with WatchedCalls(ledger) if whole_step else contextlib.nullcontext():
            yield ledger
    finally:
        with _open_lock:
            _open.remove(entry)


def open_ledger() -> Ledger | None:
    if not _open:
        return None
    with _open_lock:
        own = [ledger for thread, ledger in _open if thread == threading.get_ident()]
        return own[-1] if own else _open[-1][1] if _open else None


def record_in_open_ledger(name: str, values: Callable[[], Any]) -> None:
    """For what is done outside of modules; nothing if no ledger is open."""
    if (ledger := open_ledger()) is not None:
        ledger.watch(values())
        ledger.sample(name)


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """What is computed inside is on no device, such as copies to the host."""
    ledger = open_ledger()
    if ledger is None:
        yield
        return
    ledger.paused += 1
    try:
        yield
    finally:
        ledger.paused -= 1


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Every operator inside is recorded in the open ledger, if one is open."""
    ledger = open_ledger()
    if ledger is None:
        yield
        return
    before, ledger.paused = ledger.paused, 0
    try:
        with contextlib.nullcontext() if ledger.whole_step else WatchedCalls(ledger):
            yield
    finally:
        ledger.paused = before


@contextlib.contextmanager
def inside_operator() -> Iterator[Ledger | None]:
    """For an operator of Loadline's with memory of its own: the ledger that records what
    runs inside. PyTorch calls an operator outside of the modes that saw its call."""
    ledger = open_ledger()
    if ledger is None or not (ledger.paused or ledger.whole_step):
        yield None
        return
    before, ledger.paused = ledger.paused, 0
    try:
        with WatchedCalls(ledger):
            yield ledger
    finally:
        ledger.paused = before


def _last_uses(graph: torch.fx.Graph) -> dict[torch.fx.Node, list[torch.fx.Node]]:
    last: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.nodes:
        last.setdefault(node, node)
        for argument in node.all_input_nodes:
            last[argument] = node
    freed: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for node, at in last.items():
        freed.setdefault(at, []).append(node)
    return freed


def run_watched(module: torch.fx.GraphModule, arguments: list[Any],
                 ledger: Ledger) -> Any:
    freed = _last_uses(module.graph)
    values: dict[torch.fx.Node, Any] = {}
    given: Iterator[Any] | None = iter(list(arguments))
    arguments.clear()
    result = None
    for node in module.graph.nodes:
        if node.op == "placeholder":
            assert given is not None
            values[node] = next(given)
            if not node.name.startswith("host_token_"):
                ledger.watch(values[node])
            continue
        if given is not None:
            given = None  # the iterator would keep the arguments alive
            for unread in module.graph.find_nodes(op="placeholder"):
                if not unread.users:
                    values.pop(unread, None)
            ledger.sample("start")
        if node.op == "get_attr":
            values[node] = operator.attrgetter(node.target)(module)
            ledger.watch(values[node])
        elif node.op == "call_function":
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs),
                                            values.__getitem__)
            values[node] = node.target(*args, **kwargs)
            del args, kwargs
            if node.target in (copies.RELOAD, parameter_moves.LOAD_PARAMETER):
                # Its destination exists from here on.
                slab = node.args[1 if node.target is copies.RELOAD else 2]
                ledger.watch(copies.on_its_way(slab, values[node]))
                ledger.sample(node.name)
            elif node.target not in _TOKENS:
                ledger.watch(values[node])
                ledger.compare(node, values[node])
                ledger.sample(node.name)
        else:
            result = torch.fx.map_arg(node.args[0], values.__getitem__)
        for dead in freed.get(node, ()):
            values.pop(dead, None)
    return result


def run_eagerly(gm: torch.fx.GraphModule,
                example_inputs: Any) -> Callable[[list[Any]], Any]:
    """The compiled form of a module for inner="aot_eager"."""
    torch_internals.boxed(gm)
    forward = gm.forward

    def run(arguments: list[Any]) -> Any:
        if (ledger := open_ledger()) is not None:
            with paused():
                return run_watched(gm, arguments, ledger)
        return forward(arguments)

    return torch_internals.boxed_compiler(run)
