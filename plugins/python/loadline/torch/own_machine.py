"""The machine that a plan is for where nobody names one: what the graph runs on.

On a CPU copies take what computing needs, so a plan has none. A GPU's profile is what
`loadline doctor --device cuda` has kept of it, else that of its data sheet.
Tested by tests/plugins/python/torch_own_machine_test.py.
"""
from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterable

import torch
from loadline.errors import InvalidArgument
from loadline.machine import Machine, cache_folder
from loadline.torch.price import NOMINAL


def first_device(tensors: Iterable[object]) -> torch.device:
    """A GPU where one of them is on one."""
    return next((tensor.device for tensor in tensors if isinstance(tensor, torch.Tensor)
                 and tensor.device.type == "cuda"), torch.device("cpu"))


def own_machine(device: torch.device) -> Machine:
    """Warns where it is a GPU of which nothing is known."""
    if device.type != "cuda":
        return NOMINAL
    name = torch.cuda.get_device_name(device)
    if (kept := _kept(name)) is not None:
        return kept
    try:
        known = Machine.known(name)
    except InvalidArgument:
        warnings.warn(
            f"loadline: nothing is known of {name}, so plans copy nothing to the host. "
            "Measure it with: loadline doctor --device cuda; or name a GPU that is "
            'like it: machine="rtx-4090"', stacklevel=2)
        return NOMINAL
    # The host is here, whatever is usual.
    host_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return dataclasses.replace(known, host_bytes=host_bytes)


def _kept(name: str) -> Machine | None:
    path = cache_folder() / "machine-cuda.json"
    try:
        machine = Machine.load(path)
    except OSError:
        return None
    except InvalidArgument as error:
        warnings.warn(f"loadline: {error}; it counts for nothing", stacklevel=3)
        return None
    return machine if machine.name == name else None
