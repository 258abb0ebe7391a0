"""Optimizer state that moves between the device and the host in a planned step.

The plan names the buckets that move, where each rests between steps, and when it
leaves and comes back. What stands before the last gradient is an operation in the two
modules: `loadline::move_state` writes to a token that `loadline::state_token` makes, so
that no compiler may drop one or let two change places. What stands behind is the
`tail`, which runs before the optimizer's step (host_state.py). Whoever keeps the state
of an optimizer is found by its number when an operation runs; where nobody does, as in
a step before `prepare` is done, nothing moves. Tested by
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
from loadline.torch.rewrite.program import Item, StateCopy, Update, resting_on_host, moments

# A forward begins; a bucket begins to leave, has left, begins to come, is updated.
BEGIN = "begin"
START_STORE, END_STORE, LOAD, UPDATE = "start_store", "end_store", "load", "update"


@dataclasses.dataclass(eq=False)
class StateMoves:
    """What one planned graph does with the state of one optimizer."""

    number: int  # of the optimizer's, in `movers`
    moved: frozenset[int] = frozenset()  # buckets that are copied at all
    resting_on_host: frozenset[int] = frozenset()  # of these: between steps
    bytes: tuple[int, ...] = ()  # of all buckets
    tail: tuple[tuple[str, int], ...] = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> StateMoves:
        """A copy of a module moves the same state."""
        return self


class StateMover(Protocol):
    """Of an optimizer's state: does what the operations say."""

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
    """tail: the plan's third part (program.py). Buckets that stay on the device are
    updated by the optimizer's own step, together."""
    buffers = {buffer["id"]: buffer for buffer in plan["buffers"]}
    moved = {traced.state[value] for step in plan["steps"] if "from" in step
             and (value := buffers[step["from"]]["value"]) in traced.state}
    resting = {traced.state[value] for value in resting_on_host(plan) & traced.state.keys()}
    actions = []
    for item, begins in moments(tail):
        if isinstance(item, StateCopy):
            actions.append((action_of(item, begins), item.bucket))
        elif not isinstance(item, Update):
            raise InternalError(f"the plan has {item} behind the last gradient")
        elif item.bucket in moved:
            actions.append((UPDATE, item.bucket))
    bytes_ = {bucket: traced.document["values"][value]["bytes"]
              for value, bucket in traced.state.items()}
    return StateMoves(number, frozenset(moved), frozenset(resting),
                      tuple(bytes_[bucket] for bucket in sorted(bytes_)),
                      tuple(actions))


@operator("state_token() -> Tensor", lambda: torch.empty((), dtype=torch.int64))
def STATE_TOKEN() -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64)


@operator("move_state(Tensor(a!) token, int graph, str action, int bucket) -> ()",
          lambda *_: None)
def MOVE_STATE(token: torch.Tensor, graph: int, action: str, bucket: int) -> None:
    """bucket: -1 where the action is of none."""
    moves = moves_by_graph[graph]
    if (mover := movers.get(moves.number)) is None:
        return
    if action == BEGIN:
        mover.begin(moves)
    else:
        getattr(mover, action)(bucket)
