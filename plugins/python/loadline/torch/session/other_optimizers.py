"""Warns of optimizer state that no plan has: that of an optimizer which steps the model and
was not given to `prepare`, as one that takes the place of the first later.

Tested by tests/plugins/python/torch_optimizers_test.py.
"""
from __future__ import annotations

import threading
import warnings
import weakref
from typing import Any

import torch
from loadline.budget import format_bytes
from loadline.errors import LoadlineWarning
from loadline.torch.problem.default_machine import device_of
from loadline.torch.session.session import Session, live_sessions
from loadline.torch.state.predict_state import bytes_on
from torch.optim.optimizer import register_optimizer_step_post_hook

_lock = threading.Lock()
_watching = False


class KnownState:
    """The state that the plans of a session have."""

    def __init__(self, optimizer: torch.optim.Optimizer | None, state_bytes: int,
                 reserve_bytes: int):
        """state_bytes: on the device, of the optimizer. reserve_bytes: of the caller."""
        self._optimizer = (lambda: None) if optimizer is None else weakref.ref(optimizer)
        self._state_bytes = state_bytes
        self._reserve_bytes = reserve_bytes
        self._warned = False
        self._seen: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._found_bytes: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = (
            weakref.WeakKeyDictionary())

    def look_at(self, optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> None:
        """Called after each step of any optimizer."""
        own = self._optimizer()
        if optimizer in self._seen or own is not None and own.state is optimizer.state:
            return  # a wrapper has the state of the optimizer inside
        self._seen.add(optimizer)
        parameters = {id(one) for one in model.parameters()}
        if not any(id(one) in parameters for group in optimizer.param_groups
                   for one in group["params"]):
            return
        self._found_bytes[optimizer] = bytes_on(optimizer, device_of(model))
        free_bytes = self._reserve_bytes + (self._state_bytes if own is None else 0)
        excess = sum(self._found_bytes.values()) - free_bytes
        if excess > 0 and not self._warned:
            self._warned = True
            _warn(optimizer, excess, own is not None and self._state_bytes > 0)


def _warn(optimizer: torch.optim.Optimizer, excess: int, another: bool) -> None:
    why = (", beside the state of the optimizer that prepare was given, which still exists"
           if another else "")
    warnings.warn(
        f"loadline: {type(optimizer).__name__}, which steps the model, was not given to "
        f"prepare. {format_bytes(excess)} of its state are in no plan{why}: memory may go "
        "above the budget. Prepare the model again with this optimizer, or give the bytes "
        "as reserve_bytes", LoadlineWarning, stacklevel=5)


def _after_step(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    if torch.compiler.is_compiling():  # a compiled step leaves this out, and does not break
        return
    for session in live_sessions():
        if session.known_state is not None and (model := session.model()) is not None:
            session.known_state.look_at(optimizer, model)


def watch_optimizers(session: Session, known: KnownState) -> None:
    global _watching
    session.known_state = known
    with _lock:
        if not _watching:
            register_optimizer_step_post_hook(_after_step)
        _watching = True
