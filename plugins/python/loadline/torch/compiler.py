"""torch.compile(model, backend="loadline", options={"budget": "22GiB"}).

The partitioner is where the decision falls: joint graph in, two modules out. Where
this PyTorch cannot be told so much, a lower tier (tiers.py) has less to decide.
Tested by tests/plugins/python/torch_step_test.py and torch_tiers_test.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import os
import pathlib
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from loadline import planning
from loadline._library import version as loadline_version
from loadline.budget import check_whole, format_bytes, parse_budget
from loadline.errors import Infeasible, InternalError, InvalidArgument, LoadlineError
from loadline.machine import Machine
from loadline.torch import agree, private, self_test, solver_hook, tiers
from loadline.torch.copies import Slab
from loadline.torch.joint import Joint, Operation, clean, read_joint
from loadline.torch.ledger import run_eagerly
from loadline.torch.measure import measured_ns
from loadline.torch.pose import Posed, StateBucket, pose
from loadline.torch.price import NOMINAL, node_flops
from loadline.torch.program import Item, peaks, program_of
from loadline.torch.segments import Segments
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
        if isinstance(given.get("machine"), (str, os.PathLike)):
            given["machine"] = Machine.load(given["machine"])
        result = Options(**given)
        if not isinstance(result.machine, Machine):
            raise InvalidArgument(f"option machine={result.machine!r}: want a "
                                  "loadline.Machine or the path of a profile")
        for name in ("reserve_bytes", "work_limit", "seed"):
            check_whole(f"option {name}", getattr(result, name))
        parse_budget(result.budget, 1 << 40)  # refuses what is no budget
        return result


@dataclasses.dataclass
class PlannedGraph:
    """One graph: its problem, its plan, what became of both."""

    problem: dict[str, Any]
    plan: planning.Plan
    peak_bytes: int  # of forward and backward, in their order
    keep_everything_bytes: int
    planning_s: float  # added to what PyTorch does anyway
    options: Options
    tier: str = tiers.FULL  # below, peaks are estimates
    # Of the full tier:
    posed: Posed | None = None
    update_peak_bytes: int = 0  # of the optimizer's step, where it is planned
    tail: list[tuple[str, int]] = dataclasses.field(
        default_factory=list)  # of that step (tail.py)
    recomputed_flops: int = 0
    saved_count: int = 0  # tensors that pass from forward to backward
    slab: Callable[[], Slab | None] = lambda: None  # gone with the modules that copy
    measured_bytes: int | None = None  # of a step, where it could be measured
    surprises: dict[str, tuple[int, int]] = dataclasses.field(
        default_factory=dict)  # Ledger.surprises of that step
    # Values that PyTorch's partitioner saves or recomputes against the plan, twice:
    # then its own modules run.
    not_obeyed: list[str] = dataclasses.field(default_factory=list)

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

# The last of this process, oldest first: each holds a traced graph and its problem.
planned: list[PlannedGraph] = []
KEPT = 32
_watching: list[Callable[[PlannedGraph], None]] = []


def remember(graph: PlannedGraph) -> None:
    planned.append(graph)
    del planned[:-KEPT]
    for tell in list(_watching):
        tell(graph)
    log.info("%s", describe(graph))


def once_planned(options: Options, do: Callable[[PlannedGraph], None]) -> None:
    """With the first graph that is planned with just these options."""
    def tell(graph: PlannedGraph) -> None:
        if graph.options == options:
            _watching.remove(tell)
            do(graph)

    _watching.append(tell)


@contextlib.contextmanager
def watch() -> Iterator[list[PlannedGraph]]:
    """What is planned inside."""
    found: list[PlannedGraph] = []

    def tell(graph: PlannedGraph) -> None:
        found.append(graph)

    _watching.append(tell)
    try:
        yield found
    finally:
        _watching.remove(tell)


def describe(graph: PlannedGraph) -> str:
    plan = graph.plan.document["predicted"]
    parts = [f"peak {format_bytes(graph.peak_bytes)} of "
             f"{format_bytes(graph.plan.budget_bytes)}; keeping everything "
             f"{format_bytes(graph.keep_everything_bytes)}"]
    if plan["recompute_ns"]:
        flops = f" ({graph.recomputed_flops} FLOPs)" if graph.recomputed_flops else ""
        parts.append(f"{100 * plan['recompute_ns'] / plan['compute_ns']:.1f} % of "
                     f"the step computed again{flops}")
    if plan["d2h_bytes"]:
        parts.append(f"{format_bytes(plan['d2h_bytes'])} copied out")
    parts.append(f"planned in {graph.planning_s:.2f} s")
    return "; ".join(parts)


def make_plan(problem: dict[str, Any], whole_bytes: int, options: Options,
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
    return planning.plan(problem, bytes_, recompute=options.recompute,
                         offload=options.offload, work_limit=options.work_limit,
                         seed=options.seed)


def recomputed_flops(posed: Posed, sequence: list[int]) -> int:
    seen: set[int] = set()
    flops = 0
    for number in sequence:
        operation = posed.operations[number]
        if number in seen and isinstance(operation, Operation):
            flops += node_flops(operation.node)
        seen.add(number)
    return flops


@dataclasses.dataclass
class Solved:
    posed: Posed
    plan: planning.Plan
    tail: list[tuple[str, int]]
    peak_bytes: int
    update_peak_bytes: int
    whole_bytes: int  # what keeping everything takes

    @property
    def program(self) -> tuple[list[Item], list[Item]]:
        return program_of(self.posed, self.plan.document)


@dataclasses.dataclass(eq=False)
class _Pass:
    """At module level, so that Inductor's cache can pickle what derives from it."""

    options: Options
    number: int = 0  # of the graph, where there are several
    tell: Callable[[PlannedGraph], None] = remember

    def uuid(self) -> Any:
        # Same options and same code make the same plan of a graph.
        files = sorted(map(str, pathlib.Path(__file__).parent.parent.rglob("*.py")))
        return hashlib.sha256(
            f"{self.options} {self.number} {loadline_version()}".encode()
            + private.get_hash_for_files(tuple(files))).hexdigest()


