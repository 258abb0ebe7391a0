"""Parameters that may rest on the host, and are on the device only around their uses.

Such a parameter is frozen, or the backward updates it with its bucket. Tested by
tests/plugins/python/torch_offload_parameters_test.py and torch_host_parameters_test.py.
"""
from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

import torch
from loadline.torch.problem.gradients import (LEAST_BYTES, Gradient, graph_inputs,
                                              returned_for_inputs)
from loadline.torch.problem.joint import Joint


def may_leave(parameter: torch.Tensor) -> bool:
    """Whether it has a storage of its own, without gaps, and is worth a copy."""
    data = parameter.data
    return bool(type(data) is torch.Tensor and data.layout is torch.strided
                and data.storage_offset() == 0 and not data.is_conj() and not data.is_neg()
                and LEAST_BYTES <= data.numel() * data.element_size()
                == data.untyped_storage().nbytes())


def places_in(parameters: Sequence[torch.Tensor], inputs: Sequence[object]
              ) -> dict[int, int]:
    """Numbers of the parameters, by their places among the inputs of a graph."""
    numbers = {id(one): number for number, one in enumerate(parameters)}
    return {place: numbers[id(one)] for place, one in enumerate(inputs)
            if id(one) in numbers}


def leaving_parameters(joint: Joint, places: Mapping[int, int],
                       gradients: Sequence[Gradient], early: frozenset[int]
                       ) -> dict[torch.fx.Node, int]:
    """The memory of those that may leave, with their numbers. places: of parameters, among
    the graph's inputs. early: buckets whose update may run in the backward."""
    if not places:
        return {}
    inputs, returned = graph_inputs(joint), returned_for_inputs(joint)
    roots = collections.Counter(joint.root[one] for one in inputs if one in joint.root)
    written = {operation.updates for operation in joint.operations}
    updated = {one.place for one in gradients if one.bucket in early}
    return {
        root: number for place, number in places.items()
        if (place in updated or returned[place] is None)
        and roots[root := joint.root[inputs[place]]] == 1
        and joint.bytes[root] >= LEAST_BYTES
        and root not in written and root not in joint.forward_outputs}
