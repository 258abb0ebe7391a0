"""Refuses an optimizer of another model, whose steps would train nothing of this one.

Several optimizers, parameters of a loss and groups that are added later are usual, so an
optimizer is refused only if nothing that the step uses holds any of its parameters. Tested
by tests/plugins/python/torch_optimizers_test.py.
"""
from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

import torch
from loadline.errors import InvalidArgument


def _named_globals(function: types.FunctionType) -> Iterator[Any]:
    """Global variables whose names the code of the function has."""
    open_ = [function.__code__]
    while open_:
        code = open_.pop()
        yield from (function.__globals__[name] for name in code.co_names
                    if name in function.__globals__)
        open_ += [one for one in code.co_consts if isinstance(one, types.CodeType)]


def _held(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif isinstance(value, types.CellType):
        try:
            yield value.cell_contents
        except ValueError:  # empty
            pass
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.FunctionType):
        yield from (value.__closure__, value.__defaults__, value.__kwdefaults__)
        yield from _named_globals(value)
    if not isinstance(value, (type, types.ModuleType, torch.Tensor, torch.optim.Optimizer)):
        yield getattr(value, "__dict__", None)
        yield getattr(type(value), "forward", None)
        yield getattr(type(value), "__call__", None)
        yield getattr(type(value), "__slots__", None) and [
            getattr(value, name, None) for name in type(value).__slots__]


def _holds_one(roots: list[Any], wanted: set[int]) -> bool:
    """Whether one of the tensors with these ids can be reached from the roots."""
    seen: dict[int, Any] = {}  # holds them, so that no id is given twice
    open_ = [*roots]
    while open_:
        value = open_.pop()
        if id(value) in wanted:
            return True
        if value is None or isinstance(value, (str, bytes, int, float)) or id(value) in seen:
            continue
        seen[id(value)] = value
        open_ += _held(value)
    return False


def check_trains(model: torch.nn.Module, optimizer: torch.optim.Optimizer,
                 *functions: Any) -> None:
    """Raises InvalidArgument if the optimizer has parameters, and none of them is the model's
    or is held by a function of the step."""
    parameters = {id(one) for group in optimizer.param_groups for one in group["params"]}
    if not parameters or any(id(one) in parameters for one in model.parameters()) or (
            _holds_one([model, *functions], parameters)):
        return
    raise InvalidArgument(
        f"{type(optimizer).__name__} has none of the parameters of {type(model).__name__}, so "
        "it would train nothing of it: make it of the parameters of this model, after the "
        "model was copied or wrapped. If other code writes its parameters to the model, "
        "prepare the model without an optimizer, and give the bytes of its state as "
        "reserve_bytes")
