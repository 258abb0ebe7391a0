"""Moves of optimizer state between device and host in a planned step.

The plan names the buckets that move, where each rests between steps, and when it is
stored and loaded. Moves before the last gradient are operators in the two modules:
`loadline::move_state` writes to the token of `loadline::state_token`, so that no compiler
can drop or reorder moves. Moves after it are the `tail`, which runs before the
optimizer's step (host_state.py). An operator finds the object that moves the state by a
number; without such an object nothing moves.

A gradient that leaves during the backward is copied as any value of the graph (copies.py),
and the backward returns None for it. `loadline::leave_gradients`, its last operator, tells
the mover. Copies of gradients after the last gradient are a part of the tail. Tested by
tests/plugins/python/torch_host_state_test.py, torch_host_gradients_test.py and
torch_inductor_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from loadline.errors import InternalError, LoadlineError
from loadline.torch.compat.operators import operator
from loadline.torch.compat.weak_table import WeakTable
from loadline.torch.problem.gradients import Gradient, Owner
from loadline.torch.problem.make_problem import TracedProblem
from loadline.torch.rewrite.program import (Copy, Item, ParameterCopy, Program, StateCopy,
                                            Update, moments, resting_on_host)

# A forward begins; a bucket's store starts, has ended; its load starts; it is updated.
BEGIN = "begin"
START_STORE, END_STORE, LOAD, UPDATE = "start_store", "end_store", "load", "update"
BEGIN_BACKWARD = "begin_backward"  # where gradients leave
# Actions of the tail: a gradient's store starts, has ended; its load starts; the same of a
# parameter.
START_STORE_GRADIENT, END_STORE_GRADIENT, LOAD_GRADIENT = (
    "start_store_gradient", "end_store_gradient", "load_gradient")
START_STORE_PARAMETER, END_STORE_PARAMETER, LOAD_PARAMETER = (
    "start_store_parameter", "end_store_parameter", "load_parameter")


@dataclasses.dataclass(frozen=True)
class GradientMove:
    """What a plan does with one gradient that may leave."""

    owner: Owner
    slot: int  # of the graph's host memory; -1: it stays on the device
    left: bool  # it is on the host only when the backward returns
    # As the backward would return it.
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclasses.dataclass(eq=False)
class StateMoves:
    """What one planned graph does with the state of one optimizer."""

    number: int  # of the optimizer's state, in `movers`
    moved: frozenset[int] = frozenset()  # buckets that are ever copied
    resting_on_host: frozenset[int] = frozenset()  # of these, between steps
    updated: frozenset[int] = frozenset()  # buckets that the tail updates
    bytes: tuple[int, ...] = ()  # of all buckets
    # With the number of a bucket, gradient or parameter.
    tail: tuple[tuple[str, int], ...] = ()
    gradients: tuple[GradientMove, ...] = ()  # those that may leave
    slab: int = 0  # of the graph, in copies.slabs
    in_backward: frozenset[int] = frozenset()  # buckets that the backward updates
    work_bytes: tuple[int, ...] = ()  # of the updates of all buckets
    on_host: bool = False  # all buckets are updated on the host (host_updates.py)

    def __deepcopy__(self, memo: dict[int, Any]) -> StateMoves:
        """PyTorch compiles a deep copy of the backward module, which moves the same state."""
        return self


class StateMover(Protocol):
    """Moves an optimizer's state when the operators say so."""

    def begin(self, moves: StateMoves) -> None: ...
    def start_store(self, bucket: int) -> None: ...
    def end_store(self, bucket: int) -> None: ...
    def load(self, bucket: int) -> None: ...
    def begin_backward(self, moves: StateMoves) -> None: ...
    def check_parameters(self, moves: StateMoves,
                         inputs: Sequence[torch.Tensor]) -> None: ...
    def measure_gradient(self, moves: StateMoves, number: int,
                         gradient: torch.Tensor) -> None: ...
    def leave_gradients(self, moves: StateMoves) -> None: ...
    def update_in_backward(self, moves: StateMoves, bucket: int,
                           gradients: Sequence[torch.Tensor]) -> None: ...


class _Detached:
    """In the place of a mover whose optimizer was prepared again: a plan that counts on it
    must not run."""

    def begin(self, *_: Any) -> None:
        raise LoadlineError(
            "the optimizer of this model was prepared again since, so its state no longer "
            "moves as this model's plan says: call what the last prepare returned. If two "
            "models share an optimizer, prepare them as one torch.nn.Module, or with "
            "offload=False")

    begin_backward = check_parameters = measure_gradient = begin
    leave_gradients = update_in_backward = begin

    def start_store(self, bucket: int) -> None:
        pass

    end_store = load = start_store


DETACHED = _Detached()
# By the number of the session that planned the state.
movers: WeakTable[StateMover] = WeakTable()
moves_by_graph: WeakTable[StateMoves] = WeakTable()  # the modules own them


def action_of(item: StateCopy, begins: bool) -> str:
    return (START_STORE if begins else END_STORE) if item.out else LOAD


def _move_of(gradient: Gradient, program: Program) -> GradientMove:
    before, after = ([item for item in part if isinstance(item, Copy)
                      and item.value is gradient.value] for part in program[1:])
    arrivals = [item.slot for item in after if not item.out]
    slot = arrivals[-1] if arrivals else -1
    left = bool(arrivals and before and before[-1].out)
    if arrivals and not any(item.out and item.slot == slot
                            for item in (before[-1:] if left else after)):
        raise InternalError(f"the plan copies {gradient.value.name} twice")
    value = gradient.leaf.meta["val"]
    return GradientMove(gradient.owner, slot, left, tuple(value.size()),
                        tuple(value.stride()), value.storage_offset())


