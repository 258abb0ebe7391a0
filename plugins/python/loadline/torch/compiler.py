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
import weakref
from typing import Any

import torch
from loadline import planning
from loadline._library import version as loadline_version
from loadline.budget import format_bytes, parse_budget
from loadline.errors import Infeasible, InternalError, InvalidArgument, LoadlineError
from loadline.machine import Machine
from loadline.torch import agree, private, self_test
from loadline.torch.copies import Slab
from loadline.torch.joint import clean, read_joint
from loadline.torch.ledger import run_eagerly
from loadline.torch.measure import measured_ns
from loadline.torch.pose import Posed, StateBucket, pose
from loadline.torch.price import NOMINAL, node_flops
from loadline.torch.program import peaks, program_of
from loadline.torch.split import split
from loadline.torch.tail import STORE, tail_of, with_tail

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
    measure: bool = False  # operators' times instead of the roofline (measure.py)
    # By node, what its result took in a step that was measured (prepare.py).
    found_bytes: tuple[tuple[str, int], ...] = ()
    # Optimizer state that may live on the host (prepare.py).
    state: tuple[StateBucket, ...] = ()
    # Of the budget, by graph in the order of compiling: after a graph break each
    # has its own. None: each the whole.
    shares: tuple[float, ...] = ()
    # One plan for all ranks, where torch.distributed is initialized (agree.py).
    agree: bool = False

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
    peak_bytes: int  # of forward and backward, in their order
    update_peak_bytes: int  # of the optimizer's step, where it is planned; else 0
    tail: list[tuple[str, int]]  # of that step (tail.py)
    keep_everything_bytes: int
    recomputed_flops: int
    planning_s: float  # added to what PyTorch does anyway
    saved_count: int  # tensors that pass from forward to backward
    slab: weakref.ref[Slab]  # gone with the modules that copy
    options: Options
    measured_bytes: int | None = None  # of a step, where it could be measured
    surprises: dict[str, tuple[int, int]] = dataclasses.field(
        default_factory=dict)  # Ledger.surprises of that step

    @property
    def problem(self) -> dict[str, Any]:
        return self.posed.document

    @property
    def hosted(self) -> set[int]:
        """Buckets of optimizer state that live on the host."""
        return {bucket for action, bucket in self.tail if action == STORE}

    @property
    def resident_state_bytes(self) -> int:
        return sum(bucket.bytes for number, bucket in enumerate(self.options.state)
                   if number not in self.hosted)


# Of the step that self_test.py runs.
_SELF_TEST = Options(budget="86%", inner="aot_eager", work_limit=1000)

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


