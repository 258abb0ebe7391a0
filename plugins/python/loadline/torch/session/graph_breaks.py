"""What PyTorch leaves out of a plan, said aloud: graph breaks, and calls beyond the
number of times that it compiles a function.

Tested by tests/plugins/python/torch_unplanned_test.py.
"""
from __future__ import annotations

import warnings
from typing import Any

import torch
from loadline.torch.compat import torch_internals
from loadline.torch.rewrite.planned_graph import KEPT

# Dynamo's frames that have a plan, by number and code, by the options they were
# compiled with; the options are kept, so that no other gets their id.
_frames: dict[int, tuple[Any, list[tuple[int, Any]]]] = {}


def _place_of(frames: list[tuple[int, Any]], number: int, code: Any) -> int:
    """Among the frames, which it joins."""
    for place, (old_number, old_code) in enumerate(frames):
        if old_code == code and (code is not None or old_number == number):
            frames[place] = number, code  # compiled anew has another number
            return place
    if any(old_number == number for old_number, _ in frames):
        frames.clear()  # of another model, before a reset
    frames.append((number, code))
    return len(frames) - 1


def graph_number(gm: torch.fx.GraphModule, options: Any, shared: bool) -> int:
    """Among the graphs of these options, from 0; warns of a graph break."""
    _, frames = _frames.setdefault(id(options), (options, []))
    while len(_frames) > KEPT:  # the oldest
        del _frames[next(iter(_frames))]
    place = _place_of(frames, *torch_internals.traced_frame())
    reason = torch_internals.break_reason(gm)
    if reason or len(frames) > 1:
        within = ("Each is planned within a share of the budget" if shared else
                  "Each is planned within the whole budget, and their bytes add up: "
                  "loadline.torch.prepare shares it out")
        warnings.warn(
            f"loadline: a graph break{reason and f' ({reason})'} splits the model, and "
            f"this is graph {place + 1} of it. {within}; what runs in between has no "
            "plan. Find the break with torch.compile(..., fullgraph=True)",
            stacklevel=3)
    return place


def warn_before_unplanned_runs() -> None:
    """Before PyTorch would run the model as it is, without a word to us."""
    if torch_internals.suppresses_errors():
        warnings.warn(
            f"loadline: {torch_internals.SUPPRESS_ERRORS} is on, so PyTorch runs a model that "
            "cannot be planned as it is, in whatever memory that takes: switch it off",
            stacklevel=3)
    if torch_internals.is_last_compile():
        stops = torch_internals.stop_at_recompile_limit()
        warnings.warn(
            "loadline: this model is compiled for the last time: PyTorch's limit, "
            f"{torch_internals.RECOMPILE_LIMIT}={torch_internals.recompile_limit()}, is reached. " + (
                "A call that needs another graph will raise FailOnRecompileLimitHit, "
                "in place of running without a plan" if stops else
                "A call that needs another graph will run without a plan")
            + ": give the model fewer different shapes (pad the batches), or raise the "
            "limit", stacklevel=3)
