"""A model compiled in place, for programs that own the training loop.

nn.Module.compile keeps the module itself, so wrappers, hooks and checkpoints of the
program around it see what they always saw. Tested by
tests/plugins/python/torch_examples_test.py and torch_host_state_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch
from loadline.errors import LoadlineError
from loadline.torch.problem.default_machine import first_device
from loadline.torch.problem.make_problem import StateBucket
from loadline.torch.rewrite.planned_graph import PlannedGraph, planned
from loadline.torch.rewrite.state_moves import numbers
from loadline.torch.session.compiler import backend
from loadline.torch.session.prepare import movable_buckets, new_host_state, detach_host_state
from loadline.torch.solve.options import Options
from loadline.torch.state.predict_state import Bucket, predict_state


def compile_in_place(model: torch.nn.Module, budget: int | str, *,
                     optimizers: Iterable[torch.optim.Optimizer] = (),
                     accumulate: bool = False, host_state: bool = False,
                     **options: Any) -> Options:
    """The model's forward and backward run inside the budget from now on; what the
    optimizers hold, and with `accumulate` gradients that stay from step to step, is
    reserved in it. Other options are those of the backend.

    host_state: the plan may put state of the only optimizer on the host, where the
    machine can copy (host_state.py)."""
    reserved = int(options.pop("reserve_bytes", 0))
    if accumulate:
        reserved += sum(p.untyped_storage().nbytes() for p in model.parameters()
                        if p.requires_grad)
    optimizers = [*optimizers]
    predicted = [(optimizer, predict_state(optimizer)) for optimizer in optimizers]
    buckets: list[Bucket] = []
    # Mistakes now, not at the first step. Where the model is by then decides about the
    # machine, unless state moves: that is where it is already.
    asked = Options.read({**options, "budget": budget}, first_device(model.parameters()))
    if host_state and len(predicted) == 1:
        buckets = movable_buckets(model, *predicted[0], asked)
    reserved += sum(about.bytes for _, about in predicted)
    reserved -= sum(bucket.state_bytes for bucket in buckets)
    if buckets:
        options = {**options, "machine": asked.machine,
                   "outside_bytes": asked.outside_bytes}
    options = {"agree": True, **options, "budget": budget, "reserve_bytes": reserved,
               "state": tuple(StateBucket(b.state_bytes, b.touched_bytes)
                              for b in buckets),
               "state_number": next(numbers) if buckets else 0}
    read = Options.read(options, first_device(model.parameters()))
    for optimizer in optimizers:
        detach_host_state(optimizer)
    if buckets:
        # Now, and not when it is planned: that may be within a step's closure.
        new_host_state(model, predicted[0][0], buckets, read.state_number)
    model.compile(backend=backend, dynamic=False, options=options)
    return read


def check_planned(options: Options) -> None:
    """After the first step. options: what compile_in_place returned."""
    def asked(graph: PlannedGraph) -> Options:
        return dataclasses.replace(  # which follow where the model went
            graph.options, machine=options.machine, outside_bytes=options.outside_bytes)

    if not any(asked(graph) == options for graph in planned):
        raise LoadlineError("the first step ran without a plan: no traced part of the "
                            "model needs a gradient")
