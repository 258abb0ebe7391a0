"""loadline.torch.prepare: a model and its optimizer inside a number of bytes.

Counts what the traced step does not hold, plans with the rest, runs one step to
see whether it is as planned, and corrects at most twice. Tested by
tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from loadline.budget import format_bytes
from loadline.errors import InvalidArgument, LoadlineError
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.compat.lanes import lanes_of
from loadline.torch.problem.default_machine import first_device
from loadline.torch.problem.make_problem import StateBucket
from loadline.torch.rewrite.copies import Slab
from loadline.torch.rewrite.ledger import virtual_device
from loadline.torch.rewrite.planned_graph import PlannedGraph, watch
from loadline.torch.rewrite.state_moves import movers, numbers
from loadline.torch.session.compiler import backend, current_tier
from loadline.torch.solve.options import Options
from loadline.torch.state.dry_run import dry_run
from loadline.torch.state.host_state import HostState
from loadline.torch.state.predict_state import Bucket, PredictedState, buckets_of, bytes_on, predict_state

CORRECTIONS = 2
# PyTorch's CUDA allocator hands out what it has where that is up to 1 MiB too large;
# which blocks these are differs from the step that is measured to those that follow.
# On an H100 that came to 8 MiB of GPT-2 124M's 3 GiB.
MOST_SLACK_BYTES = 16 << 20


@dataclasses.dataclass
class Prepared:
    """What `prepare` found, for the report."""

    budget: int | str
    optimizer_bytes: int
    accumulated_bytes: int  # gradients that stay from step to step
    outside_bytes: int  # of PyTorch's allocator, taken off the budget
    corrected_bytes: int  # added after measuring
    graphs: list[PlannedGraph]
    measured_bytes: int | None  # of all graphs together
    # After that step, on a GPU: what PyTorch's allocator holds of it, and what else of
    # it is taken by the driver's count, by this process or another.
    allocator_bytes: int | None
    found_outside_bytes: int | None


prepared: list[Prepared] = []  # the last ones
KEPT = 4


def host_state_of(optimizer: torch.optim.Optimizer | None) -> HostState | None:
    return next((mover for mover in movers.values()
                 if isinstance(mover, HostState) and mover.attached
                 and mover.optimizer is optimizer), None)


def detach_host_state(optimizer: torch.optim.Optimizer) -> None:
    """From all who keep its state: it is on the device again."""
    for mover in [*movers.values()]:
        if isinstance(mover, HostState) and mover.optimizer is optimizer:
            mover.detach()


@contextlib.contextmanager
def _restored_afterwards(model: torch.nn.Module) -> Iterator[None]:
    """A step in here changes no buffer, gradient or random number."""
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    gradients: list[tuple[torch.nn.Parameter, torch.Tensor | None]] = [
        (parameter, parameter.grad) for parameter in model.parameters()]
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
            for parameter, gradient in gradients:
                parameter.grad = gradient


def _scalar(output: Any) -> torch.Tensor:
    losses = [leaf for leaf in torch_internals.pytree.tree_leaves(output)
              if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not losses:
        raise LoadlineError(
            "the model's output needs no gradient: hand prepare a model in training "
            "mode, without torch.no_grad()")
    return losses[0] if losses[0].dim() == 0 else torch.stack(
        [loss.sum() for loss in losses]).sum()


def _arguments(sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(sample, dict):
        return (), sample
    return (tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)), {}


def _run_sample_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None,
             call: Any, sample: Any, inner: str, number: int
             ) -> tuple[list[PlannedGraph], int | None]:
    """One step; the graphs planned for it, and the bytes where they are known, with
    the state that the plans have on the device and no other. number: of the mover of
    that state."""
    args, kwargs = _arguments(sample)
    device = first_device(model.parameters())
    cuda = device if device.type == "cuda" else None
    with watch() as graphs, _restored_afterwards(model), dry_run(
            number, device_of(model)), contextlib.ExitStack() as stack:
        ledger = stack.enter_context(virtual_device()) if (
            inner == "aot_eager" and cuda is None
            and current_tier() == tiers.FULL) else None
        try:
            _scalar(call(*args, **kwargs)).backward()
            if cuda is not None:  # again: compiling itself takes memory
                for parameter in model.parameters():
                    parameter.grad = None
                torch.cuda.empty_cache()  # what compiling took, and earlier plans
                torch.cuda.reset_peak_memory_stats(cuda)
                _scalar(call(*args, **kwargs)).backward()
        except torch_internals.BackendCompilerFailed as error:
            cause = getattr(error, "inner_exception", None)
            if isinstance(cause, LoadlineError):
                raise cause from None
            raise
    if not graphs:
        raise LoadlineError(
            "nothing was planned: no traced part of the model needs a gradient. "
            "torch.compile(model, fullgraph=True) says what cannot be traced")
    # State that never moves would be there too.
    resident = sum(graph.resident_state_bytes for graph in graphs)
    if cuda is not None:
        there = 0 if optimizer is None else bytes_on(optimizer, cuda)
        return graphs, torch.cuda.max_memory_allocated(cuda) - there + resident
    if ledger is None:
        return graphs, None
    for graph in graphs:
        graph.surprises = ledger.surprises
    return graphs, ledger.peak_bytes + resident


def new_host_state(model: torch.nn.Module, optimizer: torch.optim.Optimizer,
                   buckets: list[Bucket], number: int) -> HostState:
    """For the buckets that `movable_buckets` found, under the number that plans have; it does
    nothing before it is told what to follow."""
    lanes = lanes_of(device_of(model))
    assert lanes is not None
    state = movers[number] = HostState(optimizer, buckets, lanes)
    return state


def device_of(model: torch.nn.Module) -> torch.device:
    """Where all parameters are; "meta": not all on one."""
    devices = {p.device for p in model.parameters()}
    return devices.pop() if len(devices) == 1 else torch.device("meta")


def movable_buckets(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None,
            predicted: PredictedState, options: Options) -> list[Bucket]:
    """Optimizer state that the plan may put on the host."""
    machine = options.machine
    if optimizer is None or not predicted.separable or not options.offload or not (
            machine.d2h_bytes_per_s and machine.h2d_bytes_per_s) or (
            current_tier() != tiers.FULL):
        return []
    if lanes_of(device_of(model)) is None:
        return []
    return buckets_of(optimizer, predicted)


def _taken_of(device: torch.device) -> tuple[int | None, int | None]:
    """By PyTorch's allocator, and by all else."""
    if device.type != "cuda":
        return None, None
    free_bytes, whole_bytes = torch.cuda.mem_get_info(device)
    reserved_bytes = torch.cuda.memory_reserved(device)
    return reserved_bytes, whole_bytes - free_bytes - reserved_bytes


