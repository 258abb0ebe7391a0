"""Copies between a device and the host, and what waits for what.

Three lanes do their work in order, each on its own: `MAIN`, where PyTorch computes,
`IN` from the host and `OUT` to it. A mark is a place in a lane; another lane can wait
for it. On the CPU a copy is done when it returns, so there is nothing to wait for. On
a CUDA device IN and OUT are streams of their own, marks are events, and the host's
memory is pinned. What arrives is memory of MAIN: the allocator hands it out again in
that lane's order, so IN waits for MAIN first, which may also fill new memory, and it may
be given up once MAIN has waited for all who used it. Tested by tests/plugins/python/torch_lanes_test.py.
"""
from __future__ import annotations

import contextlib
import mmap
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import torch
from loadline.torch.compat import torch_internals

MAIN, IN, OUT = "main", "in", "out"
_ALIGNMENT = 64  # of what lies in the host's memory
_PORTABLE = 1  # cudaHostRegisterPortable: for every device

_Key = TypeVar("_Key")


def lay_out(sizes: Iterable[tuple[_Key, int]]) -> tuple[dict[_Key, int], int]:
    """Offsets of so many bytes each, one after the other, and the bytes of all."""
    offsets, end = dict[_Key, int](), 0
    for key, bytes_ in sizes:
        offsets[key] = end
        end += -(-bytes_ // _ALIGNMENT) * _ALIGNMENT
    return offsets, end


class Lanes:
    """Of the CPU."""

    def host_memory(self, bytes_: int) -> torch.Tensor:
        return torch.empty(bytes_, dtype=torch.uint8)

    def mark(self, lane: str) -> Any:
        """All that the lane has been given so far."""

    def wait(self, lane: str, mark: Any) -> None:
        """What the lane is given from now on finds that done."""

    def follow(self, lane: str, other: str) -> None:
        """What the lane is given from now on finds all done that the other has been
        given."""
        self.wait(lane, self.mark(other))

    def new(self, host: torch.Tensor) -> torch.Tensor:
        """Memory of MAIN, laid out as the host's."""
        return torch.empty_strided(host.size(), host.stride(), dtype=host.dtype)

    def fill(self, there: torch.Tensor, host: torch.Tensor) -> None:
        """On IN."""
        there.copy_(host)

    def copy_in(self, host: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """On IN, to new memory of MAIN."""
        there = [self.new(tensor) for tensor in host]
        self.follow(IN, MAIN)
        for new, tensor in zip(there, host):
            self.fill(new, tensor)
        return there

    def copy_out(self, value: torch.Tensor, host: torch.Tensor) -> None:
        host.copy_(value)

    def settle(self) -> None:
        """Returns when all copies out are done: the host may be read."""


def _unpin(device: torch.device, address: int) -> None:
    torch.cuda.synchronize(device)  # copies may be on their way
    torch.cuda.cudart().cudaHostUnregister(address)


class CudaLanes(Lanes):
    def __init__(self, device: torch.device):
        self.device = device
        self.streams = {lane: torch.cuda.Stream(device) for lane in (IN, OUT)}
        self._between = torch.cuda.Event()
        self._mains: dict[int, Any] = {}  # by number: asking PyTorch takes 7 us

    def _stream(self, lane: str) -> Any:
        return self.streams[lane] if lane != MAIN else self._main()

    def _main(self) -> Any:
        """The program may have made another stream the current one since."""
        if torch_internals.raw_stream is None or self.device.index is None:
            return torch.cuda.current_stream(self.device)
        number = torch_internals.raw_stream(self.device.index)
        if number not in self._mains:
            self._mains[number] = torch.cuda.current_stream(self.device)
        return self._mains[number]

    def _copy(self, lane: str, there: torch.Tensor, source: torch.Tensor) -> None:
        # As torch.cuda.stream does, which asks three times what is current.
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
        """Whole pages, pinned where they lie as long as the tensor is there. PyTorch's
        own allocator rounds up to a power of two."""
        pages = -(-bytes_ // mmap.PAGESIZE) * mmap.PAGESIZE
        memory = torch.empty(pages + mmap.PAGESIZE, dtype=torch.uint8)
        first = -memory.data_ptr() % mmap.PAGESIZE
        memory = memory[first:first + bytes_]
        if not bytes_:
            return memory
        if int(torch.cuda.cudart().cudaHostRegister(
                memory.data_ptr(), pages, _PORTABLE)):
            with contextlib.suppress(RuntimeError):
                torch.zeros(1, device=self.device)  # the next launch tells of it
            return torch.empty(bytes_, dtype=torch.uint8, pin_memory=True)
        weakref.finalize(memory, _unpin, self.device, memory.data_ptr()).atexit = False
        return memory

    def mark(self, lane: str) -> Any:
        event = torch.cuda.Event()
        event.record(self._stream(lane))
        return event

    def wait(self, lane: str, mark: Any) -> None:
        self._stream(lane).wait_event(mark)

    def follow(self, lane: str, other: str) -> None:
        # A wait is for what the event says now: it may be recorded anew behind it.
        self._between.record(self._stream(other))
        self._stream(lane).wait_event(self._between)

    def new(self, host: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(
            host.size(), host.stride(), dtype=host.dtype, device=self.device)

    def fill(self, there: torch.Tensor, host: torch.Tensor) -> None:
        self._copy(IN, there, host)

    def copy_out(self, value: torch.Tensor, host: torch.Tensor) -> None:
        self._copy(OUT, host, value)

    def settle(self) -> None:
        self.streams[OUT].synchronize()


def has_lanes(device: torch.device) -> bool:
    return device.type in ("cpu", "cuda")


def lanes_of(device: torch.device) -> Lanes | None:
    """None: of such a device nothing is known."""
    if not has_lanes(device):
        return None
    return Lanes() if device.type == "cpu" else CudaLanes(device)
