"""Warns of what runs without a plan: code between graphs, and calls beyond PyTorch's
limit of compilations for one function.

Tested by tests/plugins/python/torch_unplanned_test.py.
"""
from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import torch
from loadline.errors import LoadlineWarning
from loadline.torch.compat import dynamo_internals, recompile_internals
from loadline.torch.compat.nested_values import tensors_in
from loadline.torch.session import live_forwards
from loadline.torch.session.session import Session, SessionReference
from loadline.torch.solve.options import Shares


def graph_number(gm: torch.fx.GraphModule, session: Session, shares: Shares) -> int:
    """Of the graph among the session's, from 0; warns of a graph break. shares: of the
    graphs that the budget was divided among."""
    frame, code = dynamo_internals.traced_frame()
    number = session.frame_number(frame, code)
    reason = dynamo_internals.break_reason(gm)
    undivided = torch.is_grad_enabled() and session.was_divided_without(shares, number)
    divided = (f"prepare's step had {len(shares)} graphs, and the budget was divided among "
               "these: with this one memory may go above it. Give prepare a step_fn in "
               "which every ")
    if reason or number or dynamo_internals.resumes(code):
        session.has_breaks = True
        other = not reason and not dynamo_internals.resumes(code) and session.is_of_options
        budget = (divided + "branch runs" if undivided else
                  "Each graph is planned within a share of the budget"
                  if shares or session.is_preparing else
                  "Each graph is planned within the whole budget, and their memory adds "
                  "up: loadline.torch.prepare divides the budget among them")
        if session.is_preparing and not session.is_new_break(reason, number):
            return number
        warnings.warn(
            f"loadline: a graph break{reason and f' ({reason})'} splits the model"
            + (", or several models were compiled with the same object `options`, of which "
               "each should have its own" if other else "")
            + f"; this is its graph {number + 1}. {budget}. The code outside of the graphs has no "
            "plan. torch.compile(..., fullgraph=True) shows where the break is",
            LoadlineWarning, stacklevel=3)
    elif undivided:
        warnings.warn(f"loadline: a batch of another size. {divided}size of batch runs",
                      LoadlineWarning, stacklevel=3)
    return number


def warning_if_unplanned(call: Callable[..., Any], reference: SessionReference
                         ) -> Callable[..., Any]:
    """The call of a compiled model, which PyTorch runs uncompiled in silence if it can trace
    nothing of it any more, as with a backward hook that was added later. Inside of another
    function that is compiled, the model stays a graph of its own, with its plan."""
    breaks = dynamo_internals.break_count()

    # Without the attributes of `call`, by which torch.compiler.disable finds the model's own.
    @functools.wraps(call, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        session = reference()
        if session is None or session.warned_of_unplanned or not torch.is_grad_enabled():
            return call(*args, **kwargs)
        before = live_forwards.run_count
        output = call(*args, **kwargs)
        if live_forwards.run_count == before and (dynamo_internals.inside_transform() or any(
                one.requires_grad for one in tensors_in(output))):
            dynamo_internals.say_nothing_compiled()
            session.warned_of_unplanned = True
            reasons = [reason for reason, count in dynamo_internals.break_count().items()
                       if count > breaks.get(reason, 0)]
            why = f" ({'; '.join(reasons)})" if reasons else ""
            off = dynamo_internals.switched_off()
            warnings.warn(
                "loadline: the model ran without a plan, and memory may go above the budget: "
                + (f"PyTorch's compiler is switched off: {off}" if off else
                   f"PyTorch compiled nothing of it{why}, and may not try again. Change what "
                   "cannot be traced, and prepare the model once more"),
                LoadlineWarning, stacklevel=2)
        return output

    return dynamo_internals.not_traced(
        run, "loadline.torch.prepare has planned this model, which keeps its own graph and plan")


# As PyTorch writes a guard on a number: an argument, an attribute, an item.
_CHANGED = re.compile(r"^(?:\d+/\d+: )?([\w.\[\]']+) == (-?\d[\w.+-]*)")


def warn_of_changed_number(session: Session) -> None:
    """PyTorch compiles a model again for each value of a Python number."""
    found = _CHANGED.match(recompile_internals.recompile_reason())
    if found is None or session.warned_of_number:
        return
    session.warned_of_number = True
    limit = recompile_internals.recompile_limit()
    is_computed = found[1].startswith("___stack")  # by code between two graphs
    name, advice = (
        "a number, which the model computes between two graphs, as by .item(),",
        "keep it a tensor: .detach() instead of .item()") if is_computed else (
        f"the number {found[1]}, which the model reads,",
        "make it a tensor: an argument torch.tensor(0.1), or a buffer of the module")
    warnings.warn(
        f"loadline: {name} was {found[2]} when the model was compiled. It is compiled and "
        "planned again for each value" + (f", {limit} times at most" if limit else "")
        + f". If it changes from step to step, {advice}", LoadlineWarning, stacklevel=3)


def autocast_types() -> dict[str, torch.dtype]:
    """By device, what torch.autocast computes in here and now."""
    return {device: torch.get_autocast_dtype(device) for device in ("cpu", "cuda")
            if torch.is_autocast_enabled(device)}


def warn_of_other_autocast(session: Session) -> None:
    """A model that trains in other types than those of prepare's step has another plan."""
    known = session.autocast_types
    if known is None or not torch.is_grad_enabled() or known == (now := autocast_types()):
        return
    session.autocast_types = None  # said once
    under = ", ".join(f'torch.autocast("{device}", {kind})' for device, kind in
                      (now or known).items())
    warnings.warn(
        f"loadline: the model was prepared {'outside of' if now else 'under'} {under}, and "
        f"trains {'under it' if now else 'outside of it'}. It is planned again within the same "
        "budget, without prepare's measurement: call prepare under the same autocast",
        LoadlineWarning, stacklevel=3)


def warn_before_unplanned_runs() -> None:
    """PyTorch does not call the backend for a model that it runs uncompiled, so this is
    the last time to say so."""
    recompile_internals.below_recompile_limit()
    if recompile_internals.suppresses_errors():
        warnings.warn(
            f"loadline: {recompile_internals.SUPPRESS_ERRORS} is on, so PyTorch runs a model "
            "that cannot be planned uncompiled and without a memory limit: switch it off",
            LoadlineWarning, stacklevel=3)
    if recompile_internals.is_last_compile():
        stops = recompile_internals.stop_at_recompile_limit()
        reason = recompile_internals.recompile_reason().partition("#")[0].strip()
        warnings.warn(
            "loadline: this model is compiled for the last time: PyTorch's limit, "
            f"{recompile_internals.RECOMPILE_LIMIT}={recompile_internals.recompile_limit()}, is "
            "reached. " + (
                "A call that needs another graph will raise FailOnRecompileLimitHit "
                "instead of running without a plan" if stops else
                "A call that needs another graph will run without a plan")
            + ". Give the model fewer different shapes (pad the batches) and no Python "
            "numbers that change (make them tensors), or raise the "
            "limit" + (f". It was compiled again because this did not hold: {reason}"
                       if reason else ""),
            LoadlineWarning, stacklevel=3)