def moves_of(traced: TracedProblem, plan: dict[str, Any], number: int,
             program: Program, on_host: bool = False) -> StateMoves:
    """on_host: all updates run there. Else the optimizer's own step updates the buckets that
    stay on the device, all together."""
    buffers = {buffer["id"]: buffer for buffer in plan["buffers"]}
    moved = {traced.state[value] for step in plan["steps"] if "from" in step
             and (value := buffers[step["from"]]["value"]) in traced.state}
    resting = {traced.state[value] for value in resting_on_host(plan) & traced.state.keys()}
    actions = []
    buckets = {*traced.state.values()}
    gradients = tuple(_move_of(gradient, program) for gradient in traced.gradients)
    by_value = {one.value: at for at, one in enumerate(traced.gradients)}
    for item, begins in moments(program[2]):
        if isinstance(item, StateCopy):
            actions.append((action_of(item, begins), item.bucket))
        elif isinstance(item, Copy) and item.value in by_value:
            at = by_value[item.value]
            if item.slot == gradients[at].slot:
                actions.append((LOAD_GRADIENT if not item.out else START_STORE_GRADIENT
                                if begins else END_STORE_GRADIENT, at))
        elif isinstance(item, ParameterCopy):
            actions.append((LOAD_PARAMETER if not item.out else START_STORE_PARAMETER
                            if begins else END_STORE_PARAMETER, item.number))
        elif not isinstance(item, Update):
            raise InternalError(f"the plan has {item} after the last gradient")
        elif item.bucket in buckets:
            actions.append((UPDATE, item.bucket))
    in_backward = {item.bucket for item in program[1] if isinstance(item, Update)}
    work = {node["name"]: node.get("workspace_bytes", 0)
            for node in traced.document["nodes"][traced.end + 1:]}
    bytes_ = {bucket: traced.document["values"][value]["bytes"]
              for value, bucket in traced.state.items()}
    return StateMoves(number, frozenset(moved), frozenset(resting), frozenset(buckets),
                      tuple(bytes_[bucket] for bucket in sorted(bytes_)),
                      tuple(actions), gradients, 0, frozenset(in_backward),
                      tuple(work[f"update.{bucket}"] for bucket in sorted(bytes_)), on_host)


@operator("state_token() -> Tensor", lambda: torch.empty((), dtype=torch.int64))
def STATE_TOKEN() -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64)


def _mover_of(graph: int) -> tuple[StateMover | None, StateMoves]:
    moves = moves_by_graph[graph]
    return movers.get(moves.number), moves


def _gradients_mover(graph: int) -> tuple[StateMover, StateMoves]:
    """Of a graph whose gradients may leave."""
    mover, moves = _mover_of(graph)
    if mover is None:
        raise LoadlineError(
            "the optimizer that was prepared with this model is gone, and the gradients would "
            "be lost: prepare the model again, with its new optimizer")
    return mover, moves


@operator("move_state(Tensor(a!) token, int graph, str action, int bucket) -> ()",
          lambda *_: None)
def MOVE_STATE(token: torch.Tensor, graph: int, action: str, bucket: int) -> None:
    """bucket: -1 if the action is of none."""
    mover, moves = _mover_of(graph)
    if mover is None:
        return
    if action in (BEGIN, BEGIN_BACKWARD):
        getattr(mover, action)(moves)
    else:
        getattr(mover, action)(bucket)


@operator("check_parameters(Tensor(a!) token, Tensor[] inputs, int graph) -> ()",
          lambda *_: None)
def CHECK_PARAMETERS(token: torch.Tensor, inputs: list[torch.Tensor], graph: int) -> None:
    """inputs: the parameters whose gradients may leave. Compiled code may serve another
    instance of the model, whose gradients must not."""
    mover, moves = _gradients_mover(graph)
    mover.check_parameters(moves, inputs)


@operator("measure_gradient(Tensor(a!) token, Tensor gradient, int graph, int number) -> ()",
          lambda *_: None)
def MEASURE_GRADIENT(token: torch.Tensor, gradient: torch.Tensor, graph: int,
                     number: int) -> None:
    """Before it leaves."""
    mover, moves = _gradients_mover(graph)
    mover.measure_gradient(moves, number, gradient.detach())


@operator("leave_gradients(Tensor(a!) token, Tensor[] waited, int graph) -> ()",
          lambda *_: None)
def LEAVE_GRADIENTS(token: torch.Tensor, waited: list[torch.Tensor], graph: int) -> None:
    """waited: the tokens of their copies, so that no compiler drops one."""
    mover, moves = _gradients_mover(graph)
    mover.leave_gradients(moves)


@operator("update_in_backward(Tensor(a!) token, Tensor(b!)[] parameters, "
          "Tensor[] gradients, int graph, int bucket) -> ()", lambda *_: None)
def UPDATE_IN_BACKWARD(token: torch.Tensor, parameters: list[torch.Tensor],
                       gradients: list[torch.Tensor], graph: int, bucket: int) -> None:
    """parameters: as this module has them, so that a compiler keeps their readers before."""
    mover, moves = _gradients_mover(graph)
    mover.update_in_backward(moves, bucket, [one.detach() for one in gradients])
