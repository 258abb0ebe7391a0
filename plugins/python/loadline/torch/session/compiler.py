"""The backend: torch.compile(model, backend="loadline", options={"budget": "22GiB"}).

In the full tier it hands PyTorch a partitioner, which turns a traced step into two
planned modules. The lower tiers (fallback/) plan with what this PyTorch offers.
Tested by tests/plugins/python/torch_step_test.py and torch_tiers_test.py.
"""
from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable
from typing import Any

import torch
from loadline.errors import InvalidArgument, LoadlineError, LoadlineWarning, Unsupported
from loadline.torch.compat import dynamo_internals, recompile_internals, tiers, torch_internals
from loadline.torch.fallback import self_test
from loadline.torch.fallback.lower_tiers import KnapsackSolver, in_segments, with_solver
from loadline.torch.problem.default_machine import first_device
from loadline.torch.problem.gradients import owners_in
from loadline.torch.problem.parameters import places_in
from loadline.torch.rewrite.ledger import run_eagerly
from loadline.torch.rewrite.partitioner import Partitioner
from loadline.torch.rewrite.plan_order import PlanOrder
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.rewrite.planner_pass import PlannerPass
from loadline.torch.session.graph_breaks import (graph_number,
                                                 warn_before_unplanned_runs,
                                                 warn_of_changed_number,
                                                 warn_of_other_autocast)
from loadline.torch.session.live_forwards import watch
from loadline.torch.session.session import (Session, SessionReference,
                                            session_of_options)
from loadline.torch.solve.options import Options
from loadline.torch.structure.detach_outputs import (detach, outputs_beside_loss,
                                                   refusing_backward)
from loadline.torch.structure.part_sums import sum_losses
from loadline.torch.structure.split_head import split_head

# For the step that self_test.py runs.
_SELF_TEST = Options(budget="86%", inner="aot_eager", work_limit=1000)


class _TestRecorder:
    """A self-test is no graph of a user's model."""

    def __init__(self) -> None:
        self.graphs: list[PlannedGraph] = []

    def record(self, graph: PlannedGraph) -> None:
        self.graphs.append(graph)


def current_tier() -> str:
    """The tier of this process; warns once if it is not the full one."""
    def full() -> str:
        found = _TestRecorder()
        return self_test.check_full(Partitioner(_SELF_TEST, found), found.graphs)

    def recompute() -> str:
        return self_test.check_lower(
            lambda gm, inputs: torch_internals.compile_with_solver(
                gm, inputs, "aot_eager", KnapsackSolver(_SELF_TEST, _TestRecorder())))

    def public() -> str:
        return self_test.check_lower(lambda gm, inputs: in_segments(gm, PlannerPass(
            dataclasses.replace(_SELF_TEST, budget="90%"), _TestRecorder())))

    return tiers.choose({
        tiers.FULL: full, tiers.RECOMPUTE: recompute, tiers.PUBLIC: public})


def backend(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
            options: dict[str, Any] | None = None, **ignored: Any) -> Any:
    """What torch.compile calls, through the entry point torch_dynamo_backends."""
    if ignored:
        raise InvalidArgument(
            f"backend loadline has no argument {', '.join(ignored)}; it takes options")
    refuse_meta(example_inputs)
    if dynamo_internals.splits_for_ddp():
        raise Unsupported(
            "DistributedDataParallel's optimizer splits the model, and each part would get "
            f"the whole budget: set {dynamo_internals.WHOLE_UNDER_DDP} before the "
            "first step, or use loadline.torch.prepare, which does so")
    given = dict(options or {})
    reference = given.pop("session", None)
    read = Options.read(given, first_device(
        [*example_inputs, *gm.parameters(), *gm.buffers()]))
    tier = current_tier()
    owned = None if reference is None else reference()
    session = session_of_options(options) if owned is None else owned
    frame, code = dynamo_internals.traced_frame()
    rewritten = rewrite(gm, read, is_whole=not (
        dynamo_internals.break_reason(gm) or dynamo_internals.resumes(code)
        or session.frame_number(frame, code)))
    if wants_heads(read) and not rewritten.heads and reference is None:
        warnings.warn(
            "loadline: split: the traced graph has no cross entropy, so it runs in one piece",
            LoadlineWarning, stacklevel=2)
    session.heads += rewritten.heads
    session.detached_outputs += len(rewritten.detached)
    compiled = refusing_backward(_compile(gm, example_inputs, read, tier, session),
                                 rewritten.detached)
    if owned is not None:
        return compiled

    def run(*arguments: Any, _session: Session = session) -> Any:
        """The session lives as long as this, the compiled code."""
        return compiled(*arguments)

    return run


def wants_heads(options: Options) -> bool:
    return options.split != 1 and torch.is_grad_enabled()


