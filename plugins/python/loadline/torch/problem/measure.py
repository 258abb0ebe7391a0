"""Measured times of operators on this machine, kept on disk.

An operator runs a few times on sample data of its sizes, and the fastest run counts.
Operators that draw random numbers, write in place or communicate are not run. There is
one file for each device, number of threads and version of PyTorch. Times in it are never
measured again, so plans stay the same while the file exists.
Tested by tests/plugins/python/torch_measure_test.py.
"""
from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pathlib
import threading
import time
import warnings
from collections.abc import Iterable
from typing import Any

import torch
from loadline.errors import LoadlineWarning
from loadline.machine import cache_folder
from loadline.torch.compat import torch_internals
from loadline.torch.problem.joint import Operation

ROUNDS = 3


def folder() -> pathlib.Path:
    return cache_folder() / "torch-times"


def _file(device: torch.device) -> pathlib.Path:
    name = (torch.cuda.get_device_name(device) if device.type == "cuda"
            else f"{device.type} {torch.get_num_threads()} threads")
    digest = hashlib.sha256(f"{torch.__version__} {name}".encode()).hexdigest()
    return folder() / f"{digest[:16]}.json"


def _meta(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def _signature(node: torch.fx.Node) -> str:
    def word(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{value.dtype}{list(value.shape)}{list(value.stride())}"
        return repr(value)

    leaves = torch_internals.pytree.tree_leaves(
        torch_internals.pytree.tree_map(_meta, (node.args, node.kwargs)))
    return f"{node.target} {' '.join(map(word, leaves))}"


def _sample_data(value: Any) -> Any:
    value = _meta(value)
    if not isinstance(value, torch.Tensor):
        return value
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype,
                               device=value.device)
    # An index of 0 is always in range.
    return made.fill_(0.5) if made.is_floating_point() else made.zero_()


def _time_ns(node: torch.fx.Node) -> int:
    args, kwargs = torch_internals.pytree.tree_map(_sample_data, (node.args, node.kwargs))
    device = next((leaf.device
                   for leaf in torch_internals.pytree.tree_leaves((args, kwargs))
                   if isinstance(leaf, torch.Tensor)), torch.device("cpu"))
    best = None
    target: Any = node.target
    for _ in range(ROUNDS + 1):  # the first warms up
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter_ns()
        target(*args, **kwargs)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken = time.perf_counter_ns() - start
        best = taken if best is None else min(best, taken)
    assert best is not None
    return best


def _read(path: pathlib.Path) -> dict[str, int]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}  # missing or truncated: measured again
    return found if isinstance(found, dict) else {}


def _write(path: pathlib.Path, times: dict[str, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
    # Processes that share the folder add to the file one after the other.
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        partial.write_text(json.dumps({**_read(path), **times}, indent=1, sort_keys=True))
        os.replace(partial, path)


def measured_ns(operations: Iterable[Operation],
                device: torch.device) -> dict[torch.fx.Node, int]:
    """By node, for operators that can be measured; the roofline prices the others."""
    # A kernel of several operators cannot be measured by running one of them.
    wanted = {o.node: _signature(o.node) for o in operations if not (
        o.ordered or o.updates or o.inner)}
    path = _file(device)
    known, found = _read(path), dict[str, int]()

    def work() -> None:  # in another thread: tensors have no data inside a compile
        with torch.no_grad():
            for node, signature in wanted.items():
                if signature not in known and signature not in found:
                    try:
                        found[signature] = _time_ns(node)
                    except Exception:  # sample data does not suit it: use the roofline
                        continue

    thread = threading.Thread(target=work, name="loadline-measure")
    thread.start()
    thread.join()
    if found:
        try:
            _write(path, found)
        except OSError as error:
            warnings.warn("loadline: the measured times of operators could not be kept, so "
                          f"each program measures them anew: {error}", LoadlineWarning,
                          stacklevel=2)
    known = {**known, **found}
    return {node: known[signature] for node, signature in wanted.items()
            if signature in known}
