"""Random operators that run again: the state of the generator is taken before the
first run and handed to every later one, which leaves the generator as it was.

PyTorch's own partitioner does the same for what it computes again, one state for
each operator under another name in each module; here the state is a value of the
problem, so that its bytes are planned too. Tested by
tests/plugins/python/torch_random_test.py.
"""
from __future__ import annotations

from typing import Any

import torch
from loadline.torch.compat import torch_internals


def device_of(node: torch.fx.Node) -> torch.device:
    """Where it runs, and draws."""
    return next(leaf.device
                for leaf in torch_internals.pytree.tree_leaves(node.meta["val"])
                if isinstance(leaf, torch.Tensor))


def _generators(device: torch.device) -> tuple[Any, tuple[Any, ...]]:
    """The module that has the device's generator, and what names it there."""
    if device.type == "cpu":
        return torch.random, ()
    return torch.get_device_module(device), (device,)


def take(device: torch.device) -> torch.Tensor:
    module, which = _generators(device)
    return module.get_rng_state(*which)


def state_bytes(device: torch.device) -> int:
    return take(device).untyped_storage().nbytes()


def first(state: torch.Tensor, target: Any, device: torch.device, *args: Any,
          **kwargs: Any) -> Any:
    """The run that draws; the state is there, as the plan counts it."""
    return target(*args, **kwargs)


def again(state: torch.Tensor, target: Any, device: torch.device, *args: Any,
          **kwargs: Any) -> Any:
    """The same numbers as the first run drew."""
    module, which = _generators(device)
    before = take(device)
    module.set_rng_state(state, *which)
    try:
        return target(*args, **kwargs)
    finally:
        module.set_rng_state(before, *which)
