"""Operators of our own, as cheap to call as PyTorch has them.

A step calls them four times for each value that it copies, and where the host is
slower than the GPU every call is time of the step. `torch.library.custom_op` goes
through three more Python functions a call, 30 us where this takes 5: they serve
autograd, which never sees what only a planned module calls. Tested by
tests/plugins/python/torch_offload_test.py and torch_host_state_test.py.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_LIBRARY = torch.library.Library("loadline", "FRAGMENT")


def operator(schema: str, like: Callable[..., Any]) -> Callable[
        [Callable[..., Any]], Any]:
    """The function becomes the overload of `loadline::` and the schema; like: what it
    makes of tensors without data."""
    name = schema.split("(", 1)[0]

    def register(function: Callable[..., Any]) -> Any:
        _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"loadline::{name}", like, lib=_LIBRARY)
        return getattr(torch.ops.loadline, name).default

    return register
