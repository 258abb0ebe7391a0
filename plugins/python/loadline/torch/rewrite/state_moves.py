"""Moves of optimizer state between device and host in a planned step.

The plan names the buckets that move, where each rests between steps, and when it is
stored and loaded. Moves before the last gradient are operators in the two modules:
`loadline::move_state` writes to the token of `loadline::state_token`, so that no compiler
can drop or reorder moves. Moves after it are the `tail`, which runs before the
optimizer's step (host_state.py). An operator finds the object that moves the state by a
number; without such an object nothing moves. Tested by
tests/plugins/python/torch_host_state_test.py and torch_inductor_test.py.
"""
from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import torch
from loadline.errors import InternalError
from loadline.torch.compat.operators import operator
from loadline.torch.compat.weak_table import WeakTable
from loadline.torch.problem.make_problem import TracedProblem
from loadline.torch.rewrite.program import (Item, StateCopy, Update, moments,
                                            resting_on_host)

# A forward begins; a bucket's store starts, has ended; its load starts; it is updated.
BEGIN = "begin"
START_STORE, END_STORE, LOAD, UPDATE = "start_store", "end_store", "load", "update"


@dataclasses.dataclass(eq=False)
class StateMoves:
    """What one planned graph does with the state of one optimizer."""

    number: int  # of the optimizer's state, in `movers`
    moved: frozenset[int] = frozenset()  # buckets that are ever copied
    resting_on_host: frozenset[int] = frozenset()  # of these, between steps
    updated: frozenset[int] = frozenset()  # buckets that the tail updates
    bytes: tuple[int, ...] = ()  # of all buckets
    tail: tuple[tuple[str, int], ...] = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> StateMoves:
        """PyTorch compiles a deep copy of the backward module, which moves the same state."""
        return self


class StateMover(Protocol):
    """Moves an optimizer's state when the operators say so."""

    def begin(self, moves: StateMoves) -> None: ...
    def start_store(self, bucket: int) -> None: ...
    def end_store(self, bucket: int) -> None: ...
    def load(self, bucket: int) -> None: ...


# By the number of the session that planned the state.
movers: WeakTable[StateMover] = WeakTable()
moves_by_graph: WeakTable[StateMoves] = WeakTable()  # the modules own them


def action_of(item: StateCopy, begins: bool) -> str:
    return (START_STORE if begins else END_STORE) if item.out else LOAD


def moves_of(traced: TracedProblem, plan: dict[str, Any], number: int,
             tail: list[Item]) -> StateMoves:
    """tail: the program's third part (program.py). The optimizer's own step updates the
    buckets that stay on the device, all together."""
    buffers = {buffer["id"]: buffer for buffer in plan["buffers"]}
    moved = {traced.state[value] for step in plan["steps"] if "from" in step
             and (value := buffers[step["from"]]["value"]) in traced.state}
    resting = {traced.state[value] for value in resting_on_host(plan) & traced.state.keys()}
    actions = []
    buckets = {*traced.state.values()}
    for item, begins in moments(tail):
        if isinstance(item, StateCopy):
            actions.append((action_of(item, begins), item.bucket))
        elif not isinstance(item, Update):
            raise InternalError(f"the plan has {item} after the last gradient")
        elif item.bucket in buckets:
            actions.append((UPDATE, item.bucket))
    bytes_ = {bucket: traced.document["values"][value]["bytes"]
              for value, bucket in traced.state.items()}
    return StateMoves(number, frozenset(moved), frozenset(resting), frozenset(buckets),
                      tuple(bytes_[bucket] for bucket in sorted(bytes_)),
                      tuple(actions))


@operator("state_token() -> Tensor", lambda: torch.empty((), dtype=torch.int64))
def STATE_TOKEN() -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64)


@operator("move_state(Tensor(a!) token, int graph, str action, int bucket) -> ()",
          lambda *_: None)
def MOVE_STATE(token: torch.Tensor, graph: int, action: str, bucket: int) -> None:
    """bucket: -1 for BEGIN."""
    moves = moves_by_graph[graph]
    if (mover := movers.get(moves.number)) is None:
        return
    if action == BEGIN:
        mover.begin(moves)
    else:
        getattr(mover, action)(bucket)
