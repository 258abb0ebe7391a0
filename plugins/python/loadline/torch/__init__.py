"""Loadline inside PyTorch's compiler (docs/pytorch.md).

This package has the public names. Its sub-packages import each other in one direction
only, from the last to the first (tools/dev/check_imports):

compat    names that are private to PyTorch, devices, operators
problem   a traced step becomes a problem
solve     a problem becomes a plan
rewrite   a plan becomes a forward and a backward module
state     optimizer state: prediction, and moves between device and host
structure the head in segments of rows, the batch in parts
fallback  tiers for a PyTorch that cannot do all of this
session   backend, prepare, compile_in_place, report, and what they hold for a model

PyTorch is imported at the first use of a public name, so that `python -m
loadline.torch.estimate` can refuse a file without it.
"""
from __future__ import annotations

import importlib as _importlib
import importlib.util as _util
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from loadline.errors import Unsupported

if _util.find_spec("torch") is None:
    raise ImportError("loadline.torch needs PyTorch: pip install torch")

if _TYPE_CHECKING:
    from loadline.torch.rewrite.ledger import Ledger, virtual_device
    from loadline.torch.rewrite.planned_graph import PlannedGraph
    from loadline.torch.session.compiler import backend
    from loadline.torch.session.estimate import Estimate, estimate
    from loadline.torch.session.in_place import compile_in_place
    from loadline.torch.session.prepare import prepare
    from loadline.torch.session.report import report
    from loadline.torch.session.session import recent_graphs as planned
    from loadline.torch.structure.linear_cross_entropy import linear_cross_entropy

__all__ = ["Estimate", "Ledger", "PlannedGraph", "Unsupported", "backend", "compile_in_place",
           "estimate", "linear_cross_entropy", "planned", "prepare", "report",
           "virtual_device"]

_MODULES = {
    "rewrite.ledger": ("Ledger", "virtual_device"), "rewrite.planned_graph": ("PlannedGraph",),
    "session.compiler": ("backend",), "session.estimate": ("Estimate", "estimate"),
    "session.in_place": ("compile_in_place",), "session.prepare": ("prepare",),
    "session.report": ("report",), "session.session": ("recent_graphs",),
    "structure.linear_cross_entropy": ("linear_cross_entropy",)}


def __getattr__(name: str) -> _Any:
    # They need packages that PyTorch does not, so they are imported on demand.
    if name in ("lightning", "trainer"):
        return _importlib.import_module(f"loadline.torch.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'loadline.torch' has no attribute {name!r}")
    # All at once: PyTorch's compiler cannot trace what imports a module.
    for module, names in _MODULES.items():
        found = _importlib.import_module(f"loadline.torch.{module}")
        for one in names:
            globals()["planned" if one == "recent_graphs" else one] = getattr(found, one)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
