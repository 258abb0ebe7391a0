"""torch.compile(model, backend="loadline", options={"budget": "22GiB"}).

The partitioner is where the decision falls: joint graph in, two modules out.
Tested by tests/plugins/python/torch_step_test.py.
"""
from __future__ import annotations

import dataclasses
import hashlib
import logging
import pathlib
import time
import warnings
from typing import Any

import torch
from loadline import planning
from loadline._library import version as loadline_version
from loadline.budget import format_bytes, parse_budget
from loadline.errors import Infeasible, InternalError, InvalidArgument
from loadline.machine import Machine
from loadline.torch import private
from loadline.torch.joint import clean, read_joint
from loadline.torch.ledger import run_eagerly
from loadline.torch.pose import Posed, pose
from loadline.torch.price import NOMINAL, node_flops
from loadline.torch.program import peak_bytes, program_of
from loadline.torch.split import Split, split

log = logging.getLogger("loadline.torch")

# The default of a search in a compiler, where somebody waits: about a second.
WORK_LIMIT = 1_000_000


@dataclasses.dataclass(frozen=True)
class Options:
    """What `options=` of torch.compile may hold."""

    budget: int | str  # bytes, "22GiB", or "60%" of what keeping all takes
    inner: str = "inductor"  # or "aot_eager": no C++ compiler, exact ledger
    reserve_bytes: int = 0  # of the budget, for what the graph does not see
    machine: Machine = NOMINAL
    recompute: bool = True
    offload: bool = True  # where the machine has copies
    work_limit: int = WORK_LIMIT
    seed: int = 0
    # By node, what its result took in a step that was measured (prepare.py).
    found_bytes: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def read(options: dict[str, Any] | None) -> Options:
        given = dict(options or {})
        names = [field.name for field in dataclasses.fields(Options)]
        for name in given:
            if name not in names:
                raise InvalidArgument(
                    f"option {name!r}: no such; there are {', '.join(names)}")
        if "budget" not in given:
            raise InvalidArgument(
                'option "budget" is missing: options={"budget": "22GiB"}')
        if given.get("inner", "inductor") not in ("inductor", "aot_eager"):
            raise InvalidArgument(
                f"option inner={given['inner']!r}: want inductor or aot_eager")
        if isinstance(given.get("machine"), str):
            given["machine"] = Machine.load(given["machine"])
        result = Options(**given)
        parse_budget(result.budget, 1 << 40)  # refuses what is no budget
        return result


@dataclasses.dataclass
class PlannedGraph:
    """One joint graph: its problem, its plan, what became of both."""

    posed: Posed
    plan: planning.Plan
    peak_bytes: int  # of what runs, in its order; without copies the plan's
    keep_everything_bytes: int
    recomputed_flops: int
    planning_s: float  # added to what PyTorch does anyway
    split: Split
    options: Options
    measured_bytes: int | None = None  # of a step, where it could be measured
    surprises: dict[str, tuple[int, int]] = dataclasses.field(
        default_factory=dict)  # Ledger.surprises of that step

    @property
    def problem(self) -> dict[str, Any]:
        return self.posed.document


planned: list[PlannedGraph] = []  # of this process, oldest first


def describe(graph: PlannedGraph) -> str:
    plan = graph.plan.document["predicted"]
    parts = [f"peak {format_bytes(graph.peak_bytes)} of "
             f"{format_bytes(graph.plan.budget_bytes)}; keeping everything "
             f"{format_bytes(graph.keep_everything_bytes)}"]
    if plan["recompute_ns"]:
        parts.append(f"{100 * plan['recompute_ns'] / plan['compute_ns']:.1f} % of "
                     f"the step computed again ({graph.recomputed_flops} FLOPs)")
    if plan["d2h_bytes"]:
        parts.append(f"{format_bytes(plan['d2h_bytes'])} copied out")
    parts.append(f"planned in {graph.planning_s:.2f} s")
    return "; ".join(parts)


