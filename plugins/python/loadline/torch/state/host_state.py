"""Optimizer state that is on the host for a part of the step.

Operators in a planned step's modules say when a bucket is stored and loaded
(state_moves.py). Work planned after the last gradient runs in a hook before the
optimizer's step: in the plan's order, with the optimizer's own step on one bucket's
parameters at a time, and these parameters are hidden from the step that follows. With a
closure, that work runs when the closure returns. Copies run on their own lanes
(lanes.py).

Until a bucket is updated, `optimizer.state` holds the host's tensors and not the loaded
copy, so a step that is skipped only costs its copies. Tested by
tests/plugins/python/torch_host_state_test.py and torch_copy_order_test.py.
"""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from loadline.errors import LoadlineError
from loadline.torch.compat import torch_internals
from loadline.torch.compat.lanes import IN, MAIN, OUT, Lanes, has_lanes, lanes_of
from loadline.torch.rewrite.ledger import (inside_operator, paused, record_in_open_ledger,
                                           watched)
from loadline.torch.rewrite.parameter_moves import parameter_movers
from loadline.torch.rewrite.state_moves import (DETACHED, END_STORE, END_STORE_GRADIENT,
                                                END_STORE_PARAMETER, LOAD, LOAD_GRADIENT,
                                                LOAD_PARAMETER, START_STORE,
                                                START_STORE_GRADIENT,
                                                START_STORE_PARAMETER, UPDATE, StateMoves,
                                                movers)
from loadline.torch.state.host_gradients import HostGradient, HostGradients
from loadline.torch.state.host_updates import HostUpdates
from loadline.torch.state.predict_state import (Bucket, PredictedState, buckets_of,
                                                clone_with_groups, run_step,
                                                state_tensors)
from loadline.torch.state.separate_updates import may_update_apart
from loadline.torch.state.state_slab import StateSlab, Tensors


@dataclasses.dataclass
class _Loading:
    """A copy to the device that is in flight or complete, and not yet the state."""

    tensors: Tensors
    versions: list[int]  # of the host's tensors when the copy started
    mark: Any  # the end of the copy, on its lane


