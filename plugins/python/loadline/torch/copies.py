"""loadline::offload, wait and reload: values that leave the device and return.

On the CPU they copy into a slab of host memory that is allocated once, so that
bytes, order and the ledger of the virtual device are those of a real copy. The
slot is named by a number, and a token goes from the copy out to the copy in: it
ties them together for whoever reorders nodes, and tells a second forward before
the first one's backward, which would overwrite the slot. Tested by
tests/plugins/python/torch_offload_test.py.
"""
from __future__ import annotations

import itertools
import weakref

import torch


ALIGNMENT = 64


class Slab:
    """Host memory of one planned graph."""

    def __init__(self, slots: dict[int, int]):
        offsets = [*itertools.accumulate(
            (-(-bytes_ // ALIGNMENT) * ALIGNMENT for bytes_ in slots.values()),
            initial=0)]
        self.at = {slot: (offset, bytes_) for (slot, bytes_), offset in
                   zip(slots.items(), offsets)}
        self.bytes = offsets[-1]
        self.memory: torch.Tensor | None = None  # tracing must not see it
        self.filled = {slot: 0 for slot in slots}  # how often
        self.out_bytes = self.in_bytes = 0  # copied so far

    def slot(self, slot: int) -> torch.Tensor:
        if self.memory is None:
            self.memory = torch.empty(self.bytes, dtype=torch.uint8)
        offset, bytes_ = self.at[slot]
        return self.memory[offset:offset + bytes_]


# By number; the module that copies out owns its slab.
slabs: weakref.WeakValueDictionary[int, Slab] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def new_slab(slots: dict[int, int]) -> tuple[int, Slab]:
    number, slab = next(_numbers), Slab(slots)
    slabs[number] = slab
    return number, slab


@torch.library.custom_op("loadline::offload", mutates_args=(),
                         device_types="cpu")
def offload(value: torch.Tensor, slab: int, slot: int, size: list[int],
            stride: list[int], offset: int) -> torch.Tensor:
    """Copies `value` into the slot, laid out as it was traced: a compiler may give
    it other strides here. A token for its reload."""
    host = slabs[slab]
    place = host.slot(slot)
    torch.empty(0, dtype=value.dtype).set_(
        place.untyped_storage(),
        place.storage_offset() // value.element_size() + offset, size, stride
    ).copy_(value)
    host.filled[slot] += 1
    host.out_bytes += place.numel()
    return torch.tensor(host.filled[slot])


@offload.register_fake
def _(value: torch.Tensor, slab: int, slot: int, size: list[int],
      stride: list[int], offset: int) -> torch.Tensor:
    return torch.empty((), dtype=torch.int64)


@torch.library.custom_op("loadline::wait", mutates_args=(), device_types="cpu")
def wait(value: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Until here the value stays: its copy has ended."""
    return token.clone()


@wait.register_fake
def _(value: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(token)


@torch.library.custom_op("loadline::reload", mutates_args=(),
                         device_types="cpu")
def reload(token: torch.Tensor, slab: int, slot: int, size: list[int],
           stride: list[int], offset: int, dtype: torch.dtype) -> torch.Tensor:
    """A new storage with what the slot holds, seen as the value was."""
    host = slabs[slab]
    if token.item() != host.filled[slot]:
        raise RuntimeError(
            "loadline: a second forward ran before the backward of the first and "
            "took its place on the host; run backward first, or plan without "
            "copies")
    source = host.slot(slot)
    host.in_bytes += source.numel()
    storage = source.clone().untyped_storage()
    return torch.empty(0, dtype=dtype).set_(storage, offset, size, stride)


@reload.register_fake
def _(token: torch.Tensor, slab: int, slot: int, size: list[int],
      stride: list[int], offset: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype)


OFFLOAD = torch.ops.loadline.offload.default
WAIT = torch.ops.loadline.wait.default
RELOAD = torch.ops.loadline.reload.default