def make_plan(posed: Posed, whole_bytes: int, options: Options,
              number: int) -> planning.Plan:
    """whole_bytes: what keeping everything takes, 100 % of a budget; number: of
    the graph, where there are several."""
    if options.shares:  # whole_bytes is this graph's alone
        whole_bytes = int(whole_bytes / options.shares[
            min(number, len(options.shares) - 1)])
    bytes_ = parse_budget(options.budget, whole_bytes + options.reserve_bytes)
    bytes_ -= options.reserve_bytes
    if options.shares:
        bytes_ = int(bytes_ * options.shares[min(number, len(options.shares) - 1)])
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

    def __init__(self, options: Options, number: int = 0):
        self.options = options
        self.number = number  # of the graph, where there are several

    def uuid(self) -> Any:
        # Same options and same code make the same plan of a graph.
        files = sorted(map(str, pathlib.Path(__file__).parent.parent.rglob("*.py")))
        return hashlib.sha256(
            f"{self.options} {self.number} {loadline_version()}".encode()
            + private.get_hash_for_files(tuple(files))).hexdigest()

    def __call__(self, gm: torch.fx.GraphModule, joint_inputs: Any,
                 **kwargs: Any) -> tuple[torch.fx.GraphModule,
                                         torch.fx.GraphModule]:
        try:
            return self.partition(gm, joint_inputs, **kwargs)
        except LoadlineError:
            raise
        except Exception as error:
            # Some kinds would make the compiler run the model unplanned.
            raise InternalError(
                f"{type(error).__name__} while planning: {error}") from error

    def partition(self, gm: torch.fx.GraphModule, joint_inputs: Any,
                  **kwargs: Any) -> tuple[torch.fx.GraphModule,
                                          torch.fx.GraphModule]:
        start = time.perf_counter()
        clean(gm)
        joint = read_joint(gm, kwargs["num_fwd_outputs"],
                           dict(self.options.found_bytes))
        machine = self.options.machine
        on_cpu = all(node.meta["val"].device.type == "cpu"
                     for node in joint.primals)
        # Inductor would move the copies, and only the CPU has them.
        copies = self.options.inner == "aot_eager" and on_cpu
        if not copies and not self.options.state:
            machine = dataclasses.replace(machine, d2h_bytes_per_s=0)
        times = measured_ns(joint.operations, joint.primals[0].meta["val"].device) if (
            self.options.measure) else {}
        posed = pose(joint, machine, self.options.state, copies, times)
        together = self.options.agree and agree.ranks() > 1
        if together:
            posed.document, together = agree.worst_problem(posed.document)
        whole = planning.keep_everything(posed.document).peak_bytes

        def solve() -> planning.Plan:
            return make_plan(posed, whole, self.options, self.number)

        plan = agree.from_rank_0(posed.document, solve) if together else solve()
        tail = tail_of(posed, plan.document)
        peak, update_peak = peaks(posed.document,
                                  *with_tail(posed, plan.document, tail))
        if max(peak, update_peak) > plan.budget_bytes:
            raise InternalError(
                f"the plan's steps in one order take {max(peak, update_peak)} of "
                f"{plan.budget_bytes} bytes: please report it")
        parts = split(posed, program_of(posed, plan.document), joint_inputs,
                      **kwargs)
        planned.append(PlannedGraph(
            posed, plan, peak, update_peak, tail, whole,
            recomputed_flops(posed, plan.sequence),
            time.perf_counter() - start - parts.partition_s,
            len(parts.saved), weakref.ref(parts.slab), self.options))
        log.info("%s", describe(planned[-1]))
        log.debug("saved beyond what PyTorch's partitioner would for these tags: "
                  "%s; not saved although it would: %s", parts.missing, parts.extra)
        return parts.forward, parts.backward


# Dynamo's frames that have a plan, by the options they were compiled with; the
# options are kept, so that no other gets their id.
_frames: dict[int, tuple[Any, list[int]]] = {}


def _number_of_graph(options: Any, shared: bool) -> int:
    """0 without a graph break; warns of one."""
    frame = private.frame_id()
    _, frames = _frames.setdefault(id(options), (options, []))
    if frame not in frames:
        frames.append(frame)
    if len(frames) > 1:
        within = ("Each is planned within a share of the budget" if shared else
                  "Each is planned within the whole budget, and their bytes add up: "
                  "loadline.torch.prepare shares it out")
        warnings.warn(
            f"loadline: a graph break made {len(frames)} graphs of one model. "
            f"{within}. Find the break with torch.compile(..., fullgraph=True)",
            stacklevel=2)
    return frames.index(frame)


def backend(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
            options: dict[str, Any] | None = None, **ignored: Any) -> Any:
    """What torch.compile calls, through the entry point torch_dynamo_backends."""
    if ignored:
        raise InvalidArgument(f"backend loadline knows no {', '.join(ignored)}")
    read = Options.read(options)
    self_test.check(lambda: Partitioner(_SELF_TEST), planned)
    partitioner = Partitioner(read, _number_of_graph(options, bool(read.shares)))
    if read.inner == "aot_eager":
        return private.aot_autograd(
            fw_compiler=run_eagerly, bw_compiler=run_eagerly,
            partition_fn=partitioner, keep_inference_input_mutations=True,
        )(gm, example_inputs)
    return private.compile_with_inductor(gm, example_inputs, partitioner)
