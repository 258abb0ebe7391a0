"""Random operators that are computed again with the same random numbers.

The generator's state is saved before the first run. Every later run sets it, draws, and
restores the generator. PyTorch's partitioner does the same for what it recomputes, with
a state for each operator outside of any budget; here the state is a value of the
problem, so its bytes are planned. Tested by tests/plugins/python/torch_random_test.py.
"""
from __future__ import annotations

from typing import Any

import torch
from loadline.torch.compat import torch_internals


def device_of(node: torch.fx.Node) -> torch.device:
    """The device that the node runs on, and whose generator it uses."""
    return next(leaf.device
                for leaf in torch_internals.pytree.tree_leaves(node.meta["val"])
                if isinstance(leaf, torch.Tensor))


def _generators(device: torch.device) -> tuple[Any, tuple[Any, ...]]:
    """The module with the device's generator, and the arguments that select it."""
    if device.type == "cpu":
        return torch.random, ()
    return torch.get_device_module(device), (device,)


def take(device: torch.device) -> torch.Tensor:
    module, which = _generators(device)
    return module.get_rng_state(*which)


def state_bytes(device: torch.device) -> int:
    return take(device).untyped_storage().nbytes()


def first(state: torch.Tensor, target: Any, device: torch.device, /, *args: Any,
          **kwargs: Any) -> Any:
    """The first run. It takes the state only so that it is alive, as planned."""
    return target(*args, **kwargs)


def again(state: torch.Tensor, target: Any, device: torch.device, /, *args: Any,
          **kwargs: Any) -> Any:
    """A later run, with the random numbers of the first."""
    module, which = _generators(device)
    before = take(device)
    module.set_rng_state(state, *which)
    try:
        return target(*args, **kwargs)
    finally:
        module.set_rng_state(before, *which)
