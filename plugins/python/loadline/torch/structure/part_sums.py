"""Makes the loss of a traced step the sum and the count of a part of its batch.

The mean over a whole batch is the sum over all parts, divided by the count over all parts.
A part alone does not know that count, so its graph returns both numbers, as one tensor of
two. Only losses whose mean is certain are accepted; the others are refused with their
names. Tested by tests/plugins/python/torch_micro_batches_test.py.
"""
from __future__ import annotations

from typing import Any

import torch
from loadline.errors import Unsupported
from torch.nn import functional as F

# The count of a loss that is a sum.
IS_SUM = -1.0
_MEANS = (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy,
          F.binary_cross_entropy_with_logits)
_BATCH_STATISTICS = (F.batch_norm, torch.batch_norm)


def _refusal(why: str) -> Unsupported:
    return Unsupported(f"micro_batches: the step cannot run in parts: {why}")


def _name(node: torch.fx.Node) -> str:
    return node.target if isinstance(node.target, str) else str(
        getattr(node.target, "__name__", node.target))


def cross_entropy_sums(total: torch.Tensor, target: torch.Tensor,
                       class_weight: torch.Tensor | None, ignore_index: int
                       ) -> torch.Tensor:
    """Of a cross entropy that is a sum: that sum, and what its mean divides by."""
    if target.is_floating_point():
        raise _refusal("the targets of cross_entropy are probabilities")
    counts = target != ignore_index
    if class_weight is None:
        count = counts.sum()
    else:
        count = torch.where(counts, class_weight[torch.where(counts, target, 0)], 0).sum()
    return sums(total, count)


def sums(total: torch.Tensor, count: torch.Tensor | float) -> torch.Tensor:
    wide = torch.promote_types(total.dtype, torch.float32)
    number = count.to(wide) if isinstance(count, torch.Tensor) else torch.full(
        (), count, dtype=wide, device=total.device)
    return torch.stack([total.to(wide), number])


def mean_sums(mean: torch.Tensor, count: float) -> torch.Tensor:
    return sums(mean.to(torch.promote_types(mean.dtype, torch.float32)) * count, count)


def _arguments(node: torch.fx.Node, names: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {**node.kwargs}
    for name, argument in zip(names, node.args):
        found[name] = argument
    return found


def _cross_entropy(loss: torch.fx.Node) -> torch.fx.Node:
    names = ("input", "target", "weight", "size_average", "ignore_index", "reduce",
             "reduction", "label_smoothing")
    given = _arguments(loss, names)
    if given.get("size_average") is not None or given.get("reduce") is not None:
        raise _refusal("cross_entropy has the old arguments size_average or reduce")
    if given.get("reduction", "mean") == "sum":
        return loss.graph.call_function(sums, (loss, IS_SUM))
    total = loss.graph.call_function(F.cross_entropy, (), {**given, "reduction": "sum"})
    total.meta.update(loss.meta)
    return loss.graph.call_function(cross_entropy_sums, (
        total, given["target"], given.get("weight"), given.get("ignore_index", -100)))


def _elements(node: torch.fx.Node) -> float:
    """That the mean divides by."""
    return float(torch.broadcast_shapes(*(
        value.shape for argument in node.all_input_nodes if isinstance(
            value := argument.meta.get("example_value"), torch.Tensor))).numel())


def _in_sums(loss: torch.fx.Node) -> torch.fx.Node:
    """A new node, the loss of a part as sum and count."""
    if loss.target is F.cross_entropy:
        return _cross_entropy(loss)
    whole = not loss.args[1:] and not loss.kwargs  # no dim and no type
    if loss.target in ("mean", torch.mean) and whole:
        return loss.graph.call_function(mean_sums, (loss, _elements(loss)))
    if loss.target in ("sum", torch.sum) and whole:
        return loss.graph.call_function(sums, (loss, IS_SUM))
    if loss.target in _MEANS and loss.kwargs.get("reduction", "mean") == "mean" and not any(
            isinstance(one, (str, bool)) for one in loss.args):
        return loss.graph.call_function(mean_sums, (loss, _elements(loss)))
    raise _refusal(
        f"its loss is the result of {_name(loss)}, and only of a mean or sum that is the "
        "last operator is it known how the whole batch divides it (cross_entropy, mse_loss "
        "and their like, mean, sum)")


def _is_loss(node: Any) -> bool:
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dim() == 0 and (
        value.is_floating_point())


def _refuse_batch_statistics(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        if node.op == "call_function" and node.target in _BATCH_STATISTICS and (
                node.kwargs.get("training", node.args[5] if len(node.args) > 5 else False)):
            raise _refusal(
                "batch norm in training mode has the statistics of the whole batch, and a "
                "part has others. Use GroupNorm, or allow_micro_batch_statistics=True")


def sum_losses(gm: torch.fx.GraphModule, allow_statistics: bool) -> None:
    """Rewrites a graph of PyTorch's functions in place. Raises Unsupported."""
    if not allow_statistics:
        _refuse_batch_statistics(gm.graph)
    (output,) = gm.graph.find_nodes(op="output")
    losses = [node for node in output.all_input_nodes if _is_loss(node)]
    if not losses:
        raise _refusal(
            "the model returns no loss, which is a number without dimensions. Give prepare "
            "loss_fn=..., or return the loss. A graph break may also split the model")
    if len(losses) != 1:
        raise _refusal(f"the traced graph returns {len(losses)} losses, numbers without "
                       "dimensions, instead of one")
    (loss,) = losses
    if loss.op not in ("call_function", "call_method"):
        raise _refusal("its loss is an input of the traced graph")
    half = [node for node in gm.graph.find_nodes(op="placeholder") if isinstance(
        value := node.meta.get("example_value"), torch.Tensor)
        and value.dtype == torch.float16]
    if half or torch.is_autocast_enabled(_device(loss).type) and (
            torch.get_autocast_dtype(_device(loss).type) == torch.float16):
        raise _refusal("float16 needs a loss scaler, which sees the loss of the whole batch "
                       "only after the gradients of its parts. Use bfloat16")
    with gm.graph.inserting_before(loss.next):
        made = _in_sums(loss)
    output.args = torch.fx.map_arg(
        output.args, lambda node: made if node is loss else node)
    if not loss.users:
        gm.graph.erase_node(loss)
    gm.graph.lint()
    gm.recompile()


def _device(node: torch.fx.Node) -> torch.device:
    device: torch.device = node.meta["example_value"].device
    return device
