"""Replaces a linear layer and the cross entropy of its result by linear_cross_entropy.

It reads the graph that PyTorch traces of the model, before autograd sees it, so it knows
what lies between the two: only what keeps rows whole may. Everything else is refused with
the name of the operator, because the loss would be another one. The model may return the
logits; then it returns None instead, because they never exist.
Tested by tests/plugins/python/torch_split_test.py.
"""
from __future__ import annotations

import operator
from typing import Any

import torch
from loadline.errors import Unsupported
from loadline.torch.structure.linear_cross_entropy import linear_cross_entropy
from torch.nn import functional as F

_LINEAR = (F.linear,)
_PRODUCTS = (operator.matmul, torch.matmul, "matmul")
# They give other leading dimensions to the same rows, if the last dimension stays.
_SHAPES = ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze",
           torch.flatten, torch.reshape, torch.squeeze, torch.unsqueeze)
_TYPES = ("float", "to", "type", "contiguous")
_SWAPS = {("transpose", 1, 2), ("transpose", 2, 1), ("transpose", -1, -2),
          ("transpose", -2, -1), ("permute", 0, 2, 1), ("permute", (0, 2, 1)),
          ("swapaxes", 1, 2), ("swapaxes", 2, 1)}


def _refusal(why: str) -> Unsupported:
    return Unsupported(
        f"split: the head cannot run in segments: {why}. Train without split, or call "
        "loadline.torch.linear_cross_entropy in the model")


def _example(node: Any) -> torch.Tensor:
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor):
        raise _refusal(f"PyTorch does not say what {node} is")
    return value


def _short(node: torch.fx.Node) -> str:
    return node.target if isinstance(node.target, str) else str(
        getattr(node.target, "__name__", node.target))


def _name(node: torch.fx.Node) -> str:
    lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
    code = next((line for line in reversed(lines) if line.strip("~^ ")), "")
    return _short(node) + (f" ({code})" if code else "")


