"""What PyTorch leaves out of a plan, said aloud: graph breaks, and calls beyond the
number of times that it compiles a function.

Tested by tests/plugins/python/torch_unplanned_test.py.
"""
from __future__ import annotations

import warnings
from typing import Any

import torch
from loadline.torch import private
from loadline.torch.planned_graphs import KEPT

# Dynamo's frames that have a plan, by the options they were compiled with; the
# options are kept, so that no other gets their id.
_frames: dict[int, tuple[Any, list[Any]]] = {}


def number_of_graph(gm: torch.fx.GraphModule, options: Any, shared: bool) -> int:
    """0 without a graph break; warns of one."""
    frame, resumed = private.traced_frame()
    _, frames = _frames.setdefault(id(options), (options, []))
    while len(_frames) > KEPT:  # the oldest
        del _frames[next(iter(_frames))]
    if frame not in frames:
        frames.append(frame)
    reason = private.break_reason(gm)
    if resumed is None:  # or another model with the same options
        resumed = len(frames) > 1
    if reason or resumed:
        within = ("Each is planned within a share of the budget" if shared else
                  "Each is planned within the whole budget, and their bytes add up: "
                  "loadline.torch.prepare shares it out")
        warnings.warn(
            f"loadline: a graph break{reason and f' ({reason})'} splits the model, and "
            f"this is graph {len(frames)} of it. {within}; what runs in between has no "
            "plan. Find the break with torch.compile(..., fullgraph=True)",
            stacklevel=3)
    return frames.index(frame)


def warn_of_silence() -> None:
    """Before PyTorch would run the model as it is, without a word to us."""
    if private.suppresses_errors():
        warnings.warn(
            f"loadline: {private.SUPPRESS_ERRORS} is on, so PyTorch runs a model that "
            "cannot be planned as it is, in whatever memory that takes: switch it off",
            stacklevel=3)
    if private.is_last_compile():
        stops = private.stop_at_recompile_limit()
        warnings.warn(
            "loadline: this model is compiled for the last time: PyTorch's limit, "
            f"{private.RECOMPILE_LIMIT}={private.recompile_limit()}, is reached. " + (
                "A call that needs another graph will raise FailOnRecompileLimitHit, "
                "in place of running without a plan" if stops else
                "A call that needs another graph will run without a plan")
            + ": give the model fewer different shapes (pad the batches), or raise the "
            "limit", stacklevel=3)
