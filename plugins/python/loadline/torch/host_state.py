"""Optimizer state that lives on the host and passes through the device in a step.

The plan names the buckets that live there and the order in which they arrive, are
updated and leave (tail.py). A hook before the optimizer's step does that, with the
optimizer's own step on one bucket's parameters at a time, and hides them from the
step that follows; where the step is given a closure, it is done when that has computed
the gradients. Copies have lanes of their own (lanes.py): a bucket is updated when it
has arrived, and may leave while the next one is updated. Between steps
`optimizer.state` holds the host's tensors, so state_dict sees them as they are. Tested
by tests/plugins/python/torch_host_state_test.py and torch_lanes_test.py.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from loadline.errors import LoadlineError
from loadline.torch.lanes import IN, MAIN, OUT, Lanes, lay_out
from loadline.torch.ledger import watch_in_open
from loadline.torch.optimizer import Bucket, ghost, run_step, state_tensors
from loadline.torch.tail import LOAD, STORE, UPDATE


class _Slab:
    """One bucket's memory on the host, allocated at its first departure."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.memory: torch.Tensor | None = None
        self.host: dict[tuple[torch.Tensor, str], torch.Tensor] = {}

    def fit(self, tensors: dict[tuple[torch.Tensor, str], torch.Tensor]) -> None:
        if self.host.keys() == tensors.keys() and all(
                view.shape == tensors[key].shape and view.dtype == tensors[key].dtype
                for key, view in self.host.items()):
            return
        offsets, bytes_ = lay_out(
            (key, tensor.untyped_storage().nbytes()) for key, tensor in tensors.items())
        self.memory = self.lanes.host_memory(bytes_)
        self.host = {
            key: torch.empty(0, dtype=tensor.dtype).set_(
                self.memory.untyped_storage(),
                offsets[key] // tensor.element_size(), tensor.size(),
                tensor.stride())
            for key, tensor in tensors.items()}


