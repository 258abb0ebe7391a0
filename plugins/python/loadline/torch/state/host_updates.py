"""Updates of parameters on the host, where their optimizer state stays.

The bucket's parameters are copied out, with those of its gradients that the plan has left on
the device. The optimizer's own step runs on the copies and on the state, and the parameters
are copied back to where they were. Two buckets have places for copies: one of them is copied
while the other is updated. Parameters are copied out in every step, because the program may
have changed them. Tested by tests/plugins/python/torch_host_updates_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from loadline.errors import Unsupported
from loadline.torch.compat import torch_internals
from loadline.torch.compat.lanes import IN, MAIN, OUT, Lanes
from loadline.torch.rewrite.state_moves import StateMoves
from loadline.torch.state.host_gradients import HostGradient, HostGradients
from loadline.torch.state.predict_state import (Bucket, clone_with_groups, run_on_zeros,
                                                run_step, span_bytes)
from loadline.torch.state.state_slab import Tensors, lay_out, tensors_in

_HOST = torch.device("cpu")
_COPIES = 2  # of a bucket's parameters and gradients, in host memory
_PARAMETER, _GRADIENT = "parameter", "gradient"


def host_bytes(buckets: Iterable[Bucket]) -> int:
    """That state and copies take at most."""
    buckets = [*buckets]
    return sum(bucket.state_bytes for bucket in buckets) + _COPIES * max(
        (2 * sum(map(span_bytes, bucket.parameters)) for bucket in buckets), default=0)


def check_step_on_host(optimizer: torch.optim.Optimizer, buckets: Sequence[Bucket]) -> None:
    """Raises Unsupported if the optimizer's step cannot run there."""
    bucket = buckets[0]
    smallest = min(bucket.parameters, key=torch.Tensor.numel)
    try:
        run_on_zeros(optimizer, dataclasses.replace(bucket, parameters=(smallest,)))
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise Unsupported(
            f"host_updates: the step of {type(optimizer).__name__} cannot run on the host: "
            f"{error}") from error


def _moved(value: Any, device: torch.device) -> Any:
    return torch_internals.pytree.tree_map(
        lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, value)


def _put_on_host(state: dict[str, Any]) -> None:
    """Of one parameter."""
    state.update(_moved(state, _HOST))


