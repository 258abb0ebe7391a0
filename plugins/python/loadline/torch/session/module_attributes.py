"""Undoes what a sample step assigns to attributes of the model's modules.

A model may keep a hidden state, a list of outputs or a number of calls in an attribute.
Training must begin with what was there before `prepare`. Values of tensors are not this
file's concern (written_inputs.py).
Tested by tests/plugins/python/torch_written_inputs_test.py.
"""
from __future__ import annotations

import collections
from typing import Any

import torch

# Those of every module, such as its parameters and hooks.
_COMMON = frozenset(vars(torch.nn.Module()))
_CONTAINERS = {list, dict, set, collections.deque, collections.OrderedDict,
               collections.defaultdict}
# The first forward of these sets up what later ones need.
_SET_UP_LATE = ("torch.distributed.", "torch.nn.parallel.")


def _is_left_alone(module: torch.nn.Module) -> bool:
    """Whether the module sets itself up late, or is TorchScript's, whose attributes are not
    Python's."""
    return isinstance(module, torch.jit.ScriptModule) or any(
        f"{kind.__module__}.".startswith(_SET_UP_LATE) for kind in type(module).__mro__)


def _own(module: torch.nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in _COMMON}


class ModuleAttributes:
    """Of a model: which objects its attributes and buffers are, and which objects the lists,
    dicts, sets and deques among them hold. Other objects are not looked into."""

    def __init__(self, model: torch.nn.Module):
        self._modules = [(module, _own(module), {**module._buffers})
                         for module in model.modules() if not _is_left_alone(module)]
        self._contents: dict[int, tuple[Any, Any]] = {}
        for _, attributes, _ in self._modules:
            for value in attributes.values():
                self._look_into(value)

    def _look_into(self, value: Any) -> None:
        if type(value) not in _CONTAINERS or id(value) in self._contents:
            return
        self._contents[id(value)] = value, list(
            value.items() if isinstance(value, dict) else value)
        for one in value.values() if isinstance(value, dict) else value:
            self._look_into(one)

    def restore(self) -> None:
        for module, attributes, buffers in self._modules:
            found = vars(module)
            for name in _own(module).keys() - attributes.keys():
                del found[name]
            found.update(attributes)
            module._buffers.clear()
            module._buffers.update(buffers)
        for container, content in self._contents.values():
            container.clear()
            if isinstance(container, (dict, set)):
                container.update(content)
            else:
                container.extend(content)
