"""One bucket of optimizer state in contiguous memory, so that one copy moves it.

Tested by tests/plugins/python/torch_host_state_test.py and torch_copy_order_test.py.
"""
from __future__ import annotations

import torch
from loadline.torch.compat.lanes import MAIN, OUT, Lanes
from loadline.torch.state.predict_state import span_bytes

Tensors = dict[tuple[torch.Tensor, str], torch.Tensor]  # by parameter and state name
_ALIGNMENT = 64  # bytes; kernels read aligned tensors faster


def lay_out(tensors: Tensors) -> tuple[dict[tuple[torch.Tensor, str], int], int]:
    """Offsets without gaps, and the total in bytes.

    Tensors whose size is no multiple of the alignment come last, those with the widest
    elements first, so that each is aligned to its elements."""
    def odd(tensor: torch.Tensor) -> tuple[bool, int]:
        return bool(span_bytes(tensor) % _ALIGNMENT), -tensor.element_size()

    offsets, end = {}, 0
    for key, tensor in sorted(tensors.items(), key=lambda item: odd(item[1])):
        offsets[key] = end
        end += span_bytes(tensor)
    return offsets, end


def tensors_in(memory: torch.Tensor, offsets: dict[tuple[torch.Tensor, str], int],
               like: Tensors) -> Tensors:
    """Views of the memory with the types and layouts of these tensors."""
    return {
        key: torch.empty(0, dtype=tensor.dtype, device=memory.device).set_(
            memory.untyped_storage(),
            (memory.storage_offset() + offsets[key]) // tensor.element_size(),
            tensor.size(), tensor.stride())
        for key, tensor in like.items()}


class StateSlab:
    """Host memory is allocated by the first copy out."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.memory: torch.Tensor | None = None
        self.host: Tensors = {}  # views of it
        self._offsets: dict[tuple[torch.Tensor, str], int] = {}

    @property
    def bytes(self) -> int:
        return 0 if self.memory is None else self.memory.numel()

    def _fit(self, tensors: Tensors) -> None:
        if self.host.keys() == tensors.keys() and all(
                view.shape == tensors[key].shape and view.dtype == tensors[key].dtype
                for key, view in self.host.items()):
            return
        self._offsets, bytes_ = lay_out(tensors)
        self.memory = self.lanes.host_memory(bytes_)
        self.host = tensors_in(self.memory, self._offsets, tensors)

    def copy_out(self, tensors: Tensors) -> None:
        """On OUT, after the present work of MAIN."""
        self._fit(tensors)
        self.lanes.follow(OUT, MAIN)
        if (run := self._one_run(tensors)) is not None:
            assert self.memory is not None
            self.lanes.copy_out(run, self.memory)
            return
        for key, tensor in tensors.items():
            self.lanes.copy_out(tensor, self.host[key])

    def _one_run(self, tensors: Tensors) -> torch.Tensor | None:
        """The memory of all tensors, if it is laid out as on the host: it came from there."""
        first = next(iter(tensors.values()), None)
        if first is None or first.untyped_storage().nbytes() != self.bytes:
            return None
        run = torch.empty(0, dtype=torch.uint8, device=first.device).set_(
            first.untyped_storage())
        begin = run.data_ptr()
        return run if all(
            tensor.data_ptr() == begin + self._offsets[key]
            and tensor.stride() == self.host[key].stride()
            and not tensor.is_conj() and not tensor.is_neg()
            for key, tensor in tensors.items()) else None

    def copy_in(self) -> Tensors:
        """On IN, to new device memory."""
        if self.memory is None:
            return {}
        there, = self.lanes.copy_in([self.memory])
        return tensors_in(there, self._offsets, self.host)
