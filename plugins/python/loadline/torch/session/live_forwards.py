"""Watches the forwards of a compiled graph whose backward has not run.

A plan is for one forward and its backward. A second forward before that backward takes
its memory once more, and a backward that retains its graph keeps what the plan frees: the
first gets a warning, the second an error, instead of a budget that is silently exceeded.
Tested by tests/plugins/python/torch_live_forwards_test.py.
"""
from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from loadline.budget import format_bytes
from loadline.errors import LoadlineError, LoadlineWarning
from loadline.torch.compat import torch_internals
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.session import Session, SessionReference


class _Forward:
    """Lives as long as autograd's record of one forward."""

    backward_began = False


def _nodes(output: Any) -> Iterator[Any]:
    """Of autograd's graph, one for each compiled backward."""
    seen = set()
    for leaf in torch_internals.pytree.tree_leaves(output):
        node = leaf.grad_fn if isinstance(leaf, torch.Tensor) else None
        # An output may be a view of what the compiled code returned.
        while node is not None and not torch_internals.is_compiled_backward(node):
            node = node.next_functions[0][0] if node.next_functions else None
        if node is not None and node not in seen:
            seen.add(node)
            yield node


def _begin_backward(forward: _Forward, *_: Any) -> None:
    forward.backward_began = True
    if torch_internals.retains_graph():
        raise LoadlineError(
            "backward with retain_graph=True or create_graph=True: a plan frees what the "
            "forward kept while the backward runs, so a second backward of the same "
            "forward is not possible. Add the losses and run one backward, or call the "
            "model again before each; gradients of gradients need a model without a "
            "budget")


def watch(compiled: Callable[..., Any], reference: SessionReference, number: int
          ) -> Callable[..., Any]:
    """The compiled graph with this number, watched for the session."""
    alive: weakref.WeakSet[_Forward] = weakref.WeakSet()

    def graph_of(session: Session) -> PlannedGraph | None:
        return next((one for one in session.graphs if one.number == number), None)

    @functools.wraps(compiled)
    def call(*arguments: Any) -> Any:
        session = reference()
        if session is not None and session.written is not None:
            session.written.save(graph_of(session), arguments)
        output = compiled(*arguments)
        forward = _Forward()
        for node in _nodes(output):
            # The hook, and with it the record, dies with autograd's graph.
            node.register_prehook(functools.partial(_begin_backward, forward))
        alive.add(forward)
        waiting = sum(not one.backward_began for one in alive)
        if session is None or session.allows(waiting):
            return output
        graph = graph_of(session)
        more = "" if graph is None else (
            f", up to {format_bytes(graph.peak_bytes)} each")
        warnings.warn(
            f"loadline: {waiting} forwards of the model wait for their backward. Each "
            f"keeps its own activations{more}, and the plan is for one: memory goes above "
            "the budget. Run each backward before the next forward (with torch.no_grad() "
            "where there is none), or give loadline.torch.prepare the whole step as "
            "step_fn, which is measured", LoadlineWarning, stacklevel=2)
        return output

    return call