def _arguments(node: torch.fx.Node, names: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {**node.kwargs}
    for name, argument in zip(names, node.args):
        found[name] = argument
    return found


class _Loss:
    """One call of torch.nn.functional.cross_entropy."""

    def __init__(self, node: torch.fx.Node):
        names = ("input", "target", "weight", "size_average", "ignore_index", "reduce",
                 "reduction", "label_smoothing")
        given = _arguments(node, names)
        self.node = node
        self.logits, self.target = given["input"], given["target"]
        if given.get("size_average") is not None or given.get("reduce") is not None:
            raise _refusal("cross_entropy has the old arguments size_average or reduce")
        if given.get("reduction", "mean") not in ("mean", "sum"):
            raise _refusal(f"cross_entropy has reduction={given['reduction']!r}")
        if _example(self.target).is_floating_point():
            raise _refusal("the targets of cross_entropy are probabilities")
        self.arguments: dict[str, Any] = {
            "class_weight": given.get("weight"),
            **{name: given[name] for name in (
                "ignore_index", "reduction", "label_smoothing") if name in given}}

    def rows(self) -> tuple[torch.fx.Node, torch.fx.Node]:
        """The logits with the classes as last dimension, and their reader."""
        value = _example(self.logits)
        if value.dim() <= 2:
            return self.logits, self.node
        before = self.logits.args[0]
        if isinstance(before, torch.fx.Node) and value.dim() == 3 and (
                _short(self.logits), *self.logits.args[1:]) in _SWAPS:
            _check_readers(self.logits, self.node, "")
            return before, self.logits
        raise _refusal("the classes are not the last dimension of the logits")


def _check_readers(node: torch.fx.Node, reader: torch.fx.Node, returned: str) -> None:
    """Only `reader` reads the node. returned: op of a node that may read it too."""
    for other in node.users:
        if other is not reader and other.op != returned:
            raise _refusal(f"{_name(other) if other.op != 'output' else 'the model'} needs "
                           f"the logits besides the loss, at {_name(node)}")


def _keeps_rows(node: torch.fx.Node, before: torch.fx.Node) -> bool:
    """Whether each row of the result is a row of the operand."""
    old, new = _example(before), _example(node)
    if not new.dim() or new.shape[-1] != old.shape[-1]:
        return False
    if node.target in _TYPES:
        return new.shape == old.shape and new.device == old.device and (
            new.dtype == old.dtype or torch.promote_types(old.dtype, new.dtype) == new.dtype)
    if node.target in _SHAPES:
        return new.dtype == old.dtype
    if node.target is not operator.getitem:
        return False
    index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    if not all(one is Ellipsis or isinstance(one, (int, slice)) for one in index):
        return False
    last = index[-1] if Ellipsis in index or len(index) == old.dim() else slice(None)
    return last is Ellipsis or last == slice(None)


class _Head:
    """The linear layer, and what is between it and the loss."""

    def __init__(self, loss: _Loss):
        self.loss = loss
        self.between: list[torch.fx.Node] = []  # from the loss to the layer
        node, reader = loss.rows()
        while True:
            if not isinstance(node, torch.fx.Node) or node.op not in (
                    "call_function", "call_method"):
                raise _refusal("the logits are an input of the traced graph, so their "
                               "linear layer is outside of it")
            _check_readers(node, reader, "output")
            if node.target in _LINEAR or node.target in _PRODUCTS:
                break
            before = node.args[0]
            if not isinstance(before, torch.fx.Node) or not _keeps_rows(node, before):
                raise _refusal("between the linear layer and the cross entropy is "
                               f"{_name(node)}")
            self.between.append(node)
            node, reader = before, node
        self.linear = node

    def operands(self) -> tuple[Any, Any, Any]:
        """Hidden states, weight, bias."""
        graph, node = self.loss.node.graph, self.linear
        if node.target in _LINEAR:
            given = _arguments(node, ("input", "weight", "bias"))
            return given["input"], given["weight"], given.get("bias")
        hidden, weight = node.args
        if _example(weight).dim() != 2:
            raise _refusal(f"{_name(node)} has no matrix as weight")
        return hidden, graph.call_method("t", (weight,)), None

    def replace(self, segments: int | str) -> None:
        loss = self.loss.node
        graph = loss.graph
        with graph.inserting_before(loss):
            hidden, weight, bias = self.operands()
            width = _example(hidden).shape[-1]
            for node in reversed(self.between):
                if node.target in _SHAPES:
                    hidden = graph.call_method(
                        "reshape", (hidden, (*_example(node).shape[:-1], width)))
                elif node.target is operator.getitem:
                    hidden = graph.call_function(operator.getitem, (hidden, node.args[1]))
            made = graph.call_function(
                linear_cross_entropy, (hidden, weight, self.loss.target, bias),
                {**self.loss.arguments, "segments": segments})
            # A head in half precision without autocast has a loss in half precision.
            made = graph.call_method("to", (made, _example(loss).dtype))
        made.meta["example_value"] = _example(loss)
        made.stack_trace = loss.stack_trace
        loss.replace_all_uses_with(made)
        graph.erase_node(loss)
        (output,) = graph.find_nodes(op="output")
        whole = {self.linear, *self.between}
        output.args = torch.fx.map_arg(
            output.args, lambda node: None if node in whole else node)
        for node in (self.loss.logits, *self.between, self.linear):
            if not node.users and node in graph.nodes:
                graph.erase_node(node)


def split_head(gm: torch.fx.GraphModule, segments: int | str) -> int:
    """Rewrites a graph of PyTorch's functions in place, and returns the number of heads.

    segments: of rows, or "auto" (linear_cross_entropy.py). Raises Unsupported, which says
    why, for a cross entropy that cannot be computed in segments."""
    losses = [node for node in gm.graph.nodes
              if node.op == "call_function" and node.target is F.cross_entropy]
    for node in losses:
        _Head(_Loss(node)).replace(segments)
    if losses:
        gm.graph.lint()
        gm.recompile()
    return len(losses)
