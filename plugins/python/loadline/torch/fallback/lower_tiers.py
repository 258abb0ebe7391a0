"""The two tiers below the full one: what they plan and how PyTorch is given the result.

Tested by tests/plugins/python/torch_tiers_test.py.
"""
from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any

import torch
from loadline import planning
from loadline.errors import Infeasible, LoadlineWarning
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.fallback import solver_hook
from loadline.torch.fallback.segments import Segments
from loadline.torch.problem.make_problem import make_problem
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.rewrite.planner_pass import PlannerPass
from loadline.torch.solve.make_plan import plan_for_ranks


class KnapsackSolver(
        PlannerPass,
        torch_internals.CustomKnapsackSolver or object):  # type: ignore[misc]
    """The tier of recomputing only: answers PyTorch's partitioner, which asks which of
    the values that are expensive to compute are saved."""

    asked = False

    def __call__(self, memory: list[float], joint_graph: torch.fx.Graph,
                 max_memory: float, node_info: Any,
                 all_recomputable_banned_nodes: list[torch.fx.Node]
                 ) -> tuple[list[int], list[int]]:
        """The places, among the nodes, of those that are saved and of the others."""
        start = time.perf_counter()
        self.asked = True
        traced = make_problem(
            solver_hook.joint_of(joint_graph),
            dataclasses.replace(self.options.machine, d2h_bytes_per_s=0), copies=None,
            states=False)
        whole = planning.keep_everything(traced.document).peak_bytes
        _, _, plan = plan_for_ranks(traced.document, self.options, whole)
        self.recorder.record(PlannedGraph(
            traced.document, plan, plan.peak_bytes, whole, time.perf_counter() - start,
            self.options, tiers.RECOMPUTE, self.number))
        again = solver_hook.recomputed(traced, plan.sequence,
                                       all_recomputable_banned_nodes)
        return [at for at in range(len(memory)) if at not in again], again


def with_solver(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
                solver: KnapsackSolver) -> Any:
    """What the backend returns in the tier of recomputing only."""
    compiled = torch_internals.compile_with_solver(
        gm, example_inputs, solver.options.inner, solver)
    if not solver.asked and torch.is_grad_enabled() and any(
            isinstance(t, torch.Tensor) and t.requires_grad for t in example_inputs):
        warnings.warn(
            "loadline: a graph runs unplanned: it has no operators that are expensive to "
            "compute, so PyTorch never called our solver and saves as little as it can",
            LoadlineWarning, stacklevel=2)
    return compiled


def in_segments(gm: torch.fx.GraphModule, planner_pass: PlannerPass) -> Segments:
    """What the backend returns in the tier of public names."""
    def decide(problems: list[dict[str, Any]]) -> tuple[int, planning.Plan]:
        start = time.perf_counter()
        whole = planning.keep_everything(problems[0]).peak_bytes
        plans, errors = dict[int, planning.Plan](), list[Infeasible]()
        for number, problem in enumerate(problems):
            try:
                _, _, plans[number] = plan_for_ranks(
                    problem, planner_pass.options, whole, effort="quick")
            except Infeasible as error:
                errors.append(error)
        if not plans:
            raise min(errors, key=lambda error: error.smallest_met_bytes)
        best = min(plans, key=lambda number: plans[number].step_ns)
        planner_pass.recorder.record(PlannedGraph(
            problems[best], plans[best], plans[best].peak_bytes, whole,
            time.perf_counter() - start, planner_pass.options, tiers.PUBLIC,
            planner_pass.number))
        return best, plans[best]

    return Segments(gm, planner_pass.options.machine, decide)
