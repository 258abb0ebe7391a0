"""A model compiled in place, for programs that own the training loop.

nn.Module.compile keeps the module itself, so wrappers, hooks and checkpoints of the
program around it see what they always saw. Tested by
tests/plugins/python/torch_examples_test.py.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from loadline.torch.compiler import Options, backend
from loadline.torch.optimizer import optimizer_state_bytes


def compile_in_place(model: torch.nn.Module, budget: int | str, *,
                     optimizers: Iterable[torch.optim.Optimizer] = (),
                     accumulate: bool = False, **options: Any) -> Options:
    """The model's forward and backward run inside the budget from now on; what the
    optimizers hold, and with `accumulate` gradients that stay from step to step, is
    reserved in it. Other options are those of the backend."""
    reserved = int(options.pop("reserve_bytes", 0))
    reserved += sum(optimizer_state_bytes(optimizer) for optimizer in optimizers)
    if accumulate:
        reserved += sum(p.untyped_storage().nbytes() for p in model.parameters()
                        if p.requires_grad)
    options = {"agree": True, **options, "budget": budget, "reserve_bytes": reserved}
    read = Options.read(options)  # mistakes now, not at the first step
    model.compile(backend=backend, dynamic=False, options=options)
    return read
