"""Gradients that are on the host between the backward and their update.

Meanwhile `p.grad` is a `HostGradient`: a tensor without data. It knows its 2-norm, which was
computed before it left, and it can be multiplied by a number, which is done when it comes
back; so torch.nn.utils.clip_grad_norm_ works. Everything else that is done with it raises
LoadlineError: no gradient is ever read that is not there. After the update it is used up,
and the next backward wants it gone (zero_grad). Tested by
tests/plugins/python/torch_host_gradients_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from loadline.errors import LoadlineError
from loadline.torch.compat import torch_internals
from loadline.torch.compat.lanes import IN, MAIN, OUT, Lanes
from loadline.torch.rewrite.copies import Slab, slabs
from loadline.torch.rewrite.ledger import record_in_open_ledger
from loadline.torch.rewrite.state_moves import GradientMove, StateMoves
from loadline.torch.state.predict_state import Bucket

aten = torch.ops.aten

_USED = (
    "that an update has used up. Call zero_grad(set_to_none=True) before the next backward. "
    "With update_in_backward=True updates run in the backward, so that gradients can be "
    "neither clipped, scaled nor read")
_INSTEAD = (
    "With offload_gradients=True or host_updates=True gradients may be clipped by "
    "torch.nn.utils.clip_grad_norm_ (of norm 2, once before a step) and dropped by "
    "zero_grad(set_to_none=True), and nothing else can be done with them. For anything else, "
    "prepare without these options")


@dataclasses.dataclass
class _There:
    """Where the gradient is on the host."""

    slab: Slab
    move: GradientMove
    filled: int  # the slot's count of copies when this one was made

    def place(self) -> torch.Tensor:
        if self.slab.filled[self.move.slot] != self.filled:
            raise LoadlineError(
                "a later backward has overwritten this gradient on the host. " + _INSTEAD)
        return self.slab.slot(self.move.slot)


class HostGradient(torch.Tensor):
    """The gradient of a parameter, which is not on its device."""

    # Names that no tensor has.
    loadline_there: _There | None  # None: an update has used it
    loadline_norm: torch.Tensor | None
    loadline_factors: list[Any]

    @staticmethod
    def __new__(cls, parameter: torch.Tensor, there: _There | None,
                norm: torch.Tensor | None = None) -> HostGradient:
        made = torch_internals.tensor_without_data(cls, parameter)
        made.loadline_there, made.loadline_norm, made.loadline_factors = there, norm, []
        return made

    def __init__(self, *_: Any) -> None:
        pass

    def __repr__(  # type: ignore[override]
            self, *, tensor_contents: Any = None) -> str:
        return (f"HostGradient({tuple(self.shape)}, {self.dtype}, "
                f"{'used' if self.loadline_there is None else 'on the host'})")

    def __reduce_ex__(self, *_: Any) -> NoReturn:
        self.loadline_refuse("a copy")

    def loadline_refuse(self, what: str) -> NoReturn:
        raise LoadlineError(
            f"{what} of a gradient of shape {tuple(self.shape)} " + (
                _USED if self.loadline_there is None
                else "that is on the host: " + _INSTEAD))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
            cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        own = next(one for one in torch_internals.pytree.tree_leaves((args, kwargs or {}))
                   if isinstance(one, cls))
        if own.loadline_there is not None and own is args[0] and not kwargs:
            norm = None if own.loadline_factors else own.loadline_norm
            if function is aten.linalg_vector_norm.default and norm is not None and (
                    args[1:] in ((), (2,))):
                return norm.clone()
            if function is aten.mul_.Tensor and not isinstance(args[1], cls) and (
                    not isinstance(args[1], torch.Tensor) or args[1].dim() == 0):
                factor = args[1]
                own.loadline_factors.append(
                    factor.clone() if isinstance(factor, torch.Tensor) else factor)
                return own
        own.loadline_refuse(str(function))


def _laid_out(memory: torch.Tensor, move: GradientMove, dtype: torch.dtype) -> torch.Tensor:
    """The gradient in these bytes."""
    return torch.empty(0, dtype=dtype, device=memory.device).set_(
        memory.untyped_storage(),
        memory.storage_offset() // dtype.itemsize + move.offset, move.size, move.stride)


def hooked(parameter: torch.Tensor) -> bool:
    """Whether the program wants to be called when its gradient is there."""
    return bool(parameter._backward_hooks or getattr(
        parameter, "_post_accumulate_grad_hooks", None))


class HostGradients:
    """Those of the parameters of one optimizer's buckets."""

    def __init__(self, buckets: Sequence[Bucket], lanes: Lanes, leave: bool):
        self.buckets = buckets
        self.lanes = lanes
        self._accumulators = {
            parameter: torch_internals.accumulator(parameter) for bucket in buckets
            for parameter in bucket.parameters} if leave else {}
        self.in_bytes = 0  # copied so far
        self._norms: dict[int, torch.Tensor] = {}
        # By parameter: what came back, and the end of that copy.
        self._loading: dict[torch.Tensor, tuple[HostGradient, torch.Tensor, Any]] = {}
        self._storing: dict[int, tuple[torch.Tensor, Any]] = {}

    def _parameter(self, move: GradientMove) -> torch.Tensor:
        bucket, place = move.owner
        return self.buckets[bucket].parameters[place]

    def check_parameters(self, moves: StateMoves, inputs: Sequence[torch.Tensor]) -> None:
        for move, given in zip(moves.gradients, inputs):
            if torch_internals.storage_key(given) != torch_internals.storage_key(
                    self._parameter(move)):
                raise LoadlineError(
                    "the parameters of this call are not those of the model that was "
                    "prepared with offload_gradients=True: their gradients would be lost. "
                    "Prepare this model too, after torch.compiler.reset()")

    def begin_backward(self, moves: StateMoves) -> None:
        self._drop()
        for move in moves.gradients:
            if not move.left and move.owner[0] not in moves.in_backward:
                continue
            parameter = self._parameter(move)
            if parameter.grad is not None:
                raise LoadlineError(
                    "a backward while gradients of another one are there: with "
                    "offload_gradients=True each backward is followed by optimizer.step() "
                    "and zero_grad(set_to_none=True), and gradients of several batches "
                    "cannot be added up")
            if hooked(parameter):
                raise LoadlineError(
                    "a parameter has a hook on its gradient, which would not be called: "
                    "remove it, or prepare without offload_gradients")
            if not torch_internals.runs(self._accumulators.get(parameter)):
                raise LoadlineError(
                    "torch.autograd.grad, or backward(inputs=...), which leaves out "
                    "parameters of the model: " + _INSTEAD)

    def measure_gradient(self, number: int, gradient: torch.Tensor) -> None:
        # As clip_grad_norm_ computes it.
        with torch.autocast(gradient.device.type, enabled=False):
            self._norms[number] = torch.linalg.vector_norm(gradient, 2.0)

    def leave_gradients(self, moves: StateMoves) -> None:
        slab = slabs[moves.slab]
        for number, move in enumerate(moves.gradients):
            if move.left:
                parameter = self._parameter(move)
                parameter.grad = HostGradient(
                    parameter, _There(slab, move, slab.filled[move.slot]),
                    self._norms.pop(number))

    def hand_over(self, moves: StateMoves, bucket: int,
                  gradients: Sequence[torch.Tensor]) -> None:
        """For an update in the backward."""
        mine = [move for move in moves.gradients if move.owner[0] == bucket]
        for move, gradient in zip(mine, gradients, strict=True):
            self._parameter(move).grad = gradient

    def start_store(self, moves: StateMoves, number: int) -> None:
        """After the last gradient. Nothing, if the program has put something else there."""
        move = moves.gradients[number]
        gradient = self._parameter(move).grad
        if gradient is None or isinstance(gradient, HostGradient) or (
                (tuple(gradient.shape), gradient.stride()) != (move.size, move.stride)):
            return
        slab = slabs[moves.slab]
        self.lanes.follow(OUT, MAIN)
        self.lanes.copy_out(gradient.detach(), _laid_out(
            slab.slot(move.slot), move, gradient.dtype))
        slab.filled[move.slot] += 1
        slab.out_bytes += slab.at[move.slot][1]
        self._storing[number] = gradient, self.lanes.mark(OUT)

    def end_store(self, moves: StateMoves, number: int) -> None:
        if number not in self._storing:
            return
        gradient, mark = self._storing.pop(number)
        self.lanes.wait(MAIN, mark)
        move, slab = moves.gradients[number], slabs[moves.slab]
        parameter = self._parameter(move)
        if parameter.grad is gradient:
            parameter.grad = HostGradient(
                parameter, _There(slab, move, slab.filled[move.slot]))

    def load(self, moves: StateMoves, number: int) -> None:
        self._load(self._parameter(moves.gradients[number]))

    def _load(self, parameter: torch.Tensor) -> None:
        gradient = parameter.grad
        if not isinstance(gradient, HostGradient) or parameter in self._loading:
            return
        if gradient.loadline_there is None:
            gradient.loadline_refuse("a second update")
        memory, = self.lanes.copy_in([gradient.loadline_there.place()])
        self.in_bytes += memory.numel()
        loaded = _laid_out(memory, gradient.loadline_there.move, parameter.dtype)
        self._loading[parameter] = gradient, loaded, self.lanes.mark(IN)
        record_in_open_ledger("load gradient", lambda: loaded)

    def bring_back(self, parameters: Sequence[torch.Tensor]) -> None:
        """Their gradients are on the device, for an update."""
        for parameter in parameters:
            if isinstance(parameter.grad, HostGradient):
                self._load(parameter)
                gradient, loaded, mark = self._loading.pop(parameter)
                self.lanes.wait(MAIN, mark)
                for factor in gradient.loadline_factors:
                    loaded.mul_(factor)
                parameter.grad = loaded

    def settle(self, moves: StateMoves) -> None:
        """Returns when gradients that left are on the host."""
        if any(move.slot >= 0 for move in moves.gradients):
            slabs[moves.slab].lanes.settle()

    def place(self, parameter: torch.Tensor) -> torch.Tensor:
        """A gradient that is on the host, for an update there. Copies out are complete."""
        gradient = parameter.grad
        assert isinstance(gradient, HostGradient)
        if gradient.loadline_there is None:
            gradient.loadline_refuse("a second update")
        there = gradient.loadline_there
        found = _laid_out(there.place(), there.move, parameter.dtype)
        for factor in gradient.loadline_factors:
            found.mul_(factor.to(found.device) if isinstance(factor, torch.Tensor) else factor)
        gradient.loadline_factors.clear()
        return found

    def use_up(self, moves: StateMoves, parameters: Sequence[torch.Tensor]) -> None:
        """After their update: the plan frees those that may leave."""
        mine = {self._parameter(move) for move in moves.gradients}
        for parameter in parameters:
            if parameter in mine and parameter.grad is not None:
                parameter.grad = HostGradient(parameter, None)

    def refuse_used(self, parameters: Sequence[torch.Tensor]) -> None:
        for parameter in parameters:
            if isinstance(parameter.grad, HostGradient) and (
                    parameter.grad.loadline_there is None):
                parameter.grad.loadline_refuse("a second update")

    def _drop(self) -> None:
        """Drops copies that a failed step left behind."""
        for _, _, mark in self._loading.values():
            self.lanes.wait(MAIN, mark)
        for _, mark in self._storing.values():
            self.lanes.wait(MAIN, mark)
        self._loading.clear()
        self._storing.clear()
        self._norms.clear()

    def detach(self) -> None:
        """Brings those back that wait for an update."""
        for bucket in self.buckets:
            self.bring_back([one for one in bucket.parameters if not (
                isinstance(one.grad, HostGradient) and one.grad.loadline_there is None)])
        self._drop()
