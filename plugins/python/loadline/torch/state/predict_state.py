"""Predicts the state of an optimizer before its first step, and divides it into buckets.

A clone of the optimizer runs its own step on parameters without data (device "meta"), so
the bytes of the state, and those that the step allocates for itself, are counted before
there is any. Where the step reads values, the clone's parameters are zeros in host memory.
Tested by tests/plugins/python/torch_prepare_test.py and torch_whole_step_test.py.
"""
from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any

import torch
from loadline.errors import InvalidArgument, Unsupported
from loadline.torch.compat import torch_internals
from loadline.torch.rewrite.ledger import Ledger, WatchedCalls

# Number and size of buckets: few enough for the planner, and small enough that two of
# them on the device take little memory. With 8.5 GiB of state in 64 buckets instead of
# 16, plans that move half of it are 10 to 20 % faster.
FEWEST_BUCKETS, MOST_BUCKETS = 16, 64
BUCKET_BYTES = 128 << 20


@dataclasses.dataclass(frozen=True)
class Bucket:
    """Parameters of one group whose state moves together."""

    group: int
    parameters: tuple[torch.Tensor, ...]
    state_bytes: int
    touched_bytes: int  # that its update reads: state, parameters, gradients
    work_bytes: int = 0  # that its update allocates for itself


def clone_with_groups(optimizer: torch.optim.Optimizer, groups: list[dict[str, Any]],
                      state: Any) -> torch.optim.Optimizer:
    """An optimizer of the same class and settings, with other parameters and state."""
    # copy.copy would go through __setstate__ with all of the state.
    other: torch.optim.Optimizer = object.__new__(type(optimizer))
    other.__dict__.update(optimizer.__dict__)
    other.param_groups = groups
    other.state = state
    return other


