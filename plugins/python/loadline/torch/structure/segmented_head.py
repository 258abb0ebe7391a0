"""The operator loadline::head: product with the classes, cross entropy and the gradients of
both, in segments of rows.

For a segment of n rows it computes logits [n, classes], turns them in place into their
gradient, and adds to the gradients of hidden states and weights. So logits exist for one
segment at a time, and no gradient is computed in the backward pass: that only multiplies
by the gradient of the loss. Everything is a sum over rows that is not divided yet:
probabilities divided by the number of rows would be too small for float16.

All memory is allocated at the beginning and counted by `_inside`, so a plan knows the
workspace to the byte. Tested by tests/plugins/python/torch_head_test.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from loadline.errors import LoadlineError
from loadline.torch.compat.operators import differentiable_operator
from loadline.torch.problem.inside import OPERATORS, Inside
from loadline.torch.rewrite.ledger import Ledger, inside_operator

_HALF = (torch.float16, torch.bfloat16)
# How often the kernels of loss_of and gradient_of read or write a logit in the type of the
# products, and in the wide type where that is another one.
_LOW, _WIDE = 3, 5  # amax, sub, exp, sum, mul
_SMOOTH = 4
_LOSS_ONLY = 0.5


def wide(dtype: torch.dtype) -> torch.dtype:
    """In which the softmax and sums over rows are computed."""
    return torch.float32 if dtype in _HALF else dtype


@dataclasses.dataclass(frozen=True)
class _Call:
    """The arguments of the operator."""

    hidden: torch.Tensor  # [rows, width]
    weight: torch.Tensor  # [classes, width]
    target: torch.Tensor  # [rows], int64
    bias: torch.Tensor | None  # [classes]
    class_weight: torch.Tensor | None  # [classes]
    dtype: torch.dtype  # of the products
    segments: int
    ignore_index: int
    label_smoothing: float
    wants: tuple[bool, bool, bool]  # gradients of hidden, weight, bias

    @property
    def rows(self) -> int:
        """Of one segment."""
        return max(1, -(-self.hidden.shape[0] // self.segments))

    def results(self) -> list[tuple[tuple[int, ...], torch.dtype]]:
        """The sum of losses, the sum of the targets' weights, the gradients. A gradient
        that nobody wants is empty."""
        kind = wide(self.dtype)
        classes, width = self.weight.shape
        shapes = ((self.hidden.shape[0], width), (classes, width), (classes,))
        return [((), kind), ((), kind), *(
            (shape if wanted else (0,), dtype) for wanted, shape, dtype in zip(
                self.wants, shapes, (self.dtype, kind, kind)))]

    def scratch(self) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        kind, rows, count = wide(self.dtype), self.rows, self.hidden.shape[0]
        classes, width = self.weight.shape
        found = {"logits": ((rows, classes), self.dtype),
                 "safe": ((count,), torch.int64), "ignored": ((count,), torch.bool),
                 "row_weight": ((count,), kind), "losses": ((count,), kind),
                 "columns": ((5, rows), kind)}
        if self.label_smoothing:
            found["class_sum"] = (1, 1), kind
        if kind != self.dtype:
            found["wide"] = (rows, classes), kind
            found["tops"] = (rows,), self.dtype
            found["picked"] = (rows,), self.dtype
            if self.wants[1]:
                found["product"] = (classes, width), self.dtype
        if self.weight.dtype != self.dtype:
            found["weight"] = (classes, width), self.dtype
        if self.hidden.dtype != self.dtype:
            found["hidden"] = (rows, width), self.dtype
        if self.bias is not None and self.bias.dtype != self.dtype:
            found["bias"] = (classes,), self.dtype
        if self.class_weight is not None and self.class_weight.dtype != kind:
            found["class_weight"] = (classes,), kind
        if self.wants[2]:
            found["bias_part"] = (classes,), kind
        return found


def _call(*arguments: Any) -> _Call:
    fields = [*arguments[:-3], arguments[-3:]]
    return _Call(*fields)


def _bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    count = dtype.itemsize
    for size in shape:
        count *= size
    return count


def _inside(*arguments: Any) -> Inside:
    call = _call(*arguments)
    classes, width = call.weight.shape
    logits = call.hidden.shape[0] * classes
    passes = _LOW * call.dtype.itemsize + (_WIDE + (_SMOOTH if call.label_smoothing else 0)
                                           ) * wide(call.dtype).itemsize
    return Inside(
        sum(_bytes(*one) for one in call.scratch().values()),
        2 * logits * width * (1 + sum(call.wants[:2])),
        int(passes * logits * (1 if any(call.wants) else _LOSS_ONLY)), call.dtype)


def _like(*arguments: Any) -> tuple[torch.Tensor, ...]:
    call = _call(*arguments)
    return tuple(torch.empty(shape, dtype=dtype, device=call.hidden.device)
                 for shape, dtype in call.results())


class _Segments:
    """One run of the operator."""

    def __init__(self, call: _Call, ledger: Ledger | None):
        self.call = call

        def made(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
            return torch.empty(shape, dtype=dtype, device=call.hidden.device)

        self.results = [made(*one) for one in call.results()]
        self.own = {name: made(*one) for name, one in call.scratch().items()}
        if ledger is not None:  # which does not see tensors without dimensions
            ledger.watch(self.results)
        self.weight = self.low("weight", call.weight)
        self.bias = None if call.bias is None else self.low("bias", call.bias)
        self.class_weight = None if call.class_weight is None else self.low(
            "class_weight", call.class_weight)
        # Of label smoothing: what each class's logarithm counts, and all together.
        self.smooth = call.label_smoothing / max(1, call.weight.shape[0])
        self.hard = 1.0 - call.label_smoothing

    def low(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """In the type of the products."""
        return self.own[name].copy_(tensor) if name in self.own else tensor

    def prepare_targets(self) -> None:
        call, own = self.call, self.own
        torch.eq(call.target, call.ignore_index, out=own["ignored"])
        own["safe"].copy_(call.target).masked_fill_(own["ignored"], 0)
        if self.class_weight is None:
            own["row_weight"].fill_(1)
        else:
            torch.gather(self.class_weight, 0, own["safe"], out=own["row_weight"])
        own["row_weight"].masked_fill_(own["ignored"], 0)

    def run(self) -> tuple[torch.Tensor, ...]:
        call, own = self.call, self.own
        self.prepare_targets()
        count = call.hidden.shape[0]
        if count == 0:
            for gradient in self.results[2:]:
                gradient.zero_()
        for first in range(0, count, call.rows):
            self.segment(first, min(first + call.rows, count))
        own["losses"].masked_fill_(own["ignored"], 0)
        torch.sum(own["losses"], 0, out=self.results[0])
        torch.sum(own["row_weight"], 0, out=self.results[1])
        return tuple(self.results)

    def segment(self, first: int, last: int) -> None:
        call, own = self.call, self.own
        count = last - first
        hidden = call.hidden[first:last]
        if "hidden" in own:
            hidden = own["hidden"][:count].copy_(hidden)
        logits = own["logits"][:count]
        torch.mm(hidden, self.weight.t(), out=logits)
        if self.bias is not None:
            logits.add_(self.bias)
        values = own["wide"][:count] if "wide" in own else logits
        sums, columns = self.loss_of(logits, values, first, last)
        if not any(call.wants):
            return
        self.gradient_of(logits, values, sums, columns, first, last)
        if call.wants[0]:
            torch.mm(logits, self.weight, out=self.results[2][first:last])
        if call.wants[1]:
            self.add_weight(logits, hidden, first == 0)
        if call.wants[2]:
            part = self.results[4] if first == 0 else own["bias_part"]
            torch.sum(logits, 0, dtype=part.dtype, out=part)
            if first:
                self.results[4].add_(part)

    def loss_of(self, logits: torch.Tensor, values: torch.Tensor, first: int, last: int
                ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Losses of the segment's rows. values: the exponentials of the logits go there, in
        the wide type. Returns their sums, and columns: one is that of the targets' logits
        relative to the largest, the others are free."""
        own = self.own
        columns = [column[:last - first, None] for column in own["columns"]]
        top, picked, sums, log, other = columns
        if values is logits:
            torch.amax(logits, 1, keepdim=True, out=top)
            values.sub_(top)
        else:
            top.copy_(torch.amax(logits, 1, keepdim=True,
                                 out=own["tops"][:last - first, None]))
            torch.sub(logits, top, out=values)
        torch.gather(values, 1, own["safe"][first:last, None], out=picked)
        if self.smooth:
            self.sum_logits(values, other)
        values.exp_()
        torch.sum(values, 1, keepdim=True, out=sums)
        torch.log(sums, out=log)
        losses = own["losses"][first:last, None]
        torch.sub(log, picked, out=losses)
        losses.mul_(own["row_weight"][first:last, None])
        if self.smooth:
            log.mul_(self.class_sum())
            losses.mul_(self.hard).add_(log.sub_(other), alpha=self.smooth)
        return sums, [picked, top, log, other]

    def sum_logits(self, values: torch.Tensor, out: torch.Tensor) -> None:
        """Over the classes, with their weights."""
        if self.class_weight is None:
            torch.sum(values, 1, keepdim=True, out=out)
        else:
            torch.mm(values, self.class_weight[:, None], out=out)

    def gradient_of(self, logits: torch.Tensor, values: torch.Tensor, sums: torch.Tensor,
                    columns: list[torch.Tensor], first: int, last: int) -> None:
        """Overwrites the logits by the gradient of the losses' sum."""
        own = self.own
        picked, hard, factor, counts = columns
        safe = own["safe"][first:last, None]
        torch.mul(own["row_weight"][first:last, None], self.hard, out=hard)
        factor.copy_(hard)
        if self.smooth:
            counts.fill_(self.smooth).masked_fill_(own["ignored"][first:last, None], 0)
            factor.addcmul_(counts, self.class_sum())
        factor.div_(sums)
        # The gradient of the target's logit: the difference is taken in the wide type.
        picked.exp_().mul_(factor).sub_(hard)
        if not self.smooth:
            torch.mul(values, factor, out=logits)
        elif self.class_weight is None:
            torch.sub(values.mul_(factor), counts, out=logits)
            picked.sub_(counts)
        else:
            torch.addr(values.mul_(factor), counts[:, 0], self.class_weight, alpha=-1,
                       out=values)
            picked.addcmul_(counts, self.class_weight_of(safe, sums), value=-1)
            if values is not logits:
                logits.copy_(values)
        logits.scatter_(1, safe, picked if values is logits else own["picked"][
            :last - first, None].copy_(picked))

    def class_weight_of(self, safe: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        assert self.class_weight is not None
        return torch.gather(self.class_weight[:, None], 0, safe, out=out)

    def class_sum(self) -> torch.Tensor:
        """[1, 1], of all classes' weights."""
        whole = self.own["class_sum"]
        if self.class_weight is None:
            return whole.fill_(float(self.call.weight.shape[0]))
        return torch.sum(self.class_weight[:, None], 0, keepdim=True, out=whole)

    def add_weight(self, logits: torch.Tensor, hidden: torch.Tensor, first: bool) -> None:
        """To the gradient of the weight, in the wide type, in the order of the segments."""
        whole = self.results[3]
        if "product" in self.own:
            product = torch.mm(logits.t(), hidden, out=self.own["product"])
            whole.copy_(product) if first else whole.add_(product)
        elif first:
            torch.mm(logits.t(), hidden, out=whole)
        else:
            whole.addmm_(logits.t(), hidden)


@contextlib.contextmanager
def _own_types(device: torch.device) -> Iterator[None]:
    """Autocast would make copies that nothing counts."""
    with torch.autocast(device.type, enabled=False):
        yield


def _run(*arguments: Any) -> tuple[torch.Tensor, ...]:
    call = _call(*arguments)
    with inside_operator() as ledger, _own_types(call.hidden.device):
        return _Segments(call, ledger).run()


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*output[2:])
    ctx.dtypes = [None if tensor is None else tensor.dtype
                  for tensor in (inputs[0], inputs[1], inputs[3])]
    ctx.wants = inputs[-3:]


