"""What Loadline's own operators hold and move inside, besides operands and results.

Operators register here, so that a problem knows their workspace and their time. Tested by
tests/plugins/python/torch_head_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from loadline.torch.compat import torch_internals


@dataclasses.dataclass(frozen=True)
class Inside:
    """Of one call. The kernels inside run one after the other, so their times add up."""

    workspace_bytes: int
    flops: int  # of products
    moved_bytes: int  # by kernels that are no products
    dtype: torch.dtype  # of the products


# By operator, from the call's arguments: tensors without data.
OPERATORS: dict[Any, Callable[..., Inside]] = {}


def inside_of(node: torch.fx.Node) -> Inside | None:
    """None: not an operator of Loadline's with a workspace."""
    if node.target not in OPERATORS:
        return None
    args, kwargs = torch_internals.pytree.tree_map(
        lambda argument: argument.meta.get("val") if isinstance(
            argument, torch.fx.Node) else argument, (node.args, node.kwargs))
    return OPERATORS[node.target](*args, **kwargs)
