"""Optimizers that hold other optimizers: looked through, or refused by name.

A wrapper's step runs another object's step, and its attributes may be the other's, so
Loadline neither clones nor steps one. Tested by
tests/plugins/python/torch_optimizers_test.py.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from loadline.errors import InvalidArgument


def _held(value: Any) -> Iterator[torch.optim.Optimizer]:
    """Optimizers that an attribute is, or that it directly contains."""
    contained = value.values() if isinstance(value, dict) else (
        value if isinstance(value, (list, tuple, set)) else [value])
    for item in contained:
        if isinstance(item, torch.optim.Optimizer):
            yield item


def innermost(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer that makes the update: the one inside, if this one only passes calls
    on. Raises InvalidArgument if it does more."""
    while True:
        held = {id(one): one for name, value in vars(optimizer).items()
                if name not in ("param_groups", "state")
                for one in _held(value) if one is not optimizer}
        if not held:
            break
        inner = next(iter(held.values()))
        if len(held) > 1 or inner.param_groups is not optimizer.param_groups or (
                inner.state is not optimizer.state):
            names = ", ".join(type(one).__name__ for one in held.values())
            raise InvalidArgument(
                f"{type(optimizer).__name__} holds {names} and adds parameters or state "
                "of its own, which cannot be predicted: prepare the model without an "
                "optimizer, and give the bytes of its state as reserve_bytes")
        optimizer = inner
    if {"param_groups", "state"} - vars(optimizer).keys():
        raise InvalidArgument(
            f"{type(optimizer).__name__} computes its param_groups or state, so its state "
            "cannot be predicted: prepare the model without an optimizer, and give the "
            "bytes of its state as reserve_bytes")
    return optimizer
