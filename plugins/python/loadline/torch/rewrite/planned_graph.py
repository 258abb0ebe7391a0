"""The graphs that were planned, and who wants to hear of the next one.

Tested by tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator
from typing import Any

from loadline import planning
from loadline.budget import format_bytes
from loadline.torch.compat import tiers
from loadline.torch.problem.make_problem import TracedProblem
from loadline.torch.rewrite.copies import Slab
from loadline.torch.rewrite.state_moves import StateMoves
from loadline.torch.solve.options import Options

log = logging.getLogger("loadline.torch")


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
    traced: TracedProblem | None = None
    update_peak_bytes: int = 0  # of the optimizer's step, where it is planned
    moves: StateMoves = StateMoves(0)  # of its state
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
    def resident_state_bytes(self) -> int:
        """Of what never leaves the device."""
        return sum(bucket.bytes for number, bucket in enumerate(self.options.state)
                   if number not in self.moves.moved)


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
             f"{format_bytes(graph.keep_everything_bytes)}",
             f"{graph.plan.step_ns / 1e6:.1f} ms predicted, "
             f"{(plan['compute_ns'] - plan['recompute_ns']) / 1e6:.1f} with all kept"]
    if plan["recompute_ns"]:
        flops = f" ({graph.recomputed_flops} FLOPs)" if graph.recomputed_flops else ""
        parts.append(f"{100 * plan['recompute_ns'] / plan['compute_ns']:.1f} % of "
                     f"the step computed again{flops}")
    if plan["d2h_bytes"]:
        parts.append(f"{format_bytes(plan['d2h_bytes'])} copied out")
    parts.append(f"planned in {graph.planning_s:.2f} s")
    return "; ".join(parts)
