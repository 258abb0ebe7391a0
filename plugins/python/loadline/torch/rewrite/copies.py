"""loadline::offload, wait, reload and arrive: values that leave the device and return.

`offload` starts a copy out where its source is there, and `wait` stands where it has
ended; `reload` starts a copy in where the plan says, and `arrive` stands before its
first reader. On a CUDA device the copies run on lanes of their own in between
(lanes.py); on the CPU each is done when it has started, so that bytes, order and the
ledger of the virtual device are those of a real copy. The host's memory is a slab that
is allocated once; a slot of it is named by a number. A token goes from each of the four
to the next. It ties them together for whoever reorders nodes, and a compiler that sees
what arrives come out of `arrive` cannot read it before; and it tells a second forward
before the first one's backward, which would overwrite the slot. Tested by
tests/plugins/python/torch_offload_test.py and torch_lanes_test.py.
"""
from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch
from loadline.torch.compat.lanes import IN, MAIN, OUT, Lanes, lanes_of, lay_out
from loadline.torch.compat.operators import operator
from loadline.torch.compat.weak_table import WeakTable


@dataclasses.dataclass
class _Arrival:
    slot: int
    there: torch.Tensor
    mark: Any  # behind the copy, on its lane


class Slab:
    """Host memory of one planned graph, and what is on its way from and to it."""

    def __init__(self, slots: dict[int, int], device: torch.device):
        offsets, self.bytes = lay_out(slots.items())
        self.at = {slot: (offsets[slot], bytes_) for slot, bytes_ in slots.items()}
        self.device = device
        self.memory: torch.Tensor | None = None  # tracing must not see it
        self.places: dict[int, torch.Tensor] = {}  # in it, by slot
        # The same, seen as what is copied there: every time the same value of a graph.
        self.laid_out: dict[int, torch.Tensor] = {}
        self.filled = {slot: 0 for slot in slots}  # how often
        self.out_bytes = self.in_bytes = 0  # copied so far
        # By slot: the source, which nobody may give up, and the mark behind its copy.
        self.leaving: dict[int, tuple[torch.Tensor, Any]] = {}
        self.arriving: dict[int, _Arrival] = {}  # by number
        self.next_arrival = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Slab:
        """A copy of a module makes the same copies: PyTorch compiles one of the
        backward's."""
        return self

    @functools.cached_property
    def lanes(self) -> Lanes:
        lanes = lanes_of(self.device)
        assert lanes is not None  # no plan copies on such a device
        return lanes

    def slot(self, slot: int) -> torch.Tensor:
        if (place := self.places.get(slot)) is None:
            if self.memory is None:
                self.memory = self.lanes.host_memory(self.bytes)
            offset, bytes_ = self.at[slot]
            place = self.places[slot] = self.memory[offset:offset + bytes_]
        return place

    def release(self) -> None:
        """The memory; whoever copies again has new."""
        self.memory = None
        self.places.clear()
        self.laid_out.clear()

    def abandon(self, slot: int) -> None:
        """What a backward that failed has left on its way."""
        for number, arrival in [*self.arriving.items()]:
            if arrival.slot == slot:
                self.lanes.wait(MAIN, arrival.mark)
                del self.arriving[number]


slabs: WeakTable[Slab] = WeakTable()  # the modules that copy own them


def _token(*_: Any) -> torch.Tensor:
    """Always the CPU's."""
    return torch.empty((), dtype=torch.int64)


@operator("offload(Tensor value, int slab, int slot, int[] size, int[] stride, "
          "int offset) -> Tensor", _token)
def OFFLOAD(value: torch.Tensor, slab: int, slot: int, size: list[int],
            stride: list[int], offset: int) -> torch.Tensor:
    """Starts to copy `value` into the slot, laid out as it was traced: a compiler may
    give it other strides here. A token for the end of the copy."""
    value = value.detach()
    host = slabs[slab]
    if host.arriving:
        host.abandon(slot)
    if (there := host.laid_out.get(slot)) is None:
        place = host.slot(slot)
        there = host.laid_out[slot] = torch.empty(0, dtype=value.dtype).set_(
            place.untyped_storage(),
            place.storage_offset() // value.element_size() + offset, size, stride)
    host.lanes.follow(OUT, MAIN)
    host.lanes.copy_out(value, there)
    host.leaving[slot] = value, host.lanes.mark(OUT)
    host.filled[slot] += 1
    host.out_bytes += host.at[slot][1]
    return torch.tensor(host.filled[slot])


@operator("wait(Tensor value, Tensor token, int slab, int slot) -> Tensor", _token)
def WAIT(value: torch.Tensor, token: torch.Tensor, slab: int,
         slot: int) -> torch.Tensor:
    """From here on its copy has ended, and the value may go. A token for reloads."""
    host = slabs[slab]
    _, mark = host.leaving.pop(slot)
    host.lanes.wait(MAIN, mark)
    return token.clone()


@operator("reload(Tensor token, int slab, int slot) -> Tensor", _token)
def RELOAD(token: torch.Tensor, slab: int, slot: int) -> torch.Tensor:
    """Starts to copy what the slot holds into a new storage, which is there from here
    on. A token for its arrival."""
    host = slabs[slab]
    if token.item() != host.filled[slot]:
        raise RuntimeError(
            "loadline: a second forward ran before the backward of the first and "
            "took its place on the host; run backward first, or plan without "
            "copies")
    # The storage is memory of MAIN, which frees it when it has read it: no allocator
    # has to know of the copy. IN waits for MAIN, which has the copy out behind it here.
    there, = host.lanes.copy_in([host.slot(slot)])
    number = host.next_arrival = host.next_arrival + 1
    host.arriving[number] = _Arrival(slot, there, host.lanes.mark(IN))
    host.in_bytes += host.at[slot][1]
    return torch.tensor(number)


def _arrived(token: torch.Tensor, slab: int, size: list[int], stride: list[int],
             offset: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device=device)


@operator("arrive(Tensor token, int slab, int[] size, int[] stride, int offset, "
          "ScalarType dtype, Device device) -> Tensor", _arrived)
def ARRIVE(token: torch.Tensor, slab: int, size: list[int], stride: list[int],
           offset: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """What was reloaded, seen as the value was: it may be read."""
    host = slabs[slab]
    arrival = host.arriving.pop(int(token))
    host.lanes.wait(MAIN, arrival.mark)
    return torch.empty(0, dtype=dtype, device=device).set_(
        arrival.there.untyped_storage(), offset, size, stride)


def on_its_way(slab: int, token: torch.Tensor) -> torch.Tensor:
    """What the reload of this token brings."""
    return slabs[slab].arriving[int(token)].there