class Solver(_Pass, private.CustomKnapsackSolver or object):  # type: ignore[misc]
    """What the tier of recomputing only answers PyTorch's partitioner."""

    asked = False

    def __call__(self, memory: list[float], joint_graph: torch.fx.Graph,
                 max_memory: float, node_info: Any,
                 all_recomputable_banned_nodes: list[torch.fx.Node]
                 ) -> tuple[list[int], list[int]]:
        start = time.perf_counter()
        self.asked = True
        posed = pose(solver_hook.joint_of(joint_graph),
                     dataclasses.replace(self.options.machine, d2h_bytes_per_s=0),
                     copies=False, states=False)
        whole = planning.keep_everything(posed.document).peak_bytes
        plan = _plan_below(posed.document, whole, self)
        self.tell(PlannedGraph(
            posed.document, plan, plan.peak_bytes, whole, time.perf_counter() - start,
            self.options, tiers.RECOMPUTE))
        again = solver_hook.again(posed, plan.sequence, all_recomputable_banned_nodes)
        return [at for at in range(len(memory)) if at not in again], again


def _with_solver(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
                 solver: Solver) -> Any:
    compiled = private.compile_with_solver(
        gm, example_inputs, solver.options.inner, solver)
    if not solver.asked and torch.is_grad_enabled() and any(
            isinstance(t, torch.Tensor) and t.requires_grad for t in example_inputs):
        warnings.warn(
            "loadline: PyTorch asked nothing about a graph without operators that are "
            "dear to compute: it saves as little as it can there, and no budget is "
            "planned for", stacklevel=2)
    return compiled


def _plan_below(problem: dict[str, Any], whole_bytes: int,
                asked: _Pass) -> planning.Plan:
    """In a tier that can only compute again."""
    together = asked.options.agree and agree.ranks() > 1
    if together:
        problem, together = agree.worst_problem(problem)

    def solve() -> planning.Plan:
        return make_plan(problem, whole_bytes, asked.options, asked.number)

    return agree.from_rank_0(problem, solve) if together else solve()


def _in_segments(gm: torch.fx.GraphModule, asked: _Pass) -> Segments:
    def decide(problems: list[dict[str, Any]]) -> tuple[int, planning.Plan]:
        start = time.perf_counter()
        whole = planning.keep_everything(problems[0]).peak_bytes
        plans, errors = dict[int, planning.Plan](), list[Infeasible]()
        for number, problem in enumerate(problems):
            try:
                plans[number] = _plan_below(problem, whole, asked)
            except Infeasible as error:
                errors.append(error)
        if not plans:
            raise min(errors, key=lambda error: error.smallest_met_bytes)
        best = min(plans, key=lambda number: plans[number].step_ns)
        asked.tell(PlannedGraph(
            problems[best], plans[best], plans[best].peak_bytes, whole,
            time.perf_counter() - start, asked.options, tiers.PUBLIC))
        return best, plans[best]

    return Segments(gm, asked.options.machine, decide)


