"""Keeps Inductor's kernels in the plan's order.

Inductor orders kernels by its own estimate of memory, in which a running copy does not
count: it would place the end of every copy out right after its start, so that no compute
overlaps it. Here a kernel is placed where its last operation is in the module
(module_body.py), or earlier if a reader needs it. Tested by
tests/plugins/python/torch_inductor_test.py.
"""
from __future__ import annotations

import warnings
from typing import Any

import torch
from loadline.errors import LoadlineWarning
from loadline.torch.compat import torch_internals

_PLACE = "loadline_place"


def mark_places(graph: torch.fx.Graph) -> None:
    for place, node in enumerate(graph.nodes):
        node.meta[_PLACE] = place


def _places(kernels: list[Any], needs: dict[Any, list[Any]]) -> dict[Any, int]:
    """A kernel that Inductor added has no place of its own: it follows its inputs."""
    places: dict[Any, int] = {}
    for kernel in kernels:  # producers before readers
        own = [node.meta[_PLACE] for node in torch_internals.origins(kernel)
               if _PLACE in node.meta]
        places[kernel] = max(own or [places[need] for need in needs[kernel]],
                             default=-1)
    return places


def _in_order(kernels: list[Any]) -> list[Any]:
    maker = {buffer: kernel for kernel in kernels
             for buffer in torch_internals.buffers(kernel)}
    needs = {kernel: [maker[buffer] for buffer in torch_internals.needed_buffers(kernel)
                      if buffer in maker and maker[buffer] is not kernel]
             for kernel in kernels}
    places = _places(kernels, needs)
    ordered: dict[Any, None] = {}
    for last in sorted(kernels, key=places.__getitem__):
        stack = [last]
        while stack:
            missing = sorted((need for need in needs[stack[-1]]
                              if need not in ordered), key=places.__getitem__)
            if missing:
                stack += missing[::-1]
            else:
                ordered.setdefault(stack.pop())
    return list(ordered)


class PlanOrder(torch_internals.CustomSchedulerPass or object):  # type: ignore[misc]
    """At module level, so that Inductor's cache can pickle what names it."""

    def uuid(self) -> Any:
        return torch_internals.get_hash_for_files((__file__,))

    def __call__(self, kernels: list[Any]) -> list[Any]:
        try:
            return _in_order(kernels)
        except AttributeError as error:  # a scheduler of other names
            warnings.warn(
                f"loadline: the kernels of Inductor in torch {torch.__version__} are "
                f"unknown ({error}), so their order is Inductor's: a compiled step may "
                "take more memory and time than its plan. loadline.torch.prepare measures "
                "the step on a GPU. Please report this", LoadlineWarning, stacklevel=2)
            return kernels