class HostState:
    """Hooked to an optimizer until `detach`; does nothing until it follows a plan."""

    def __init__(self, optimizer: torch.optim.Optimizer, buckets: Sequence[Bucket],
                 lanes: Lanes, gradients: bool = False):
        """gradients: those of the buckets' parameters may leave too."""
        self.optimizer = optimizer
        self.buckets = buckets
        self.lanes = lanes
        self.moves = StateMoves(0)
        self.moved: set[torch.Tensor] = set()  # parameters
        self.updated: set[torch.Tensor] = set()  # those that the plan updates
        self.in_bytes = self.out_bytes = 0  # copied so far
        self.gradients = HostGradients(buckets, lanes, gradients)
        self._slabs = [StateSlab(lanes) for _ in buckets]
        self._host = HostUpdates(optimizer, lanes, self.gradients)
        self._on_host: set[int] = set()  # buckets whose state is the host's tensors
        self._storing: dict[int, tuple[Tensors, Any]] = {}  # with the copy's end
        self._loading: dict[int, _Loading] = {}
        self._hidden: list[list[torch.Tensor]] | None = None  # groups' parameters
        self._groups: list[list[torch.Tensor]] = []  # their parameters when last looked at
        # By bucket: numbers of the groups that its parameters are in, and these parameters.
        self._parts: list[dict[int, list[torch.Tensor]]] = []
        # By bucket that the last backward has updated: the settings that it had. Empty when
        # the step has followed.
        self._in_backward: dict[int, list[dict[str, Any]]] = {}
        self._due = False  # a step has begun, and its buckets are not updated yet
        self._handles = [
            optimizer.register_step_pre_hook(self._before),
            optimizer.register_step_post_hook(self._after),
            optimizer.register_state_dict_pre_hook(self._to_be_saved),
            optimizer.register_load_state_dict_post_hook(self._loaded)]
        self._next_to_the_step()
        self._find_groups()

    def follow(self, moves: StateMoves) -> None:
        """Moves state as this graph's plan says, from now on."""
        self.moves = moves
        self.moved, self.updated = (
            {p for number in numbers for p in self.buckets[number].parameters}
            for numbers in (moves.moved, moves.updated))
        self._bring_back()
        self._host.place(self.buckets, moves.on_host)
        self._store_resting()

    @property
    def attached(self) -> bool:
        return bool(self.moves.updated)

    @property
    def host_bytes(self) -> int:
        return sum(slab.bytes for slab in self._slabs)

    def detach(self) -> None:
        """Brings all state to the device and removes the hooks."""
        self._drop_stores()
        self.gradients.detach()
        self.moves = StateMoves(0)
        self._bring_back()
        self._host.place(self.buckets, False)
        for handle in self._handles:
            handle.remove()
        for number, mover in movers.items():
            if mover is self:
                movers.set(number, DETACHED)

    def _next_to_the_step(self) -> None:
        """The program's own hooks on the step see all parameters and their gradients: before
        the updates, and after them."""
        before, after, *_ = self._handles
        torch_internals.run_last(before)
        torch_internals.run_first(after)

    def begin(self, moves: StateMoves) -> None:
        """At the start of a forward. Every bucket is where it rests, or where a skipped step
        left it, and no copy is in flight."""
        self._restore_groups()  # of a step that failed
        self._next_to_the_step()
        self._drop_stores()
        if moves is not self.moves:
            self.follow(moves)
        else:
            self._store_resting()

    def check_parameters(self, moves: StateMoves, inputs: Sequence[torch.Tensor]) -> None:
        self.gradients.check_parameters(moves, inputs)

    def begin_backward(self, moves: StateMoves) -> None:
        if self._in_backward:
            raise LoadlineError(
                "with update_in_backward=True every backward is a step: the last one has "
                "updated parameters, and optimizer.step() has not followed")
        self._find_groups()
        self.gradients.begin_backward(moves)

    def measure_gradient(self, moves: StateMoves, number: int,
                         gradient: torch.Tensor) -> None:
        self.gradients.measure_gradient(number, gradient)

    def leave_gradients(self, moves: StateMoves) -> None:
        self.gradients.leave_gradients(moves)

    def update_in_backward(self, moves: StateMoves, bucket: int,
                           gradients: Sequence[torch.Tensor]) -> None:
        self._in_backward[bucket] = self._settings(bucket)
        self.gradients.hand_over(moves, bucket, gradients)
        self._update(bucket, moves, inside_operator)

    def _find_groups(self) -> None:
        """The program may have moved parameters to another group, or taken them out."""
        groups = self.optimizer.param_groups
        if [len(one) for one in self._groups] == [len(one["params"]) for one in groups] and all(
                one is other for now, before in zip(groups, self._groups)
                for one, other in zip(now["params"], before)):
            return
        self._groups = [[*one["params"]] for one in groups]
        place = {id(one): number for number, parameters in enumerate(self._groups)
                 for one in parameters}
        self._parts = []
        for bucket in self.buckets:
            parts: dict[int, list[torch.Tensor]] = {}
            for one in bucket.parameters:
                if id(one) in place:
                    parts.setdefault(place[id(one)], []).append(one)
            self._parts.append(parts)

    def _groups_of(self, bucket: int) -> list[dict[str, Any]]:
        """The optimizer's groups that have parameters of the bucket, with these alone."""
        return [{**self.optimizer.param_groups[number], "params": parameters}
                for number, parameters in self._parts[bucket].items()]

    def _settings(self, bucket: int) -> list[dict[str, Any]]:
        """Of the bucket's groups, as they are now."""
        return [{name: value.clone() if isinstance(value, torch.Tensor) else value
                 for name, value in group.items() if name != "params"}
                for group in self._groups_of(bucket)]

    def _check_updated(self) -> list[int]:
        """At a step: what the backward has updated, it would update now. Returns the buckets
        with gradients of another backward, as of the model that is not compiled."""
        for bucket, before in self._in_backward.items():
            now = self._settings(bucket)
            if [one.keys() for one in now] != [one.keys() for one in before] or any(
                    bool(one[name] != other[name]) for one, other in zip(now, before)
                    for name in one):
                raise LoadlineError(
                    "settings of the optimizer, such as its learning rate, have changed "
                    "between backward and step: with update_in_backward=True the backward "
                    "has used the old ones. Change them before the backward")
            if any(one.grad is not None and not isinstance(one.grad, HostGradient)
                   for one in self.buckets[bucket].parameters):
                raise LoadlineError(
                    "a gradient was replaced between backward and step: with "
                    "update_in_backward=True the backward has updated its parameter")
        if not self._in_backward:
            for bucket in self.moves.in_backward:
                self.gradients.refuse_used(self.buckets[bucket].parameters)
        missed = [bucket for bucket in sorted(self.moves.in_backward)
                  if bucket not in self._in_backward and any(
                      one.grad is not None and not isinstance(one.grad, HostGradient)
                      for one in self.buckets[bucket].parameters)]
        self._in_backward.clear()
        return missed

    def _drop_stores(self) -> None:
        """Drops stores that a failed forward started: that state is still on the device."""
        for _, mark in self._storing.values():
            self.lanes.wait(MAIN, mark)
        self._storing.clear()

    def _bring_back(self) -> None:
        """Loads buckets that another graph's plan stored and this one's never moves."""
        for number in [*self._on_host - self.moves.moved]:
            if self._is_on_host(number):
                self._arrive(number)

    def _store_resting(self) -> None:
        """Stores the buckets that rest on the host between steps."""
        for number in self.moves.resting_on_host:
            self._drop(number)
            self.start_store(number)
            self.end_store(number)

    def _tensors(self, number: int) -> Tensors:
        return {(p, name): tensor for p in self.buckets[number].parameters
                for name, tensor in state_tensors(self.optimizer.state.get(p, {})).items()}

    def _install(self, tensors: Tensors) -> None:
        for (p, name), tensor in tensors.items():
            self.optimizer.state[p][name] = tensor

    def _is_on_host(self, number: int) -> bool:
        """Whether the bucket's state is on the host. If the program replaced a tensor in
        `optimizer.state`, its tensor counts, and the bucket's others are loaded."""
        if number not in self._on_host:
            return False
        host, found = self._slabs[number].host, self._tensors(number)
        if found.keys() == host.keys() and all(
                tensor is host[key] for key, tensor in found.items()):
            return True
        self._drop(number)
        self._on_host.discard(number)
        keys = [key for key, tensor in found.items() if tensor is host.get(key)]
        self._install(dict(zip(keys, self.lanes.copy_in([host[key] for key in keys]))))
        self.lanes.follow(MAIN, IN)
        return False

    def start_store(self, number: int) -> None:
        """Nothing to do if the host has it: a loaded copy is equal until the update."""
        if self._is_on_host(number) or number in self._storing:
            return
        tensors = self._tensors(number)
        self._slabs[number].copy_out(tensors)
        self.out_bytes += self._slabs[number].bytes
        self._storing[number] = tensors, self.lanes.mark(OUT)

    def end_store(self, number: int) -> None:
        """The bucket is on the host only."""
        self._drop(number)
        if number in self._storing:
            tensors, mark = self._storing.pop(number)
            self.lanes.wait(MAIN, mark)  # then its device memory is free
            if tensors:
                self._install(self._slabs[number].host)
                self._on_host.add(number)

    def load(self, number: int) -> None:
        if not self._is_on_host(number) or number in self._loading:
            return
        slab = self._slabs[number]
        there = slab.copy_in()
        self._loading[number] = _Loading(
            there, [tensor._version for tensor in slab.host.values()],
            self.lanes.mark(IN))
        self.in_bytes += slab.bytes
        record_in_open_ledger(f"load state {number}", lambda: [*there.values()])

    def _drop(self, number: int) -> None:
        """Drops the device's copy of state that is also on the host."""
        if (loading := self._loading.pop(number, None)) is not None:
            self.lanes.wait(MAIN, loading.mark)

    def _arrive(self, number: int) -> None:
        """Makes the device's copy the optimizer's state."""
        if (loading := self._loading.get(number)) is not None and loading.versions != [
                tensor._version for tensor in self._slabs[number].host.values()]:
            self._drop(number)  # the program has written to the host's tensors
        self.load(number)
        loading = self._loading.pop(number)
        self.lanes.wait(MAIN, loading.mark)
        self._install(loading.tensors)
        self._on_host.discard(number)

    def update(self, number: int) -> None:
        self._update(number, self.moves, watched)

    def _update(self, number: int, moves: StateMoves, recorded: Callable[[], Any]) -> None:
        bucket = self.buckets[number]
        if number in self._storing:
            self.end_store(number)
        if self._is_on_host(number):
            self._arrive(number)
        if (mover := parameter_movers.get(moves.number)) is not None:
            mover.arrive(bucket.parameters)
        self.gradients.bring_back(bucket.parameters)
        if groups := self._groups_of(number):
            with recorded():
                run_step(clone_with_groups(self.optimizer, groups, self.optimizer.state))
        self.gradients.use_up(moves, bucket.parameters)
        # A first step creates the state.
        record_in_open_ledger(f"update {number}", lambda: [*self._tensors(number).values()])

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        self._restore_groups()
        if self.attached and not torch_internals.runs_last(self._handles[0]):
            raise LoadlineError(
                "a hook before the optimizer's step was registered between the forward and "
                "the step, and would run after updates: register it before the forward")
        self._due = True
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self._update_moved()
            return None

        def update_after_closure() -> Any:
            if not self._due and self.attached:
                raise LoadlineError(
                    f"{type(optimizer).__name__} calls its closure more than once a "
                    "step, but state on the host is updated once: use offload=False")
            loss = closure()
            with torch.no_grad():
                self._update_moved()
            return loss

        if len(args) > 1:
            return (args[0], update_after_closure, *args[2:]), kwargs
        return args, {**kwargs, "closure": update_after_closure}

    def _update_moved(self) -> None:
        """The plan's work after the last gradient; then hides what it has updated."""
        self._due = False
        self._find_groups()
        missed = self._check_updated()
        self._watch_resident("resident state")
        do: dict[str, Callable[[int], None]] = {
            START_STORE: self.start_store, END_STORE: self.end_store,
            LOAD: self.load, UPDATE: self.update}
        for action, method in ((START_STORE_GRADIENT, self.gradients.start_store),
                               (END_STORE_GRADIENT, self.gradients.end_store),
                               (LOAD_GRADIENT, self.gradients.load)):
            do[action] = functools.partial(method, self.moves)
        if (mover := parameter_movers.get(self.moves.number)) is not None:
            do.update({START_STORE_PARAMETER: mover.start_store,
                       END_STORE_PARAMETER: mover.end_store, LOAD_PARAMETER: mover.load})
        with paused():
            if self.moves.on_host:
                self._update_on_host(do)
            else:
                for action, number in self.moves.tail:
                    do[action](number)
            for number in missed:
                self.update(number)
            self._bring_back()
        self._hidden = [group["params"] for group in self.optimizer.param_groups]
        for group in self.optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p not in self.updated]

    def _update_on_host(self, do: dict[str, Callable[[int], None]]) -> None:
        """As planned, but that copies of gradients to the device stand for those of updated
        parameters (make_problem.py)."""
        for action, number in self.moves.tail:
            if action not in (UPDATE, LOAD_GRADIENT):
                do[action](number)
        self.gradients.settle(self.moves)
        self._host.run(self.moves, [
            (self.buckets[number], self._groups_of(number))
            for action, number in self.moves.tail if action == UPDATE])

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._restore_groups()
        if self._due and self.attached:
            raise LoadlineError(
                f"{type(optimizer).__name__} has not called its closure, so state on "
                "the host was not updated: use offload=False")
        if any(action == END_STORE for action, _ in self.moves.tail):
            self.lanes.settle()
        self._watch_resident("resident updates")

    def _watch_resident(self, name: str) -> None:
        record_in_open_ledger(name, lambda: [
            tensor for p, state in self.optimizer.state.items()
            if p not in (self.updated if self.moves.on_host else self.moved)
            for tensor in state_tensors(state).values()])

    def _restore_groups(self) -> None:
        """Shows the optimizer all its parameters again."""
        if self._hidden is not None:
            for group, parameters in zip(self.optimizer.param_groups, self._hidden):
                group["params"] = parameters
            self._hidden = None

    def _to_be_saved(self, optimizer: Any) -> None:
        self._restore_groups()
        self.lanes.settle()

    def _loaded(self, optimizer: Any) -> None:
        """load_state_dict put new state on the device; buckets that rest on the host are
        stored."""
        for number in [*self._loading]:
            self._drop(number)
        self._drop_stores()
        self._on_host.clear()
        self._host.place(self.buckets, self.moves.on_host)
        self._store_resting()
        self.lanes.settle()