def as_on_gpu(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """A clone whose step updates all parameters at once where it would do so on a GPU."""
    return clone_with_groups(optimizer, [
        {**group, "foreach": torch_internals.runs_foreach(group, on_gpu=True)}
        if "foreach" in group else group for group in optimizer.param_groups],
        optimizer.state)


def run_step(optimizer: torch.optim.Optimizer) -> None:
    """The step of its class, without hooks."""
    getattr(type(optimizer).step, "__wrapped__", type(optimizer).step)(optimizer)


def state_tensors(state: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The state of one parameter that may move; step counts stay where they are."""
    return {name: value for name, value in state.items()
            if isinstance(value, torch.Tensor) and value.dim() > 0}


def span_bytes(tensor: torch.Tensor) -> int:
    """From the first element to the last: tensors of a bucket may share a storage."""
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
    """Bytes of the present state on the device."""
    return sum(_state_bytes(state, device) for state in optimizer.state.values())


@dataclasses.dataclass
class PredictedState:
    state: list[tuple[torch.Tensor, int]]  # bytes by parameter
    # A step changes nothing but parameters and their state, so it may be run on some of
    # the parameters at a time.
    separable: bool
    # That a step of all parameters allocates for itself, besides state.
    step_bytes: int = 0

    @property
    def bytes(self) -> int:
        return sum(bytes_ for _, bytes_ in self.state)


class _ForeignWrite(RuntimeError):
    pass


class _OwnWritesOnly(
        torch_internals.TorchDispatchMode):  # type: ignore[misc, valid-type]
    """Raises _ForeignWrite before an operator writes to a tensor with data that was not
    made inside."""

    def __init__(self) -> None:
        super().__init__()
        self.made: set[int] = set()  # storages

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for at, argument in enumerate(function._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            given = args[at] if at < len(args) else kwargs.get(argument.name)
            for tensor in torch_internals.pytree.tree_leaves(given):
                if isinstance(tensor, torch.Tensor) and tensor.device.type != "meta" and (
                        torch_internals.storage_key(tensor) not in self.made):
                    raise _ForeignWrite(str(function))
        result = function(*args, **kwargs)
        self.made.update(torch_internals.storage_key(tensor)
                         for tensor in torch_internals.pytree.tree_leaves(result)
                         if isinstance(tensor, torch.Tensor))
        return result


def _copied_containers(optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """Gives a clone its own lists, dicts and sets; returns their lengths by name."""
    lengths = {}
    for name, value in vars(optimizer).items():
        if name not in ("param_groups", "state") and isinstance(
                value, (list, dict, set)):
            optimizer.__dict__[name] = copy.copy(value)
            lengths[name] = len(value)
    return lengths


def _predict_lbfgs(optimizer: torch.optim.LBFGS) -> PredictedState:
    """It keeps two vectors of all parameters for each step of its history, and at most
    twelve more for the direction, the gradient and the search along the line. They are
    alive while its closure runs the model."""
    group, = optimizer.param_groups
    vectors = 2 * group["history_size"] + 12
    bytes_ = sum(p.numel() * p.element_size() for p in group["params"])
    return PredictedState([(group["params"][0], vectors * bytes_)], False)


def _shadow(group: dict[str, Any], parameters: Iterable[torch.Tensor],
            device: str = "meta") -> tuple[dict[str, Any], dict[torch.Tensor, torch.Tensor]]:
    """The group with stand-ins for the parameters and their gradients; and the parameter
    of each. device: meta, where they have no data, or the host, where they are zeros."""
    shadow = {name: copy.deepcopy(value) for name, value in group.items()
              if name != "params"}
    shadow["params"] = []
    originals: dict[torch.Tensor, torch.Tensor] = {}
    for parameter in parameters:
        other = torch.nn.Parameter(torch.zeros_like(parameter, device=device),
                                   parameter.requires_grad)
        if parameter.requires_grad:
            other.grad = torch.zeros_like(other)
        originals[other] = parameter
        shadow["params"].append(other)
    shadow.update({name: False for name in ("fused", "capturable") if name in shadow})
    if "foreach" in shadow:
        shadow["foreach"] = torch_internals.runs_foreach(group)
    return shadow, originals


def _without_state(optimizer: torch.optim.Optimizer,
                   groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    return clone_with_groups(optimizer, groups,
                             type(optimizer.state)(optimizer.state.default_factory))


def _work_bytes(stand_in: torch.optim.Optimizer, writes: _OwnWritesOnly) -> int:
    """Bytes that a step allocates for itself. The state exists already."""
    ledger = Ledger()
    ledger.watch([stand_in.param_groups, dict(stand_in.state),
                  [p.grad for group in stand_in.param_groups for p in group["params"]]])
    before = ledger.sample("state")
    with writes, WatchedCalls(ledger):
        run_step(stand_in)
    return ledger.peak_bytes - before


# A step may draw random numbers, which are not the program's.
@torch.random.fork_rng(devices=[])
def update_work_bytes(optimizer: torch.optim.Optimizer, bucket: Bucket) -> int:
    """Bytes that the update of one bucket allocates for itself."""
    try:
        return _bucket_work_bytes(optimizer, bucket, "meta")
    except (RuntimeError, NotImplementedError, TypeError):  # it reads values
        return _bucket_work_bytes(optimizer, bucket, "cpu")


def run_on_zeros(optimizer: torch.optim.Optimizer, bucket: Bucket) -> None:
    """The update of one bucket, of parameters, gradients and state in host memory."""
    _bucket_work_bytes(optimizer, bucket, "cpu")


def _bucket_work_bytes(optimizer: torch.optim.Optimizer, bucket: Bucket,
                       device: str) -> int:
    shadow, originals = _shadow(optimizer.param_groups[bucket.group], bucket.parameters,
                                device)
    stand_in = _without_state(optimizer, [shadow])
    _copied_containers(stand_in)
    writes = _OwnWritesOnly()
    writes.made.update(torch_internals.storage_key(tensor) for shadow in originals
                       for tensor in (shadow, shadow.grad) if tensor is not None)
    with writes:
        run_step(stand_in)
    return _work_bytes(stand_in, writes)


@torch.random.fork_rng(devices=[])
def predict_state(optimizer: torch.optim.Optimizer) -> PredictedState:
    """Of an optimizer that wraps no other (wrappers.py). Raises InvalidArgument if its
    step cannot run on zeros either and there is no state yet."""
    if isinstance(optimizer, torch.optim.LBFGS):
        return _predict_lbfgs(optimizer)
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise Unsupported(
            "SparseAdam takes gradients in a sparse layout, whose bytes follow from values: "
            "use Adam, and sparse=False in embeddings")
    try:
        return _predict_on(optimizer, "meta")
    except _CannotRun as error:
        first = error
    if optimizer.state:
        return PredictedState([(p, _state_bytes(s)) for p, s in
                               optimizer.state.items()], False)
    if any(group.get("differentiable") for group in optimizer.param_groups):
        raise InvalidArgument(
            f"{type(optimizer).__name__} has differentiable=True, for gradients through its "
            "step, which a prepared model does not have: leave it out")
    try:
        if isinstance(first.__cause__, _ForeignWrite):
            raise first
        return _predict_on(optimizer, "cpu")
    except _CannotRun as error:
        cause = error.__cause__
        why = ("writes to tensors outside of its param_groups" if isinstance(
            cause, _ForeignWrite) else f"cannot run on zeros ({cause})")
        raise InvalidArgument(
            f"the state of {type(optimizer).__name__} cannot be predicted, because its "
            f"step {why}: run one optimizer step first, then its state is "
            "counted") from cause


class _CannotRun(Exception):
    """The cause says why."""


def stand_in_of(optimizer: torch.optim.Optimizer, groups: list[dict[str, Any]],
                device: str) -> torch.optim.Optimizer:
    """A clone without state. groups: whose parameters have stand-ins on the device."""
    stand_in = _without_state(optimizer, [
        _shadow(group, group["params"], device)[0] for group in groups])
    _copied_containers(stand_in)
    return stand_in


def _predict_on(optimizer: torch.optim.Optimizer, device: str) -> PredictedState:
    """Of a clone whose parameters are there."""
    groups: list[dict[str, Any]] = []
    originals: dict[torch.Tensor, torch.Tensor] = {}
    for group in optimizer.param_groups:
        shadow, parameters = _shadow(group, group["params"], device)
        groups.append(shadow)
        originals.update(parameters)
    before = [dict(group) for group in groups]
    stand_in = _without_state(optimizer, groups)
    lengths = _copied_containers(stand_in)
    attributes = dict(stand_in.__dict__)
    writes = _OwnWritesOnly()
    writes.made.update(torch_internals.storage_key(tensor) for shadow in originals
                       for tensor in (shadow, shadow.grad) if tensor is not None)
    try:
        with writes:
            run_step(stand_in)
    except Exception as error:  # KeyError: its constructor made the state
        raise _CannotRun from error
    separable = all(
        now.keys() == then.keys() and all(now[k] is then[k] for k in then)
        for now, then in zip([stand_in.__dict__, *groups], [attributes, *before]))
    separable = separable and all(
        len(getattr(stand_in, name)) == length for name, length in lengths.items())
    found = [(parameter, _state_bytes(
        optimizer.state[parameter] if parameter in optimizer.state
        else stand_in.state.get(shadow, {})))
        for shadow, parameter in originals.items()]
    # PyTorch runs step hooks once for every class in the hierarchy with its own step.
    separable = separable and len({
        inspect.unwrap(vars(kind)["step"]) for kind in type(optimizer).__mro__
        if kind is not torch.optim.Optimizer and "step" in vars(kind)}) == 1
    # State in lists, or of no parameter, may depend on the other parameters.
    separable = separable and all(
        key in originals and not any(isinstance(v, (list, dict)) for v in s.values())
        for key, s in stand_in.state.items())
    return PredictedState(found, separable, _work_bytes(stand_in, writes))


def buckets_of(optimizer: torch.optim.Optimizer,
               predicted: PredictedState) -> list[Bucket]:
    """In the optimizer's order, of about equal bytes. Parameters without state are in
    none."""
    bytes_of = dict(predicted.state)
    count = min(max(FEWEST_BUCKETS, predicted.bytes // BUCKET_BYTES), MOST_BUCKETS)
    most = -(-predicted.bytes // count)
    buckets = []

    def close(group: int, parameters: list[torch.Tensor]) -> None:
        state = sum(bytes_of[p] for p in parameters)
        if state:
            bucket = Bucket(group, tuple(parameters), state, state + 2 * sum(
                p.untyped_storage().nbytes() for p in parameters))
            buckets.append(dataclasses.replace(
                bucket, work_bytes=update_work_bytes(optimizer, bucket)))

    for number, group in enumerate(optimizer.param_groups):
        open_: list[torch.Tensor] = []
        for parameter in group["params"]:
            if open_ and sum(bytes_of[p] for p in [*open_, parameter]) > most:
                close(number, open_)
                open_ = []
            open_.append(parameter)
        close(number, open_)
    return buckets


def owners_of(buckets: Iterable[Bucket]) -> dict[torch.Tensor, tuple[int, int]]:
    """By parameter: the number of its bucket, and its place in there."""
    return {parameter: (number, place) for number, bucket in enumerate(buckets)
            for place, parameter in enumerate(bucket.parameters)}
