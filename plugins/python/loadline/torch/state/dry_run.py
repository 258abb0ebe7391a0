"""Placeholder memory for optimizer state in a step that is only measured.

It has the planned bytes at the planned times and no contents, so that the measured peak
is that of a training step (prepare.py). Tested by
tests/plugins/python/torch_host_state_test.py.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from loadline.torch.rewrite.ledger import record_in_open_ledger
from loadline.torch.rewrite.state_moves import StateMoves, movers


class _PlaceholderState:
    """A StateMover (state_moves.py)."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.moves = StateMoves(0)
        self.there: dict[int, torch.Tensor] = {}

    def begin(self, moves: StateMoves) -> None:
        self.moves = moves
        self.there.clear()
        for bucket in moves.moved - moves.resting_on_host:
            self.load(bucket)

    def start_store(self, bucket: int) -> None:
        pass

    def end_store(self, bucket: int) -> None:
        self.there.pop(bucket, None)

    def load(self, bucket: int) -> None:
        self.there[bucket] = torch.empty(
            self.moves.bytes[bucket], dtype=torch.uint8, device=self.device)
        record_in_open_ledger(f"state {bucket}", lambda: self.there[bucket])

    def begin_backward(self, moves: StateMoves) -> None:
        pass

    def check_parameters(self, moves: StateMoves, inputs: Sequence[torch.Tensor]) -> None:
        pass

    def measure_gradient(self, moves: StateMoves, number: int,
                         gradient: torch.Tensor) -> None:
        pass

    def leave_gradients(self, moves: StateMoves) -> None:
        pass  # the step's gradients are not wanted

    def update_in_backward(self, moves: StateMoves, bucket: int,
                           gradients: Sequence[torch.Tensor]) -> None:
        work = torch.empty(moves.work_bytes[bucket], dtype=torch.uint8, device=self.device)
        record_in_open_ledger(f"update {bucket}", lambda: work)


@contextlib.contextmanager
def dry_run(number: int, device: torch.device) -> Iterator[None]:
    """number: of the session, whose real state is registered later."""
    placeholder = _PlaceholderState(device)
    movers.set(number, placeholder)
    try:
        yield
    finally:
        movers.remove(number)