def _release(slabs: list[Callable[[], Slab | None]]) -> None:
    for reference in slabs:
        if (slab := reference()) is not None:
            slab.release()


def _shares(graphs: list[PlannedGraph]) -> tuple[float, ...]:
    """Of the budget, so that all peaks together are within it."""
    whole = sum(graph.keep_everything_bytes for graph in graphs)
    return tuple(graph.keep_everything_bytes / whole for graph in graphs)


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
    if not isinstance(model, torch.nn.Module) or not isinstance(
            optimizer, (torch.optim.Optimizer, type(None))):
        raise InvalidArgument(
            f"prepare({type(model).__name__}, {type(optimizer).__name__}): want a "
            "torch.nn.Module and a torch.optim.Optimizer, in this order")
    device = first_device(model.parameters())
    read = Options.read({**options, "budget": budget}, device)
    predicted = PredictedState([], False) if optimizer is None else predict_state(optimizer)
    buckets = movable_buckets(model, optimizer, predicted, read)
    parameter_bytes = sum(p.untyped_storage().nbytes() for p in model.parameters()
                          if p.requires_grad)
    accumulated = parameter_bytes if accumulate else 0
    slack = min(MOST_SLACK_BYTES, parameter_bytes // 32) if (
        device_of(model).type == "cuda") else 0
    shares: tuple[float, ...] = ()
    corrected = corrections = 0
    found_bytes: dict[str, int] = {}
    number = next(numbers)
    while True:
        torch_internals.forget_compiled(model)
        traced = sum(bucket.state_bytes for bucket in buckets)
        asked: dict[str, Any] = {
            "agree": True, **options, "budget": budget, "machine": read.machine,
            "outside_bytes": read.outside_bytes, "shares": shares,
            "reserve_bytes": read.reserve_bytes + accumulated + corrected + slack
            + predicted.bytes - traced,
            "state": tuple(StateBucket(b.state_bytes, b.touched_bytes)
                           for b in buckets),
            "state_number": number if buckets else 0,
            "found_bytes": tuple(sorted(found_bytes.items()))}
        call = torch.compile(model, backend=backend, dynamic=False,
                             options=asked)
        graphs, measured = _run_sample_step(model, optimizer, call, sample, read.inner,
                                    number)
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
                    "names the largest surprise", stacklevel=2)
            break
        corrections += 1
        found = {name: real for graph in graphs
                 for name, (_, real) in graph.surprises.items()}
        if found.items() <= found_bytes.items():  # known, and not enough
            corrected += excess
        found_bytes.update(found)
    if optimizer is not None:
        detach_host_state(optimizer)
        if buckets:
            new_host_state(model, optimizer, buckets, number).follow(graphs[0].moves)
    # What was compiled may outlive the model, for another of its class.
    weakref.finalize(model, _release, [graph.slab for graph in graphs])
    prepared.append(Prepared(
        budget, predicted.bytes, accumulated, read.outside_bytes, corrected, graphs,
        measured, *_taken_of(device)))
    del prepared[:-KEPT]
    return call, optimizer
