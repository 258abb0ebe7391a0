"""loadline.torch.linear_cross_entropy: the end of a classifier in segments of rows.

Tested by tests/plugins/python/torch_head_test.py.
"""
from __future__ import annotations

import torch
from loadline.budget import check_whole
from loadline.errors import InvalidArgument
from loadline.torch.structure.segmented_head import HEAD, wide

AUTO = "auto"
REDUCTIONS = ("mean", "sum")
_MOST = 64  # segments that "auto" makes: each reads the whole weight
_SMALL_BYTES = 16 << 20  # logits of one segment that "auto" does not cut further


def _check(hidden: torch.Tensor, weight: torch.Tensor, target: torch.Tensor,
           bias: torch.Tensor | None, class_weight: torch.Tensor | None,
           reduction: str, label_smoothing: float) -> None:
    def refuse(what: str) -> None:
        raise InvalidArgument(f"linear_cross_entropy: {what}")

    if weight.dim() != 2 or hidden.dim() < 1 or hidden.shape[-1] != weight.shape[-1]:
        refuse(f"hidden {tuple(hidden.shape)} and weight {tuple(weight.shape)}: want "
               "[..., width] and [classes, width]")
    if target.is_floating_point():
        refuse("target has probabilities; want the numbers of classes")
    if target.shape != hidden.shape[:-1]:
        refuse(f"target {tuple(target.shape)}: want {tuple(hidden.shape[:-1])}, one class "
               "for each row of hidden")
    for name, tensor in (("bias", bias), ("class_weight", class_weight)):
        if tensor is not None and tensor.shape != weight.shape[:1]:
            refuse(f"{name} {tuple(tensor.shape)}: want {tuple(weight.shape[:1])}")
    if class_weight is not None and class_weight.requires_grad:
        refuse("class_weight requires a gradient, which it never gets")
    if not hidden.is_floating_point() or not weight.is_floating_point():
        refuse(f"hidden is {hidden.dtype} and weight {weight.dtype}: want floating point")
    if reduction not in REDUCTIONS:
        refuse(f"reduction={reduction!r}: want mean or sum, because a loss for each row "
               "has a gradient for each row, which is known only in the backward pass")
    if not 0.0 <= label_smoothing <= 1.0:
        refuse(f"label_smoothing={label_smoothing}: want 0 to 1")


def _product_type(hidden: torch.Tensor, weight: torch.Tensor) -> torch.dtype:
    """As torch.nn.functional.linear chooses it, under autocast too."""
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind) and hidden.dtype != torch.float64:
        return torch.get_autocast_dtype(kind)
    if hidden.dtype != weight.dtype:
        raise InvalidArgument(
            f"linear_cross_entropy: hidden is {hidden.dtype} and weight {weight.dtype}: "
            "want one type, or autocast")
    return weight.dtype


def _count(segments: int | str, rows: int, weight: torch.Tensor, dtype: torch.dtype) -> int:
    if segments != AUTO:
        check_whole("segments", segments, 1 << 31)
        if segments == 0:
            raise InvalidArgument('segments=0: want at least 1, or "auto"')
        return int(segments)
    # Beside the gradient of the weight, fewer bytes of logits save little.
    kind = wide(dtype)
    row_bytes = weight.shape[0] * (
        dtype.itemsize + (kind.itemsize if kind != dtype else 0))
    enough = max(_SMALL_BYTES, weight.numel() * kind.itemsize // 2)
    count = 1
    while count < min(_MOST, rows) and -(-rows // count) * row_bytes > enough:
        count *= 2
    return count


def linear_cross_entropy(
        hidden: torch.Tensor, weight: torch.Tensor, target: torch.Tensor,
        bias: torch.Tensor | None = None, *, segments: int | str = AUTO,
        ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, class_weight: torch.Tensor | None = None
        ) -> torch.Tensor:
    """cross_entropy(linear(hidden, weight, bias), target) without the logits.

    hidden: [..., width]. weight: [classes, width]. target: [...], numbers of classes.
    The rows go through product, loss and gradients in `segments` parts; "auto" makes as
    many as bring one part's logits to half the bytes of the weight's gradient, at most 64.
    The other arguments are those of torch.nn.functional.cross_entropy; class_weight is its
    `weight`. The gradient of the weight is added up in float32 where the products are in
    half precision. There is no second derivative.
    """
    _check(hidden, weight, target, bias, class_weight, reduction, label_smoothing)
    dtype = _product_type(hidden, weight)
    rows = hidden.reshape(-1, hidden.shape[-1])
    wants = [torch.is_grad_enabled() and tensor is not None and tensor.requires_grad
             for tensor in (hidden, weight, bias)]
    total, count, *_ = HEAD(
        rows, weight, target.reshape(-1).long(), bias, class_weight, dtype,
        _count(segments, rows.shape[0], weight, dtype), ignore_index,
        float(label_smoothing), *wants)
    if reduction == "sum":
        return total
    # As in PyTorch: without any target the loss is not a number, and no gradient is.
    empty = count == 0
    return torch.where(empty, float("nan"), total / torch.where(empty, 1.0, count))