def make_plan(posed: Posed, whole_bytes: int, options: Options) -> planning.Plan:
    """whole_bytes: what keeping everything takes, 100 % of a budget."""
    bytes_ = parse_budget(options.budget, whole_bytes + options.reserve_bytes)
    bytes_ -= options.reserve_bytes
    if bytes_ <= 0:
        raise Infeasible(
            f"budget {options.budget}: {format_bytes(options.reserve_bytes)} of it "
            "are reserved for what lies outside the graph", bytes_)
    return planning.plan(posed.document, bytes_, recompute=options.recompute,
                         offload=options.offload, work_limit=options.work_limit,
                         seed=options.seed)


def recomputed_flops(posed: Posed, sequence: list[int]) -> int:
    seen: set[int] = set()
    flops = 0
    for number in sequence:
        operation = posed.operations[number]
        if number in seen and operation is not None:
            flops += node_flops(operation.node)
        seen.add(number)
    return flops


class Partitioner(private.CustomPartitionerFn):
    """At module level, so that Inductor's cache can pickle it."""

    def __init__(self, options: Options):
        self.options = options

    def uuid(self) -> Any:
        # Same options and same code make the same plan of a graph.
        files = sorted(map(str, pathlib.Path(__file__).parent.parent.rglob("*.py")))
        return hashlib.sha256(
            f"{self.options} {loadline_version()}".encode()
            + private.get_hash_for_files(tuple(files))).hexdigest()

    def __call__(self, gm: torch.fx.GraphModule, joint_inputs: Any,
                 **kwargs: Any) -> tuple[torch.fx.GraphModule,
                                         torch.fx.GraphModule]:
        start = time.perf_counter()
        clean(gm)
        joint = read_joint(gm, kwargs["num_fwd_outputs"],
                           dict(self.options.found_bytes))
        machine = self.options.machine
        on_cpu = all(node.meta["val"].device.type == "cpu"
                     for node in joint.primals)
        if self.options.inner == "inductor" or not on_cpu:
            # Inductor would move the copies, and only the CPU has them.
            machine = dataclasses.replace(machine, d2h_bytes_per_s=0)
        posed = pose(joint, machine)
        whole = planning.keep_everything(posed.document).peak_bytes
        plan = make_plan(posed, whole, self.options)
        peak = peak_bytes(posed.document, plan.document)
        if peak > plan.budget_bytes:
            raise InternalError(
                f"the plan's steps in one order take {peak} of "
                f"{plan.budget_bytes} bytes: please report it")
        parts = split(posed, program_of(posed, plan.document), joint_inputs,
                      **kwargs)
        planned.append(PlannedGraph(
            posed, plan, peak, whole,
            recomputed_flops(posed, plan.sequence),
            time.perf_counter() - start - parts.partition_s, parts,
            self.options))
        log.info("%s", describe(planned[-1]))
        log.debug("saved beyond what PyTorch's partitioner would for these tags: "
                  "%s; not saved although it would: %s", parts.missing, parts.extra)
        return parts.forward, parts.backward


# Dynamo's frames that have a plan, by the options they were compiled with; the
# options are kept, so that no other gets their id.
_frames: dict[int, tuple[Any, set[int]]] = {}


def _warn_of_graph_break(options: Any) -> None:
    frame = private.frame_id()
    _, frames = _frames.setdefault(id(options), (options, set()))
    frames.add(frame)
    if len(frames) > 1:
        warnings.warn(
            f"loadline: a graph break made {len(frames)} graphs of one model. Each "
            "is planned within the whole budget, and their bytes add up. Find the "
            "break with torch.compile(..., fullgraph=True), or share the budget "
            "out with the option reserve_bytes", stacklevel=2)


def backend(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
            options: dict[str, Any] | None = None, **ignored: Any) -> Any:
    """What torch.compile calls, through the entry point torch_dynamo_backends."""
    if ignored:
        raise InvalidArgument(f"backend loadline knows no {', '.join(ignored)}")
    read = Options.read(options)
    _warn_of_graph_break(options)
    partitioner = Partitioner(read)
    if read.inner == "aot_eager":
        return private.aot_autograd(
            fw_compiler=run_eagerly, bw_compiler=run_eagerly,
            partition_fn=partitioner, keep_inference_input_mutations=True,
        )(gm, example_inputs)
    return private.compile_with_inductor(gm, example_inputs, partitioner)
