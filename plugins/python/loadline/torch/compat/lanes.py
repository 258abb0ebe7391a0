"""Copies between a device and the host, and their order.

There are three lanes: PyTorch computes on `MAIN`, `IN` copies from the host and `OUT`
copies to it. Each lane runs its work in order, independently of the others. A mark is a
position in a lane that another lane can wait for. On the CPU a copy is complete when it
returns, so nothing waits. On a CUDA device IN and OUT are streams, marks are events, and
host memory is pinned.

The destination of a copy in is memory that MAIN allocated. PyTorch's allocator reuses
such memory in MAIN's order, so IN first waits for MAIN, and the memory may be freed once
MAIN has waited for every lane that used it.
Tested by tests/plugins/python/torch_lanes_test.py and torch_copy_order_test.py.
"""
from __future__ import annotations

import contextlib
import mmap
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import torch
from loadline.errors import Unsupported
from loadline.torch.compat import torch_internals

MAIN, IN, OUT = "main", "in", "out"
_ALIGNMENT = 64  # bytes, of each value in host memory
_PORTABLE = 1  # cudaHostRegisterPortable: for every device

_Key = TypeVar("_Key")


def lay_out(sizes: Iterable[tuple[_Key, int]]) -> tuple[dict[_Key, int], int]:
    """Offsets for (key, bytes), one after the other, and the total in bytes."""
    offsets, end = dict[_Key, int](), 0
    for key, bytes_ in sizes:
        offsets[key] = end
        end += -(-bytes_ // _ALIGNMENT) * _ALIGNMENT
    return offsets, end


class Lanes:
    """For the CPU, where every copy is complete when it returns."""

    def host_memory(self, bytes_: int) -> torch.Tensor:
        return torch.empty(bytes_, dtype=torch.uint8)

    def seen_by_device(self, memory: torch.Tensor) -> torch.Tensor:
        """The same bytes of `host_memory` as a tensor of the device."""
        return memory

    def mark(self, lane: str) -> Any:
        """The end of the work that the lane has so far."""

    def wait(self, lane: str, mark: Any) -> None:
        """Later work of the lane starts after the mark."""

    def follow(self, lane: str, other: str) -> None:
        """Later work of the lane starts after the other lane's present work."""
        self.wait(lane, self.mark(other))

    def new(self, host: torch.Tensor) -> torch.Tensor:
        """Device memory, allocated on MAIN, with the host tensor's layout."""
        return torch.empty_strided(host.size(), host.stride(), dtype=host.dtype)

    def fill(self, there: torch.Tensor, host: torch.Tensor) -> None:
        """Copies host memory to `there`, on IN."""
        there.copy_(host)

    def copy_in(self, host: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Copies to new device memory, on IN."""
        there = [self.new(tensor) for tensor in host]
        self.follow(IN, MAIN)
        for new, tensor in zip(there, host):
            self.fill(new, tensor)
        return there

    def copy_out(self, value: torch.Tensor, host: torch.Tensor) -> None:
        host.copy_(value)

    def settle(self, lane: str = OUT) -> None:
        """Returns when all copies of the lane are complete: out, so that the host may be read,
        or in, so that it may be written."""


def _unpin(device: torch.device, address: int) -> None:
    torch.cuda.synchronize(device)  # copies may be in flight
    torch.cuda.cudart().cudaHostUnregister(address)


class _Seen:
    """Host memory, for torch.as_tensor, which keeps this and with it the memory."""

    def __init__(self, memory: torch.Tensor):
        self.memory = memory
        self.__cuda_array_interface__ = {
            "shape": (memory.numel(),), "typestr": "|u1", "version": 2,
            "data": (memory.data_ptr(), False)}


class CudaLanes(Lanes):
    def __init__(self, device: torch.device):
        self.device = device
        self.streams = {lane: torch.cuda.Stream(device) for lane in (IN, OUT)}
        self._between = torch.cuda.Event()
        self._mains: dict[int, Any] = {}  # by stream number: a query takes 7 us

    def _stream(self, lane: str) -> Any:
        return self.streams[lane] if lane != MAIN else self._main()

    def _main(self) -> Any:
        """Queried each time, because the program may change the current stream."""
        if torch_internals.raw_stream is None or self.device.index is None:
            return torch.cuda.current_stream(self.device)
        number = torch_internals.raw_stream(self.device.index)
        if number not in self._mains:
            self._mains[number] = torch.cuda.current_stream(self.device)
        return self._mains[number]

    def _copy(self, lane: str, there: torch.Tensor, source: torch.Tensor) -> None:
        # What torch.cuda.stream does, without its three queries of the current stream.
        if torch.cuda.current_device() != self.device.index:
            with torch.cuda.stream(self.streams[lane]):
                there.copy_(source, non_blocking=True)
            return
        main = self._main()
        torch.cuda.set_stream(self.streams[lane])
        try:
            there.copy_(source, non_blocking=True)
        finally:
            torch.cuda.set_stream(main)

    def host_memory(self, bytes_: int) -> torch.Tensor:
        """Whole pages, pinned in place for the lifetime of the tensor. PyTorch's own
        pinned allocator would round the size up to a power of two."""
        pages = -(-bytes_ // mmap.PAGESIZE) * mmap.PAGESIZE
        memory = torch.empty(pages + mmap.PAGESIZE, dtype=torch.uint8)
        first = -memory.data_ptr() % mmap.PAGESIZE
        memory = memory[first:first + bytes_]
        if not bytes_:
            return memory
        if int(torch.cuda.cudart().cudaHostRegister(
                memory.data_ptr(), pages, _PORTABLE)):
            with contextlib.suppress(RuntimeError):
                torch.zeros(1, device=self.device)  # the next launch reports the error
            return torch.empty(bytes_, dtype=torch.uint8, pin_memory=True)
        weakref.finalize(memory, _unpin, self.device, memory.data_ptr()).atexit = False
        return memory

    def seen_by_device(self, memory: torch.Tensor) -> torch.Tensor:
        """Kernels read pinned memory at the host's own address, through the bus."""
        seen = torch.as_tensor(_Seen(memory), device=self.device)
        if seen.data_ptr() != memory.data_ptr() or seen.device != self.device:
            raise Unsupported(
                f"{self.device} cannot read pinned host memory in place, which "
                "offload_parameters=True needs")
        return seen

    def mark(self, lane: str) -> Any:
        event = torch.cuda.Event()
        event.record(self._stream(lane))
        return event

    def wait(self, lane: str, mark: Any) -> None:
        self._stream(lane).wait_event(mark)

    def follow(self, lane: str, other: str) -> None:
        # wait_event takes the event's present position, so the event can be reused.
        self._between.record(self._stream(other))
        self._stream(lane).wait_event(self._between)

    def new(self, host: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(
            host.size(), host.stride(), dtype=host.dtype, device=self.device)

    def fill(self, there: torch.Tensor, host: torch.Tensor) -> None:
        self._copy(IN, there, host)

    def copy_out(self, value: torch.Tensor, host: torch.Tensor) -> None:
        self._copy(OUT, host, value)

    def settle(self, lane: str = OUT) -> None:
        self.streams[lane].synchronize()


def has_lanes(device: torch.device) -> bool:
    return device.type in ("cpu", "cuda")


def lanes_of(device: torch.device) -> Lanes | None:
    """None: Loadline cannot copy to and from such a device."""
    if not has_lanes(device):
        return None
    return Lanes() if device.type == "cpu" else CudaLanes(device)
