"""Loadline's own PyTorch operators, registered for the lowest cost per call.

A step calls four of them for each value that it copies, and on a GPU that waits for its
host every call lengthens the step. `torch.library.custom_op` adds three Python calls,
30 us instead of 5 us per operator. They serve autograd, which never sees these
operators: only planned modules call them. Tested by
tests/plugins/python/torch_offload_test.py and torch_host_state_test.py.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_LIBRARY = torch.library.Library("loadline", "FRAGMENT")


def operator(schema: str, like: Callable[..., Any]) -> Callable[
        [Callable[..., Any]], Any]:
    """Registers the function as `loadline::` plus the schema. like: the same for fake
    tensors, which have no data."""
    name = schema.split("(", 1)[0]

    def register(function: Callable[..., Any]) -> Any:
        _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"loadline::{name}", like, lib=_LIBRARY)
        return getattr(torch.ops.loadline, name).default

    return register


def differentiable_operator(
        schema: str, like: Callable[..., Any], backward: Callable[..., Any] | None = None,
        keep: Callable[..., Any] | None = None) -> Callable[[Callable[..., Any]], Any]:
    """As `operator`, and autograd sees it. keep: what `backward` needs, as
    torch.library.register_autograd says."""
    def register(function: Callable[..., Any]) -> Any:
        made = operator(schema, like)(function)
        if backward is not None:
            torch.library.register_autograd(
                f"loadline::{schema.split('(', 1)[0]}", backward, setup_context=keep,
                lib=_LIBRARY)
        return made

    return register
