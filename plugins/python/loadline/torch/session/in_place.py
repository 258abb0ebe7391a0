"""compile_in_place: for programs that own the training loop.

nn.Module.compile keeps the module object, so wrappers, hooks and checkpoints of the
program around it work as before. Tested by tests/plugins/python/torch_examples_test.py
and torch_host_state_test.py.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from loadline.budget import check_flags
from loadline.errors import InvalidArgument, LoadlineError
from loadline.torch.compat import dynamo_internals, tiers
from loadline.torch.problem.default_machine import device_of, first_device
from loadline.torch.problem.make_problem import StateBucket
from loadline.torch.session.compiler import backend, check_model, current_tier
from loadline.torch.session.graph_breaks import warning_if_unplanned
from loadline.torch.session.movable import state_buckets
from loadline.torch.session.session import Session, session_of_model
from loadline.torch.solve import rank_consensus
from loadline.torch.solve.options import DEVICE, Options
from loadline.torch.state.host_state import detach_host_state, new_host_state
from loadline.torch.state.predict_state import predict_state
from loadline.torch.state.state_growth import StateGrowth
from loadline.torch.state.wrappers import innermost


def compile_in_place(model: torch.nn.Module, budget: int | float | str, *,
                     optimizers: Iterable[torch.optim.Optimizer] = (),
                     accumulate: bool = False, host_state: bool = False,
                     **options: Any) -> Options:
    """From now on the model's forward and backward run inside the budget. Optimizer
    state, and with `accumulate` gradients that stay from step to step, are reserved in
    it. Other options are those of the backend (docs/pytorch.md).

    host_state: the plan may put state of the only optimizer on the host, if the machine
    can copy (host_state.py)."""
    if not isinstance(model, torch.nn.Module):
        raise InvalidArgument(
            f"compile_in_place({type(model).__name__}): want a torch.nn.Module")
    check_model(model)
    check_flags(accumulate=accumulate, host_state=host_state)
    if rank_consensus.is_initialized():
        dynamo_internals.keep_whole_under_ddp()
    if isinstance(optimizers, torch.optim.Optimizer):
        raise InvalidArgument("compile_in_place: optimizers: want a list of optimizers")
    optimizers = [*map(innermost, optimizers)]
    predicted = [(optimizer, predict_state(optimizer)) for optimizer in optimizers]
    # Wrong options are refused now, not at the first step. The machine is chosen when
    # the model is compiled, because it may move to a GPU until then; if state moves, it
    # is chosen now, because its copies begin where the model is now.
    asked = Options.read({**options, "budget": budget}, first_device(model.parameters()))
    buckets = state_buckets(model, *predicted[0], asked) if (
        host_state and len(predicted) == 1) else []
    reserved = asked.reserve_bytes + sum(about.bytes for _, about in predicted)
    if accumulate:
        reserved += sum(p.untyped_storage().nbytes() for p in model.parameters()
                        if p.requires_grad)
    reserved -= sum(bucket.state_bytes for bucket in buckets)
    if budget == DEVICE:  # without what is allocated outside of PyTorch
        options = {**options, "outside_bytes": 0}
    if buckets:
        options = {**options, "machine": asked.machine,
                   "outside_bytes": asked.outside_bytes}
    session = Session()
    session.counts_gradients = accumulate
    growths = [StateGrowth(*one) for one in predicted]
    session.state_growth = lambda: sum(growth() for growth in growths)
    options = {"agree": True, **options, "budget": asked.budget, "reserve_bytes": reserved,
               "state": tuple(StateBucket(b.state_bytes, b.touched_bytes,
                                          b.work_bytes) for b in buckets),
               "step_bytes": max((about.step_bytes for _, about in predicted),
                                 default=0),
               "state_number": session.number if buckets else 0}
    read = Options.read(options, first_device(model.parameters()))
    for optimizer in optimizers:
        detach_host_state(optimizer)
    if buckets:
        # Not when the model is compiled: that may be inside a step's closure.
        new_host_state(predicted[0][0], buckets, device_of(model), session.number)
    dynamo_internals.forget_calls()
    model.compile(backend=backend, dynamic=False,
                  options={**options, "session": session.reference})
    if current_tier() != tiers.PUBLIC:
        compiled: Any = model._compiled_call_impl
        model._compiled_call_impl = warning_if_unplanned(compiled, session.reference)
    session.belong_to(model)
    return read


def check_planned(model: torch.nn.Module) -> None:
    """After the first step of a model that was compiled in place."""
    session = session_of_model(model)
    if session is None or not session.graphs:
        raise LoadlineError("the first step ran without a plan: no traced part of the "
                            "model needs a gradient")
