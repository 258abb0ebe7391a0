"""What Inductor compiles runs in the plan's order.

Inductor orders its kernels by an estimate of their memory, in which a copy on its way
counts for nothing: it would put the end of every copy out right behind its beginning,
so that nothing is computed meanwhile. Here each kernel stands where the last of its
operations stands in the module (module_body.py), or where the first that reads it does
if that is before: nothing is made before its place but for a reader. Tested by
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
    """What came in later has no place of its own: it follows what it needs."""
    places: dict[Any, int] = {}
    for kernel in kernels:  # makers before readers
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
                f"loadline: torch {torch.__version__} hides the order of Inductor's "
                f"kernels ({error}): a compiled step may take more bytes and more time "
                "than its plan. loadline.torch.prepare measures it on its device; "
                "please report it", LoadlineWarning, stacklevel=2)
            return kernels
