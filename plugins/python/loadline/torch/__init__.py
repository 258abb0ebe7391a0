"""Loadline inside PyTorch's compiler (docs/pytorch.md)."""
from __future__ import annotations

try:
    import torch as _torch
except ImportError as error:
    raise ImportError(
        "loadline.torch needs PyTorch: pip install torch") from error

from loadline.torch.backend import PlannedGraph, backend, planned
from loadline.torch.joint import Unsupported
from loadline.torch.ledger import Ledger, virtual_device

__all__ = ["Ledger", "PlannedGraph", "Unsupported", "backend", "planned",
           "virtual_device"]
