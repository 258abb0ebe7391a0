"""Plans a step, runs it on the sample, and plans again with what was found.

Each pass compiles the model once. What a pass finds (the bytes of the loss, further graphs,
a measured peak above the budget) changes the options of the next. Tested by
tests/plugins/python/torch_prepare_test.py and torch_whole_step_test.py.
"""
from __future__ import annotations

import dataclasses
from typing import Any

import torch
from loadline.budget import SMALLEST, format_bytes, parse_budget
from loadline.errors import Infeasible, Unsupported
from loadline.torch.compat import dynamo_internals
from loadline.torch.problem.make_problem import StateBucket
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.choose_structure import Structure
from loadline.torch.session.compiler import backend
from loadline.torch.session.divide_budget import (GraphBytes, shares_above_smallest,
                                                  shares_by_whole)
from loadline.torch.session.sample_step import SampleStep, run_sample_step
from loadline.torch.session.session import Session
from loadline.torch.solve import rank_consensus
from loadline.torch.solve.options import Options, Shares

CORRECTIONS = 3


@dataclasses.dataclass(frozen=True)
class Request:
    """What is the same in every pass."""

    given: dict[str, Any]  # the caller's options
    read: Options
    budget: int | float | str
    step: SampleStep
    structure: Structure
    part_statistics: bool
    state: tuple[StateBucket, ...]  # that may be on the host; empty: none
    state_bytes: int  # of the optimizer that the problem has, in one graph
    reserve_bytes: int  # beside the graphs, with all of the optimizer's state
    step_bytes: int  # that the optimizer's step allocates for itself
    slack_bytes: int
    loss_bytes: int  # of a loss outside of the model, as far as they are known
    one_graph: str  # why there may be only one; empty: there may be several
    moves_parameters: bool
    together: bool  # all ranks plan again, or none


