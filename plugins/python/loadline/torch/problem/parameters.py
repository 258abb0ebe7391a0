"""Parameters that may rest on the host, and are on the device only around their uses.

Such a parameter is frozen, or the backward updates it with its bucket. So far only an
estimate poses such problems. Tested by tests/plugins/python/torch_offload_parameters_test.py.
"""
from __future__ import annotations

import collections
from collections.abc import Collection, Sequence

import torch
from loadline.torch.problem.gradients import (LEAST_BYTES, Gradient, graph_inputs,
                                              returned_for_inputs)
from loadline.torch.problem.joint import Joint


def places_in(parameters: Collection[torch.Tensor], inputs: Sequence[object]
              ) -> frozenset[int]:
    """Of parameters among the inputs of a graph."""
    ids = {id(one) for one in parameters}
    return frozenset(place for place, one in enumerate(inputs) if id(one) in ids)


def leaving_parameters(joint: Joint, places: Collection[int], gradients: Sequence[Gradient],
                       early: frozenset[int]) -> frozenset[torch.fx.Node]:
    """The memory of those that may leave. places: of parameters, among the graph's inputs.
    early: buckets whose update may run in the backward."""
    if not places:
        return frozenset()
    inputs, returned = graph_inputs(joint), returned_for_inputs(joint)
    roots = collections.Counter(joint.root[one] for one in inputs if one in joint.root)
    written = {operation.updates for operation in joint.operations}
    updated = {one.place for one in gradients if one.bucket in early}
    return frozenset(
        root for place in places
        if (place in updated or returned[place] is None)
        and roots[root := joint.root[inputs[place]]] == 1
        and joint.bytes[root] >= LEAST_BYTES
        and root not in written and root not in joint.forward_outputs)
