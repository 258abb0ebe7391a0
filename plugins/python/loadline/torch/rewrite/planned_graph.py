"""One graph of a model: its problem, its plan, and what was measured.

Tested by tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from loadline import planning
from loadline.budget import format_bytes
from loadline.torch.compat import tiers
from loadline.torch.problem.make_problem import TracedProblem
from loadline.torch.rewrite.copies import Slab
from loadline.torch.rewrite.parameter_moves import ParameterMoves
from loadline.torch.rewrite.state_moves import StateMoves
from loadline.torch.solve.options import Options


@dataclasses.dataclass(eq=False)
class PlannedGraph:
    problem: dict[str, Any]  # loadline.problem/1
    plan: planning.Plan
    peak_bytes: int  # of forward and backward, in the order in which they run
    keep_everything_bytes: int
    planning_s: float  # in addition to what any compile takes
    options: Options
    tier: str = tiers.FULL  # in the others peaks are estimates
    number: int = 0  # of the graph, if a graph break splits the model
    # In the full tier only:
    traced: TracedProblem | None = None
    update_peak_bytes: int = 0  # of the optimizer's step, if it is planned
    moves: StateMoves = StateMoves(0)  # of the optimizer's state
    recomputed_flops: int = 0
    saved_count: int = 0  # tensors that the forward saves for the backward
    slab: Callable[[], Slab | None] = lambda: None  # None: the modules are gone
    measured_bytes: int | None = None  # of step_peak_bytes, if it could be measured
    surprises: dict[str, tuple[int, int]] = dataclasses.field(
        default_factory=dict)  # Ledger.surprises of that step
    # Values that PyTorch's partitioner saves or recomputes against the plan after a
    # second attempt; its own modules then run.
    not_obeyed: list[str] = dataclasses.field(default_factory=list)
    parameters: ParameterMoves = ParameterMoves()  # moves of these

    @property
    def step_peak_bytes(self) -> int:
        """Of the whole step, the optimizer's included, as far as it is planned."""
        return max(self.peak_bytes, self.update_peak_bytes)

    @property
    def resident_state_bytes(self) -> int:
        """Planned optimizer state that never leaves the device."""
        return sum(bucket.bytes for number, bucket in enumerate(self.options.state)
                   if number not in self.moves.moved)

    def describe(self) -> str:
        """One line for people."""
        predicted = self.plan.document["predicted"]
        kept_ns = predicted["compute_ns"] - predicted["recompute_ns"]
        parts = [f"peak {format_bytes(self.peak_bytes)} of "
                 f"{format_bytes(self.plan.budget_bytes)}; keeping everything "
                 f"{format_bytes(self.keep_everything_bytes)}",
                 f"{self.plan.step_ns / 1e6:.1f} ms predicted, "
                 f"{kept_ns / 1e6:.1f} with everything kept"]
        if predicted["recompute_ns"]:
            flops = f" ({self.recomputed_flops} FLOPs)" if self.recomputed_flops else ""
            share = 100 * predicted["recompute_ns"] / predicted["compute_ns"]
            parts.append(f"{share:.1f} % of the step computed again{flops}")
        if predicted["d2h_bytes"]:
            parts.append(f"{format_bytes(predicted['d2h_bytes'])} copied out")
        parts.append(f"planned in {self.planning_s:.2f} s")
        return "; ".join(parts)
