"""Groups operators into Inductor's kernels, as one operation each.

A value that never leaves a kernel takes no memory, so a plan for Inductor needs to know
its kernels. Two of Inductor's rules are followed, and no others:

1. An element-wise operator is computed inside the kernels that read it, if they are all
   of its readers, or if it is cheap: it reads at most four tensors
   (`config.realize_reads_threshold`).
2. A reduction is joined with its readers in one loop over the same elements.

So an operation may in fact be several kernels, but a value that is left out is rarely in
memory. A cheap value of the forward is computed again inside backward kernels, if what
they read for it takes no more bytes. An element-wise kernel may write its result over an
operand that is not read later. Where Inductor does otherwise, a measured step shows it
(prepare.py). Tested by tests/plugins/python/torch_fuse_test.py.
"""
from __future__ import annotations

import dataclasses

import torch
from loadline.torch.problem.joint import Joint, Operation
from loadline.torch.problem.make_problem import BY_INDEX, step_order

aten, prims = torch.ops.aten, torch.ops.prims

CHEAP_READS = 4

# Inductor computes these element by element, although they have no such tag.
_BY_ELEMENT = {
    aten._to_copy.default, aten.clone.default, aten.full.default,
    aten.full_like.default, aten.zeros_like.default, aten.ones_like.default,
    aten.arange.start_step, aten.scalar_tensor.default,
    prims.convert_element_type.default, prims.iota.default, *BY_INDEX}
_REDUCTIONS = {
    aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim,
    aten.amax.default, aten.amin.default, aten.prod.default, aten.prod.dim_int,
    aten.var_mean.correction, aten.any.default, aten.any.dim}


