"""The machine profile of a plan if the user names none: that of the graph's device.

On a CPU, copies compete with compute for cores and memory, so the default has none. For
a GPU it is the profile that `loadline doctor --device cuda` saved, else the nominal one
of its data sheet. Tested by tests/plugins/python/torch_default_machine_test.py.
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
    """The first GPU that one of them is on, else the CPU."""
    return next((tensor.device for tensor in tensors if isinstance(tensor, torch.Tensor)
                 and tensor.device.type == "cuda"), torch.device("cpu"))


def device_of(model: torch.nn.Module) -> torch.device:
    """The device of all parameters; "meta" if they are on several."""
    devices = {p.device for p in model.parameters()}
    return devices.pop() if len(devices) == 1 else torch.device("meta")


def default_machine(device: torch.device) -> Machine:
    """Warns if it is a GPU without a profile."""
    if device.type != "cuda":
        return NOMINAL
    name = torch.cuda.get_device_name(device)
    if (kept := _kept(name)) is not None:
        return kept
    if (known := _known(name)) is not None:
        return with_host_memory(known)
    usual_bytes = Machine.known("h100-sxm").reserved_bytes
    warnings.warn(
        f"loadline: {name} has no machine profile, so plans copy nothing to the host, and "
        f"{format_bytes(usual_bytes)} of a budget in bytes are reserved for CUDA's "
        "context. Measure the GPU with: loadline doctor --device cuda; or name a similar "
        'one: machine="rtx-4090"', LoadlineWarning, stacklevel=2)
    return dataclasses.replace(NOMINAL, reserved_bytes=usual_bytes)


def with_host_memory(nominal: Machine) -> Machine:
    """With this host's memory, divided among the processes of torchrun."""
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
        warnings.warn(f"loadline: {error}; the profile is ignored", LoadlineWarning,
                      stacklevel=3)
        return None
    known = _known(name)  # a saved profile may be an edited nominal one
    return machine if machine.name in (name, known and known.name) else None
