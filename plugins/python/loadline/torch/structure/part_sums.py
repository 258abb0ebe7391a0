"""Makes the loss of a traced step the sum and the count of a part of its batch.

The mean over a whole batch is the sum over all parts, divided by the count over all parts.
A part alone does not know that count, so its graph returns both numbers, as one tensor of
two. If a loss adds up terms whose counts have another ratio in each part, it returns one row
for each, and part_counts.py finds the counts before the parts run. Only losses whose mean is
certain are accepted; the others are refused with their names.
Tested by tests/plugins/python/torch_micro_batches_test.py.
"""
from __future__ import annotations

import dataclasses
import operator
from typing import Any

import torch
from loadline.errors import Unsupported
from loadline.torch.compat import torch_internals
from loadline.torch.problem.joint import draws, inner_calls, may_draw
from loadline.torch.structure.graph_sources import sources_of
from loadline.torch.structure.term_sums import (IS_SUM, cross_entropy_sums, mean_sums,
                                               pairs_apart, sums, target_count,
                                               term_counts, term_sums, weighted_sums)
from torch.nn import functional as F

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
# In names of PyTorch's functions and methods that draw.
_RANDOM = ("drop", "rand", "normal", "bernoulli", "multinomial", "exponential", "uniform",
           "poisson", "gumbel", "cauchy", "geometric", "rrelu", "fractional_max_pool")
_BATCH_STATISTICS = (F.batch_norm, torch.batch_norm)


def _refusal(why: str) -> Unsupported:
    return Unsupported(f"micro_batches: the step cannot run in parts: {why}")


def _name(node: torch.fx.Node) -> str:
    return node.target if isinstance(node.target, str) else str(
        getattr(node.target, "__name__", node.target))


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

    @property
    def by_term(self) -> bool:
        """They divide by counts whose ratio differs from part to part."""
        if len(self.losses) == 1 and not self.constants and not self.number:
            return False
        counts = [_known_count(pair) for pair, _ in self.losses]
        sums_beside = IS_SUM in counts and (
            set(counts) != {IS_SUM} or bool(self.constants) or bool(self.number))
        return sums_beside or len(self.losses) > 1 and None in counts

    def in_sums(self) -> torch.fx.Node:
        """One node for all: a sum and a count, or a row for each term."""
        (first, factor), *others = self.losses
        pairs, factors = zip(*self.losses)
        weights = tuple(factor for _, factor in self.constants)
        constants = tuple(node for node, _ in self.constants)
        if self.by_term:
            return first.graph.call_function(term_sums, (
                pairs, factors, tuple(map(_assumed_count, pairs)), constants, weights,
                self.number))
        if not others and not self.constants and not self.number and factor == 1:
            return first
        counts = [_known_count(pair) for pair in pairs]
        ratios = [counts[0] / count if others and count != IS_SUM else 1.0
                  for count in counts]
        return first.graph.call_function(weighted_sums, (
            pairs, tuple(factor * ratio for factor, ratio in zip(factors, ratios)),
            constants, weights, self.number))

    def in_counts(self) -> torch.fx.Node:
        """One node, the counts of all rows of term_sums, without what they count."""
        graph = self.losses[0][0].graph
        found: list[Any] = []
        for pair, _ in self.losses:
            known = _known_count(pair) or _assumed_count(pair)
            found.append(graph.call_function(target_count, pair.args[1:])
                         if known is None else known)
        if self.constants or self.number:
            found.append(1.0)
        device = _tensor(self.losses[0][0].all_input_nodes[0]).device
        return graph.call_function(term_counts, (tuple(found), device))


def _known_count(pair: torch.fx.Node) -> Any:
    """IS_SUM, what the mean divides by, or none if that depends on the targets."""
    return None if pair.target is cross_entropy_sums else pair.args[1]


def _assumed_count(pair: torch.fx.Node) -> float | None:
    """None, or the number of targets of a part where those that are ignored cannot be counted
    before the part runs. Raises Unsupported if classes have weights there."""
    if pair.target is not cross_entropy_sums or not (why := why_not_counted(pair)):
        return None
    target, weight = pair.args[1:3]
    if weight is not None:
        raise _refusal("its loss adds a cross entropy with weights of classes to other losses, "
                       f"and what it divides by {why}")
    assert isinstance(target, torch.fx.Node)
    return float(_tensor(target).numel())