def _is_by_element(node: torch.fx.Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return node.target in _BY_ELEMENT or (
        torch.Tag.pointwise in tags
        and torch.Tag.nondeterministic_seeded not in tags)


def _elements(node: torch.fx.Node) -> int:
    value = node.meta.get("val")
    return value.numel() if isinstance(value, torch.Tensor) else 0


class _Fuser:
    def __init__(self, joint: Joint):
        self.joint = joint
        forward, backward = step_order(joint)
        self.order = [*forward, *backward]
        self.is_forward = {operation.node for operation in forward}
        self.maker = {made: operation for operation in joint.operations
                      for made in operation.makes if isinstance(made, torch.fx.Node)}
        self.readers: dict[torch.fx.Node, list[Operation]] = {}
        for operation in self.order:
            for value in operation.reads:
                self.readers.setdefault(value, []).append(operation)
        self.leaving = {*joint.forward_outputs, *joint.backward_outputs}
        # A read of these before their update and one after it differ.
        self.updated = {operation.updates for operation in joint.operations}
        self.inputs = {*joint.primals, *joint.constants, *joint.tangents}
        # What each operation reads from memory if cheap operators are inside its kernel.
        self.reads: dict[torch.fx.Node, set[torch.fx.Node]] = {}
        # The kernels that compute each operator, by their last operators. An operator with
        # a value in memory is the last of its own kernel.
        self.kernels: dict[torch.fx.Node, set[torch.fx.Node]] = {}

    def loop(self, operation: Operation) -> int:
        """Elements that its kernel's loop covers; 0: it is never fused."""
        node = operation.node
        if operation.ordered or operation.random or operation.updates or (
                not operation.repeatable):
            return 0
        if _is_by_element(node):
            return _elements(node)
        if node.target in _REDUCTIONS:
            return max(map(_elements, node.all_input_nodes), default=0)
        return 0

    def value_of(self, operation: Operation) -> torch.fx.Node | None:
        """Its result, if that can stay inside a kernel."""
        if not self.loop(operation) or len(operation.makes) != 1:
            return None
        value = operation.makes[0]
        return value if isinstance(value, torch.fx.Node) and (
            value not in self.leaving) else None

    def readers_in(self, value: torch.fx.Node, forward: bool) -> list[Operation]:
        return [reader for reader in self.readers.get(value, [])
                if (reader.node in self.is_forward) == forward]

    def all_loop(self, readers: list[Operation], dropped: bool) -> bool:
        return all(self.loop(reader) > 0 and reader.dropped == dropped
                   for reader in readers)

    def is_cheap(self, operation: Operation) -> bool:
        return _is_by_element(operation.node) and (
            len(self.reads[operation.node]) <= CHEAP_READS)

    def is_recomputed(self, operation: Operation) -> bool:
        """Whether backward kernels compute this forward value again: what must be saved
        for that takes no more bytes than the value."""
        value = self.value_of(operation)
        if value is None or operation.node not in self.is_forward or (
                operation.dropped or not self.is_cheap(operation)):
            return False
        if self.reads[operation.node] & self.updated:
            return False
        readers = self.readers_in(value, forward=False)
        if not readers or not self.all_loop(readers, dropped=False):
            return False
        extra = [leaf for leaf in self.reads[operation.node]
                 if leaf not in self.inputs
                 and not self.readers_in(leaf, forward=False)]
        return sum(self.joint.bytes[leaf] for leaf in extra) <= self.joint.bytes[value]

    def is_inlined(self, operation: Operation, reader: Operation) -> bool:
        forward = operation.node in self.is_forward
        value = self.value_of(operation)
        if value is None or not self.is_cheap(operation):
            return False
        if forward != (reader.node in self.is_forward):
            return self.is_recomputed(operation)
        if forward and self.readers_in(value, forward=False) and (
                not self.is_recomputed(operation)):
            return False
        return self.all_loop(self.readers_in(value, forward), operation.dropped)

    def count_reads(self) -> None:
        for operation in self.order:
            found: set[torch.fx.Node] = set()
            for value in operation.reads:
                maker = self.maker.get(value)
                if maker is not None and self.is_inlined(maker, operation):
                    found |= self.reads[maker.node]
                else:
                    found.add(value)
            self.reads[operation.node] = found

    def kernels_of(self, readers: list[Operation]) -> set[torch.fx.Node]:
        return set[torch.fx.Node]().union(
            *(self.kernels[reader.node] for reader in readers))

    def choose(self, operation: Operation) -> set[torch.fx.Node]:
        node = operation.node
        value = self.value_of(operation)
        if value is None:
            return {node}
        in_backward = set[torch.fx.Node]()
        forward = node in self.is_forward
        if forward and (backward_readers := self.readers_in(value, forward=False)):
            if not self.is_recomputed(operation):
                return {node}
            in_backward = self.kernels_of(backward_readers)
        readers = self.readers_in(value, forward)
        if not self.all_loop(readers, operation.dropped):
            return {node, *in_backward}
        kernels = self.kernels_of(readers)
        # Joining a reduction keeps its operands out of memory; its result is small.
        joined = len(kernels) <= 1 and (_is_by_element(node) or all(
            self.loop(reader) == self.loop(operation) for reader in readers))
        if joined or self.is_cheap(operation):
            return (kernels | in_backward) or {node}
        return {node, *in_backward}

    def fuse(self) -> None:
        self.count_reads()
        for operation in reversed(self.order):
            self.kernels[operation.node] = self.choose(operation)
        inner: dict[torch.fx.Node, list[Operation]] = {}
        for operation in self.order:
            for kernel in self.kernels[operation.node]:
                if kernel is not operation.node:
                    inner.setdefault(kernel, []).append(operation)
        self.joint.operations = [
            _whole(operation, inner.get(operation.node, []),
                   self.loop(operation) > 0 and _is_by_element(operation.node))
            for operation in self.joint.operations
            if operation.node in self.kernels[operation.node]]


def _whole(last: Operation, inner: list[Operation], in_place: bool) -> Operation:
    made = {value for operation in inner for value in operation.makes}
    reads = dict.fromkeys(value for operation in (*inner, last)
                          for value in operation.reads if value not in made)
    return dataclasses.replace(last, reads=list(reads), inner=tuple(inner),
                               in_place=in_place)


def fuse(joint: Joint) -> None:
    """Replaces the joint graph's operations by Inductor's kernels."""
    _Fuser(joint).fuse()
