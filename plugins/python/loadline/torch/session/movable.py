"""What a plan may move for `prepare` and `estimate`: state, gradients and parameters.

Tested by tests/plugins/python/torch_host_gradients_test.py, torch_host_parameters_test.py
and torch_host_updates_test.py.
"""
from __future__ import annotations

import collections
import dataclasses
from typing import Any

import torch
from loadline.budget import format_bytes
from loadline.errors import Infeasible, InvalidArgument, Unsupported
from loadline.machine import Machine
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.problem.cost_model import host_update_ns
from loadline.torch.problem.default_machine import device_of
from loadline.torch.problem.gradients import LEAST_BYTES
from loadline.torch.problem.make_problem import StateBucket
from loadline.torch.problem.parameters import may_leave
from loadline.torch.session.compiler import current_tier
from loadline.torch.solve import rank_consensus
from loadline.torch.solve.options import Options
from loadline.torch.state.host_gradients import hooked
from loadline.torch.state.host_state import movable_buckets
from loadline.torch.state.host_updates import check_step_on_host, host_bytes
from loadline.torch.state.predict_state import PredictedState, owners_of


def state_buckets(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None,
                  predicted: PredictedState, options: Options) -> list[Any]:
    """Optimizer state that the plan may put on the host."""
    machine = options.machine
    if optimizer is None or not options.offload or current_tier() != tiers.FULL or not (
            machine.d2h_bytes_per_s and machine.h2d_bytes_per_s):
        return []
    return movable_buckets(optimizer, predicted, device_of(model))


def option_of_gradients(host_updates: bool, update_in_backward: bool) -> str:
    """The argument because of which gradients may leave, for messages."""
    return "host_updates" if host_updates else (
        "update_in_backward" if update_in_backward else "offload_gradients")


def check_gradients(buckets: list[Any], micro_batches: int | str | None,
                    accumulate: bool = False, option: str = "offload_gradients") -> None:
    """Raises if no gradient can leave the device, or if it must not."""
    if micro_batches is not None or accumulate:
        raise InvalidArgument(f"{option}: gradients of several batches or parts cannot "
                              "be added up: give neither micro_batches nor accumulate")
    if rank_consensus.rank_count() > 1:
        raise Unsupported(f"{option}: with several ranks, gradients are sent between "
                          "the backward and the optimizer's step")
    if not buckets:
        raise Unsupported(
            f"{option}: it needs an optimizer with state whose step can run on some "
            "of its parameters at a time, a machine profile that can copy, offload=True and "
            "the full tier (docs/pytorch.md)")


def leaving_candidates(model: torch.nn.Module, owners: Any, options: Options,
                       micro_batches: int | str | None, accumulate: bool
                       ) -> list[tuple[str, torch.Tensor]]:
    """Parameters that the plan may put on the host, with names. Raises if there are none, or
    if none must leave. owners: of those that the backward updates."""
    if micro_batches is not None or accumulate:
        raise InvalidArgument("offload_parameters: the backward updates parameters, so "
                              "gradients of several batches or parts cannot be added up: give "
                              "neither micro_batches nor accumulate")
    if rank_consensus.rank_count() > 1:
        raise Unsupported("offload_parameters: with several ranks, parameters are divided and "
                          "sent by FSDP2; prepare without it")
    machine = options.machine
    if not options.offload or current_tier() != tiers.FULL or not (
            machine.d2h_bytes_per_s and machine.h2d_bytes_per_s):
        raise Unsupported("offload_parameters: it needs a machine profile that can copy, "
                          "offload=True and the full tier (docs/pytorch.md)")
    found: list[tuple[str, torch.Tensor]] = [
        (name, one) for name, one in model.named_parameters()
        if (one in owners or not one.requires_grad) and may_leave(one)]
    if not found:
        raise Unsupported(
            "offload_parameters: no parameter may leave. Frozen ones may, and those of an "
            "optimizer with state whose step can run on some of its parameters at a time; "
            f"each with memory of its own, of {LEAST_BYTES} bytes or more")
    shared = collections.Counter(torch_internals.storage_key(one) for one in (
        *model.parameters(), *model.buffers()))
    for name, one in found:
        if shared[torch_internals.storage_key(one)] > 1:
            raise Unsupported(f"offload_parameters: {name} shares its memory with another "
                              "parameter or buffer. Tie them by one nn.Parameter instead")
        if one._backward_hooks or getattr(one, "_post_accumulate_grad_hooks", None):
            raise Unsupported(f"offload_parameters: {name} has a hook, which would not be "
                              "called: remove it")
    return found


