"""Keeps the random numbers of the program while a sample step draws.

Training after `prepare` must draw what it would draw without it: from the generators of
PyTorch, Python and NumPy, and from those that the model's modules hold.
Tested by tests/plugins/python/torch_random_test.py.
"""
from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch


def _held_by(model: torch.nn.Module) -> Iterator[Any]:
    for module in model.modules():
        for value in [*vars(module).values()]:
            yield value
            if type(value) in (list, tuple):
                yield from value
            elif type(value) is dict:
                yield from value.values()


def _undo(source: Any, numpy: Any) -> Callable[[], object] | None:
    """Gives a generator the state that it has now; None for another object."""
    if isinstance(source, torch.Generator):
        state = source.get_state().clone()
        return lambda: source.set_state(state)
    if isinstance(source, random.Random):
        values = source.getstate()
        return lambda: source.setstate(values)
    if numpy is not None and isinstance(source, numpy.random.RandomState):
        legacy = source.get_state()
        return lambda: source.set_state(legacy)
    if numpy is not None and isinstance(source, numpy.random.Generator):
        bits = source.bit_generator
        at_first = bits.state
        return lambda: setattr(bits, "state", at_first)
    return None


@contextlib.contextmanager
def random_numbers_kept(model: torch.nn.Module, devices: Iterable[torch.device]
                        ) -> Iterator[None]:
    """What is drawn inside is drawn again afterwards. devices: GPUs whose generators count."""
    numpy: Any = sys.modules.get("numpy")
    python, of_numpy = random.getstate(), None if numpy is None else numpy.random.get_state()
    undone = [undo for source in _held_by(model) if (undo := _undo(source, numpy)) is not None]
    with torch.random.fork_rng(devices=[*devices]):
        try:
            yield
        finally:
            random.setstate(python)
            if numpy is not None:
                numpy.random.set_state(of_numpy)
            for undo in undone:
                undo()
