"""What a backward gives gradients to.

Tested by tests/plugins/python/torch_whole_step_test.py and torch_micro_batches_test.py.
"""
from __future__ import annotations

from typing import Any

import torch


def trained_leaves(loss: torch.Tensor) -> list[torch.Tensor]:
    """The leaves that a backward of the loss gives gradients to, each once."""
    found: dict[torch.Tensor, None] = {}
    open_: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    while open_:
        node = open_.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(leaf := getattr(node, "variable", None), torch.Tensor):
            found[leaf] = None
        open_ += [following for following, _ in node.next_functions]
    return [*found]
