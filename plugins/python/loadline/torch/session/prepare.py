"""loadline.torch.prepare: trains a model and its optimizer inside a number of bytes.

It counts what the traced step does not hold, plans with the rest of the budget, runs one
step to measure its peak, and corrects the plan at most three times. Tested by
tests/plugins/python/torch_prepare_test.py and torch_whole_step_test.py.
"""
from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ParamSpec, TypeVar

import torch
from loadline.budget import SMALLEST, format_bytes
from loadline.errors import Infeasible, InvalidArgument, Unsupported
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.compat.nested_values import tensors_in
from loadline.torch.problem.default_machine import device_of, first_device
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.choose_structure import (Structure, check_parts, find_structure,
                                                    with_loss)
from loadline.torch.session.compiler import backend, current_tier, refuse_meta
from loadline.torch.session.graph_breaks import warning_if_unplanned
from loadline.torch.session.model_copies import keep_copies, options_of_copies
from loadline.torch.session.movable import (buckets_of_problem, check_gradients,
                                            leaving_candidates, state_buckets,
                                            with_host_updates)
from loadline.torch.session.names import keep_names
from loadline.torch.session.other_optimizers import KnownState, watch_optimizers
from loadline.torch.session.sample_step import (Loss, SampleStep, learn_loss,
                                                run_sample_step)
from loadline.torch.session.session import Prepared, Session, session_of_model
from loadline.torch.solve import rank_consensus
from loadline.torch.solve.make_plan import asked_bytes
from loadline.torch.solve.options import Options, Shares
from loadline.torch.state.foreign_parameters import check_trains
from loadline.torch.state.host_gradients import hooked
from loadline.torch.state.host_parameters import (new_host_parameters,
                                                  on_device_after_error)
from loadline.torch.state.host_state import detach_host_state, new_host_state
from loadline.torch.state.predict_state import PredictedState, owners_of, predict_state
from loadline.torch.state.state_growth import StateGrowth
from loadline.torch.state.wrappers import innermost
from loadline.torch.structure.micro_batches import Parts, rows_of
from loadline.torch.structure.part_counts import TargetCounter

CORRECTIONS = 3
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


def _shares(graphs: list[PlannedGraph]) -> Shares:
    """Of the budget for each graph, so that the sum of all peaks is within it."""
    whole = sum(graph.keep_everything_bytes for graph in graphs)
    return tuple((graph.number, Fraction(graph.keep_everything_bytes, whole))
                 for graph in graphs)


def _largest_surprise(graphs: list[PlannedGraph]) -> str:
    found = [(real - traced, name) for graph in graphs
             for name, (traced, real) in graph.surprises.items()]
    return "".join(f"; {name} made {bytes_} bytes more than its trace says"
                   for bytes_, name in sorted(found)[-1:])


def _tangent_bytes(graph: PlannedGraph) -> int:
    joint = None if graph.traced is None else graph.traced.joint
    return 0 if joint is None else sum(joint.bytes[node] for node in joint.tangents)


def _budget_text(budget: int | float | str, graphs: list[PlannedGraph]) -> str:
    if budget != SMALLEST:
        return str(budget)
    bytes_ = max(asked_bytes(graph.options, 0, graph.plan) for graph in graphs)
    return f"{SMALLEST}, {bytes_} bytes ({format_bytes(bytes_)})"


def _worst(excess: int, loss_bytes: int, found: dict[str, int]
           ) -> tuple[int, int, dict[str, int]]:
    """The maximum over all ranks."""
    all_ = rank_consensus.gather((excess, loss_bytes, found))
    worst: dict[str, int] = {}
    for _, _, by_name in all_:
        for name, bytes_ in by_name.items():
            worst[name] = max(bytes_, worst.get(name, 0))
    return (max(one for one, _, _ in all_), max(one for _, one, _ in all_), worst)


