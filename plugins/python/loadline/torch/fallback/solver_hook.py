"""Translates between PyTorch's partitioner and a plan, for the tier of recomputing only.

The partitioner asks a solver which of the expensive values are saved. It computes cheap
values again wherever that saves bytes, in its own order, so the plan's peak is an
estimate. Tested by
tests/plugins/python/torch_tiers_test.py.
"""
from __future__ import annotations

from typing import Any

import torch
from loadline.torch.compat import torch_internals
from loadline.torch.problem.joint import Joint, Operation, computing, read_joint
from loadline.torch.problem.make_problem import TracedProblem


def joint_of(graph: torch.fx.Graph) -> Joint:
    """The outputs of the forward come first. The first gradient ends them: it depends on a
    tangent, or is None."""
    needs_tangent: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if (node.op == "placeholder" and "tangents" in str(node.target)) or any(
                argument in needs_tangent for argument in node.all_input_nodes):
            needs_tangent.add(node)
    output, = graph.find_nodes(op="output")
    leaves = torch_internals.pytree.tree_leaves(
        output.args[0], is_leaf=lambda leaf: leaf is None)
    count = next((at for at, leaf in enumerate(leaves)
                  if leaf is None or leaf in needs_tangent), len(leaves))
    module = graph.owning_module
    assert module is not None
    return read_joint(module, count)


def recomputed(traced: TracedProblem, sequence: list[int],
          candidates: list[torch.fx.Node]) -> list[int]:
    """Places of the candidates that the plan computes after the boundary."""
    boundary = sequence.index(traced.boundary)
    after_boundary = {operation.node for number in sequence[boundary:]
                      if isinstance(operation := traced.operations[number], Operation)}
    found = []
    for at, node in enumerate(candidates):
        if computing(node) in after_boundary:
            found.append(at)
    return found
