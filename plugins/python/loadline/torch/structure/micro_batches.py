"""A training step whose batch runs in parts, one after the other.

`loss = step(*batch)` runs forward and backward of each part and adds up the gradients of
the losses' sums. `loss.backward()` divides them by the number of targets of the whole batch,
multiplies by the gradient of the loss, and hands them to the parameters. So a training loop
stays as it is. Terms of a loss that divide by different numbers are divided in the parts
(part_counts.py). Tested by tests/plugins/python/torch_micro_batches_test.py.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from loadline.errors import InvalidArgument, LoadlineError, Unsupported
from loadline.torch.compat import torch_internals
from loadline.torch.compat.nested_values import map_leaves, tensors_in
from loadline.torch.compat.trained_leaves import trained_leaves
from loadline.torch.structure.part_counts import TargetCounter


class WithLoss(torch.nn.Module):
    """The model and the caller's loss: forward(*inputs, target) is the loss."""

    def __init__(self, model: torch.nn.Module, function: Callable[..., Any]):
        super().__init__()
        self.model = model
        self.function = function

    def forward(self, *batch: Any) -> Any:
        *inputs, target = batch
        return self.function(self.model(*inputs), target)


def batch_size(batch: Any) -> int:
    """Examples of a batch, and checks that it can be cut. Raises InvalidArgument."""
    tensors = [tensor for tensor in tensors_in(batch) if tensor.dim()]
    size = max((tensor.shape[0] for tensor in tensors), default=0)
    for tensor in tensors:
        if tensor.shape[0] not in (1, size):
            raise InvalidArgument(
                f"micro_batches: the batch has tensors with {size} and with "
                f"{tensor.shape[0]} rows: the first dimension must be the examples")
        if tensor.requires_grad:
            raise InvalidArgument("micro_batches: a tensor of the batch requires a gradient")
    if not size:
        raise InvalidArgument("micro_batches: the batch has no examples")
    return size


def examples_of(batch: Any, which: slice | list[int]) -> Any:
    """A copy of these examples. Tensors without examples stay as they are."""
    size = batch_size(batch)
    return map_leaves(
        lambda leaf: leaf[which].clone() if isinstance(leaf, torch.Tensor)
        and leaf.dim() and leaf.shape[0] == size and size > 1 else leaf, batch)


def rows_of(batch: Any, first: int, last: int) -> Any:
    return examples_of(batch, slice(first, last))


def cut_bytes(batch: Any) -> int:
    """Of the tensors that parts are copied from."""
    return sum({torch_internals.storage_key(tensor): tensor.untyped_storage().nbytes()
                for tensor in tensors_in(batch)}.values())


def loss_of(output: Any) -> torch.Tensor:
    """Of what a model returns: a tensor, a tuple that begins with the loss, or something
    with a field `loss`."""
    found = output
    if isinstance(output, dict):
        found = output.get("loss")
    elif isinstance(output, (tuple, list)) and output:
        found = output[0]
    elif not isinstance(output, torch.Tensor):
        found = getattr(output, "loss", None)
    if not isinstance(found, torch.Tensor):
        raise InvalidArgument("micro_batches: the model must return its loss: a tensor, a "
                              "tuple that begins with it, or something with a field loss; "
                              "or pass loss_fn")
    return found


def _with_loss(output: Any, loss: torch.Tensor) -> Any:
    """What the model returns, with the loss only: the rest is of one part."""
    if isinstance(output, torch.Tensor):
        return loss
    if isinstance(output, (tuple, list)):
        return (loss,)
    return {"loss": loss} if type(output) is dict else type(output)(loss=loss)


def _divisors(counts: torch.Tensor) -> torch.Tensor:
    """Of whole batches, by what parts counted. Without any target all sums are zero, and so
    are the gradients."""
    return torch.where(counts <= 0, 1.0, counts)  # negative: term_sums.IS_SUM


def _sums_only(sums: torch.Tensor, counts: torch.Tensor | None) -> torch.Tensor:
    """The gradient that makes a backward of the sum, and not of the count; or of each row's
    sum, divided by the counts of the whole batch."""
    unit = torch.zeros_like(sums)
    if sums.dim() == 1:
        unit[0] = 1
    else:
        assert counts is not None
        unit[:, 0] = 1 / _divisors(counts)
    return unit


class _Gradients:
    """Of a whole batch, between its forward and its backward."""

    def __init__(self, found: list[tuple[torch.nn.Parameter, torch.Tensor]],
                 count: torch.Tensor):
        self.found: list[tuple[torch.nn.Parameter, torch.Tensor]] | None = found
        self.count = count

    def hand_over(self, incoming: torch.Tensor) -> None:
        if self.found is None:
            raise LoadlineError("a second backward of the same loss: its gradients were "
                                "handed over by the first")
        found, self.found = self.found, None
        factor = incoming / _divisors(self.count)
        while found:
            parameter, gradient = found.pop()
            gradient.mul_(factor.to(gradient.dtype) if gradient.is_floating_point()
                          else factor)
            if parameter.grad is None:
                parameter.grad = gradient
            else:
                parameter.grad.add_(gradient)


