"""Tensors inside what a model takes and returns.

PyTorch's pytree knows lists, tuples, dicts and registered classes, and takes any other object
for a leaf. A batch or an output may be a dataclass or an object of another class, though,
and Dynamo traces through it.
Tested by tests/plugins/python/torch_nested_values_test.py.
"""
from __future__ import annotations

import copy
import enum
from collections.abc import Callable
from typing import Any

import torch
from loadline.torch.compat import torch_internals

_OPAQUE = (torch.Tensor, torch.nn.Module, torch.Generator, type, enum.Enum)


def leaves_of(value: Any) -> list[Any]:
    """As pytree's, also of the attributes of objects."""
    return _leaves(value, set())


def tensors_in(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in leaves_of(value) if isinstance(leaf, torch.Tensor)]


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """As pytree's tree_map. An object that has tensors is replaced by a copy."""
    return _mapped(function, value, {})


def _mapped(function: Callable[[Any], Any], value: Any, copies: dict[int, Any]) -> Any:
    def map_one(leaf: Any) -> Any:
        if id(leaf) in copies:
            return copies[id(leaf)]
        attributes = _attributes(leaf)
        if not attributes or not tensors_in(leaf):
            return function(leaf)
        copies[id(leaf)] = changed = copy.copy(leaf)
        for name, one in attributes.items():
            object.__setattr__(changed, name, _mapped(function, one, copies))
        return changed

    return torch_internals.pytree.tree_map(map_one, value)


def _attributes(leaf: Any) -> dict[str, Any]:
    if isinstance(leaf, _OPAQUE) or callable(leaf):
        return {}
    names = [*getattr(leaf, "__dict__", ())] + [
        name for kind in type(leaf).__mro__ for name in _slots(kind) if hasattr(leaf, name)]
    return {name: getattr(leaf, name) for name in names}


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(
        name for name in slots if not name.startswith("__"))


def _leaves(value: Any, seen: set[int]) -> list[Any]:
    found: list[Any] = []
    for leaf in torch_internals.pytree.tree_leaves(value):
        attributes = _attributes(leaf)
        if not attributes:
            found.append(leaf)
        elif id(leaf) not in seen:
            seen.add(id(leaf))
            found += [one for attribute in attributes.values()
                      for one in _leaves(attribute, seen)]
    return found
