"""loadline.torch.prepare: trains a model and its optimizer inside a number of bytes.

It counts what the traced step does not hold, plans with the rest of the budget, runs one
step to measure its peak, and corrects the plan at most three times. Tested by
tests/plugins/python/torch_prepare_test.py and torch_whole_step_test.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import torch
from loadline.budget import SMALLEST, check_flags, format_bytes
from loadline.errors import Infeasible, InvalidArgument
from loadline.torch.compat import dynamo_internals, tiers
from loadline.torch.compat.nested_values import tensors_in
from loadline.torch.problem.default_machine import device_of, first_device
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.choose_structure import (Structure, check_parts, find_structure,
                                                    with_loss)
from loadline.torch.session.compiler import check_model, current_tier, refuse_meta
from loadline.torch.session.graph_breaks import autocast_types, warning_if_unplanned
from loadline.torch.session.model_copies import keep_copies, options_of_copies
from loadline.torch.session.movable import what_may_leave
from loadline.torch.session.names import keep_names
from loadline.torch.session.other_optimizers import KnownState, watch_optimizers
from loadline.torch.session.plan_passes import Passes, Request
from loadline.torch.session.sample_step import (Loss, SampleStep, check_sample,
                                               learn_loss, read_sample)
from loadline.torch.session.session import Prepared, Session, session_of_model
from loadline.torch.solve import rank_consensus
from loadline.torch.solve.make_plan import asked_bytes
from loadline.torch.solve.options import Options
from loadline.torch.state.foreign_parameters import check_trains
from loadline.torch.state.host_parameters import (new_host_parameters,
                                                  on_device_after_error)
from loadline.torch.state.host_state import detach_host_state, new_host_state
from loadline.torch.state.predict_state import PredictedState, predict_state
from loadline.torch.state.state_growth import StateGrowth
from loadline.torch.state.wrappers import innermost
from loadline.torch.structure.micro_batches import Parts, rows_of
from loadline.torch.structure.part_counts import TargetCounter

# PyTorch's CUDA allocator may hand out a block that is up to 1 MiB too large, and which
# blocks these are differs between the measured step and later ones. On an H100 that was
# 8 MiB of GPT-2 124M's 3 GiB.
MAX_SLACK_BYTES = 16 << 20


def _device_memory(device: torch.device) -> tuple[int | None, int | None]:
    """Bytes that PyTorch's allocator holds, and bytes in use otherwise."""
    if device.type != "cuda":
        return None, None
    free_bytes, whole_bytes = torch.cuda.mem_get_info(device)
    reserved_bytes = torch.cuda.memory_reserved(device)
    return reserved_bytes, whole_bytes - free_bytes - reserved_bytes


def _budget_text(budget: int | float | str, graphs: list[PlannedGraph]) -> str:
    if budget != SMALLEST:
        return str(budget)
    bytes_ = max(asked_bytes(graph.options, 0, graph.plan) for graph in graphs)
    return f"{SMALLEST}, {bytes_} bytes ({format_bytes(bytes_)})"


def _check_arguments(model: Any, optimizer: Any) -> None:
    if not isinstance(model, torch.nn.Module) or not isinstance(
            optimizer, (torch.optim.Optimizer, type(None))):
        raise InvalidArgument(
            f"prepare({type(model).__name__}, {type(optimizer).__name__}): want a "
            "torch.nn.Module and a torch.optim.Optimizer, in this order")


@contextlib.contextmanager
def _naming(unused: list[str]) -> Iterator[None]:
    """An error of a budget that is too small names the options that might meet it."""
    try:
        yield
    except Infeasible as error:
        if unused:
            error.args = f"{error}. A step may take less with {' or '.join(unused)}",
        raise


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_preparing = threading.RLock()