class Passes:
    """Runs until the measured peak is within the budget; then it has the results."""

    def __init__(self, request: Request, session: Session) -> None:
        self.request, self._session = request, session
        self.corrected_bytes = 0
        self.loss_bytes = request.loss_bytes
        self.held_bytes, self._sum_bytes = request.step.held_bytes
        self.divided = False  # among several graphs
        self._shares: Shares = ()  # that were given; or by the smallest budgets:
        self._smallest: list[GraphBytes] = []
        self._refused: Infeasible | None = None  # the pass finds the smallest budgets
        self._corrections = 0
        self._found_bytes: dict[str, int] = {}
        # Of the last pass.
        self.graphs: list[PlannedGraph] = []
        self.measured_bytes: int | None = None
        self.options: dict[str, Any] = {}
        self.call: Any = None

    def run(self) -> None:
        """Raises Infeasible."""
        while True:
            try:
                self._compile_and_run()
            except Infeasible as error:
                if not self._finds_smallest(error):
                    raise
                continue
            if self._refused and len(self.graphs) == 1:
                raise self._refused
            excess, found_loss, found = self._found()
            if not (self._learns_loss(found_loss) or self._divides()
                    or self._corrects(excess, found)):
                return

    def _compile_and_run(self) -> None:
        request = self.request
        dynamo_internals.forget_compiled(request.step.model)
        self.options = self._make_options()
        self.call = torch.compile(request.step.model, backend=backend, dynamic=False,
                                  options=self.options)
        # The smallest is found again with what was measured.
        keep_budgets = self._corrections > 0 and request.budget != SMALLEST
        self.graphs, self.measured_bytes = run_sample_step(
            request.step, self.call, self._session, keep_budgets)

    def _make_options(self) -> dict[str, Any]:
        request, read = self.request, self.request.read
        state = () if self.divided else request.state
        budget = SMALLEST if self._refused else request.budget
        shares = self._shares
        if self._smallest:
            budget, shares = self._above_smallest()
        return {
            "agree": True, **request.given, "budget": budget, "machine": read.machine,
            "outside_bytes": read.outside_bytes, "shares": shares,
            "reserve_bytes": self._reserve_bytes(),
            "split": request.structure.split, "part_sums": request.structure.parts > 1,
            "part_statistics": request.part_statistics,
            "corrected_bytes": self.corrected_bytes + request.slack_bytes,
            "loss_bytes": self.loss_bytes,
            # A share of the graphs is no place for all of the optimizer's step.
            "step_bytes": 0 if self.divided else max(request.step_bytes, self._sum_bytes),
            "state": state,
            "state_number": self._session.number if state or request.moves_parameters else 0,
            "found_bytes": tuple(sorted(self._found_bytes.items())),
            "session": self._session.reference}

    def _reserve_bytes(self) -> int:
        request = self.request
        has_state = bool(request.state) and not self.divided
        return (request.reserve_bytes - (request.state_bytes if has_state else 0)
                + self.held_bytes
                + (self._sum_bytes if has_state or self.divided else 0))

    def _above_smallest(self) -> tuple[int | float | str, Shares]:
        request = self.request
        beside = self._reserve_bytes() + request.read.outside_bytes
        if request.budget == SMALLEST:
            return SMALLEST, shares_above_smallest(self._smallest, 0)
        budget = parse_budget(request.budget, beside + sum(
            graph.whole_bytes for graph in self._smallest))
        return budget, shares_above_smallest(
            self._smallest,
            budget - beside - self.corrected_bytes - request.slack_bytes)

    def _finds_smallest(self, error: Infeasible) -> bool:
        """Whether a next pass finds the smallest budget of each graph. A share of the budget
        is one of all graphs, which are not known yet; and a division that leaves too little
        for one of them may leave more than enough for another."""
        several = self._session.has_breaks or self.request.step.function is not None
        if self._refused or self._smallest or not (self.divided or several):
            return False
        self._refused, self._shares, self._corrections = error, (), 0
        self.divided = True
        return True

    def _found(self) -> tuple[int, int, dict[str, int]]:
        """How far the peak is above the budget, and the bytes of the loss and of operators'
        results: the maximum over all ranks, if they plan together."""
        step = self.request.step
        excess = 0 if self.measured_bytes is None else (
            self.measured_bytes - self.corrected_bytes - sum(
                graph.plan.budget_bytes for graph in self.graphs))
        found = {name: real for graph in self.graphs
                 for name, (_, real) in graph.surprises.items()}
        mine = excess, 0 if step.loss is None else step.loss.bytes, found
        return _worst(*mine) if self.request.together else mine

    def _learns_loss(self, found_bytes: int) -> bool:
        request = self.request
        held = request.step.held_bytes
        if found_bytes <= self.loss_bytes + request.slack_bytes and all(
                now <= then for now, then in zip(held, (self.held_bytes, self._sum_bytes))):
            return False
        self.loss_bytes = max(self.loss_bytes, found_bytes)
        self.held_bytes, self._sum_bytes = held
        return True

    def _divides(self) -> bool:
        """The budget among the graphs that were found, unless it is divided already."""
        if len(self.graphs) == 1 or self._shares or self._smallest:
            return False
        if self.request.one_graph:
            raise Unsupported(self.request.one_graph)
        by_smallest = self._refused or self.request.budget == SMALLEST
        if by_smallest and self.divided:
            self._smallest = [GraphBytes.of(graph) for graph in self.graphs]
            self._refused = None
        elif not by_smallest:
            self._shares = shares_by_whole(self.graphs)
        self.divided = True
        return True

    def _corrects(self, excess: int, found: dict[str, int]) -> bool:
        if len(self.graphs) == 1:
            self.graphs[0].measured_bytes = self.measured_bytes
        if excess <= 0:
            return False
        request = self.request
        if self._corrections == CORRECTIONS:
            if excess > request.slack_bytes:
                raise Infeasible(
                    f"budget {request.budget}: a measured step takes {excess} bytes "
                    f"({format_bytes(excess)}) more, after {CORRECTIONS} corrections of "
                    "the plan" + _largest_surprise(self.graphs))
            return False
        self._corrections += 1
        if found.items() <= self._found_bytes.items():  # already planned for: not enough
            self.corrected_bytes += excess
            if request.step.function is not None:  # it may be a loss, before the backward
                self.loss_bytes = max(self.loss_bytes,
                                      *map(_tangent_bytes, self.graphs)) + excess
        self._found_bytes.update(found)
        return True


def _worst(excess: int, loss_bytes: int, found: dict[str, int]
           ) -> tuple[int, int, dict[str, int]]:
    """The maximum over all ranks."""
    all_ = rank_consensus.gather((excess, loss_bytes, found))
    worst: dict[str, int] = {}
    for _, _, by_name in all_:
        for name, bytes_ in by_name.items():
            worst[name] = max(bytes_, worst.get(name, 0))
    return (max(one for one, _, _ in all_), max(one for _, one, _ in all_), worst)


def _largest_surprise(graphs: list[PlannedGraph]) -> str:
    found = [(real - traced, name) for graph in graphs
             for name, (traced, real) in graph.surprises.items()]
    return "".join(f"; {name} made {bytes_} bytes more than its trace says"
                   for bytes_, name in sorted(found)[-1:])


def _tangent_bytes(graph: PlannedGraph) -> int:
    joint = None if graph.traced is None else graph.traced.joint
    return 0 if joint is None else sum(joint.bytes[node] for node in joint.tangents)