class _Finish(torch.autograd.Function):
    """The loss of the whole batch."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, loss: torch.Tensor,
                gradients: _Gradients) -> torch.Tensor:
        ctx.gradients = gradients
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor) -> Any:
        if torch.is_grad_enabled():
            raise LoadlineError("backward with create_graph=True: gradients of gradients "
                                "need a step without micro-batches")
        ctx.gradients.hand_over(incoming[0])
        return None, None, None


class Parts(torch.nn.Module):
    """The model, for its caller. call: the compiled forward of one part, which returns its
    loss as sum and count, or as rows of them. rows: of one part; None: the batch runs in one
    piece. takes_target: the call is (*inputs, target), as of WithLoss. counter: of targets,
    for sums in rows. counts_first: the sums are known to be rows."""

    def __init__(self, model: torch.nn.Module, call: Callable[..., Any], rows: int | None,
                 takes_target: bool = False, counter: TargetCounter | None = None,
                 counts_first: bool = False):
        super().__init__()
        self._orig_mod = model
        self._call = (call,)  # no child: its parameters are the model's
        self._rows = rows
        self._takes_target = takes_target
        self._counter = counter
        self._counts_first = counts_first

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules[name]
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["_orig_mod"], name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        (call,) = self._call
        # Before it is traced: a graph of the model alone would replace the step's.
        if self._takes_target and len(args) < 2:
            raise InvalidArgument(
                "prepare was given loss_fn with micro_batches or split: call the prepared "
                "model with input and target, and your own model for predictions")
        if self._rows is None or not torch.is_grad_enabled():
            return call(*args, **kwargs)
        trained = [p for p in self._orig_mod.parameters() if p.requires_grad]
        _refuse_hooks(trained)
        before = [(parameter, parameter.grad) for parameter in trained]
        counts = self._counts((args, kwargs)) if self._counts_first else None
        total, output = None, None
        try:
            for parameter in trained:
                parameter.grad = None
            for part, keywords in self._parts((args, kwargs)):
                output = None
                output = call(*part, **keywords)
                sums = loss_of(output)
                if sums.dim() == 2 and counts is None:
                    self._counts_first = True
                    counts = self._counts((args, kwargs))
                output = _with_loss(output, sums)
                total = sums.detach().clone() if total is None else total + sums.detach()
                _refuse_other_leaves(sums, trained)
                torch.autograd.backward(sums, _sums_only(sums, counts))
                del sums
            found = [(parameter, parameter.grad) for parameter in trained
                     if parameter.grad is not None]
        finally:
            for parameter, gradient in before:
                parameter.grad = gradient
        assert total is not None
        value, count = _whole(total, counts)
        anchor = torch.zeros((), device=total.device, requires_grad=True)
        loss = _Finish.apply(anchor, value, _Gradients(found, count))
        return _with_loss(output, loss)

    def _counts(self, batch: Any) -> torch.Tensor | None:
        """Of the whole batch, one for each row of the parts' sums; none if they are no rows."""
        assert self._counter is not None
        found = [self._counter.of_part(*part) for part in self._parts(batch)]
        known = [one for one in found if one is not None]
        return torch.stack(known).sum(0) if len(known) == len(found) else None

    def _parts(self, batch: Any) -> Iterator[Any]:
        assert self._rows is not None
        size = batch_size(batch)
        for first in range(0, size, self._rows):
            yield rows_of(batch, first, min(first + self._rows, size))


def _whole(total: torch.Tensor, counts: torch.Tensor | None
           ) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of the whole batch, and what its gradients are still to be divided by."""
    if total.dim() == 1 or counts is None:
        count = torch.where(total[1] < 0, 1.0, total[1])  # term_sums.IS_SUM
        return total[0] / count, count
    sums, found, ignored = total.unbind(1)
    if bool(ignored.any()):  # term_sums.term_sums
        raise InvalidArgument(
            f"micro_batches: the loss adds a cross entropy to other losses, and "
            f"{int(ignored.sum())} targets of this batch are ignored. They follow from what "
            "the model computes, so the whole batch's divisor is not known before its parts "
            "run")
    if not torch.allclose(found, counts.to(found.dtype)):
        raise LoadlineError(
            f"micro_batches: the terms of the loss divide by {found.tolist()}, and by "
            f"{counts.tolist()} before the forward, which writes to targets or weights of "
            "classes")
    return (sums / torch.where(found < 0, 1.0, found)).sum(), torch.ones_like(sums[0])


def _refuse_hooks(parameters: list[torch.nn.Parameter]) -> None:
    for parameter in parameters:
        if parameter._backward_hooks or getattr(
                parameter, "_post_accumulate_grad_hooks", None):
            raise Unsupported("micro_batches: a hook on a parameter's gradient would see the "
                              "gradients of parts")


def _refuse_other_leaves(pair: torch.Tensor, trained: list[torch.nn.Parameter]) -> None:
    """The gradients of tensors outside of the model would stay sums of parts."""
    known = {id(parameter) for parameter in trained}
    for leaf in trained_leaves(pair):
        if id(leaf) not in known:
            raise Unsupported(
                f"micro_batches: the loss depends on a tensor {tuple(leaf.shape)} that "
                "requires a gradient and is no parameter of the model: make it one")
