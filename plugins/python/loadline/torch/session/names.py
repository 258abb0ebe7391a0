"""A compiled model saves and loads its parameters under the model's own names.

torch.compile puts the model into another module, as `_orig_mod`. Tested by
tests/plugins/python/torch_ways_test.py.
"""
from __future__ import annotations

from typing import Any

import torch

_WITHIN = "_orig_mod."


def keep_names(call: Any) -> None:
    """In `state_dict` and `load_state_dict` of what torch.compile returned."""
    if not isinstance(call, torch.nn.Module):
        return

    def drop(_: Any, state: dict[str, Any], prefix: str, *__: Any) -> None:
        for key in [*state]:
            if key.startswith(prefix + _WITHIN):
                state[prefix + key.removeprefix(prefix + _WITHIN)] = state.pop(key)

    def add(_: Any, state: dict[str, Any], prefix: str, *__: Any) -> None:
        for key in [*state]:
            if key.startswith(prefix) and not key.startswith(prefix + _WITHIN):
                state[prefix + _WITHIN + key.removeprefix(prefix)] = state.pop(key)

    call.register_state_dict_post_hook(drop)
    call.register_load_state_dict_pre_hook(add)
