"""What state an optimizer will have, before it has any, and in which buckets.

The optimizer's own step runs on tensors without data (device "meta"), so any
optimizer that can is counted, not guessed. Tested by
tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import copy
import dataclasses
import inspect
from typing import Any

import torch
from loadline.errors import InvalidArgument
from loadline.torch.compat import torch_internals

# Of an optimizer whose state may go to the host: few enough for the planner, and
# small enough that two of them on the device are little. Of 8.5 GiB in 64 instead of
# 16, plans that move half of it take 10 to 20 % less time.
FEWEST_BUCKETS, MOST_BUCKETS = 16, 64
BUCKET_BYTES = 128 << 20


@dataclasses.dataclass(frozen=True)
class Bucket:
    """Parameters of one group whose state moves together."""

    group: int
    parameters: tuple[torch.Tensor, ...]
    state_bytes: int
    touched_bytes: int  # by its update: state, parameters, gradients


def clone_with_groups(optimizer: torch.optim.Optimizer, groups: list[dict[str, Any]],
          state: Any) -> torch.optim.Optimizer:
    """Its class, defaults and settings, with other parameters and state."""
    # A copy would be given all state once more, and look through it.
    other: torch.optim.Optimizer = object.__new__(type(optimizer))
    other.__dict__.update(optimizer.__dict__)
    other.param_groups = groups
    other.state = state
    return other


def run_step(optimizer: torch.optim.Optimizer) -> None:
    """Its step without anybody's hooks."""
    getattr(type(optimizer).step, "__wrapped__", type(optimizer).step)(optimizer)


def state_tensors(state: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Of one parameter; step counts stay where they are."""
    return {name: value for name, value in state.items()
            if isinstance(value, torch.Tensor) and value.dim() > 0}


def span_bytes(tensor: torch.Tensor) -> int:
    """From its first element to its last: a bucket's tensors may share a storage."""
    if not tensor.numel():
        return 0
    return tensor.element_size() * (1 + sum(
        (size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride())))


def _state_bytes(state: Any, device: torch.device | None = None) -> int:
    spans: dict[Any, int] = {}  # by their first byte
    for leaf in torch_internals.pytree.tree_leaves(dict(state)):
        if isinstance(leaf, torch.Tensor) and leaf.dim() > 0 and (
                device in (None, leaf.device)):
            key = torch_internals.storage_key(leaf), leaf.storage_offset()
            spans[key] = max(spans.get(key, 0), span_bytes(leaf))
    return sum(spans.values())


def bytes_on(optimizer: torch.optim.Optimizer, device: torch.device) -> int:
    """Of the state that is there now."""
    return sum(_state_bytes(state, device) for state in optimizer.state.values())


@dataclasses.dataclass
class PredictedState:
    """By parameter; `apart`: nothing else changes in a step, so parameters can be
    updated some at a time."""

    state: list[tuple[torch.Tensor, int]]
    separable: bool

    @property
    def bytes(self) -> int:
        return sum(bytes_ for _, bytes_ in self.state)


def predict_state(optimizer: torch.optim.Optimizer) -> PredictedState:
    """Raises InvalidArgument where the step cannot run without data."""
    groups: list[dict[str, Any]] = []
    ghosts: dict[torch.Tensor, torch.Tensor] = {}
    for group in optimizer.param_groups:
        shadow = {name: copy.deepcopy(value) for name, value in group.items()
                  if name != "params"}
        shadow["params"] = []
        for parameter in group["params"]:
            other = torch.nn.Parameter(torch.empty_like(parameter, device="meta"),
                                       parameter.requires_grad)
            if parameter.requires_grad:
                other.grad = torch.empty_like(other)
            ghosts[other] = parameter
            shadow["params"].append(other)
        shadow.update({name: False for name in ("foreach", "fused", "capturable")
                       if name in shadow})
        groups.append(shadow)
    before = [dict(group) for group in groups]
    stand_in = clone_with_groups(optimizer, groups,
                  type(optimizer.state)(optimizer.state.default_factory))
    attributes = dict(stand_in.__dict__)
    try:
        run_step(stand_in)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        if optimizer.state:
            return PredictedState([(p, _state_bytes(s)) for p, s in
                             optimizer.state.items()], False)
        raise InvalidArgument(
            f"the state of {type(optimizer).__name__} cannot be predicted ({error}): "
            "run one optimizer step first, then its state is counted") from error
    separable = all(
        now.keys() == then.keys() and all(now[k] is then[k] for k in then)
        for now, then in zip([stand_in.__dict__, *groups], [attributes, *before]))
    found = [(parameter, _state_bytes(
        optimizer.state[parameter] if parameter in optimizer.state
        else stand_in.state.get(shadow, {})))
        for shadow, parameter in ghosts.items()]
    # PyTorch runs hooks once for every class that has a step of its own.
    separable = separable and len({
        inspect.unwrap(vars(kind)["step"]) for kind in type(optimizer).__mro__
        if kind is not torch.optim.Optimizer and "step" in vars(kind)}) == 1
    # State that the step changes in ways of its own (lists, no parameter's).
    separable = separable and all(
        key in ghosts and not any(isinstance(v, (list, dict)) for v in s.values())
        for key, s in stand_in.state.items())
    return PredictedState(found, separable)


def buckets_of(optimizer: torch.optim.Optimizer, predicted: PredictedState) -> list[Bucket]:
    """In the optimizer's order, of about equal bytes; what has none is in none."""
    bytes_of = dict(predicted.state)
    count = min(max(FEWEST_BUCKETS, predicted.bytes // BUCKET_BYTES), MOST_BUCKETS)
    most = -(-predicted.bytes // count)
    buckets = []

    def close(group: int, parameters: list[torch.Tensor]) -> None:
        state = sum(bytes_of[p] for p in parameters)
        if state:
            buckets.append(Bucket(group, tuple(parameters), state, state + 2 * sum(
                p.untyped_storage().nbytes() for p in parameters)))

    for number, group in enumerate(optimizer.param_groups):
        open_: list[torch.Tensor] = []
        for parameter in group["params"]:
            if open_ and sum(bytes_of[p] for p in [*open_, parameter]) > most:
                close(number, open_)
                open_ = []
            open_.append(parameter)
        close(number, open_)
    return buckets
