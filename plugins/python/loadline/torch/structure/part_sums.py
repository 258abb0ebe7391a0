"""Makes the loss of a traced step the sum and the count of a part of its batch.

The mean over a whole batch is the sum over all parts, divided by the count over all parts.
A part alone does not know that count, so its graph returns both numbers, as one tensor of
two. Only losses whose mean is certain are accepted; the others are refused with their
names. Tested by tests/plugins/python/torch_micro_batches_test.py.
"""
from __future__ import annotations

import dataclasses
import operator
from typing import Any

import torch
from loadline.errors import Unsupported
from torch.nn import functional as F

# The count of a loss that is a sum.
IS_SUM = -1.0
_MEANS = (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy,
          F.binary_cross_entropy_with_logits)
# How losses are added up.
_ADDED = (operator.add, operator.iadd, torch.add, "add", "add_")
_SUBTRACTED = (operator.sub, operator.isub, torch.sub, "sub", "sub_")
_MULTIPLIED = (operator.mul, operator.imul, torch.mul, "mul", "mul_")
_DIVIDED = (operator.truediv, operator.itruediv, torch.div, "div", "div_")
_NEGATED = (operator.neg, torch.neg, "neg")
_OF_ONE = ("mean", torch.mean, "sum", torch.sum)  # of a number: that number
_IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv,
             "add_", "sub_", "mul_", "div_")
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


def _leaf_in_sums(loss: torch.fx.Node) -> torch.fx.Node | None:
    """A new node, a loss of a part as sum and count; none for what is no mean or sum."""
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
    return None