def _check_arguments(model: Any, optimizer: Any) -> None:
    if not isinstance(model, torch.nn.Module) or not isinstance(
            optimizer, (torch.optim.Optimizer, type(None))):
        raise InvalidArgument(
            f"prepare({type(model).__name__}, {type(optimizer).__name__}): want a "
            "torch.nn.Module and a torch.optim.Optimizer, in this order")


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
    check_parts(micro_batches)
    model = torch_internals.original_module(model)
    refuse_meta([*model.parameters(), *model.buffers(),
                 *tensors_in(sample)])
    if rank_consensus.is_initialized():
        torch_internals.keep_whole_under_ddp()
    together = options.get("agree", True) and rank_consensus.rank_count() > 1
    device = first_device(model.parameters())
    read = Options.read({**options, "budget": budget,
                         "part_statistics": allow_micro_batch_statistics}, device)
    budget = read.budget  # "device" is bytes now
    inner = None if optimizer is None else innermost(optimizer)
    if inner is not None:
        check_trains(model, inner, loss_fn, step_fn)
    predicted = PredictedState([], False) if inner is None else predict_state(inner)
    buckets = state_buckets(model, inner, predicted, read)
    owners = {}
    update_in_backward |= offload_parameters and bool(buckets)
    if offload_gradients or update_in_backward or host_updates:
        option = "host_updates" if host_updates else "offload_gradients"
        check_gradients(buckets, micro_batches, accumulate, option)
        owners = owners_of(buckets)
        for name, one in model.named_parameters():
            if one in owners and hooked(one):
                raise Unsupported(f"{option}: {name} has a hook, which would not be "
                                  "called: remove it")
    if host_updates and inner is not None:
        read = with_host_updates(inner, buckets, read, update_in_backward)
    state = buckets_of_problem(buckets, update_in_backward,
                               read.machine if host_updates else None)
    step_bytes = 0 if host_updates else predicted.step_bytes
    if (earlier := session_of_model(model)) is not None and earlier.host_parameters:
        earlier.host_parameters.bring_back()
    leaving = leaving_candidates(model, owners, read, micro_batches, accumulate) if (
        offload_parameters) else []
    parameter_bytes = sum(p.untyped_storage().nbytes() for p in model.parameters()
                          if p.requires_grad)
    accumulated = parameter_bytes if accumulate else 0
    slack = min(MAX_SLACK_BYTES, parameter_bytes // 32) if (
        device_of(model).type == "cuda") else 0
    structured = micro_batches is not None or read.split != 1
    target: torch.nn.Module = model
    if structured and loss_fn is not None:
        target, loss_fn = with_loss(model, loss_fn, sample), None
    structure = Structure()
    if structured:
        known = dataclasses.replace(
            read, reserve_bytes=read.reserve_bytes + accumulated + predicted.bytes - sum(
                bucket.state_bytes for bucket in buckets),
            corrected_bytes=slack, step_bytes=step_bytes, state=state)
        budget, structure = find_structure(target, sample, known, micro_batches or 1,
                                           parameter_bytes, step_fn is not None, owners,
                                           [one for _, one in leaving])
        if structure.parts > 1:
            sample = rows_of(sample, 0, structure.rows)
    shares: Shares = ()
    refused: Infeasible | None = None  # by one of several graphs, before they have shares
    corrected = corrections = 0
    found_bytes: dict[str, int] = {}
    loss = None if loss_fn is None else Loss(loss_fn, target)
    # With several ranks, a forward without data might still send and receive.
    loss_bytes = 0 if loss is None or rank_consensus.rank_count() > 1 else (
        learn_loss(loss, sample))
    step = SampleStep(target, inner, sample, read.inner, loss, step_fn, predicted,
                      structure.split)
    held = step.held_bytes
    session = Session()
    session.owners = owners
    session.host_parameters = new_host_parameters(leaving, device_of(model), session.number)
    with on_device_after_error(session.host_parameters):
        while True:
            torch_internals.forget_compiled(target)
            held_bytes, sum_bytes = held
            planned_state = sum(bucket.state_bytes for bucket in buckets)
            asked: dict[str, Any] = {
                "agree": True, **options, "budget": SMALLEST if refused else budget,
                "machine": read.machine,
                "outside_bytes": read.outside_bytes, "shares": shares,
                "reserve_bytes": read.reserve_bytes + accumulated + predicted.bytes
                - planned_state + structure.reserved_bytes + held_bytes
                + (sum_bytes if buckets or shares else 0),
                "split": structure.split, "part_sums": structure.parts > 1,
                "part_statistics": allow_micro_batch_statistics,
                "corrected_bytes": corrected + slack, "loss_bytes": loss_bytes,
                # A share of the graphs is no place for all of the optimizer's step.
                "step_bytes": 0 if shares else max(step_bytes, sum_bytes),
                "state": state if buckets else (),
                "state_number": session.number if buckets or leaving else 0,
                "found_bytes": tuple(sorted(found_bytes.items())),
                "session": session.reference}
            call = torch.compile(target, backend=backend, dynamic=False, options=asked)
            # The smallest is found again with what was measured.
            try:
                graphs, measured = run_sample_step(
                    step, call, session, corrections > 0 and budget != SMALLEST)
            except Infeasible as error:
                # A share of the budget is one of all graphs, which are not known yet.
                if shares or refused or not (session.has_breaks or step_fn is not None):
                    raise
                refused = error
                continue
            if refused and len(graphs) == 1:
                raise refused
            excess = 0 if measured is None else measured - corrected - sum(
                graph.plan.budget_bytes for graph in graphs)
            found = {name: real for graph in graphs
                     for name, (_, real) in graph.surprises.items()}
            found_loss = 0 if loss is None else loss.bytes
            if together:  # all ranks plan again, or none
                excess, found_loss, found = _worst(excess, found_loss, found)
            if found_loss > loss_bytes + slack or any(
                    now > then for now, then in zip(step.held_bytes, held)):
                loss_bytes = max(loss_bytes, found_loss)  # now it is known
                held = step.held_bytes
                continue
            if len(graphs) == 1:
                graphs[0].measured_bytes = measured
            elif owners or leaving:
                option, what = ("offload_parameters", "parameters") if leaving else (
                    option, "gradients")
                raise Unsupported(f"{option}: the model has a graph break, and {what} may "
                                  "leave in one graph only")
            elif not shares:
                buckets, shares, refused = [], _shares(graphs), None
                continue
            if excess <= 0:
                break
            if corrections == CORRECTIONS:
                if excess > slack:
                    raise Infeasible(
                        f"budget {budget}: a measured step takes {excess} bytes "
                        f"({format_bytes(excess)}) more, after {CORRECTIONS} corrections of "
                        "the plan" + _largest_surprise(graphs))
                break
            corrections += 1
            if found.items() <= found_bytes.items():  # already planned for: not enough
                corrected += excess
                if step_fn is not None:  # it may be a loss, between forward and backward
                    loss_bytes = max(loss_bytes, *map(_tangent_bytes, graphs)) + excess
            found_bytes.update(found)
    session.counts_gradients = accumulate or step_fn is not None or structure.parts > 1
    moved = graphs[0].moves.moved if buckets else frozenset()
    watch_optimizers(session, KnownState(
        inner, predicted.bytes - sum(buckets[one].state_bytes for one in moved),
        read.reserve_bytes))
    if inner is not None:
        session.state_growth = StateGrowth(inner, predicted)
        detach_host_state(inner)
        if buckets:
            new_host_state(inner, buckets, device_of(model), session.number,
                           bool(owners)).follow(graphs[0].moves)
    if session.host_parameters is not None:
        session.host_parameters.follow(graphs[0].parameters)
    session.prepared = Prepared(
        _budget_text(budget, graphs), predicted.bytes, step_bytes, loss_bytes + held_bytes,
        accumulated,
        read.outside_bytes, corrected, graphs, measured, *_device_memory(device),
        structure=str(structure) if structured else "",
        parts_bytes=structure.reserved_bytes)
    session.belong_to(model)
    keep_copies(call, options_of_copies(asked, asked_bytes(
        graphs[0].options, graphs[0].keep_everything_bytes, graphs[0].plan)))
    if current_tier() != tiers.PUBLIC:
        module: Any = call
        module.forward = warning_if_unplanned(module.forward, session.reference)
    returned = call if target is model and structure.parts == 1 else Parts(
        model, call, structure.rows or None, takes_target=target is not model,
        counter=TargetCounter(target) if structure.parts > 1 else None,
        counts_first=structure.counts_first)
    keep_names(returned)
    return returned, optimizer
