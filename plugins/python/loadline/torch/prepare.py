"""loadline.torch.prepare: a model and its optimizer inside a number of bytes.

Counts what the traced step does not hold, plans with the rest, runs one step to
see whether it is as planned, and corrects at most twice. Tested by
tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from loadline.budget import format_bytes
from loadline.errors import LoadlineError
from loadline.torch import compiler
from loadline.torch.ledger import virtual_device
from loadline.torch.optimizer import optimizer_state_bytes
from torch.utils import _pytree as pytree

CORRECTIONS = 2


@dataclasses.dataclass
class Prepared:
    """What `prepare` found, for the report."""

    budget: int | str
    optimizer_bytes: int
    accumulated_bytes: int  # gradients that stay from step to step
    corrected_bytes: int  # added after measuring
    graphs: list[compiler.PlannedGraph]


prepared: list[Prepared] = []


@contextlib.contextmanager
def _no_trace_left(model: torch.nn.Module) -> Iterator[None]:
    """A step in here changes no buffer, gradient or random number."""
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    for parameter, _ in gradients:
        parameter.grad = None
    devices = {parameter.device for parameter in model.parameters()
               if parameter.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            for parameter, before in gradients:
                parameter.grad = before


def _scalar(output: Any) -> torch.Tensor:
    losses = [leaf for leaf in pytree.tree_leaves(output)
              if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not losses:
        raise LoadlineError(
            "the model's output needs no gradient: hand prepare a model in training "
            "mode, without torch.no_grad()")
    return losses[0] if losses[0].dim() == 0 else sum(l.sum() for l in losses)


def _arguments(sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(sample, dict):
        return (), sample
    return (tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)), {}


def _warm_up(model: torch.nn.Module, call: Any, sample: Any,
             inner: str) -> list[compiler.PlannedGraph]:
    """One step; the graphs planned for it, with what was measured."""
    args, kwargs = _arguments(sample)
    before = len(compiler.planned)
    cuda = next((p.device for p in model.parameters()
                 if p.device.type == "cuda"), None)
    with _no_trace_left(model), contextlib.ExitStack() as stack:
        ledger = stack.enter_context(virtual_device()) if (
            inner == "aot_eager" and cuda is None) else None
        try:
            _scalar(call(*args, **kwargs)).backward()
            if cuda is not None:  # again: compiling itself takes memory
                torch.cuda.reset_peak_memory_stats(cuda)
                _scalar(call(*args, **kwargs)).backward()
        except torch._dynamo.exc.BackendCompilerFailed as error:
            cause = error.inner_exception
            if isinstance(cause, LoadlineError):
                raise cause from None
            raise
    graphs = compiler.planned[before:]
    if not graphs:
        raise LoadlineError(
            "nothing was planned: no traced part of the model needs a gradient. "
            "torch.compile(model, fullgraph=True) says what cannot be traced")
    if len(graphs) == 1 and ledger is not None:
        graphs[0].measured_bytes = ledger.peak_bytes
        graphs[0].surprises = ledger.surprises
    elif len(graphs) == 1 and cuda is not None:
        graphs[0].measured_bytes = torch.cuda.max_memory_allocated(cuda)
    return graphs


def prepare(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None,
            *, sample: Any, budget: int | str, accumulate: bool = False,
            **options: Any) -> tuple[Any, torch.optim.Optimizer | None]:
    """The compiled model and its optimizer, to be used as before.

    sample: a batch: the forward's arguments as tuple, dict or one tensor.
    budget: bytes, "22GiB", or "60%" of what keeping everything takes.
    accumulate: gradients stay from step to step (no zero_grad in between).
    Other options are those of the backend (docs/pytorch.md).
    Raises Infeasible with the smallest budget that can be met.
    """
    read = compiler.Options.read({**options, "budget": budget})
    optimizer_bytes = 0 if optimizer is None else optimizer_state_bytes(optimizer)
    accumulated = sum(p.untyped_storage().nbytes() for p in model.parameters()
                      if p.requires_grad) if accumulate else 0
    corrected = 0
    found_bytes: dict[str, int] = {}
    for attempt in range(CORRECTIONS + 1):
        torch._dynamo.reset_code(model.forward.__code__)
        reserve = read.reserve_bytes + optimizer_bytes + accumulated + corrected
        call = torch.compile(
            model, backend=compiler.backend, dynamic=False,
            options={**options, "budget": budget, "reserve_bytes": reserve,
                     "found_bytes": tuple(sorted(found_bytes.items()))})
        graphs = _warm_up(model, call, sample, read.inner)
        excess = max((graph.measured_bytes - graph.plan.budget_bytes - corrected
                      for graph in graphs if graph.measured_bytes is not None),
                     default=0)
        if excess <= 0:
            break
        if attempt == CORRECTIONS:
            continue
        found = {name: real for graph in graphs
                 for name, (_, real) in graph.surprises.items()}
        if found.items() <= found_bytes.items():  # known, and not enough
            corrected += excess
        found_bytes.update(found)
    else:
        warnings.warn(
            f"loadline: a step takes {format_bytes(excess)} more than its budget, "
            f"after {CORRECTIONS} corrections; loadline.torch.report() names the "
            "largest surprise", stacklevel=2)
    prepared.append(Prepared(budget, optimizer_bytes, accumulated, corrected, graphs))
    return call, optimizer
