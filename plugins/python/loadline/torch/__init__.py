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
"""
from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "loadline.torch needs PyTorch: pip install torch") from error

from loadline.errors import Unsupported
from loadline.torch.rewrite.ledger import Ledger, virtual_device
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.compiler import backend
from loadline.torch.session.estimate import Estimate, estimate
from loadline.torch.session.in_place import compile_in_place
from loadline.torch.session.prepare import prepare
from loadline.torch.session.report import report
from loadline.torch.session.session import recent_graphs as planned
from loadline.torch.structure.linear_cross_entropy import linear_cross_entropy

def __getattr__(name: str) -> _Any:
    # They need packages that PyTorch does not, so they are imported on demand.
    if name in ("lightning", "trainer"):
        return _importlib.import_module(f"loadline.torch.{name}")
    raise AttributeError(f"module 'loadline.torch' has no attribute {name!r}")


__all__ = ["Estimate", "Ledger", "PlannedGraph", "Unsupported", "backend",
           "compile_in_place", "estimate", "linear_cross_entropy", "planned", "prepare", "report", "virtual_device"]