class Partitioner(_Pass, private.CustomPartitionerFn or object):  # type: ignore[misc]
    """Of the full tier."""

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
        times = measured_ns(joint.operations, joint.primals[0].meta["val"].device) if (
            self.options.measure) else {}
        solved = self.solve(joint, times)
        parts = split(solved.posed, solved.program, joint_inputs, **kwargs)
        partition_s = parts.partition_s
        if parts.refused or parts.lost:
            # PyTorch did otherwise with these, so the plan is made around them.
            joint.fix(parts.refused, parts.lost)
            solved = self.solve(joint, times)
            parts = split(solved.posed, solved.program, joint_inputs, **kwargs)
            partition_s += parts.partition_s
        names = [node.name for node in (*parts.refused, *parts.lost)]
        self.tell(PlannedGraph(
            solved.posed.document, solved.plan, solved.peak_bytes, solved.whole_bytes,
            time.perf_counter() - start - partition_s, self.options, tiers.FULL,
            solved.posed, solved.update_peak_bytes, solved.tail,
            recomputed_flops(solved.posed, solved.plan.sequence),
            len(parts.saved), weakref.ref(parts.slab), not_obeyed=names))
        if names:
            warnings.warn(
                f"loadline: PyTorch's partitioner saves and recomputes otherwise than "
                f"the plan, for the second time ({', '.join(names[:5])}); this graph "
                "runs as PyTorch splits it, and may take more than its budget. "
                "loadline.torch.prepare measures what it takes; please report it",
                stacklevel=2)
            return parts.frames
        return parts.forward, parts.backward

    def solve(self, joint: Joint, times: dict[torch.fx.Node, int]) -> Solved:
        machine = self.options.machine
        on_cpu = all(node.meta["val"].device.type == "cpu"
                     for node in joint.primals)
        copies = on_cpu  # only the CPU has them
        if not copies and not self.options.state:
            machine = dataclasses.replace(machine, d2h_bytes_per_s=0)
        # Inductor draws random numbers in ways of its own.
        posed = pose(joint, machine, self.options.state, copies,
                     self.options.inner == "aot_eager", times)
        together = self.options.agree and agree.ranks() > 1
        if together:
            posed.document, together = agree.worst_problem(posed.document)
        whole = planning.keep_everything(posed.document).peak_bytes

        def solve() -> planning.Plan:
            return make_plan(posed.document, whole, self.options, self.number)

        plan = agree.from_rank_0(posed.document, solve) if together else solve()
        tail = tail_of(posed, plan.document)
        peak, update_peak = peaks(posed.document,
                                  *with_tail(posed, plan.document, tail))
        if max(peak, update_peak) > plan.budget_bytes:
            raise InternalError(
                f"the plan's steps in one order take {max(peak, update_peak)} of "
                f"{plan.budget_bytes} bytes: please report it")
        return Solved(posed, plan, tail, peak, update_peak, whole)


# Dynamo's frames that have a plan, by the options they were compiled with; the
# options are kept, so that no other gets their id.
_frames: dict[int, tuple[Any, list[int]]] = {}


def _number_of_graph(options: Any, shared: bool) -> int:
    """0 without a graph break; warns of one."""
    frame = private.frame_id()
    _, frames = _frames.setdefault(id(options), (options, []))
    while len(_frames) > KEPT:  # the oldest
        del _frames[next(iter(_frames))]
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


def chosen_tier() -> str:
    """Of this process; warns, once, where it is not the full one."""
    def full() -> str:
        found: list[PlannedGraph] = []
        return self_test.full(Partitioner(_SELF_TEST, tell=found.append), found)

    def recompute() -> str:
        return self_test.lower(lambda gm, inputs: private.compile_with_solver(
            gm, inputs, "aot_eager", Solver(_SELF_TEST, tell=lambda graph: None)))

    def public() -> str:
        return self_test.lower(lambda gm, inputs: _in_segments(
            gm, _Pass(dataclasses.replace(_SELF_TEST, budget="90%"),
                      tell=lambda graph: None)))

    return tiers.chosen({
        tiers.FULL: full, tiers.RECOMPUTE: recompute, tiers.PUBLIC: public})


def backend(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
            options: dict[str, Any] | None = None, **ignored: Any) -> Any:
    """What torch.compile calls, through the entry point torch_dynamo_backends."""
    if ignored:
        raise InvalidArgument(f"backend loadline knows no {', '.join(ignored)}")
    read = Options.read(options)
    tier = chosen_tier()
    number = _number_of_graph(options, bool(read.shares))
    if tier == tiers.RECOMPUTE:
        return _with_solver(gm, example_inputs, Solver(read, number))
    if tier == tiers.PUBLIC:
        return _in_segments(gm, _Pass(read, number))
    partitioner = Partitioner(read, number)
    if read.inner == "aot_eager":
        return private.aot_autograd(
            fw_compiler=run_eagerly, bw_compiler=run_eagerly,
            partition_fn=partitioner, keep_inference_input_mutations=True,
        )(gm, example_inputs)
    return private.compile_with_inductor(gm, example_inputs, partitioner)
