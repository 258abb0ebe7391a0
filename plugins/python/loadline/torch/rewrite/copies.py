"""Operators that copy values to the host and back: loadline::offload, wait, reload, arrive.

`offload` starts a copy out when its source exists; `wait` is where that copy has ended.
`reload` starts a copy in; `arrive` is before its first reader. On a CUDA device the
copies run on their own streams in between (lanes.py). On the CPU a copy is complete when
it is started, so bytes, order and ledger are those of a real copy.

Host memory of a graph is one slab, allocated once and divided into numbered slots. Each
of the four operators passes a token to the next, for three reasons: a compiler cannot
reorder them; it cannot read the value before `arrive` returns it; and a second forward
before the first one's backward is detected, which would overwrite the slot.
Tested by tests/plugins/python/torch_offload_test.py and torch_copy_order_test.py.
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
    mark: Any  # the end of the copy, on its lane


class Slab:
    """Host memory of one planned graph, and its copies in flight."""

    def __init__(self, slots: dict[int, int], device: torch.device):
        offsets, self.bytes = lay_out(slots.items())
        self.at = {slot: (offsets[slot], bytes_) for slot, bytes_ in slots.items()}
        self.device = device
        self.memory: torch.Tensor | None = None  # tracing must not see it
        self.places: dict[int, torch.Tensor] = {}  # bytes of each slot
        # The same with the dtype and layout of the slot's value, which never change.
        self.laid_out: dict[int, torch.Tensor] = {}
        self.filled = {slot: 0 for slot in slots}  # copies into it so far
        self.out_bytes = self.in_bytes = 0  # copied so far
        # By slot: the source, kept alive, and the mark at the end of its copy.
        self.leaving: dict[int, tuple[torch.Tensor, Any]] = {}
        self.arriving: dict[int, _Arrival] = {}  # by number
        self.next_arrival = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Slab:
        """PyTorch compiles a deep copy of the backward module, which shares the slab."""
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
        """Frees the memory; a later copy allocates it again."""
        self.memory = None
        self.places.clear()
        self.laid_out.clear()

    def abandon(self, slot: int) -> None:
        """Drops reloads of the slot that a failed backward left behind."""
        for number, arrival in [*self.arriving.items()]:
            if arrival.slot == slot:
                self.lanes.wait(MAIN, arrival.mark)
                del self.arriving[number]


slabs: WeakTable[Slab] = WeakTable()  # the modules that copy own them


def _token(*_: Any) -> torch.Tensor:
    """On the CPU, whatever the values' device."""
    return torch.empty((), dtype=torch.int64)


@operator("offload(Tensor value, int slab, int slot, int[] size, int[] stride, "
          "int offset) -> Tensor", _token)
def OFFLOAD(value: torch.Tensor, slab: int, slot: int, size: list[int],
            stride: list[int], offset: int) -> torch.Tensor:
    """Starts to copy `value` into the slot and returns a token for `wait`.

    size, stride, offset: as traced, because a compiler may change the strides."""
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
    """Later work sees the copy of `value` as complete, so it may be freed. Returns a token
    for `reload`."""
    host = slabs[slab]
    _, mark = host.leaving.pop(slot)
    host.lanes.wait(MAIN, mark)
    return token.clone()


def start_arrival(host: Slab, source: torch.Tensor, slot: int = -1) -> torch.Tensor:
    """A token for `arrive`. slot: -1 if the source, host memory, is none of the slab's."""
    there, = host.lanes.copy_in([source])
    number = host.next_arrival = host.next_arrival + 1
    host.arriving[number] = _Arrival(slot, there, host.lanes.mark(IN))
    host.in_bytes += source.numel()
    return torch.tensor(number)


@operator("reload(Tensor token, int slab, int slot) -> Tensor", _token)
def RELOAD(token: torch.Tensor, slab: int, slot: int) -> torch.Tensor:
    """Starts to copy the slot into new device memory and returns a token for `arrive`."""
    host = slabs[slab]
    if token.item() != host.filled[slot]:
        raise RuntimeError(
            "loadline: a second forward ran before the backward of the first and "
            "overwrote its values on the host: run each backward before the next "
            "forward, or plan with offload=False")
    # MAIN allocates and frees the storage, so its allocator need not know of the copy. IN
    # waits for MAIN, which at this point has waited for the copy out.
    return start_arrival(host, host.slot(slot), slot)


def _arrived(token: torch.Tensor, slab: int, size: list[int], stride: list[int],
             offset: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device=device)


@operator("arrive(Tensor token, int slab, int[] size, int[] stride, int offset, "
          "ScalarType dtype, Device device) -> Tensor", _arrived)
def ARRIVE(token: torch.Tensor, slab: int, size: list[int], stride: list[int],
           offset: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The reloaded value, with its traced layout. Later work may read it."""
    host = slabs[slab]
    arrival = host.arriving.pop(int(token))
    host.lanes.wait(MAIN, arrival.mark)
    return torch.empty(0, dtype=dtype, device=device).set_(
        arrival.there.untyped_storage(), offset, size, stride)


def on_its_way(slab: int, token: torch.Tensor) -> torch.Tensor:
    """The device memory that the reload with this token fills."""
    return slabs[slab].arriving[int(token)].there
