"""Undoes what a sample step writes to parameters and to the sample.

Buffers are copied before the step, because most models write to them. Few write to their
parameters (a teacher of averaged weights, clipped weights, an embedding with max_norm), so
these are copied only when a graph that writes to them is about to run.
Tested by tests/plugins/python/torch_written_inputs_test.py.
"""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from loadline.errors import LoadlineWarning
from loadline.torch.problem.make_problem import updated_inputs
from loadline.torch.rewrite.planned_graph import PlannedGraph


def _kind(tensor: torch.Tensor) -> Any:
    return tensor.shape, tensor.dtype


class WrittenInputs:
    """named: what the caller expects to be unchanged afterwards, by name."""

    def __init__(self, named: Iterable[tuple[str, torch.Tensor]]):
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._versions = [(name, tensor, tensor._version) for name, tensor in named
                          if not tensor.is_inference()]

    def save(self, graph: PlannedGraph | None, arguments: Sequence[Any]) -> None:
        """Before the graph runs on the arguments: copies, in host memory, of those that it
        may write to. PyTorch does not say which argument is which input of the graph, nor
        which output it writes to an argument afterwards, so these are all of the same shape
        and type as an updated input or an output."""
        tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
        if graph is not None and graph.traced is not None:
            joint = graph.traced.joint
            updated = {_kind(node.meta["val"]) for node in updated_inputs(joint)}
            if updated <= {*map(_kind, tensors)}:
                kinds = updated | {_kind(node.meta["val"]) for node in joint.forward_outputs}
                tensors = [one for one in tensors if _kind(one) in kinds]
        for tensor in tensors:
            if id(tensor) not in self._before:
                self._before[id(tensor)] = tensor, tensor.detach().to("cpu", copy=True)

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, before in self._before.values():
                tensor.copy_(before)
        changed = [name for name, tensor, version in self._versions
                   if tensor._version != version and id(tensor) not in self._before]
        if changed:
            warnings.warn(
                f"loadline: the model writes to {', '.join(changed[:5])} outside of its "
                "planned graphs, so the sample step has changed them: load their values "
                "again before you train", LoadlineWarning, stacklevel=2)
