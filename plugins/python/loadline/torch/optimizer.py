"""How many bytes of state an optimizer will have, before it has any.

The optimizer's own step runs on tensors without data (device "meta"), so any
optimizer that can is counted, not guessed. Tested by
tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import copy
from typing import Any

import torch
from loadline.errors import InvalidArgument
from torch.utils import _pytree as pytree


def _state_bytes(state: Any) -> int:
    return sum({leaf.untyped_storage()._cdata: leaf.untyped_storage().nbytes()
                for leaf in pytree.tree_leaves(dict(state))
                if isinstance(leaf, torch.Tensor)
                and leaf.dim() > 0}.values())  # step counts stay on the host


def optimizer_state_bytes(optimizer: torch.optim.Optimizer) -> int:
    if optimizer.state:
        return _state_bytes(optimizer.state)
    groups = []
    for group in optimizer.param_groups:
        shadow = {name: copy.deepcopy(value) for name, value in group.items()
                  if name != "params"}
        shadow["params"] = []
        for parameter in group["params"]:
            ghost = torch.nn.Parameter(torch.empty_like(parameter, device="meta"),
                                       parameter.requires_grad)
            if parameter.requires_grad:
                ghost.grad = torch.empty_like(ghost)
            shadow["params"].append(ghost)
        shadow.update({name: False for name in ("foreach", "fused", "capturable")
                       if name in shadow})
        groups.append(shadow)
    ghostly = copy.copy(optimizer)  # its class and defaults, nothing of its own
    ghostly.__dict__ = dict(optimizer.__dict__)
    ghostly.param_groups = groups
    ghostly.state = type(optimizer.state)(optimizer.state.default_factory)
    try:
        getattr(type(optimizer).step, "__wrapped__", type(optimizer).step)(ghostly)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise InvalidArgument(
            f"the state of {type(optimizer).__name__} cannot be foretold ({error}): "
            "run one optimizer step first, then its state is counted") from error
    return _state_bytes(ghostly.state)
