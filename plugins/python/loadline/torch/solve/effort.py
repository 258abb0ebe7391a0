"""Every decision that Python still takes in the planner's place.

The planner decides, and Python only hands over a problem and options. These decisions
are here until `SolveOptions` takes them; then this module is deleted, and its callers
pass `Options.work_limit` on:

1. Work: `WORK_LIMIT` candidate edits are priced by default, fewer than the planner's
   own default, because a compile waits for the search.
2. Retries: a search that finds no plan, and no proof that there is none, is repeated
   with 4 and then 16 times the work. The planner's own retries are off (`harder`), so
   that they are not made twice.
3. Stalls: if a plan waits for copies for more than 5 % of its step, one more search
   with 8 times the work may replace it. Which values are copied, and when, is what a
   longer search changes most.
4. Copies or none: on a GPU a plan without copies is made as well. The plan with copies
   is taken only if it is faster by more than the host needs to issue its copies, which
   no plan counts.
5. Segments (the lowest tier) are planned at several widths, each searched once, and the
   fastest plan is taken.

What `prepare` does after measuring a step is no part of this: it changes the problem.
Tested by tests/plugins/python/torch_effort_test.py.
"""
from __future__ import annotations

from collections.abc import Callable

import torch
from loadline.errors import Infeasible
from loadline.machine import Machine
from loadline.planning import Plan

WORK_LIMIT = 2_000_000  # candidate edits; about a second
RETRY_WORK_FACTORS = (1, 4, 16)
STALL_RETRY_WORK_FACTOR = 8
LONG_STALL_SHARE = 0.05  # of the step
# What the host needs to issue one copy, out or in, to a GPU: 240 to 370 us were measured
# (docs/gpu.md).
COPY_HOST_CALL_NS = 250_000

# Takes a work factor and whether copies are allowed; raises Infeasible.
Search = Callable[[int, bool], Plan]


def copy_call_ns(offload: bool, machine: Machine, copied: torch.device | None) -> int:
    """Host time for one copy that a plan does not count; 0: decision 4 does not apply.

    offload: the option. copied: the device whose values may be copied, if any. On a CPU
    the copy itself is host work, so its call needs no extra price."""
    counts = offload and machine.d2h_bytes_per_s > 0 and (
        copied is not None and copied.type != "cpu")
    return COPY_HOST_CALL_NS if counts else 0


def plan_with_effort(search: Search, call_ns: int = 0) -> Plan:
    """Decisions 2 to 4. call_ns: from `copy_call_ns`."""
    if not call_ns:
        return _search_with_retries(search)
    try:
        alone = search(1, False)
    except Infeasible:
        return _search_with_retries(search)
    try:
        copying = _retry_long_stall(search(1, True), search)
    except Infeasible:
        return alone
    calls_ns = call_ns * sum("from" in step for step in copying.document["steps"])
    return copying if copying.step_ns + calls_ns < alone.step_ns else alone


def plan_once(search: Search) -> Plan:
    """Of many cuts of a model most have no plan, so none is searched longer."""
    return search(1, True)


def fastest(plans: dict[int, Plan]) -> int:
    """The number of the plan with the shortest step."""
    return min(plans, key=lambda number: plans[number].step_ns)


def _search_with_retries(search: Search) -> Plan:
    plan = None
    for factor in RETRY_WORK_FACTORS:
        try:
            plan = search(factor, True)
            break
        except Infeasible as error:
            if factor == RETRY_WORK_FACTORS[-1] or (
                    error.proven_bound_bytes > error.budget_bytes):
                raise
    assert plan is not None
    return plan if factor >= STALL_RETRY_WORK_FACTOR else _retry_long_stall(plan, search)


def _retry_long_stall(plan: Plan, search: Search) -> Plan:
    stall_ns = plan.document["predicted"]["stall_ns"]
    if stall_ns <= LONG_STALL_SHARE * plan.step_ns:
        return plan
    try:
        return min(plan, search(STALL_RETRY_WORK_FACTOR, True),
                   key=lambda one: one.step_ns)
    except Infeasible:
        return plan
