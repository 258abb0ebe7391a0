"""One search of the planner, within what the budget leaves for the graph.

Tested by tests/plugins/python/torch_prepare_test.py and torch_make_plan_test.py.
"""
from __future__ import annotations

import math
from typing import Any

from loadline import planning
from loadline.budget import SMALLEST, format_bytes, is_share, parse_budget
from loadline.errors import Infeasible
from loadline.torch.solve import rank_consensus
from loadline.torch.solve.options import Options
from loadline.torch.solve.search_log import logged_search
# Of the planner, for a plan that is used for hours and that a compile waits for.
EFFORT = "moderate"


def asked_bytes(options: Options, whole_bytes: int, plan: planning.Plan | None = None
                ) -> int:
    """The budget of the whole model in bytes. whole_bytes: this graph's alone, if its
    options have shares. plan: that was made; the smallest budget is known then only."""
    if options.budget == SMALLEST:
        assert plan is not None
        return math.ceil(plan.budget_bytes / options.share) + _reserved(options)
    if options.shares:
        whole_bytes = int(whole_bytes / options.share)
    return parse_budget(options.budget,
                        whole_bytes + options.reserve_bytes + options.outside_bytes)


def _reserved(options: Options) -> int:
    return options.reserve_bytes + options.outside_bytes + options.corrected_bytes


def make_plan(problem: dict[str, Any], whole_bytes: int, options: Options,
              effort: str) -> planning.Plan:
    """Raises Infeasible with budgets of the whole model, not of the graph alone.

    whole_bytes: the peak when everything is kept, 100 % of a budget. effort: the
    planner's level."""
    reserved, share = _reserved(options), options.share
    asked, budget = 0, options.budget
    if budget != SMALLEST:
        asked = asked_bytes(options, whole_bytes)
        # If it is too small, the error names a sufficient budget.
        budget = max(int((asked - reserved) * share) if options.shares
                     else asked - reserved, 1)
    try:
        with logged_search(budget, options.time_limit_s) as progress:
            return planning.plan(
                problem, budget, recompute=options.recompute, offload=options.offload,
                effort=effort, work_limit=options.work_limit, seed=options.seed,
                threads=options.threads,
                time_limit_s=options.time_limit_s, progress=progress)
    except Infeasible as error:
        if reserved == 0 and share == 1:
            raise
        # In the unit of the caller's budget. Another division might give the graph all of it.
        met = error.smallest_met_bytes and math.ceil(
            error.smallest_met_bytes / share) + reserved
        bound = error.proven_bound_bytes and error.proven_bound_bytes + reserved
        within = ", and the graph gets its share of the rest" if options.shares else ""
        # As where code between graphs takes memory that no plan has.
        corrected = (f", and {format_bytes(options.corrected_bytes)} for what a measured step "
                     "takes beyond its plans") if options.corrected_bytes else ""
        share_text = f"{options.budget} = " if is_share(options.budget) else ""
        unit = f' (a number is bytes; there is "{asked}GiB" too)' if 0 < asked < 1024 else ""
        raise Infeasible(
            f"budget {share_text + format_bytes(asked) + unit if asked else options.budget}: "
            f"{format_bytes(reserved)} are reserved for memory "
            f"outside the graph (such as optimizer state or a GPU's context{corrected}){within}; "
            f"with that the smallest budget met is {met} bytes ({format_bytes(met)}). "
            + (f"For the graph alone: {error}" if asked > reserved or not asked else
               "The reserved bytes alone exceed the budget"), asked, met, bound) from error


def plan_for_ranks(problem: dict[str, Any], options: Options,
                   whole_bytes: int | None = None, effort: str = EFFORT
                   ) -> tuple[dict[str, Any], int, planning.Plan]:
    """The problem that was planned, its bytes when everything is kept, and its plan: of
    all ranks, if they plan together, else of this one.

    whole_bytes: if not those of this problem."""
    together = options.agree and rank_consensus.rank_count() > 1
    if together:
        problem, together = rank_consensus.common_problem(problem)
    whole = whole_bytes if whole_bytes is not None else (
        planning.keep_everything(problem).peak_bytes)

    def solve() -> planning.Plan:
        return make_plan(problem, whole, options, effort)

    plan = rank_consensus.plan_of_rank_0(problem, solve) if together else solve()
    return problem, whole, plan
