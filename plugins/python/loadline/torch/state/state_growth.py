"""Optimizer state that came after the model was prepared.

A frozen parameter of the optimizer has no state. When it is trained later, or a parameter is
added, PyTorch compiles the model again, and the new plan leaves the bytes of the new state
free. Tested by tests/plugins/python/torch_loops_test.py.
"""
from __future__ import annotations

import weakref

import torch
from loadline.torch.state.predict_state import PredictedState, predict_state


def _trained(optimizer: torch.optim.Optimizer) -> list[tuple[int, bool]]:
    return [(id(one), one.requires_grad) for group in optimizer.param_groups
            for one in group["params"]]


class StateGrowth:
    """Bytes of state, and of what its step allocates, beyond those that were predicted."""

    def __init__(self, optimizer: torch.optim.Optimizer, predicted: PredictedState):
        self._optimizer = weakref.ref(optimizer)
        self._trained = _trained(optimizer)
        self._known = predicted.bytes + predicted.step_bytes
        self._growth = 0

    def __call__(self) -> int:
        optimizer = self._optimizer()
        if optimizer is not None and (trained := _trained(optimizer)) != self._trained:
            self._trained = trained
            now = predict_state(optimizer)
            self._growth = max(0, now.bytes + now.step_bytes - self._known)
        return self._growth
