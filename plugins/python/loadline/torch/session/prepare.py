"""loadline.torch.prepare: trains a model and its optimizer inside a number of bytes.

It counts what the traced step does not hold, plans with the rest of the budget, runs one
step to measure its peak, and corrects the plan at most twice. Tested by
tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from loadline.budget import format_bytes
from loadline.errors import InvalidArgument, LoadlineError, LoadlineWarning
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.problem.default_machine import first_device
from loadline.torch.problem.make_problem import StateBucket
from loadline.torch.rewrite.ledger import virtual_device
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.compiler import backend, current_tier, refuse_meta
from loadline.torch.session.session import Prepared, Session
from loadline.torch.solve.options import Options
from loadline.torch.state.dry_run import dry_run
from loadline.torch.state.host_state import (detach_host_state, movable_buckets,
                                             new_host_state)
from loadline.torch.state.predict_state import PredictedState, bytes_on, predict_state
from loadline.torch.state.wrappers import innermost

CORRECTIONS = 2
# PyTorch's CUDA allocator may hand out a block that is up to 1 MiB too large, and which
# blocks these are differs between the measured step and later ones. On an H100 that was
# 8 MiB of GPT-2 124M's 3 GiB.
MAX_SLACK_BYTES = 16 << 20


def _cut_off(value: Any) -> Any:
    """A sample's tensor without its history, through which a backward pass would go on."""
    if isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf:
        return value.detach().requires_grad_()
    return value


