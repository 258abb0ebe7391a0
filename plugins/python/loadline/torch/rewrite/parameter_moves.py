"""Operators that bring parameters to the device and put them on the host.

The module reads a parameter that the plan moves from the memory that `load_parameter`
fills, or from the caller's own tensor while that is on the device. Between the forward and
the backward, and after an error, each parameter is whole: its tensor is the host's memory,
or the device's. An operator finds the object that moves parameters by the number of its
session. As in state_moves.py, operators write to a token, so that no compiler drops or
reorders them. Tested by tests/plugins/python/torch_host_parameters_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from loadline.errors import LoadlineError
from loadline.torch.compat.operators import operator
from loadline.torch.compat.weak_table import WeakTable
from loadline.torch.problem.make_problem import TracedProblem
from loadline.torch.rewrite import copies
from loadline.torch.rewrite.program import ParameterCopy, Program, Run, resting_on_host

START_STORE, END_STORE = "start_store", "end_store"


@dataclasses.dataclass(eq=False)
class ParameterMoves:
    """What one planned graph does with parameters, by their numbers."""

    number: int = 0  # of the session
    moved: tuple[int, ...] = ()  # that are ever copied
    resting_on_host: frozenset[int] = frozenset()  # between steps
    reread: tuple[int, ...] = ()  # of the moved ones, that the backward reads

    def __deepcopy__(self, memo: dict[int, Any]) -> ParameterMoves:
        """As of StateMoves: the deep copy of a module moves the same parameters."""
        return self


class ParameterMover(Protocol):
    """Has the parameters by number."""

    def begin(self, moves: ParameterMoves, inputs: Sequence[torch.Tensor]) -> int: ...
    def check(self, moves: ParameterMoves, epoch: int) -> None: ...
    def source(self, number: int) -> torch.Tensor: ...
    def keep(self, number: int, there: torch.Tensor) -> None: ...
    def start_store(self, number: int) -> None: ...
    def end_store(self, number: int) -> None: ...
    def load(self, number: int) -> None: ...
    def arrive(self, parameters: Sequence[torch.Tensor]) -> None: ...


# By the number of the session.
parameter_movers: WeakTable[ParameterMover] = WeakTable()
parameter_moves_by_graph: WeakTable[ParameterMoves] = WeakTable()  # the modules own them


def parameter_moves_of(traced: TracedProblem, plan: dict[str, Any], number: int,
                       program: Program) -> ParameterMoves:
    moved = {item.value: item.number for part in program for item in part
             if isinstance(item, ParameterCopy)}
    resting = {traced.parameters[value][0] for value in resting_on_host(plan)
               if value in traced.parameters}
    read = {value for item in program[1] if isinstance(item, Run)
            for value in item.operation.reads}
    return ParameterMoves(number, tuple(moved.values()), frozenset(resting),
                          tuple(one for value, one in moved.items() if value in read))


def _mover_of(graph: int) -> tuple[ParameterMover, ParameterMoves]:
    moves = parameter_moves_by_graph[graph]
    if (mover := parameter_movers.get(moves.number)) is None:
        raise LoadlineError(
            "the model that was prepared with offload_parameters=True is gone, or was "
            "prepared again: call what the last prepare returned")
    return mover, moves


@operator("begin_parameters(Tensor[] inputs, int graph) -> Tensor",
          lambda *_: torch.empty((), dtype=torch.int64))
def BEGIN_PARAMETERS(inputs: list[torch.Tensor], graph: int) -> torch.Tensor:
    """inputs: those that the plan moves, in the order of ParameterMoves.moved. Returns a
    token for `check_epoch` in the backward."""
    mover, moves = _mover_of(graph)
    return torch.tensor(mover.begin(moves, inputs))


@operator("check_epoch(Tensor(a!) token, Tensor epoch, int graph) -> ()", lambda *_: None)
def CHECK_EPOCH(token: torch.Tensor, epoch: torch.Tensor, graph: int) -> None:
    """Raises if a parameter that this backward reads has changed since its forward."""
    mover, moves = _mover_of(graph)
    mover.check(moves, int(epoch))


@operator("load_parameter(Tensor(a!) token, int graph, int slab, int number) -> Tensor",
          lambda *_: torch.empty((), dtype=torch.int64))
def LOAD_PARAMETER(token: torch.Tensor, graph: int, slab: int, number: int) -> torch.Tensor:
    """Starts to copy it into new device memory and returns a token for `arrive`."""
    mover, _ = _mover_of(graph)
    return copies.start_arrival(copies.slabs[slab], mover.source(number))


@operator("keep_parameter(Tensor(a!) token, Tensor there, int graph, int number) -> ()",
          lambda *_: None)
def KEEP_PARAMETER(token: torch.Tensor, there: torch.Tensor, graph: int,
                   number: int) -> None:
    """The caller's parameter has this memory from now on: it is updated there, or stays."""
    mover, _ = _mover_of(graph)
    mover.keep(number, there.detach())


@operator("store_parameter(Tensor(a!) token, Tensor value, int graph, int number, "
          "str action) -> ()", lambda *_: None)
def STORE_PARAMETER(token: torch.Tensor, value: torch.Tensor, graph: int, number: int,
                    action: str) -> None:
    """value: its device memory, which this keeps alive."""
    mover, _ = _mover_of(graph)
    getattr(mover, action)(number)
