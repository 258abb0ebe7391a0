"""Loadline inside PyTorch's compiler (docs/pytorch.md)."""
from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "loadline.torch needs PyTorch: pip install torch") from error

from loadline.errors import Unsupported
from loadline.torch.rewrite.ledger import Ledger, virtual_device
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.compiler import backend
from loadline.torch.session.in_place import compile_in_place
from loadline.torch.session.prepare import prepare
from loadline.torch.session.report import report
from loadline.torch.session.session import recent_graphs as planned

__all__ = ["Ledger", "PlannedGraph", "Unsupported", "backend", "compile_in_place",
           "planned", "prepare", "report", "virtual_device"]