def settings_on_host(group: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Of a group whose parameters are on the device. Where PyTorch would update all of them
    by few kernels, the host does so too, if it has a fused step."""
    found: dict[str, Any] = {name: _moved(value, _HOST) for name, value in group.items()
                             if name != "params"}
    if "capturable" in found:  # by a CUDA graph
        found["capturable"] = False
    if device.type != "cpu" and "fused" in found:
        wanted = found["fused"] or (
            found["fused"] is None and not found.get("foreach")
            and not found.get("differentiable"))
        found["fused"] = bool(wanted) and torch_internals.has_fused_steps(_HOST)
    return found


@dataclasses.dataclass
class _Copies:
    """Host memory for one bucket at a time."""

    memory: torch.Tensor | None = None
    returned: Any = None  # the end of the copies back, on IN

    def take(self, lanes: Lanes, tensors: Tensors) -> Tensors:
        offsets, bytes_ = lay_out(tensors)
        if self.memory is None or self.memory.numel() < bytes_:
            if self.memory is not None:
                lanes.settle(IN)
            self.memory = lanes.host_memory(bytes_)
        return tensors_in(self.memory, offsets, tensors)


@dataclasses.dataclass
class _Staged:
    bucket: Bucket
    groups: list[dict[str, Any]]
    host: Tensors
    other: dict[torch.Tensor, torch.Tensor]  # gradients that are sparse, by parameter
    copies: _Copies


class HostUpdates:
    """Of the buckets of one optimizer."""

    def __init__(self, optimizer: torch.optim.Optimizer, lanes: Lanes,
                 gradients: HostGradients):
        self.optimizer, self.lanes, self.gradients = optimizer, lanes, gradients
        self._copies = [_Copies() for _ in range(_COPIES)]

    def run(self, moves: StateMoves,
            buckets: Sequence[tuple[Bucket, list[dict[str, Any]]]]) -> None:
        """Updates them, one after the other, and uses up their gradients. With the optimizer's
        groups of each, whose parameters are those of the bucket alone."""
        staged = [self._fetch(*one, copies)
                  for one, copies in zip(buckets[:1], self._copies)]
        for at in range(len(buckets)):
            self.lanes.settle()
            following = [self._fetch(*one, self._copies[(at + 1) % _COPIES])
                         for one in buckets[at + 1:at + 2]]
            self._update(*staged)
            self._return(*staged)
            self.gradients.use_up(moves, buckets[at][0].parameters)
            staged = following
        self.lanes.follow(MAIN, IN)

    def _fetch(self, bucket: Bucket, groups: list[dict[str, Any]],
               copies: _Copies) -> _Staged:
        """Starts the copies to the host."""
        tensors: Tensors = {}
        other = {}
        for group in groups:
            for one in group["params"]:
                if one.grad is None:
                    continue
                tensors[one, _PARAMETER] = one.detach()
                if one.grad.layout != torch.strided:
                    other[one] = one.grad.to(_HOST)
                elif not isinstance(one.grad, HostGradient):
                    tensors[one, _GRADIENT] = one.grad.detach()
        host = copies.take(self.lanes, tensors)
        if copies.returned is not None:
            self.lanes.wait(OUT, copies.returned)
        self.lanes.follow(OUT, MAIN)
        for key, tensor in tensors.items():
            self.lanes.copy_out(tensor, host[key])
        return _Staged(bucket, groups, host, other, copies)

    def _stand_in(self, parameter: torch.Tensor, staged: _Staged) -> torch.Tensor:
        found = torch.nn.Parameter(staged.host[parameter, _PARAMETER],
                                   parameter.requires_grad)
        if isinstance(parameter.grad, HostGradient):
            found.grad = self.gradients.place(parameter)
        else:
            found.grad = staged.other[parameter] if parameter in staged.other else (
                staged.host[parameter, _GRADIENT])
        return found

    def _update(self, staged: _Staged) -> None:
        state = type(self.optimizer.state)(self.optimizer.state.default_factory)
        groups, stand_ins = [], {}
        for group in staged.groups:
            mine = {one: self._stand_in(one, staged) for one in group["params"]
                    if (one, _PARAMETER) in staged.host}
            if not mine:
                continue
            device = next(iter(mine)).device
            groups.append({**settings_on_host(group, device), "params": [*mine.values()]})
            stand_ins.update(mine)
        for parameter, found in stand_ins.items():
            if parameter in self.optimizer.state:
                state[found] = self.optimizer.state[parameter]
                _put_on_host(state[found])
        if not groups:
            return
        clone = clone_with_groups(self.optimizer, groups, state)
        for name in ("grad_scale", "found_inf"):  # of a loss scaler
            if isinstance(getattr(clone, name, None), torch.Tensor):
                clone.__dict__[name] = getattr(clone, name).to(_HOST)
        run_step(clone)
        for parameter, found in stand_ins.items():
            if found in state:
                self.optimizer.state[parameter] = state[found]

    def _return(self, staged: _Staged) -> None:
        """Starts the copies of the parameters to where they were."""
        self.lanes.follow(IN, MAIN)
        for (one, kind), tensor in staged.host.items():
            if kind == _PARAMETER:
                self.lanes.fill(one.detach(), tensor)
        staged.copies.returned = self.lanes.mark(IN)

    def place(self, buckets: Iterable[Bucket], on_host: bool) -> None:
        """Puts their state on the host, or on the device of the parameters."""
        if on_host:
            for bucket in buckets:
                for one in bucket.parameters:
                    _put_on_host(self.optimizer.state.get(one, {}))
            return
        step_on_device = {one for group in self.optimizer.param_groups
                          if group.get("capturable") or group.get("fused")
                          for one in group["params"]}
        for bucket in buckets:
            for one in bucket.parameters:
                state = self.optimizer.state.get(one, {})
                for name, value in state.items():
                    if isinstance(value, torch.Tensor) and (
                            value.dim() > 0 or one in step_on_device):
                        state[name] = value.to(one.device)
