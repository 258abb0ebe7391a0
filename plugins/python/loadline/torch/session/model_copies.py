"""Copies of a prepared model, as of torch.optim.swa_utils.AveragedModel, copy.deepcopy and
torch.save: compiled with the same options, and with sizes that do not change.

PyTorch's own copy of a compiled module forgets `dynamic=False`. A copy has another optimizer
or none, so its plans move no state, but leave as many bytes for it. Tested by
tests/plugins/python/torch_copied_models_test.py.
"""
from __future__ import annotations

from typing import Any

import torch
from loadline.torch.session.compiler import backend
from loadline.torch.session.names import keep_names


def compile_copy(model: torch.nn.Module, options: dict[str, Any]) -> Any:
    call = torch.compile(model, backend=backend, dynamic=False, options=options)
    keep_copies(call, options)
    keep_names(call)
    return call


def keep_copies(call: Any, options: dict[str, Any]) -> None:
    """From now on copies of what torch.compile returned are compiled with these options."""
    if not isinstance(call, torch.nn.Module):
        return

    def reduce(self: Any) -> tuple[Any, ...]:
        return compile_copy, (self._orig_mod, options)

    kind = type(call)
    call.__class__ = type(kind.__name__, (kind,), {
        "__module__": kind.__module__, "__reduce__": reduce})


def options_of_copies(options: dict[str, Any], budget: int) -> dict[str, Any]:
    """options: that the model was compiled with. budget: in bytes."""
    state = sum(bucket.bytes for bucket in options["state"])
    return {**{name: value for name, value in options.items() if name not in (
        "session", "state", "state_number")}, "budget": budget,
        "reserve_bytes": options["reserve_bytes"] + state}
