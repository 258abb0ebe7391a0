"""Divides a budget among the graphs of a step, whose memory may be there together.

Tested by tests/plugins/python/torch_divide_budget_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.solve.options import Shares


@dataclasses.dataclass(frozen=True)
class GraphBytes:
    """Of one graph: its number, its peak when everything is kept, and the smallest budget for
    which a plan was found."""

    number: int
    whole_bytes: int
    smallest_bytes: int

    @staticmethod
    def of(graph: PlannedGraph) -> GraphBytes:
        """graph: planned for the smallest budget."""
        return GraphBytes(graph.number, graph.keep_everything_bytes, graph.plan.budget_bytes)


def shares_by_whole(graphs: Sequence[PlannedGraph]) -> Shares:
    """In proportion to the peaks when everything is kept, so that the sum of all peaks is
    within the budget."""
    whole = sum(graph.keep_everything_bytes for graph in graphs)
    return tuple((graph.number, Fraction(graph.keep_everything_bytes, whole))
                 for graph in graphs)


def shares_above_smallest(graphs: Sequence[GraphBytes], available_bytes: int) -> Shares:
    """Each has its smallest budget, and of the rest a part in proportion to what it could still
    use. If that is too little for all, it is divided in proportion to the smallest budgets:
    then an error of any graph names the sum of these."""
    smallest = sum(graph.smallest_bytes for graph in graphs)
    spare = max(available_bytes - smallest, 0)
    uses = [max(graph.whole_bytes - graph.smallest_bytes, 0) for graph in graphs]
    if not any(uses):
        uses = [graph.whole_bytes for graph in graphs]
    return tuple(
        (graph.number, (graph.smallest_bytes + Fraction(spare * use, sum(uses)))
         / (smallest + spare)) for graph, use in zip(graphs, uses))