def why_not_counted(pair: torch.fx.Node) -> str:
    """Why the targets of a cross entropy cannot be counted apart from the model; empty if they
    can."""
    open_ = [one for one in pair.args[1:3] if isinstance(one, torch.fx.Node)]
    seen: set[torch.fx.Node] = set()
    while open_:
        node = open_.pop()
        if node in seen:
            continue
        seen.add(node)
        for user in node.users:
            if _writes(user) and user.args[0] is node:
                return f"follows from a write by {_name(user)}"
        if node.op not in ("call_function", "call_method"):
            continue
        if _writes(node):
            return f"follows from a write by {_name(node)}"
        if _is_random(node):
            return f"follows from random numbers ({_name(node)})"
        if any(isinstance(one.meta.get("example_value"), torch.nn.Parameter)
               for one in node.all_input_nodes):
            return f"follows from parameters ({_name(node)})"
        open_ += node.all_input_nodes
    return ""


def _writes(node: torch.fx.Node) -> bool:
    name = _name(node)
    return (node.target in _IN_PLACE or node.target is operator.setitem or "out" in node.kwargs
            or node.op in ("call_function", "call_method")
            and name.endswith("_") and not name.endswith("__"))


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
    """As problem/joint.py has it, for a graph that has functions and methods too, which do not
    say whether they draw, and operators in all their overloads."""
    if isinstance(node.target, torch_internals.OpOverload):
        return draws(node)
    packet: Any = node.target
    if hasattr(packet, "overloads"):
        return any(may_draw(getattr(packet, overload)) for overload in packet.overloads())
    name = _name(node)
    return any(word in name for word in _RANDOM) and name != "normalize" or (
        any(map(_is_random, inner_calls(node))))


def _terms(loss: torch.fx.Node) -> _Terms:
    terms = _Terms([], [])
    terms.find(loss, 1.0, _fixed(loss.graph))
    if not terms.losses:
        raise _refusal("its loss does not depend on the batch")
    return terms


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


def _follows_from_parameters(node: torch.fx.Node) -> bool:
    return any(one.op == "placeholder" and isinstance(
        one.meta.get("example_value"), torch.nn.Parameter) for one in sources_of([node]))


def _loss_of(graph: torch.fx.Graph) -> tuple[torch.fx.Node, torch.fx.Node]:
    """The only loss of a traced model, and the graph's output."""
    (output,) = graph.find_nodes(op="output")
    losses = [node for node in output.all_input_nodes if _is_loss(node)]
    if len(losses) > 1:  # such as a number of steps in a buffer
        losses = [node for node in losses if _follows_from_parameters(node)]
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
    return loss, output


def _refuse_float16(graph: torch.fx.Graph, device: str) -> None:
    half = [node for node in graph.find_nodes(op="placeholder") if isinstance(
        value := node.meta.get("example_value"), torch.Tensor)
        and value.dtype == torch.float16]
    if half or torch.is_autocast_enabled(device) and (
            torch.get_autocast_dtype(device) == torch.float16):
        raise _refusal("float16 needs a loss scaler, which sees the loss of the whole batch "
                       "only after the gradients of its parts. Use bfloat16")


@dataclasses.dataclass
class SumForm:
    """What sum_losses made. by_term: a row for each term instead of one sum and one count.
    not_counted: why ignored targets of some terms cannot be counted before the parts run."""
    by_term: bool
    not_counted: list[str]


def sum_losses(gm: torch.fx.GraphModule, allow_statistics: bool,
               apart: bool = False) -> SumForm:
    """Rewrites a graph of PyTorch's functions in place: it returns the sum and the count of
    its part's loss, or term_sums. apart: and those of each loss over the batch that it adds
    up, all as pairs. Raises Unsupported."""
    if not allow_statistics:
        _refuse_batch_statistics(gm.graph)
    loss, output = _loss_of(gm.graph)
    _refuse_float16(gm.graph, _tensor(loss).device.type)
    with gm.graph.inserting_before(loss.next):
        terms = _terms(loss)
        form = SumForm(terms.by_term, [])
        made = terms.in_sums()
        pairs = [pair for pair, _ in terms.losses]
        if form.by_term:
            form.not_counted = [why for pair in pairs if pair.target is cross_entropy_sums
                                and (why := why_not_counted(pair))]
        if apart:
            made = gm.graph.call_function(
                pairs_apart, (*(() if form.by_term else (made,)), *pairs))
    output.args = torch.fx.map_arg(
        output.args, lambda node: made if node is loss else node)
    _erase_unused(loss)
    gm.graph.lint()
    gm.recompile()
    return form


def count_targets(gm: torch.fx.GraphModule) -> bool:
    """Rewrites a graph in place: it returns what the rows of term_sums divide by, and computes
    nothing else. False, and no change, if its loss is one sum and one count."""
    loss, output = _loss_of(gm.graph)
    with gm.graph.inserting_before(loss.next):
        terms = _terms(loss)
        if not terms.by_term:
            return False
        output.args = ((terms.in_counts(),),)
    for node in reversed([*gm.graph.nodes]):
        if not node.users and node.op not in ("placeholder", "output"):
            gm.graph.erase_node(node)
    gm.graph.lint()
    gm.recompile()
    return True


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
