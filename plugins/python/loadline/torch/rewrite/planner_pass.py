"""What the passes of all tiers have in common: whose graph it is, who is told, and the
plan within what the budget leaves for it.

Tested by tests/plugins/python/torch_step_test.py and torch_tiers_test.py.
"""
from __future__ import annotations

import dataclasses
import hashlib
import math
import pathlib
from collections.abc import Callable
from typing import Any

from loadline import planning
from loadline._library import version as loadline_version
from loadline.budget import format_bytes, parse_budget
from loadline.errors import Infeasible
from loadline.torch.compat import torch_internals
from loadline.torch.rewrite.planned_graph import PlannedGraph, remember
from loadline.torch.solve.options import Options

RETRY_WORK_FACTORS = (1, 4, 16)  # times the work
STALL_RETRY_WORK_FACTOR = 8
LONG_STALL_SHARE = 0.05  # of the step
# What the calls for one copy, out or in, take of a host beside a GPU: 240 to 370 us were
# measured (docs/gpu.md).
COPY_HOST_CALL_NS = 250_000
MAX_WORK = (1 << 63) - 1


@dataclasses.dataclass(eq=False)
class PlannerPass:
    """At module level, so that Inductor's cache can pickle what derives from it."""

    options: Options
    number: int = 0  # of the graph, where there are several
    tell: Callable[[PlannedGraph], None] = remember

    def uuid(self) -> Any:
        # Same options and same code make the same plan of a graph.
        files = sorted(map(str, pathlib.Path(__file__).parents[2].rglob("*.py")))
        return hashlib.sha256(
            f"{self.options} {self.number} {loadline_version()}".encode()
            + torch_internals.get_hash_for_files(tuple(files))).hexdigest()


def search_with_retries(search: Callable[[int], planning.Plan]) -> planning.Plan:
    """search: with so many times the work; again with more where it found no plan and
    no proof that there is none: a longer wait is better than no training. And once more
    where the plan waits long for copies: which are made, and when, is what a longer
    search changes most."""
    plan = None
    for harder in RETRY_WORK_FACTORS:
        try:
            plan = search(harder)
            break
        except Infeasible as error:
            if harder == RETRY_WORK_FACTORS[-1] or error.proven_bound_bytes > error.budget_bytes:
                raise
    assert plan is not None
    return plan if harder >= STALL_RETRY_WORK_FACTOR else _retry_long_stalls(plan, search)


def _retry_long_stalls(plan: planning.Plan,
                     search: Callable[[int], planning.Plan]) -> planning.Plan:
    waits = plan.document["predicted"]["stall_ns"] > LONG_STALL_SHARE * plan.step_ns
    if not waits:
        return plan
    try:
        return min(plan, search(STALL_RETRY_WORK_FACTOR), key=lambda one: one.step_ns)
    except Infeasible:
        return plan


def choose_copies(search: Callable[[int, bool], planning.Plan],
                   copy_calls_ns: int) -> planning.Plan:
    """search: with so many times the work, with copies or without. A GPU's copies run
    beside it, and their calls on a host that it may wait for, which no plan counts: one
    with copies has to be sooner by the time of all of them."""
    if not copy_calls_ns:
        return search_with_retries(lambda harder: search(harder, True))
    try:
        alone = search(1, False)
    except Infeasible:
        return search_with_retries(lambda harder: search(harder, True))
    try:
        copying = _retry_long_stalls(
            search(1, True), lambda harder: search(harder, True))
    except Infeasible:
        return alone
    calls_ns = copy_calls_ns * sum("from" in step for step in copying.document["steps"])
    return copying if copying.step_ns + calls_ns < alone.step_ns else alone


def make_plan(problem: dict[str, Any], whole_bytes: int, options: Options,
              number: int, harder: int = 1, copies: bool = True) -> planning.Plan:
    """whole_bytes: what keeping everything takes, 100 % of a budget; number: of
    the graph, where there are several; harder: times the work; copies: may be made,
    where the options have any."""
    reserved = options.reserve_bytes + options.outside_bytes
    share = options.shares[min(number, len(options.shares) - 1)] if (
        options.shares) else 1.0
    if options.shares:  # whole_bytes is this graph's alone
        whole_bytes = int(whole_bytes / share)
    asked = parse_budget(options.budget, whole_bytes + reserved)
    bytes_ = asked - reserved
    if options.shares:
        bytes_ = int(bytes_ * share)
    aside = (f"budget {options.budget}: {format_bytes(reserved)} of it are reserved for "
             "what lies outside the graph, as optimizer state or a GPU's context")
    bytes_ = max(bytes_, 1)  # too few in any case: the error says how many are enough
    try:
        return planning.plan(
            problem, bytes_, recompute=options.recompute,
            offload=options.offload and copies,
            work_limit=min(options.work_limit * harder, MAX_WORK), harder=False,
            seed=options.seed)
    except Infeasible as error:
        if reserved == 0 and share == 1:
            raise
        # What the caller would have to ask for.
        met, bound = (math.ceil(b / share) + reserved if b else 0
                      for b in (error.smallest_met_bytes, error.proven_bound_bytes))
        within = ", and of the rest the graph has its share" if options.shares else ""
        raise Infeasible(
            f"{aside}{within}; the smallest budget met is {met} bytes "
            f"({format_bytes(met)}) with that. For the graph alone: {error}",
            asked, met, bound) from error