def _one_at_a_time(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """What PyTorch's compiler knows, and what a measured step takes, is of the process."""
    @functools.wraps(function)
    def locked(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with _preparing:
            return function(*args, **kwargs)
    return locked


@_one_at_a_time
def prepare(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None,
            *, sample: Any, budget: int | float | str, accumulate: bool = False,
            loss_fn: Callable[..., Any] | None = None,
            step_fn: Callable[[Any], Any] | None = None,
            micro_batches: int | str | None = None, allow_micro_batch_statistics: bool = False,
            offload_gradients: bool = False, update_in_backward: bool = False,
            offload_parameters: bool = False, host_updates: bool = False, **options: Any
            ) -> tuple[Any, torch.optim.Optimizer | None]:
    """The compiled model and its optimizer, to be used as before.

    sample: a batch: the forward's arguments as tuple, dict or one tensor.
    budget: bytes, "22GiB", "60%" or 0.6 of what keeping everything takes, "smallest", or
    "device": what is free on the GPU now.
    accumulate: gradients stay from step to step (no zero_grad in between).
    loss_fn: what your loop computes from the model's output, if the model does not return
    its loss: takes the output and returns the loss. Its memory is in the plan.
    step_fn: runs forward, loss and backward as your loop does, with the compiled model
    that it is given; without it, the model runs once on the sample. What it computes
    outside of the model is measured and left free in the budget.
    micro_batches: the batch runs in so many parts whose gradients are added up, or "auto":
    as many as make the predicted step fastest. The returned model then runs forward and
    backward of all parts and returns the loss of the whole batch.
    allow_micro_batch_statistics: also with batch norm, which then normalizes each part.
    With micro_batches or split, loss_fn is a part of the step: it takes the output and the
    target, which is the last of `sample` and of the model's arguments.
    offload_gradients: the plan may put gradients on the host during the backward. The
    optimizer's step brings each back and uses it up; until then it can be clipped by
    torch.nn.utils.clip_grad_norm_, and any other use of it raises LoadlineError.
    update_in_backward: also, parameters may be updated in the backward, as soon as their
    gradients are complete. Then nothing can be done with gradients, and a step that is left
    out or whose settings change between backward and step raises LoadlineError.
    offload_parameters: also, parameters may rest on the host, and are on the device around
    their uses: frozen ones, and with update_in_backward, which it implies, those that the
    backward updates.
    host_updates: optimizer state stays on the host, and parameters are updated there, which
    on a GPU rounds differently. Gradients may be on the host, as with offload_gradients.
    Other options are those of the backend (docs/pytorch.md).
    Raises Infeasible with the smallest budget that can be met.
    """
    _check_arguments(model, optimizer)
    if loss_fn is not None and step_fn is not None:
        raise InvalidArgument("give prepare loss_fn or step_fn: a step_fn has its loss")
    if step_fn is not None and not callable(step_fn):
        raise InvalidArgument(
            f"step_fn={step_fn!r}: want a function that runs forward, loss and backward with "
            "the model that it is given")
    check_flags(accumulate=accumulate, offload_gradients=offload_gradients,
                update_in_backward=update_in_backward,
                offload_parameters=offload_parameters, host_updates=host_updates)
    check_parts(micro_batches)
    options = {"detach_outputs": loss_fn is None and step_fn is None, **options}
    model = dynamo_internals.original_module(model)
    check_model(model)
    sample = read_sample(sample)
    refuse_meta([*model.parameters(), *model.buffers(),
                 *tensors_in(sample)])
    structured = micro_batches is not None or options.get("split", 1) != 1
    # A loss of the parts has its target in the sample; a step_fn does what it likes.
    if step_fn is None and (not structured or loss_fn is None):
        check_sample(model, sample)
    if rank_consensus.is_initialized():
        dynamo_internals.keep_whole_under_ddp()
    together = options.get("agree", True) and rank_consensus.rank_count() > 1
    device = first_device(model.parameters())
    read = Options.read({**options, "budget": budget,
                         "part_statistics": allow_micro_batch_statistics}, device)
    budget = read.budget  # "device" is bytes now
    inner = None if optimizer is None else innermost(optimizer)
    if inner is not None:
        check_trains(model, inner, loss_fn, step_fn)
    predicted = PredictedState([], False) if inner is None else predict_state(inner)
    if (earlier := session_of_model(model)) is not None and earlier.host_parameters:
        earlier.host_parameters.bring_back()
    away, read = what_may_leave(
        model, inner, predicted, read, micro_batches, accumulate, offload_gradients,
        update_in_backward, offload_parameters, host_updates)
    parameter_bytes = sum(p.untyped_storage().nbytes() for p in model.parameters()
                          if p.requires_grad)
    accumulated = parameter_bytes if accumulate else 0
    slack = min(MAX_SLACK_BYTES, parameter_bytes // 32) if (
        device_of(model).type == "cuda") else 0
    step_bytes = 0 if host_updates else predicted.step_bytes
    beside_bytes = read.reserve_bytes + accumulated + predicted.bytes
    target: torch.nn.Module = model
    if structured and loss_fn is not None:
        target, loss_fn = with_loss(model, loss_fn, sample), None
    structure = Structure()
    if structured:
        known = dataclasses.replace(
            read, reserve_bytes=beside_bytes - away.state_bytes, corrected_bytes=slack,
            step_bytes=step_bytes, state=away.state)
        budget, structure = find_structure(target, sample, known, micro_batches or 1,
                                           parameter_bytes, step_fn is not None,
                                           away.owners, [one for _, one in away.leaving])
        if structure.parts > 1:
            sample = rows_of(sample, 0, structure.rows)
    loss = None if loss_fn is None else Loss(loss_fn, target)
    # With several ranks, a forward without data might still send and receive.
    loss_bytes = 0 if loss is None or rank_consensus.rank_count() > 1 else (
        learn_loss(loss, sample))
    session = Session()
    session.owners = away.owners
    session.host_parameters = new_host_parameters(away.leaving, device_of(model),
                                                  session.number)
    step = SampleStep(target, inner, sample, read.inner, loss, step_fn, predicted,
                      structure.split)
    passes = Passes(Request(
        given=options, read=read, budget=budget, step=step, structure=structure,
        part_statistics=allow_micro_batch_statistics, state=away.state,
        state_bytes=away.state_bytes,
        reserve_bytes=beside_bytes + structure.reserved_bytes, step_bytes=step_bytes,
        slack_bytes=slack, loss_bytes=loss_bytes, one_graph=away.one_graph,
        moves_parameters=bool(away.leaving), together=together), session)
    session.is_preparing = True
    unused = [name for name, used in (
        ('split="auto" (the head of a language model)', options.get("split", 1) != 1),
        ('micro_batches="auto"', micro_batches is not None or bool(away.owners)),
        ("update_in_backward=True", micro_batches is not None or accumulate or (
            not away.buckets or update_in_backward or offload_parameters or host_updates))
    ) if not used]
    with on_device_after_error(session.host_parameters), _naming(unused):
        passes.run()
    session.is_preparing = False
    session.autocast_types = None if step_fn is not None else autocast_types()
    session.counts_gradients = accumulate or step_fn is not None or structure.parts > 1
    buckets = [] if passes.divided else away.buckets
    _follow(session, model, inner, predicted, buckets, passes, read.reserve_bytes)
    session.prepared = Prepared(
        _budget_text(budget, passes.graphs), predicted.bytes, step_bytes,
        passes.loss_bytes + passes.held_bytes, accumulated, read.outside_bytes,
        passes.corrected_bytes, passes.graphs, passes.measured_bytes,
        *_device_memory(device), structure=str(structure) if structured else "",
        parts_bytes=structure.reserved_bytes, detached_outputs=session.detached_outputs)
    session.belong_to(model)
    return _returned(model, passes, structure, session), optimizer


def _follow(session: Session, model: torch.nn.Module,
            optimizer: torch.optim.Optimizer | None, predicted: PredictedState,
            buckets: list[Any], passes: Passes, reserve_bytes: int) -> None:
    """Puts state and parameters where the plan has them, and watches optimizers."""
    graph = passes.graphs[0]
    moved = graph.moves.moved if buckets else frozenset()
    watch_optimizers(session, KnownState(
        optimizer, predicted.bytes - sum(buckets[one].state_bytes for one in moved),
        reserve_bytes))
    if optimizer is not None:
        session.state_growth = StateGrowth(optimizer, predicted)
        detach_host_state(optimizer)
        if buckets:
            new_host_state(optimizer, buckets, device_of(model), session.number,
                           bool(session.owners)).follow(graph.moves)
    if session.host_parameters is not None:
        session.host_parameters.follow(graph.parameters)


def _returned(model: torch.nn.Module, passes: Passes, structure: Structure,
              session: Session) -> Any:
    """What the caller trains with."""
    call, graph, target = passes.call, passes.graphs[0], passes.request.step.model
    keep_copies(call, options_of_copies(passes.options, asked_bytes(
        graph.options, graph.keep_everything_bytes, graph.plan)))
    if current_tier() != tiers.PUBLIC:
        call.forward = warning_if_unplanned(call.forward, session.reference)
    returned = call if target is model and structure.parts == 1 else Parts(
        model, call, structure.rows or None, takes_target=target is not model,
        counter=TargetCounter(target) if structure.parts > 1 else None,
        counts_first=structure.counts_first)
    keep_names(returned)
    return returned