def with_host_updates(optimizer: torch.optim.Optimizer, buckets: list[Any], options: Options,
                      in_backward: bool) -> Options:
    """The options if state stays on the host. Raises if it cannot."""
    if in_backward:
        raise InvalidArgument("host_updates: give neither update_in_backward nor "
                              "offload_parameters: their updates run on the device")
    check_step_on_host(optimizer, buckets)
    taken, machine = host_bytes(buckets), options.machine
    if taken > machine.host_bytes:
        raise Infeasible(
            f"host_updates: the optimizer's state and copies of a part of the parameters take "
            f"{format_bytes(taken)} on the host, and the machine {machine.name} has "
            f"{format_bytes(machine.host_bytes)} there")
    return dataclasses.replace(options, machine=dataclasses.replace(
        machine, host_bytes=machine.host_bytes - taken))


def buckets_of_problem(buckets: list[Any], in_backward: bool, on_host: Machine | None = None
                       ) -> tuple[StateBucket, ...]:
    """in_backward: their updates may run there. on_host: they run on the host of this
    machine, and the state stays there."""
    if on_host is not None:
        return tuple(StateBucket(0, 0, host_ns=host_update_ns(
            b.state_bytes, (b.touched_bytes - b.state_bytes) // 2, on_host)) for b in buckets)
    return tuple(StateBucket(b.state_bytes, b.touched_bytes, b.work_bytes,
                             len(b.parameters) if in_backward else 0) for b in buckets)


@dataclasses.dataclass(frozen=True)
class Movable:
    """What the plan may put on the host between steps."""

    buckets: list[Any]  # of optimizer state
    state: tuple[StateBucket, ...]  # the same, as the problem has them
    owners: dict[torch.Tensor, Any]  # of gradients, by parameter
    leaving: list[tuple[str, torch.Tensor]]
    one_graph: str  # what to say if there are several graphs and there may be one only

    @property
    def state_bytes(self) -> int:
        return sum(bucket.state_bytes for bucket in self.buckets)


def what_may_leave(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None,
                   predicted: PredictedState, read: Options,
                   micro_batches: int | str | None, accumulate: bool,
                   offload_gradients: bool, update_in_backward: bool,
                   offload_parameters: bool, host_updates: bool) -> tuple[Movable, Options]:
    """And the options with the updates on the host. Raises for arguments that exclude each
    other and gradients that cannot leave."""
    buckets = state_buckets(model, optimizer, predicted, read)
    owners = {}
    option = option_of_gradients(host_updates, update_in_backward)
    update_in_backward |= offload_parameters and bool(buckets)
    if offload_gradients or update_in_backward or host_updates:
        check_gradients(buckets, micro_batches, accumulate, option)
        owners = owners_of(buckets)
        for name, one in model.named_parameters():
            if one in owners and hooked(one):
                raise Unsupported(f"{option}: {name} has a hook, which would not be "
                                  "called: remove it")
    if host_updates and optimizer is not None:
        read = with_host_updates(optimizer, buckets, read, update_in_backward)
    leaving = leaving_candidates(model, owners, read, micro_batches, accumulate) if (
        offload_parameters) else []
    option, what = ("offload_parameters", "parameters") if leaving else (option, "gradients")
    state = buckets_of_problem(buckets, update_in_backward,
                               read.machine if host_updates else None)
    return Movable(
        buckets, state, owners, leaving,
        f"{option}: the model has a graph break, and {what} may leave in one graph only"
        if leaving or owners else ""), read
