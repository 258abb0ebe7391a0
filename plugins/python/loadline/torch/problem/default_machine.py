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
from loadline.budget import format_bytes
from loadline.errors import InvalidArgument, LoadlineWarning
from loadline.machine import Machine, cache_folder
from loadline.torch.problem.cost_model import NOMINAL


def first_device(tensors: Iterable[object]) -> torch.device:
    """A GPU where one of them is on one."""
    return next((tensor.device for tensor in tensors if isinstance(tensor, torch.Tensor)
                 and tensor.device.type == "cuda"), torch.device("cpu"))


def default_machine(device: torch.device) -> Machine:
    """Warns where it is a GPU of which nothing is known."""
    if device.type != "cuda":
        return NOMINAL
    name = torch.cuda.get_device_name(device)
    if (kept := _kept(name)) is not None:
        return kept
    if (known := _known(name)) is not None:
        return with_host_memory(known)
    usual_bytes = Machine.known("h100-sxm").reserved_bytes
    warnings.warn(
        f"loadline: nothing is known of {name}, so plans copy nothing to the host, and "
        f"{format_bytes(usual_bytes)} of a budget in bytes are taken for CUDA's "
        "context. Measure it with: loadline doctor --device cuda; or name a GPU that is "
        'like it: machine="rtx-4090"', LoadlineWarning, stacklevel=2)
    return dataclasses.replace(NOMINAL, reserved_bytes=usual_bytes)


def with_host_memory(nominal: Machine) -> Machine:
    """Of its memory, whatever is usual, a process may pin its part."""
    host_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")  # torchrun's
    return dataclasses.replace(
        nominal,
        host_bytes=host_bytes // max(1, int(ranks) if ranks.isdigit() else 1))


def _known(name: str) -> Machine | None:
    try:
        return Machine.known(name)
    except InvalidArgument:
        return None


def _kept(name: str) -> Machine | None:
    path = cache_folder() / "machine-cuda.json"
    try:
        machine = Machine.load(path)
    except OSError:
        return None
    except InvalidArgument as error:
        warnings.warn(f"loadline: {error}; it counts for nothing", LoadlineWarning, stacklevel=3)
        return None
    known = _known(name)  # its profile may be edited and kept
    return machine if machine.name in (name, known and known.name) else None