def movable_buckets(optimizer: torch.optim.Optimizer, predicted: PredictedState,
                    device: torch.device) -> list[Bucket]:
    """What can leave the device of the parameters between two updates."""
    return buckets_of(optimizer, predicted) if (
        predicted.separable and has_lanes(device) and may_update_apart(optimizer)) else []


def new_host_state(optimizer: torch.optim.Optimizer, buckets: list[Bucket],
                   device: torch.device, number: int, gradients: bool = False
                   ) -> HostState:
    """For the buckets of `movable_buckets`, on the same device. number: of the session,
    by which planned modules find it. Does nothing until it follows a plan."""
    lanes = lanes_of(device)
    assert lanes is not None
    state = HostState(optimizer, buckets, lanes, gradients)
    movers.set(number, state)
    return state


def host_state_of(optimizer: torch.optim.Optimizer) -> HostState | None:
    """The one that moves its state, if any does."""
    return next((mover for _, mover in movers.items()
                 if isinstance(mover, HostState) and mover.attached
                 and mover.optimizer is optimizer), None)


def detach_host_state(optimizer: torch.optim.Optimizer) -> None:
    """Brings all its state back to the device, for good."""
    for _, mover in movers.items():
        if isinstance(mover, HostState) and mover.optimizer is optimizer:
            mover.detach()
