"""Train a model in less memory than it wants.

    import loadline

    plan = loadline.plan(problem, "60%")        # a loadline.problem/1 document
    loadline.verify(problem, plan)
    model, opt = loadline.torch.prepare(model, opt, sample=batch, budget="22GiB")

`loadline.torch` is imported when it is first asked for, so that this package
needs no torch and loads in milliseconds.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from loadline._library import version as _version
from loadline.budget import parse_budget
from loadline.errors import (
    Infeasible,
    InternalError,
    InvalidArgument,
    LoadlineError,
    LoadlineWarning,
    NotValid,
    Stopped,
)
from loadline.machine import Machine
from loadline.planning import Plan, Progress, keep_everything, plan, verify

if TYPE_CHECKING:
    from loadline import torch as torch

__all__ = [
    "Infeasible", "InternalError", "InvalidArgument", "LoadlineError", "LoadlineWarning",
    "Machine", "NotValid", "Plan", "Progress", "Stopped", "keep_everything",
    "parse_budget", "plan", "verify",
]


def __getattr__(name: str) -> Any:
    if name == "torch":
        return importlib.import_module("loadline.torch")
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'loadline' has no attribute {name!r}")