@dataclasses.dataclass(frozen=True)
class Rewritten:
    heads: int  # that now run in segments
    detached: tuple[int, ...]  # places of outputs


def rewrite(gm: torch.fx.GraphModule, options: Options, is_whole: bool) -> Rewritten:
    """Gives a traced model the structure that the options ask for. An evaluation keeps its
    logits and its loss, which its caller may read. is_whole: the graph is no part of a model,
    whose outputs another part may read."""
    detaches = options.detach_outputs and is_whole and torch.is_grad_enabled()
    beside_loss = outputs_beside_loss(gm) if detaches else ()
    if options.part_sums and torch.is_grad_enabled():
        sum_losses(gm, options.part_statistics)
    heads = split_head(gm, options.split) if wants_heads(options) else 0
    return Rewritten(heads, detach(gm, beside_loss))


def refuse_meta(tensors: Iterable[object]) -> None:
    """Raises Unsupported for tensors without data."""
    if any(isinstance(tensor, torch.Tensor) and tensor.device.type == "meta"
           for tensor in tensors):
        raise Unsupported(
            "the model or its batch is on the device meta, where PyTorch leaves out the "
            "gradients of some operators, so a plan would be too small: move both to a "
            "device with data")


def check_model(model: torch.nn.Module) -> None:
    """Raises Unsupported for a model of TorchScript, and InvalidArgument for one whose
    parameters have no shapes yet."""
    if isinstance(model, torch.jit.ScriptModule):
        raise Unsupported(
            "PyTorch's compiler does not trace TorchScript (torch.jit.script, torch.jit.trace): "
            "give the module that it was made of")
    late = [name for name, one in [*model.named_parameters(), *model.named_buffers()]
            if torch.nn.parameter.is_lazy(one)]
    if late:
        raise InvalidArgument(
            f"the model's {late[0]} has no shape yet, as those of LazyLinear before the first "
            "forward: run one forward, then make the optimizer")


def refuse_switched_off() -> None:
    """For a step of which nothing was compiled: raises LoadlineError if the program wants
    that."""
    if reason := dynamo_internals.switched_off():
        raise LoadlineError(f"nothing was planned: PyTorch's compiler is switched off: {reason}")


def _compile(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
             options: Options, tier: str, session: Session) -> Any:
    number = graph_number(gm, session, options.shares)
    warn_of_changed_number(session)
    warn_of_other_autocast(session)
    warn_before_unplanned_runs()
    recompile_internals.guard_module_hooks()
    options = session.resolved(options, number)
    common = options, session.reference, number
    if tier == tiers.PUBLIC:
        return in_segments(gm, PlannerPass(*common))
    if tier == tiers.RECOMPUTE:
        compiled = with_solver(gm, example_inputs, KnapsackSolver(*common))
    elif session.host_parameters is not None:
        compiled = _compile_with_parameters(gm, example_inputs, common, session)
    else:
        compiled = _compile_as_planned(gm, example_inputs, options, Partitioner(
            *common, owners_in(session.owners, example_inputs)))
    return watch(compiled, session.reference, number)


def _compile_with_parameters(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
                             common: tuple[Options, SessionReference, int],
                             session: Session) -> Any:
    """For a session whose parameters may leave: each rests where this graph's plan says
    when its forward begins. A graph without a plan, as of an evaluation, reads parameters
    wherever they are."""
    options, _, number = common
    mover = session.host_parameters
    assert mover is not None
    mover.check_open()
    if number and torch.is_grad_enabled():
        raise Unsupported(
            "offload_parameters: the model has a graph break, and parameters may leave in "
            "one graph only. torch.compile(model, fullgraph=True) says where it is")
    before = session.graphs
    compiled = _compile_as_planned(gm, example_inputs, options, Partitioner(
        *common, owners_in(session.owners, example_inputs),
        places_in(mover.parameters, example_inputs)))
    made = [graph for graph in session.graphs if graph not in before]
    if not made:
        return compiled
    moves = made[-1].parameters

    def run(*arguments: Any) -> Any:
        mover.follow(moves)
        return compiled(*arguments)

    return run


def _compile_as_planned(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
                        options: Options, partitioner: Partitioner) -> Any:
    if options.inner == "aot_eager":
        return torch_internals.aot_autograd(
            fw_compiler=run_eagerly, bw_compiler=run_eagerly,
            partition_fn=partitioner, keep_inference_input_mutations=True,
        )(gm, example_inputs)
    try:
        return torch_internals.compile_with_inductor(
            gm, example_inputs, partitioner, PlanOrder())
    except Exception as error:
        if torch_internals.lacks_compiler(error):
            raise Unsupported(
                "Inductor finds no working C++ compiler: install one (Debian: apt install "
                "g++), name it in the environment variable CXX, or choose "
                'inner="aot_eager", which needs none') from error
        raise
