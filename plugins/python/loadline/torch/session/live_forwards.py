"""Watches the forwards of a compiled graph: whose backward has not run, and what is there
before them.

A plan is for one forward and its backward. A second forward before that backward takes
its memory once more, and so do gradients that an earlier backward left; a backward that
retains its graph keeps what the plan frees. The first two get a warning, the last an error,
instead of a budget that is silently exceeded. The program's hooks on saved tensors, which may
keep more, get a warning.
Tested by tests/plugins/python/torch_live_forwards_test.py and torch_loops_test.py.
"""
from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from loadline.budget import format_bytes
from loadline.errors import LoadlineError, LoadlineWarning
from loadline.torch.compat import recompile_internals, torch_internals
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.session import Session, SessionReference
from loadline.torch.state.host_gradients import HostGradient

# Of all compiled graphs: the code of one model may serve another.
run_count = 0


class _Forward:
    """Lives as long as autograd's record of one forward."""

    backward_began = False
    old_gradient_bytes = 0  # when it began


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


def _begin_backward(forward: _Forward, reference: SessionReference, *_: Any) -> None:
    forward.backward_began = True
    # A forward without a backward takes less than the plan, as a GAN's generator does while
    # its critic learns.
    session = reference()
    if forward.old_gradient_bytes and session is not None and not session.counts_gradients:
        _warn_of_old_gradients(session, forward.old_gradient_bytes)
    if torch_internals.retains_graph():
        raise LoadlineError(
            "backward with retain_graph=True or create_graph=True: a plan frees what the "
            "forward kept while the backward runs, so a second backward of the same "
            "forward is not possible. Add the losses and run one backward, or call the "
            "model again before each; gradients of gradients need a model without a "
            "budget")


class _OldGradients:
    """Those that are there when a forward begins. If there are any, PyTorch has usually one
    for each parameter, so only three are looked at."""

    def __init__(self) -> None:
        self._places: list[int] | None = None  # of trained leaves among the arguments

    def bytes(self, arguments: Sequence[Any]) -> int:
        if self._places is None:
            self._places = [place for place, one in enumerate(arguments) if isinstance(
                one, torch.Tensor) and one.is_leaf and one.requires_grad]
        some = {*self._places[:1], *self._places[-1:],
                *self._places[(half := len(self._places) // 2):half + 1]}
        if all(arguments[place].grad is None for place in some):
            return 0
        found = (arguments[place].grad for place in self._places)
        return sum(one.nbytes for one in found
                   if one is not None and not isinstance(one, HostGradient))


def _warn_of_old_gradients(session: Session, bytes_: int) -> None:
    session.counts_gradients = True  # said once
    warnings.warn(
        f"loadline: {format_bytes(bytes_)} of gradients of an earlier backward were there while "
        "the forward ran, which the plan does not count: memory goes above the budget. Call "
        "zero_grad(set_to_none=True) before the forward, or, if gradients of several "
        "batches are added up, prepare with accumulate=True", LoadlineWarning, stacklevel=3)


def _warn_of_saved_hooks(session: Session) -> None:
    session.warned_of_saved_hooks = True  # said once
    warnings.warn(
        "loadline: what the forward keeps for its backward goes through hooks of the program "
        "(torch.autograd.graph.saved_tensors_hooks or save_on_cpu). The plan does not count "
        "what they keep, so memory may go above the budget, and it chose what is kept: hooks "
        "that round give other gradients at another budget. Leave them out; a plan copies "
        "to the host by itself", LoadlineWarning, stacklevel=3)


def _trained_count(arguments: Sequence[Any]) -> int:
    return sum(getattr(one, "requires_grad", False) for one in arguments)


def watch(compiled: Callable[..., Any], reference: SessionReference, number: int
          ) -> Callable[..., Any]:
    """The compiled graph with this number, watched for the session."""
    alive: weakref.WeakSet[_Forward] = weakref.WeakSet()
    old_gradients = _OldGradients()
    trained: list[int] = []  # how many arguments were, when the graph was compiled

    def graph_of(session: Session) -> PlannedGraph | None:
        return next((one for one in session.graphs if one.number == number), None)

    # Without the attributes of `compiled`, by which PyTorch 2.10 finds it and leaves this out.
    @functools.wraps(compiled, updated=())
    def call(*arguments: Any) -> Any:
        recompile_internals.end_module_hook_guards()
        global run_count
        run_count += 1
        if torch.is_grad_enabled():
            count = _trained_count(arguments)
            if not trained:
                trained.append(count)
            if trained[0] != count:
                raise LoadlineError(
                    "parameters were frozen or are trained anew since the model was compiled, and "
                    "this PyTorch (before 2.12) goes on as before: prepare the model again")
        session = reference()
        if session is not None and session.written is not None:
            session.written.save(graph_of(session), arguments)
        forward = _Forward()
        if session is not None and not session.counts_gradients and torch.is_grad_enabled():
            forward.old_gradient_bytes = old_gradients.bytes(arguments)
        if session is not None and not session.warned_of_saved_hooks and (
                torch.is_grad_enabled() and torch_internals.saves_through_hooks()):
            _warn_of_saved_hooks(session)
        output = compiled(*arguments)
        for node in _nodes(output):
            # The hook, and with it the record, dies with autograd's graph.
            node.register_prehook(functools.partial(_begin_backward, forward, reference))
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
