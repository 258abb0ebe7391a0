"""Whether an optimizer may update some of its parameters at a time, with the same bits.

An optimizer may couple its parameters inside of its step: it divides by the norm of all
gradients, or draws noise for one parameter after the other. Neither its attributes nor its
state show that, so small stand-ins of the parameters are updated together and apart.
Tested by tests/plugins/python/torch_host_optimizers_test.py.
"""
from __future__ import annotations

from typing import Any

import torch
from loadline.torch.compat import torch_internals
from loadline.torch.state.predict_state import clone_with_groups, run_step, stand_in_of

# Two steps: the second one has state. Interleaved parts, so that neighbours are apart.
_STEPS, _PARTS, _MOST_ELEMENTS = 2, 4, 3


def _small_groups(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """The groups, with small parameters on the CPU. The state of an update may depend on
    the number of dimensions, so that stays."""
    return [{**group, "params": [
        torch.nn.Parameter(torch.empty([min(size, _MOST_ELEMENTS) for size in one.shape],
                                       dtype=one.dtype, device="cpu"), one.requires_grad)
        for one in group["params"]]} for group in optimizer.param_groups]


def _fill(tensor: torch.Tensor, generator: torch.Generator) -> None:
    values = torch.rand(tensor.shape, generator=generator, dtype=torch.float64, device="cpu")
    tensor.copy_(values - 0.5)


def _parts_of(groups: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The groups in the parts' order, which is not that of the parameters."""
    parts = [[{**group, "params": group["params"][part::_PARTS]}]
             for group in groups for part in range(_PARTS)]
    return [part for part in reversed(parts) if part[0]["params"]]


def _updated(optimizer: torch.optim.Optimizer, apart: bool) -> list[torch.Tensor]:
    """Parameters and state after the steps."""
    stand_in = stand_in_of(optimizer, _small_groups(optimizer), "cpu")
    groups = stand_in.param_groups
    parameters = [one for group in groups for one in group["params"]]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for one in parameters:
            _fill(one, generator)
    for step in range(_STEPS):
        with torch.no_grad():
            for one in parameters:
                if one.grad is not None:
                    _fill(one.grad, generator)
        torch.manual_seed(step)
        for part in _parts_of(groups) if apart else [groups]:
            run_step(clone_with_groups(stand_in, part, stand_in.state))
    state = [stand_in.state.get(one, {}) for one in parameters]
    return [one for one in torch_internals.pytree.tree_leaves([parameters, state])
            if isinstance(one, torch.Tensor)]


def may_update_apart(optimizer: torch.optim.Optimizer) -> bool:
    """False where an update on small parameters fails: then nothing is known."""
    with torch.random.fork_rng(devices=[]):
        try:
            together, apart = (_updated(optimizer, way) for way in (False, True))
        except Exception:
            return False
    return len(together) == len(apart) and all(
        one.shape == other.shape and bool(torch.equal(
            torch.nan_to_num(one), torch.nan_to_num(other)))
        for one, other in zip(together, apart))
