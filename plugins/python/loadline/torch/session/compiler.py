"""torch.compile(model, backend="loadline", options={"budget": "22GiB"}).

The partitioner is where the decision falls: joint graph in, two modules out. Where
this PyTorch cannot be told so much, a lower tier (tiers.py) has less to decide.
Tested by tests/plugins/python/torch_step_test.py and torch_tiers_test.py.
"""
from __future__ import annotations

import dataclasses
from typing import Any

import torch
from loadline.errors import InvalidArgument
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.fallback import self_test
from loadline.torch.fallback.lower_tiers import Solver, in_segments, with_solver
from loadline.torch.problem.default_machine import first_device
from loadline.torch.rewrite.ledger import run_eagerly
from loadline.torch.rewrite.partitioner import Partitioner
from loadline.torch.rewrite.plan_order import PlanOrder
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.rewrite.planner_pass import PlannerPass
from loadline.torch.session.graph_breaks import graph_number, warn_before_unplanned_runs
from loadline.torch.solve.options import Options

# Of the step that self_test.py runs.
_SELF_TEST = Options(budget="86%", inner="aot_eager", work_limit=1000)


def current_tier() -> str:
    """Of this process; warns, once, where it is not the full one."""
    def full() -> str:
        found: list[PlannedGraph] = []
        return self_test.check_full(Partitioner(_SELF_TEST, tell=found.append), found)

    def recompute() -> str:
        return self_test.check_lower(lambda gm, inputs: torch_internals.compile_with_solver(
            gm, inputs, "aot_eager", Solver(_SELF_TEST, tell=lambda graph: None)))

    def public() -> str:
        return self_test.check_lower(lambda gm, inputs: in_segments(
            gm, PlannerPass(dataclasses.replace(_SELF_TEST, budget="90%"),
                      tell=lambda graph: None)))

    return tiers.choose({
        tiers.FULL: full, tiers.RECOMPUTE: recompute, tiers.PUBLIC: public})


def backend(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
            options: dict[str, Any] | None = None, **ignored: Any) -> Any:
    """What torch.compile calls, through the entry point torch_dynamo_backends."""
    if ignored:
        raise InvalidArgument(f"backend loadline knows no {', '.join(ignored)}")
    read = Options.read(options, first_device(
        [*example_inputs, *gm.parameters(), *gm.buffers()]))
    tier = current_tier()
    number = graph_number(gm, options, bool(read.shares))
    warn_before_unplanned_runs()
    if tier == tiers.RECOMPUTE:
        return with_solver(gm, example_inputs, Solver(read, number))
    if tier == tiers.PUBLIC:
        return in_segments(gm, PlannerPass(read, number))
    partitioner = Partitioner(read, number)
    if read.inner == "aot_eager":
        return torch_internals.aot_autograd(
            fw_compiler=run_eagerly, bw_compiler=run_eagerly,
            partition_fn=partitioner, keep_inference_input_mutations=True,
        )(gm, example_inputs)
    return torch_internals.compile_with_inductor(
        gm, example_inputs, partitioner, PlanOrder())
