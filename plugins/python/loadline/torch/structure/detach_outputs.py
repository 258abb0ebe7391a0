"""Detaches a model's outputs beside its loss.

A model that returns its logits with its loss has a backward through both: PyTorch's compiler
makes a gradient of zeros for the logits, as large as these. Detached, they need none. A program
that computes another loss from them would train with wrong gradients, so such a backward raises
LoadlineError. Tested by tests/plugins/python/torch_detach_outputs_test.py.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from loadline.errors import LoadlineError
from loadline.torch.structure.graph_sources import sources_of


def _trains(node: Any) -> bool:
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.requires_grad


def outputs_beside_loss(gm: torch.fx.GraphModule) -> tuple[int, ...]:
    """The places of outputs in a traced model that need no gradient if its scalar outputs are
    losses. An output is not among them if it has a source that no scalar has: an image encoder
    that returns features and a scale leaves the loss to its caller."""
    (output,) = gm.graph.find_nodes(op="output")
    results = output.args[0]
    trained = [(place, node) for place, node in enumerate(results) if _trains(node)]
    losses = [node for _, node in trained if not node.meta["example_value"].dim()]
    known = sources_of(losses)
    return tuple(place for place, node in trained
                 if node not in losses and sources_of([node]) <= known) if losses else ()


def detach(gm: torch.fx.GraphModule, places: Iterable[int]) -> tuple[int, ...]:
    """Detaches these outputs of the graph in place. Those that are still there."""
    (output,) = gm.graph.find_nodes(op="output")
    results = [*output.args[0]]
    there = tuple(place for place in places if isinstance(results[place], torch.fx.Node))
    with gm.graph.inserting_before(output):
        for place in there:
            value = results[place].meta.get("example_value")
            results[place] = gm.graph.call_method("detach", (results[place],))
            if value is not None:
                results[place].meta["example_value"] = value.detach()
    output.args = (tuple(results),)
    if there:
        gm.recompile()
    return there


class _NoBackward(torch.autograd.Function):
    """The same tensor, through which no gradient goes. anchor: another output of the graph, so
    that a backward to any parameter comes by here."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.shape = tuple(tensor.shape)
        return tensor.detach()

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        (gradient,) = incoming
        # A node with several outputs hands on zeros for those that its loss does not read.
        if gradient is not None and bool((gradient != 0).any()):
            raise LoadlineError(
                f"a backward through the model's output of shape {ctx.shape}, which is detached "
                "because the model returns its loss beside it. If your loop computes a loss from "
                "it, pass prepare that loss as loss_fn or your loop's step as step_fn; or keep "
                "the gradients of all outputs with detach_outputs=False")
        return None, None


def is_detached(tensor: torch.Tensor) -> bool:
    """Whether a backward through this output of a compiled model would be refused."""
    return tensor.grad_fn is not None and tensor.grad_fn.name() == f"{_NoBackward.__name__}Backward"


def refusing_backward(compiled: Callable[..., Any], places: tuple[int, ...]
                      ) -> Callable[..., Any]:
    """The compiled graph; a backward through these outputs raises LoadlineError."""
    if not places:
        return compiled

    @functools.wraps(compiled, updated=())
    def call(*arguments: Any) -> Any:
        outputs = [*compiled(*arguments)]
        if torch.is_grad_enabled():
            anchor = next(one for one in outputs
                          if isinstance(one, torch.Tensor) and one.requires_grad)
            for place in places:
                outputs[place] = _NoBackward.apply(anchor, outputs[place])
        return outputs

    return call
