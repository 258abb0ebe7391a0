"""The two tiers below the full one: what they plan, and how PyTorch gets to know it.

Tested by tests/plugins/python/torch_tiers_test.py.
"""
from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from loadline import planning
from loadline.errors import Infeasible
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.fallback import solver_hook
from loadline.torch.fallback.segments import Segments
from loadline.torch.problem.make_problem import make_problem
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.rewrite.planner_pass import PlannerPass, make_plan, search_with_retries
from loadline.torch.solve import rank_consensus


class Solver(PlannerPass, torch_internals.CustomKnapsackSolver or object):  # type: ignore[misc]
    """What the tier of recomputing only answers PyTorch's partitioner."""

    asked = False

    def __call__(self, memory: list[float], joint_graph: torch.fx.Graph,
                 max_memory: float, node_info: Any,
                 all_recomputable_banned_nodes: list[torch.fx.Node]
                 ) -> tuple[list[int], list[int]]:
        start = time.perf_counter()
        self.asked = True
        traced = make_problem(solver_hook.joint_of(joint_graph),
                     dataclasses.replace(self.options.machine, d2h_bytes_per_s=0),
                     copies=None, states=False)
        whole = planning.keep_everything(traced.document).peak_bytes
        plan = _plan_below(traced.document, whole, self, search_with_retries)
        self.tell(PlannedGraph(
            traced.document, plan, plan.peak_bytes, whole, time.perf_counter() - start,
            self.options, tiers.RECOMPUTE))
        again = solver_hook.recomputed(traced, plan.sequence, all_recomputable_banned_nodes)
        return [at for at in range(len(memory)) if at not in again], again


def with_solver(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
                 solver: Solver) -> Any:
    compiled = torch_internals.compile_with_solver(
        gm, example_inputs, solver.options.inner, solver)
    if not solver.asked and torch.is_grad_enabled() and any(
            isinstance(t, torch.Tensor) and t.requires_grad for t in example_inputs):
        warnings.warn(
            "loadline: PyTorch asked nothing about a graph without operators that are "
            "dear to compute: it saves as little as it can there, and no budget is "
            "planned for", stacklevel=2)
    return compiled


def _plan_below(problem: dict[str, Any], whole_bytes: int,
                asked: PlannerPass, how: Callable[..., planning.Plan]) -> planning.Plan:
    """In a tier that can only compute again."""
    together = asked.options.agree and rank_consensus.rank_count() > 1
    if together:
        problem, together = rank_consensus.common_problem(problem)

    def solve() -> planning.Plan:
        return how(lambda harder: make_plan(
            problem, whole_bytes, asked.options, asked.number, harder))

    return rank_consensus.plan_of_rank_0(problem, solve) if together else solve()


def _once(search: Callable[[int], planning.Plan]) -> planning.Plan:
    """Of many cuts of a model most have no plan."""
    return search(1)


def in_segments(gm: torch.fx.GraphModule, asked: PlannerPass) -> Segments:
    def decide(problems: list[dict[str, Any]]) -> tuple[int, planning.Plan]:
        start = time.perf_counter()
        whole = planning.keep_everything(problems[0]).peak_bytes
        plans, errors = dict[int, planning.Plan](), list[Infeasible]()
        for number, problem in enumerate(problems):
            try:
                plans[number] = _plan_below(problem, whole, asked, _once)
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