class HostState:
    """Attached to an optimizer for good, or until `detach`; does nothing before it is
    told what to `follow`."""

    def __init__(self, optimizer: torch.optim.Optimizer, buckets: Sequence[Bucket],
                 lanes: Lanes):
        self.optimizer = optimizer
        self.buckets = buckets
        self.lanes = lanes
        self.tail: list[tuple[str, int]] = []
        self.slabs: dict[int, _Slab] = {}
        self.hosted: set[torch.Tensor] = set()
        self.device_bytes = self.peak_device_bytes = 0  # of hosted state
        self.in_bytes = self.out_bytes = 0  # copied so far
        # By bucket on the device: what arrived, and the mark behind it.
        self._arrived: dict[int, tuple[list[torch.Tensor], Any]] = {}
        self._hidden: list[list[torch.Tensor]] | None = None
        self._due = False  # a step has begun whose buckets are not updated yet
        self._handles = [
            optimizer.register_step_pre_hook(self._before),
            optimizer.register_step_post_hook(self._after),
            optimizer.register_load_state_dict_post_hook(self._loaded)]

    def follow(self, tail: Sequence[tuple[str, int]]) -> None:
        """From now on; a tail that stores nothing needs nobody to follow it."""
        self.tail = [*tail]
        self.slabs = {number: _Slab(self.lanes)
                      for action, number in tail if action == STORE}
        self.hosted = {
            p for number in self.slabs for p in self.buckets[number].parameters}
        if self.slabs:
            self._loaded(self.optimizer)
        else:
            self.detach()

    @property
    def attached(self) -> bool:
        return bool(self.slabs)

    @property
    def host_bytes(self) -> int:
        return sum(slab.memory.numel() for slab in self.slabs.values()
                   if slab.memory is not None)

    def detach(self) -> None:
        """The state stays where it is; steps are the optimizer's own again."""
        for handle in self._handles:
            handle.remove()
        self.slabs = {}

    def _tensors(self, number: int) -> dict[tuple[torch.Tensor, str], torch.Tensor]:
        return {(p, name): tensor for p in self.buckets[number].parameters
                for name, tensor in state_tensors(self.optimizer.state.get(p, {})).items()}

    def load(self, number: int) -> None:
        arrived = []
        for (p, name), host in self._tensors(number).items():
            there = self.lanes.copy_in(host)
            arrived.append(there)
            self.optimizer.state[p][name] = there
            self.in_bytes += there.untyped_storage().nbytes()
            self.device_bytes += there.untyped_storage().nbytes()
            watch_in_open(f"load state {number}", there)
        self._arrived[number] = arrived, self.lanes.mark(IN)
        self.peak_device_bytes = max(self.peak_device_bytes, self.device_bytes)

    def update(self, number: int) -> None:
        bucket = self.buckets[number]
        if number in self._arrived:
            self.lanes.wait(MAIN, self._arrived[number][1])
        before = sum(t.untyped_storage().nbytes() for t in self._tensors(number).values())
        group = dict(self.optimizer.param_groups[bucket.group])
        group["params"] = list(bucket.parameters)
        run_step(ghost(self.optimizer, [group], self.optimizer.state))
        tensors = self._tensors(number)  # a first step makes them
        self.device_bytes += sum(
            t.untyped_storage().nbytes() for t in tensors.values()) - before
        self.peak_device_bytes = max(self.peak_device_bytes, self.device_bytes)
        watch_in_open(f"update {number}", list(tensors.values()))

    def store(self, number: int) -> None:
        tensors = self._tensors(number)
        self.slabs[number].fit(tensors)
        self.lanes.wait(OUT, self.lanes.mark(MAIN))
        for (p, name), tensor in tensors.items():
            host = self.slabs[number].host[p, name]
            if tensor.data_ptr() != host.data_ptr():
                self.lanes.copy_out(tensor, host)
            self.out_bytes += tensor.untyped_storage().nbytes()
            self.device_bytes -= tensor.untyped_storage().nbytes()
            self.optimizer.state[p][name] = host
        # Memory goes back to the lane it is of, which must not use it before: IN
        # for what arrived, MAIN for what the optimizer made, as in a first step.
        left = self.lanes.mark(OUT)
        arrived, _ = self._arrived.pop(number, ([], None))
        self.lanes.wait(IN, left)
        if any(all(tensor is not one for one in arrived)
               for tensor in tensors.values()):
            self.lanes.wait(MAIN, left)

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        self._show()
        self._due = True
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self._update_hosted()
            return None

        def then_update() -> Any:
            if not self._due and self.slabs:
                raise LoadlineError(
                    f"{type(optimizer).__name__} calls its closure more than once a "
                    "step, and state on the host is updated once: prepare it with "
                    "offload=False")
            loss = closure()
            with torch.no_grad():
                self._update_hosted()
            return loss

        return ((args[0], then_update, *args[2:]), kwargs) if len(args) > 1 else (
            args, {**kwargs, "closure": then_update})

    def _update_hosted(self) -> None:
        self._due = False
        self._watch_resident("resident state")
        do = {LOAD: self.load, UPDATE: self.update, STORE: self.store}
        for action, number in self.tail:
            if number in self.slabs:  # the step itself updates the others
                do[action](number)
        self._hidden = [group["params"] for group in self.optimizer.param_groups]
        for group in self.optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p not in self.hosted]

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._show()
        if self._due and self.slabs:
            raise LoadlineError(
                f"{type(optimizer).__name__} has not called its closure, so state on "
                "the host was not updated: prepare it with offload=False")
        self.lanes.settle()
        self._watch_resident("resident updates")

    def _watch_resident(self, name: str) -> None:
        watch_in_open(name, [
            tensor for p, state in self.optimizer.state.items() if p not in self.hosted
            for tensor in state_tensors(state).values()])

    def _show(self) -> None:
        if self._hidden is not None:
            for group, parameters in zip(self.optimizer.param_groups, self._hidden):
                group["params"] = parameters
            self._hidden = None

    def _loaded(self, optimizer: Any) -> None:
        """What is on the device and has its place on the host goes there."""
        for number in self.slabs:
            tensors = self._tensors(number)
            self.device_bytes += sum(
                t.untyped_storage().nbytes() for t in tensors.values())
            self.store(number)
        self.lanes.settle()