def _is_constant(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _operands(node: torch.fx.Node) -> list[tuple[Any, float]]:
    """What a number is the weighted sum of; empty if it is something else."""
    if node.kwargs or not 1 <= len(node.args) <= 2:
        return []
    left: Any = node.args[0]
    if len(node.args) == 1:
        if node.target in _NEGATED:
            return [(left, -1.0)]
        is_number = isinstance(left, torch.fx.Node) and _tensor(left).dim() == 0
        return [(left, 1.0)] if node.target in _OF_ONE and is_number else []
    right: Any = node.args[1]
    if node.target in _ADDED:
        return [(left, 1.0), (right, 1.0)]
    if node.target in _SUBTRACTED:
        return [(left, 1.0), (right, -1.0)]
    if node.target in _MULTIPLIED and _is_constant(right):
        return [(left, float(right))]
    if node.target in _MULTIPLIED and _is_constant(left):
        return [(right, float(left))]
    if node.target in _DIVIDED and _is_constant(right) and right:
        return [(left, 1 / float(right))]
    return []


def _tensor(node: torch.fx.Node) -> torch.Tensor:
    value = node.meta["example_value"]
    assert isinstance(value, torch.Tensor)
    return value


@dataclasses.dataclass
class _Terms:
    """The loss is the sum of these, times their factors: losses over the batch as sum and
    count, numbers, and what no example changes, such as a penalty on weights."""
    losses: list[tuple[torch.fx.Node, float]]
    constants: list[tuple[torch.fx.Node, float]]
    number: float = 0.0

    def find(self, node: Any, factor: float, fixed: set[torch.fx.Node]) -> None:
        if _is_constant(node):
            self.number += factor * node
            return
        if node in fixed:
            self.constants.append((node, factor))
            return
        operands = _operands(node)
        found = None if operands else _leaf_in_sums(node)
        if found is not None:
            self.losses.append((found, factor))
        elif not operands:
            raise _refusal(
                f"its loss is the result of {_name(node)}, and only of means and sums, and of "
                "what adds them up with constant factors, is it known how the whole batch "
                "divides it (cross_entropy, mse_loss and their like, mean, sum)")
        for operand, weight in operands:
            self.find(operand, factor * weight, fixed)

    def in_sums(self) -> torch.fx.Node:
        """One node for all. Raises Unsupported where their counts differ."""
        (first, factor), *others = self.losses
        if not others and not self.constants and not self.number and factor == 1:
            return first
        counts = [_count_of(pair) for pair, _ in self.losses]
        if IS_SUM in counts and (set(counts) != {IS_SUM} or self.constants or self.number):
            raise _refusal("its loss adds a sum over the batch to something else, which the "
                           "number of parts would multiply. Use means")
        if others and None in counts:
            raise _refusal(
                "its loss adds a cross entropy with weights of classes to other losses over "
                "the batch, and they divide by other numbers")
        ratios = [1.0 if count in (None, IS_SUM) else counts[0] / count for count in counts]
        return first.graph.call_function(weighted_sums, (
            tuple(pair for pair, _ in self.losses),
            tuple(factor * ratio for (_, factor), ratio in zip(self.losses, ratios)),
            tuple(node for node, _ in self.constants),
            tuple(factor for _, factor in self.constants), self.number,
            counts[0] if others and counts[0] != IS_SUM else None,
            tuple(float(count) for count in counts if others and count != IS_SUM)))


def _count_of(pair: torch.fx.Node) -> Any:
    """IS_SUM, what the mean divides by if no target is ignored, or none if that depends on
    the targets."""
    if pair.target is not cross_entropy_sums:
        return pair.args[1]
    target, weight = pair.args[1:3]
    assert isinstance(target, torch.fx.Node)
    return None if weight is not None else float(_tensor(target).numel())


def weighted_sums(pairs: tuple[torch.Tensor, ...], factors: tuple[float, ...],
                  constants: tuple[torch.Tensor, ...], weights: tuple[float, ...],
                  number: float, count: float | None, counts: tuple[float, ...]
                  ) -> torch.Tensor:
    """The sum and the count of factors times losses that are given as such. Factors are
    relative to the first loss's count. What no example changes counts as often. With `counts`
    there is a third number: of targets that a loss ignores, for which it divides by less."""
    total = sum(factor * pair[0] for factor, pair in zip(factors, pairs))
    assert isinstance(total, torch.Tensor)
    found = pairs[0][1] if count is None else torch.full_like(total, count)
    if constants or number:
        total = total + found * (number + sum(
            weight * one.to(total.dtype) for weight, one in zip(weights, constants)))
    if not counts:
        return torch.stack([total, found])
    ignored = sum(of_all - pair[1].detach() for of_all, pair in zip(counts, pairs))
    return torch.stack([total, found, torch.as_tensor(ignored).to(total)])


def _apart(*made: torch.Tensor) -> torch.Tensor:
    """All as sums and counts, one after the other."""
    return torch.cat([one[:2] for one in made])


def _fixed(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """Numbers that depend on parameters alone, so that every part has the same."""
    fixed: set[torch.fx.Node] = set()
    for node in graph.nodes:
        value = node.meta.get("example_value")
        if node.op == "placeholder":
            if isinstance(value, torch.nn.Parameter):
                fixed.add(node)
        elif node.op in ("call_function", "call_method") and node.all_input_nodes and all(
                one in fixed for one in node.all_input_nodes) and not _is_random(node):
            fixed.add(node)
    return fixed


def _is_random(node: torch.fx.Node) -> bool:
    return any(word in _name(node) for word in ("drop", "rand", "normal", "bernoulli",
                                                "multinomial", "exponential"))


def _in_sums(loss: torch.fx.Node, apart: bool) -> torch.fx.Node:
    """A new node, the loss of a part as sum and count."""
    terms = _Terms([], [])
    terms.find(loss, 1.0, _fixed(loss.graph))
    if not terms.losses:
        raise _refusal("its loss does not depend on the batch")
    made = terms.in_sums()
    if apart:
        return loss.graph.call_function(
            _apart, (made, *(pair for pair, _ in terms.losses)))
    return made


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


def sum_losses(gm: torch.fx.GraphModule, allow_statistics: bool,
               apart: bool = False) -> None:
    """Rewrites a graph of PyTorch's functions in place: it returns the sum and the count of
    its part's loss. apart: and then those of each loss over the batch that it adds up.
    Raises Unsupported."""
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
        made = _in_sums(loss, apart)
    output.args = torch.fx.map_arg(
        output.args, lambda node: made if node is loss else node)
    _erase_unused(loss)
    gm.graph.lint()
    gm.recompile()


def _erase_unused(node: torch.fx.Node) -> None:
    """This node, and the operands that were added up for it alone."""
    if node.users:
        if node.target in _IN_PLACE:  # the losses that it adds up have other values then
            raise _refusal(f"its loss is the result of {_name(node)}, which other results "
                           "read too. Write a = a + b")
        return
    if node.op == "placeholder" or not _is_loss(node):
        return
    operands = node.all_input_nodes
    node.graph.erase_node(node)
    for operand in operands:
        _erase_unused(operand)


def _device(node: torch.fx.Node) -> torch.device:
    device: torch.device = node.meta["example_value"].device
    return device
