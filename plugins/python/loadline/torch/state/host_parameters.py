"""Parameters that are on the host for a part of the step, or between steps.

Such a parameter has its own host memory, pinned on a GPU, and `p.data` is the truth: it is
that memory, seen as a tensor of the parameter's device, or memory of the device. So at any
time every parameter can be read, saved, loaded and evaluated, and an error in a step leaves
each of them whole. A planned module copies a parameter to device memory of its own
(parameter_moves.py); where the parameter is updated there, or stays, `p.data` becomes that
memory. Tested by tests/plugins/python/torch_host_parameters_test.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from loadline.errors import LoadlineError, LoadlineWarning
from loadline.torch.compat import torch_internals
from loadline.torch.compat.lanes import IN, MAIN, OUT, Lanes, lanes_of
from loadline.torch.rewrite.ledger import is_left_out, leave_out, record_in_open_ledger
from loadline.torch.rewrite.parameter_moves import ParameterMoves, parameter_movers


# As many changes of parameters may be between a forward and its backward, for the error to
# be the right one.
_EPOCHS = 8


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Its whole storage."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(
        tensor.untyped_storage())


def _in_bytes(memory: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=like.dtype, device=memory.device).set_(
        memory.untyped_storage(), memory.storage_offset() // like.element_size(),
        like.size(), like.stride())


@dataclasses.dataclass
class _Place:
    """Host memory of one parameter."""

    memory: torch.Tensor  # bytes
    seen: torch.Tensor  # the same, as the parameter's data

    def fits(self, data: torch.Tensor) -> bool:
        return (data.dtype, data.device, data.size(), data.stride()) == (
            self.seen.dtype, self.seen.device, self.seen.size(), self.seen.stride())

    def has(self, data: torch.Tensor) -> bool:
        return self.fits(data) and bool(
            torch_internals.storage_key(data) == torch_internals.storage_key(self.seen)
            and data.storage_offset() == self.seen.storage_offset())


class HostParameters:
    """Does nothing until it follows a plan."""

    def __init__(self, named: Sequence[tuple[str, torch.Tensor]], lanes: Lanes):
        """named: the parameters that may leave."""
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.lanes = lanes
        self.in_bytes = self.out_bytes = 0  # copied so far
        self._numbers = {id(one): number for number, one in enumerate(self.parameters)}
        self._places: dict[int, _Place] = {}
        self._storing: dict[int, tuple[torch.Tensor, Any]] = {}  # with the copy's end
        self._loading: dict[int, tuple[torch.Tensor, Any]] = {}
        # Versions of all parameters, by the number of a forward that saw them first.
        self._epochs: dict[int, tuple[int, ...]] = {0: ()}
        self._left: list[tuple[int, Any]] = []  # device memory that is to be free
        self._warned = self._closed = False

    @property
    def host_bytes(self) -> int:
        return sum(place.memory.numel() for place in self._places.values())

    def is_on_host(self, number: int) -> bool:
        place = self._places.get(number)
        return place is not None and place.has(self.parameters[number].data)

    def check_open(self) -> None:
        if self._closed:
            raise LoadlineError(
                "the model that was prepared with offload_parameters=True was prepared again: "
                "call what the last prepare returned")

    def close(self) -> None:
        """The session has ended: its code runs no more."""
        self._closed = True

    def follow(self, moves: ParameterMoves) -> None:
        """Puts each parameter where it rests in this graph's plan. Before a forward."""
        self.check_open()
        self._drop()
        self._check_left()
        for number in range(len(self.parameters)):
            if number in moves.resting_on_host:
                self.start_store(number)
                self.end_store(number)
            else:
                self._bring_back(number)

    def bring_back(self) -> None:
        """All of them are on the device."""
        self._drop()
        for number in range(len(self.parameters)):
            self._bring_back(number)

    def _bring_back(self, number: int) -> None:
        if self.is_on_host(number):
            self.load(number)
            self._arrive(number)

    def _drop(self) -> None:
        """Drops copies that a failed step left behind."""
        for _, mark in (*self._loading.values(), *self._storing.values()):
            self.lanes.wait(MAIN, mark)
        self._loading.clear()
        self._storing.clear()

    def begin(self, moves: ParameterMoves, inputs: Sequence[torch.Tensor]) -> int:
        for number, given in zip(moves.moved, inputs, strict=True):
            if torch_internals.storage_key(given) != torch_internals.storage_key(
                    self.parameters[number]):
                raise LoadlineError(
                    f"the parameter {self.names[number]} of this call is not that of the "
                    "model that was prepared with offload_parameters=True: prepare this "
                    "model too, after torch.compiler.reset()")
        versions = tuple(one._version for one in self.parameters)
        last = max(self._epochs)
        if versions != self._epochs[last]:
            last += 1
            self._epochs.pop(last - _EPOCHS, None)
            self._epochs[last] = versions
        return last

    def check(self, moves: ParameterMoves, epoch: int) -> None:
        before = self._epochs.get(epoch)
        changed = [self.names[number] for number in moves.reread
                   if before is None
                   or before[number] != self.parameters[number]._version]
        if changed:
            raise LoadlineError(
                f"the parameter {changed[0]} was changed in place between a forward and its "
                "backward, which needs the old value: run each backward before the next "
                "change, or call the model again")

    def source(self, number: int) -> torch.Tensor:
        """The bytes to copy in."""
        self.in_bytes += (data := self.parameters[number].data).untyped_storage().nbytes()
        return self._places[number].memory if self.is_on_host(number) else _bytes_of(data)

    def keep(self, number: int, there: torch.Tensor) -> None:
        self.parameters[number].data = there

    def start_store(self, number: int) -> None:
        """Nothing to do if the host has it."""
        if self.is_on_host(number) or number in self._storing:
            return
        data = self.parameters[number].data
        place = self._places.get(number)
        if place is None or not place.fits(data):
            memory = self.lanes.host_memory(data.numel() * data.element_size())
            seen = self.lanes.seen_by_device(memory)
            leave_out(memory)
            leave_out(seen)
            place = self._places[number] = _Place(memory, _in_bytes(seen, data))
        self.lanes.follow(OUT, MAIN)
        self.lanes.copy_out(data, _in_bytes(place.memory, data))
        self.out_bytes += place.memory.numel()
        self._storing[number] = data, self.lanes.mark(OUT)

    def end_store(self, number: int) -> None:
        """The host's memory is the parameter's, unless the program has replaced it."""
        if number not in self._storing:
            return
        data, mark = self._storing.pop(number)
        self.lanes.wait(MAIN, mark)
        parameter = self.parameters[number]
        if torch_internals.storage_key(parameter) == torch_internals.storage_key(data):
            if not is_left_out(data):  # as by another model that shares the parameter
                self._left.append((number, torch_internals.StorageWeakRef(
                    data.untyped_storage())))
            parameter.data = self._places[number].seen

    def _check_left(self) -> None:
        """Warns of tensors of the program that were views of a parameter."""
        seen = [self.names[number] for number, storage in self._left if not storage.expired()]
        self._left.clear()
        if seen and not self._warned:
            self._warned = True
            warnings.warn(
                f"loadline: another tensor has the memory that the parameter {seen[0]} had "
                "on the device (a kept state_dict(), p.data or a view of it, or a loss whose "
                "backward has not run). It takes memory beyond the plan, and no longer "
                "changes with the parameter: with offload_parameters=True keep copies, or the "
                "parameters themselves",
                LoadlineWarning, stacklevel=2)

    def load(self, number: int) -> None:
        """After the backward, for an update."""
        if number in self._loading or not self.is_on_host(number):
            return
        there, = self.lanes.copy_in([self.source(number)])
        self._loading[number] = there, self.lanes.mark(IN)
        record_in_open_ledger(f"load {self.names[number]}", lambda: there)

    def _arrive(self, number: int) -> None:
        there, mark = self._loading.pop(number)
        self.lanes.wait(MAIN, mark)
        parameter = self.parameters[number]
        if self.is_on_host(number):
            parameter.data = _in_bytes(there, parameter.data)

    def arrive(self, parameters: Sequence[torch.Tensor]) -> None:
        """They are on the device, for an update."""
        for parameter in parameters:
            if (number := self._numbers.get(id(parameter))) is not None:
                self.load(number)
                if number in self._loading:
                    self._arrive(number)


def new_host_parameters(named: Sequence[tuple[str, torch.Tensor]], device: torch.device,
                        number: int) -> HostParameters | None:
    """number: of the session, by which planned modules find it. None: none may leave."""
    lanes = lanes_of(device)
    if not named or lanes is None:
        return None
    made = HostParameters(named, lanes)
    parameter_movers.set(number, made)
    return made


@contextlib.contextmanager
def on_device_after_error(parameters: HostParameters | None) -> Iterator[None]:
    """If what is inside fails, no parameter is left on the host."""
    try:
        yield
    except BaseException:
        if parameters is not None:
            parameters.bring_back()
        raise