@contextlib.contextmanager
def _restored_afterwards(model: torch.nn.Module, sample: Any) -> Iterator[None]:
    """A step inside changes no buffer, gradient or random number."""
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    leaves = [*model.parameters(), *(
        leaf for leaf in torch_internals.pytree.tree_leaves(sample)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.is_leaf)]
    gradients: list[tuple[torch.Tensor, torch.Tensor | None]] = [
        (leaf, leaf.grad) for leaf in dict.fromkeys(leaves)]
    for leaf, _ in gradients:
        leaf.grad = None
    devices = {parameter.device for parameter in model.parameters()
               if parameter.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            for leaf, gradient in gradients:
                leaf.grad = gradient


def _scalar(output: Any) -> torch.Tensor:
    losses = [leaf for leaf in torch_internals.pytree.tree_leaves(output)
              if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not losses:
        raise LoadlineError(
            "no output of the model requires a gradient: pass prepare a model in "
            "training mode, outside of torch.no_grad()")
    return losses[0] if losses[0].dim() == 0 else torch.stack(
        [loss.sum() for loss in losses]).sum()


def _arguments(sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(sample, dict):
        return (), sample
    return (tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)), {}


def _run_sample_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None,
                     call: Any, sample: Any, inner: str, session: Session
                     ) -> tuple[list[PlannedGraph], int | None]:
    """The graphs planned for one step, and its peak in bytes if it can be measured: with
    the optimizer state that the plans keep on the device, and no other state."""
    args, kwargs = torch_internals.pytree.tree_map(_cut_off, _arguments(sample))
    device = first_device(model.parameters())
    cuda = device if device.type == "cuda" else None
    session.restart()
    with _restored_afterwards(model, sample), dry_run(
            session.number, device_of(model)), contextlib.ExitStack() as stack:
        ledger = stack.enter_context(virtual_device()) if (
            inner == "aot_eager" and cuda is None
            and current_tier() == tiers.FULL) else None
        try:
            _scalar(call(*args, **kwargs)).backward()
            if cuda is not None:  # once more, because compiling itself takes memory
                for parameter in model.parameters():
                    parameter.grad = None
                torch.cuda.empty_cache()  # of compiling, and of earlier plans
                torch.cuda.reset_peak_memory_stats(cuda)
                _scalar(call(*args, **kwargs)).backward()
        except torch_internals.BackendCompilerFailed as error:
            cause = getattr(error, "inner_exception", None)
            if isinstance(cause, LoadlineError):
                raise cause from None
            raise
    graphs = session.graphs
    if not graphs:
        raise LoadlineError(
            "nothing was planned: no traced part of the model needs a gradient. "
            "torch.compile(model, fullgraph=True) says what cannot be traced")
    # State that never moves takes memory in a real step.
    resident = sum(graph.resident_state_bytes for graph in graphs)
    if cuda is not None:
        present = 0 if optimizer is None else bytes_on(optimizer, cuda)
        return graphs, torch.cuda.max_memory_allocated(cuda) - present + resident
    if ledger is None:
        return graphs, None
    for graph in graphs:
        graph.surprises = ledger.surprises
    return graphs, ledger.peak_bytes + resident


def device_of(model: torch.nn.Module) -> torch.device:
    """The device of all parameters; "meta" if they are on several."""
    devices = {p.device for p in model.parameters()}
    return devices.pop() if len(devices) == 1 else torch.device("meta")


def state_buckets(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None,
                  predicted: PredictedState, options: Options) -> list[Any]:
    """Optimizer state that the plan may put on the host."""
    machine = options.machine
    if optimizer is None or not options.offload or current_tier() != tiers.FULL or not (
            machine.d2h_bytes_per_s and machine.h2d_bytes_per_s):
        return []
    return movable_buckets(optimizer, predicted, device_of(model))


def _device_memory(device: torch.device) -> tuple[int | None, int | None]:
    """Bytes that PyTorch's allocator holds, and bytes in use otherwise."""
    if device.type != "cuda":
        return None, None
    free_bytes, whole_bytes = torch.cuda.mem_get_info(device)
    reserved_bytes = torch.cuda.memory_reserved(device)
    return reserved_bytes, whole_bytes - free_bytes - reserved_bytes


def _shares(graphs: list[PlannedGraph]) -> tuple[float, ...]:
    """Of the budget for each graph, so that the sum of all peaks is within it."""
    whole = sum(graph.keep_everything_bytes for graph in graphs)
    return tuple(graph.keep_everything_bytes / whole for graph in graphs)


def _check_arguments(model: Any, optimizer: Any) -> None:
    if not isinstance(model, torch.nn.Module) or not isinstance(
            optimizer, (torch.optim.Optimizer, type(None))):
        raise InvalidArgument(
            f"prepare({type(model).__name__}, {type(optimizer).__name__}): want a "
            "torch.nn.Module and a torch.optim.Optimizer, in this order")


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
    _check_arguments(model, optimizer)
    model = torch_internals.original_module(model)
    refuse_meta([*model.parameters(), *model.buffers(),
                 *torch_internals.pytree.tree_leaves(sample)])
    device = first_device(model.parameters())
    read = Options.read({**options, "budget": budget}, device)
    inner = None if optimizer is None else innermost(optimizer)
    predicted = PredictedState([], False) if inner is None else predict_state(inner)
    buckets = state_buckets(model, inner, predicted, read)
    parameter_bytes = sum(p.untyped_storage().nbytes() for p in model.parameters()
                          if p.requires_grad)
    accumulated = parameter_bytes if accumulate else 0
    slack = min(MAX_SLACK_BYTES, parameter_bytes // 32) if (
        device_of(model).type == "cuda") else 0
    shares: tuple[float, ...] = ()
    corrected = corrections = 0
    found_bytes: dict[str, int] = {}
    session = Session()
    while True:
        torch_internals.forget_compiled(model)
        planned_state = sum(bucket.state_bytes for bucket in buckets)
        asked: dict[str, Any] = {
            "agree": True, **options, "budget": budget, "machine": read.machine,
            "outside_bytes": read.outside_bytes, "shares": shares,
            "reserve_bytes": read.reserve_bytes + accumulated + corrected + slack
            + predicted.bytes - planned_state,
            "state": tuple(StateBucket(b.state_bytes, b.touched_bytes)
                           for b in buckets),
            "state_number": session.number if buckets else 0,
            "found_bytes": tuple(sorted(found_bytes.items())),
            "session": session.reference}
        call = torch.compile(model, backend=backend, dynamic=False, options=asked)
        graphs, measured = _run_sample_step(model, inner, call, sample, read.inner, session)
        if len(graphs) == 1:
            graphs[0].measured_bytes = measured
        elif not shares:
            buckets, shares = [], _shares(graphs)
            continue
        excess = 0 if measured is None else measured - corrected - sum(
            graph.plan.budget_bytes for graph in graphs)
        if excess <= 0:
            break
        if corrections == CORRECTIONS:
            if excess > slack:
                warnings.warn(
                    f"loadline: a step takes {format_bytes(excess)} more than its "
                    f"budget, after {CORRECTIONS} corrections; loadline.torch.report() "
                    "names the largest surprise", LoadlineWarning, stacklevel=2)
            break
        corrections += 1
        found = {name: real for graph in graphs
                 for name, (_, real) in graph.surprises.items()}
        if found.items() <= found_bytes.items():  # already planned for: not enough
            corrected += excess
        found_bytes.update(found)
    if inner is not None:
        detach_host_state(inner)
        if buckets:
            new_host_state(inner, buckets, device_of(model), session.number).follow(
                graphs[0].moves)
    session.prepared = Prepared(
        budget, predicted.bytes, accumulated, read.outside_bytes, corrected, graphs,
        measured, *_device_memory(device))
    session.belong_to(model)
    return call, optimizer