def _scaled(gradient: torch.Tensor, factor: torch.Tensor, dtype: torch.dtype
            ) -> torch.Tensor:
    return gradient * factor if dtype == gradient.dtype else SCALE(
        gradient, factor, dtype)


def _backward(ctx: Any, grad: torch.Tensor | None, *_: Any) -> tuple[Any, ...]:
    if torch.is_grad_enabled():
        raise LoadlineError(
            "backward with create_graph=True: the head in segments has no second "
            "derivative. Use torch.nn.functional.cross_entropy, or no split")
    found: list[torch.Tensor | None] = [None] * 3
    for at, (gradient, dtype, wanted) in enumerate(zip(
            ctx.saved_tensors, ctx.dtypes, ctx.wants)):
        if wanted and grad is not None:
            found[at] = _scaled(gradient, grad, dtype)
    return found[0], found[1], None, found[2], *[None] * 8


def _scale(gradient: torch.Tensor, factor: torch.Tensor, dtype: torch.dtype
           ) -> torch.Tensor:
    result = torch.empty(gradient.shape, dtype=dtype, device=gradient.device)
    if dtype.itemsize >= gradient.dtype.itemsize:
        return result.copy_(gradient).mul_(factor)
    return torch.mul(gradient, factor.to(gradient.dtype), out=result)


SCALE = differentiable_operator(
    "scale(Tensor gradient, Tensor factor, ScalarType dtype) -> Tensor",
    lambda gradient, factor, dtype: torch.empty(
        gradient.shape, dtype=dtype, device=gradient.device))(_scale)
HEAD = differentiable_operator(
    "head(Tensor hidden, Tensor weight, Tensor target, Tensor? bias, Tensor? class_weight,"
    " ScalarType dtype, int segments, int ignore_index, float label_smoothing,"
    " bool grad_hidden, bool grad_weight, bool grad_bias)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)", _like, _backward, _keep)(_run)
OPERATORS[HEAD] = _inside
