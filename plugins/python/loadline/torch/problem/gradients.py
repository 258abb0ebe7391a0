"""Gradients that may leave the device between the backward and their update.

Such a gradient belongs to one parameter of one bucket of optimizer state, and nothing but
that bucket's update reads it after the backward. Tested by
tests/plugins/python/torch_host_gradients_test.py.
"""
from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence

import torch
from loadline.errors import Unsupported
from loadline.torch.compat import torch_internals
from loadline.torch.problem.joint import Joint

# Smaller ones stay: a copy takes a fixed time, and they save nothing.
LEAST_BYTES = 4096


# A parameter: the number of its bucket, and its place in there.
Owner = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Gradient:
    value: torch.fx.Node  # its memory
    leaf: torch.fx.Node  # what the backward returns
    place: int  # of its parameter, among the graph's inputs
    owner: Owner  # its parameter

    @property
    def bucket(self) -> int:
        return self.owner[0]


def owners_in(owners: Mapping[torch.Tensor, Owner],
              inputs: Sequence[object]) -> tuple[Owner | None, ...]:
    """By input of a graph. Empty if no gradient may leave."""
    return tuple(owners.get(one) if isinstance(one, torch.Tensor) else None
                 for one in inputs) if owners else ()


def graph_inputs(joint: Joint) -> list[torch.fx.Node]:
    return [node for node in joint.graph.nodes
            if node.op == "placeholder" and "tangents" not in str(node.target)]


def returned_for_inputs(joint: Joint) -> list[torch.fx.Node | None]:
    """What the backward returns, one for each input."""
    output, = joint.graph.find_nodes(op="output")
    leaves = torch_internals.pytree.tree_leaves(
        output.args[0], is_leaf=lambda leaf: leaf is None)
    return [leaf if isinstance(leaf, torch.fx.Node) else None
            for leaf in leaves[joint.num_forward_outputs:]]


def _as_the_parameter(leaf: torch.fx.Node, parameter: torch.fx.Node) -> bool:
    """Whether autograd would hand the gradient over as it is."""
    made, own = leaf.meta["val"], parameter.meta["val"]
    return (made.dtype, made.device, made.shape, made.stride()) == (
        own.dtype, own.device, own.shape, own.stride())


def find_gradients(joint: Joint, owners: Sequence[Owner | None],
                   least_bytes: int = LEAST_BYTES) -> list[Gradient]:
    """owners: by input of the graph."""
    inputs, returned = graph_inputs(joint), returned_for_inputs(joint)
    if len(inputs) != len(owners) or len(returned) < len(inputs):
        raise Unsupported(
            "offload_gradients: PyTorch traced other inputs than the model's parameters and "
            "batch, so nothing says whose the gradients are")
    made = {value for operation in joint.operations if operation.backward
            for value in operation.makes}
    readers = collections.Counter(
        joint.root[leaf] for leaf in returned if leaf is not None and leaf in joint.root)
    found = []
    for place, (parameter, leaf) in enumerate(zip(inputs, returned)):
        owner = owners[place]
        if owner is None or leaf is None or leaf not in joint.root:
            continue
        value = joint.root[leaf]
        if value in made and value not in joint.forward_outputs and (
                readers[value] == 1 and joint.bytes[value] >= least_bytes
                and _as_the_parameter(leaf, parameter)):
            found.append(Gradient(value, leaf, place, owner))
    return found


def updated_in_backward(joint: Joint, gradients: Sequence[Gradient],
                        parameters: Sequence[int]) -> frozenset[int]:
    """Buckets whose update may run as soon as their gradients exist. parameters: how many
    each bucket has, or 0 if its update must not."""
    inputs = graph_inputs(joint)
    roots = collections.Counter(
        joint.root[node] for node in inputs if node in joint.root)
    written = {operation.updates for operation in joint.operations}
    counts = collections.Counter(
        gradient.bucket for gradient in gradients
        if roots[root := joint.root[inputs[gradient.place]]] == 1
        and root not in written and root not in joint.forward_outputs)
    return frozenset(bucket for bucket, count in enumerate(parameters)
                     if count and counts[bucket] == count)


def gradients_of(joint: Joint, owners: Sequence[Owner | None], parameters: Sequence[int]
                 ) -> tuple[list[Gradient], frozenset[int]]:
    """The gradients that may leave, and the buckets that may be updated in the backward."""
    if not owners:
        return [], frozenset()
    found = find_gradients(joint, owners, 0 if any(parameters) else LEAST_BYTES)
    early = updated_in_backward(joint, found, parameters)
    return [one for one in found if one.bucket in early
            or joint.bytes[one.value] >= LEAST_BYTES], early
