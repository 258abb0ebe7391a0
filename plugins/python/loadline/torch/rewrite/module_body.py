"""Writes the graph of one of a step's two modules, item by item.

An operation is written each time the plan runs it. A view is written before its first
reader after its base; so is the arrival of a value from the host. Tested by
tests/plugins/python/torch_step_test.py and torch_offload_test.py.
"""
from __future__ import annotations

import dataclasses
import operator
from typing import Any

import torch
from loadline.torch.compat import random_state
from loadline.torch.problem.gradients import graph_inputs
from loadline.torch.problem.joint import BATCH_NORM, Joint, Operation
from loadline.torch.problem.make_problem import TracedProblem, Snapshot
from loadline.torch.rewrite import copies
from loadline.torch.rewrite.plan_order import mark_places
from loadline.torch.rewrite.parameter_moves import (BEGIN_PARAMETERS, CHECK_EPOCH, END_STORE,
                                                    KEEP_PARAMETER, LOAD_PARAMETER,
                                                    START_STORE, STORE_PARAMETER)
from loadline.torch.rewrite.program import (Copy, Item, ParameterCopy, Run, StateCopy, Update,
                                            moments)
from loadline.torch.rewrite.state_moves import (BEGIN, BEGIN_BACKWARD, CHECK_PARAMETERS,
                                                LEAVE_GRADIENTS, MEASURE_GRADIENT, MOVE_STATE,
                                                STATE_TOKEN, UPDATE_IN_BACKWARD,
                                                GradientMove, action_of)


class SplitError(RuntimeError):
    """The plan and the graph do not match: a bug of Loadline, which must not be silent."""


@dataclasses.dataclass
class Step:
    """What the two modules of a step share."""

    slab: int  # in copies.slabs
    moves: int | None  # in state_moves.moves_by_graph, if state moves
    ran: set[torch.fx.Node]  # operations written so far
    waiting: set[torch.fx.Node]  # inputs whose update is not written yet
    tokens: dict[int, torch.fx.Node]  # by slot: of its copy out, in this module
    states: dict[torch.fx.Node, torch.fx.Node]  # by random operation, in this module
    gradients: tuple[GradientMove, ...] = ()  # of the gradients that may leave
    in_backward: frozenset[int] = frozenset()  # buckets that the backward updates
    parameter_moves: int | None = None  # in parameter_moves.parameter_moves_by_graph
    # By memory: numbers of the parameters that move; and those that rest on the host.
    parameters: dict[torch.fx.Node, int] = dataclasses.field(default_factory=dict)
    resting: frozenset[torch.fx.Node] = frozenset()
    epoch: torch.fx.Node | None = None  # of the parameters, in this module


def _layout(item: Copy | ParameterCopy) -> tuple[list[int], list[int], int]:
    value = item.value.meta["val"]
    return list(value.size()), list(value.stride()), value.storage_offset()


class ModuleWriter:
    """Writes one module's graph. `current` has the latest copy of each of the joint graph's
    nodes."""

    def __init__(self, traced: TracedProblem, step: Step):
        self.joint = traced.joint
        self.step = step
        self.gradients = traced.gradients
        self.inputs = graph_inputs(traced.joint)
        # By value: gradients that leave, with their numbers; and the ends of their copies.
        self.leaving = {one.value: at for at, (one, move) in enumerate(
            zip(traced.gradients, step.gradients)) if move.left}
        self.left: dict[torch.fx.Node, torch.fx.Node] = {}
        self.graph = torch.fx.Graph()
        self.current: dict[torch.fx.Node, torch.fx.Node] = {}
        # By value: nodes whose copies become stale when the value is computed again.
        self.copied: dict[torch.fx.Node, list[torch.fx.Node]] = {}
        self.state_token: torch.fx.Node | None = None  # orders this module's state moves
        self.offloading: dict[int, torch.fx.Node] = {}  # by slot: source of its copy out
        # By value: a reload that nothing has read yet, and its token.
        self.arriving: dict[torch.fx.Node, tuple[Copy | ParameterCopy, torch.fx.Node]] = {}
        self.given: dict[torch.fx.Node, torch.fx.Node] = {}  # moved parameters
        # Nodes that stay although nothing in this module reads them. A random operator
        # advances the generator even if its result is computed again before any reader.
        self.kept: set[torch.fx.Node] = set()
        operations = [one for operation in traced.joint.operations
                      for one in (*operation.inner, operation)]
        self.computed = {operation.node for operation in operations}
        self.computed.update(made for operation in operations
                             for made in operation.makes
                             if isinstance(made, torch.fx.Node))

    def set(self, node: torch.fx.Node, copy: torch.fx.Node) -> None:
        self.current[node] = copy
        if node in self.joint.root:
            self.copied.setdefault(self.joint.root[node], []).append(node)

    def input(self, node: torch.fx.Node, copy: torch.fx.Node) -> None:
        """Of the forward. What rests on the host is not read before it is loaded."""
        if node in self.step.parameters:
            self.given[node] = copy
        if node not in self.step.resting:
            self.set(node, copy)

    def get(self, node: torch.fx.Node) -> torch.fx.Node:
        """The node's latest copy; a missing view or constant is written here."""
        stack = [node]
        while stack:
            top = stack[-1]
            root = self.joint.root.get(top)
            if top in self.current:
                stack.pop()
            elif top in self.arriving:
                self.arrive(*self.arriving.pop(top))
            elif top in self.computed or top.op == "placeholder":
                raise SplitError(f"{node.name} needs {top.name}, which is not computed")
            elif (root is not None and root is not top and root.args == top.args
                  and root.target is operator.getitem):  # the same tuple element
                self.set(top, self.get(root))
            elif missing := [a for a in top.all_input_nodes if a not in self.current]:
                stack.extend(missing)
            else:
                self.set(top, self.graph.node_copy(top, self.current.__getitem__))
        return self.current[node]

    def run(self, operation: Operation) -> None:
        # Copies of these values in other kernels, or in memory, stay valid.
        values = {self.joint.root[inner.node] for inner in operation.inner}
        others = {value: {node: self.current[node] for node in self.copied.pop(value, ())}
                  for value in values}
        arriving = {value: self.arriving.pop(value) for value in values & {*self.arriving}}
        for nodes in others.values():
            for node in nodes:
                del self.current[node]
        for inner in operation.inner:
            self.run_alone(inner)
        self.run_alone(operation)
        for value in values:
            self.forget(value)
            for node, copy in others[value].items():
                self.set(node, copy)
        self.arriving.update(arriving)

    def run_alone(self, operation: Operation) -> None:
        node = operation.node
        args, kwargs = node.args, node.kwargs
        if operation.updates is not None:
            self.step.waiting.discard(operation.updates)
        if node.target is BATCH_NORM and node in self.step.ran:
            # Updated running statistics may not be available here. Nothing reads the
            # new ones that a second run returns, so any tensor of that shape serves.
            statistics = [
                old if isinstance(old, torch.fx.Node) and (
                    old.op != "placeholder"
                    or self.joint.root[old] in self.step.waiting) else args[1]
                for old in args[3:5]]
            args = (*args[:3], *statistics, *args[5:])
        args, kwargs = torch.fx.map_arg((args, kwargs), self.get)
        for made in operation.makes:
            if isinstance(made, torch.fx.Node):
                self.forget(made)
        self.current.pop(node, None)
        target: Any = node.target
        if node in self.step.states:
            target = random_state.again if node in self.step.ran else (
                random_state.first)
            drawn: Any = node.target
            args = (self.step.states[node], drawn, random_state.device_of(node),
                    *args)
        copy = self.graph.create_node("call_function", target, args, kwargs,
                                      node.name, node.type)
        copy.meta = dict(node.meta)
        self.kept.add(copy)
        self.step.ran.add(node)
        self.set(node, copy)
        for made in operation.makes:
            if isinstance(made, torch.fx.Node) and made is not node:
                self.set(made, self.graph.node_copy(made, self.current.__getitem__))

    def forget(self, value: torch.fx.Node) -> None:
        """Drops copies of a value that is computed again."""
        self.arriving.pop(value, None)
        for stale in self.copied.pop(value, ()):
            del self.current[stale]

    def token(self, target: Any, *args: Any) -> torch.fx.Node:
        token = self.graph.call_function(target, args)
        token.meta["val"] = _like_token(self.joint)
        return token

    def start_offload(self, item: Copy) -> None:
        source = self.offloading[item.slot] = self.get(item.value)
        if (number := self.leaving.get(item.value)) is not None:
            self.call_mover(MEASURE_GRADIENT, self.get(self.gradients[number].leaf),
                            self.step.moves, number)
        token = self.token(
            copies.OFFLOAD, source, self.step.slab, item.slot, *_layout(item))
        self.kept.add(token)
        self.step.tokens[item.slot] = token

    def end_offload(self, item: Copy) -> None:
        """Keeps the source alive until here. Later operators read the wait's token, so that
        no compiler can drop the wait as unused."""
        token = self.token(copies.WAIT, self.offloading.pop(item.slot),
                           self.step.tokens[item.slot], self.step.slab, item.slot)
        self.kept.add(token)
        self.step.tokens[item.slot] = token
        if item.value in self.leaving:
            self.left[item.value] = token

    def reload(self, item: Copy) -> None:
        self.forget(item.value)
        self.arriving[item.value] = item, self.token(
            copies.RELOAD, self.step.tokens[item.slot], self.step.slab, item.slot)

    def arrive(self, item: Copy | ParameterCopy, token: torch.fx.Node) -> None:
        value = item.value.meta["val"]
        copy = self.graph.call_function(copies.ARRIVE, (
            token, self.step.slab, *_layout(item), value.dtype, value.device))
        copy.meta = dict(item.value.meta)
        self.set(item.value, copy)
        if isinstance(item, ParameterCopy) and item.kept:
            self.call_mover(KEEP_PARAMETER, copy, self.step.parameter_moves, item.number)

    def load_parameter(self, item: ParameterCopy) -> None:
        self.forget(item.value)
        token = self.token(LOAD_PARAMETER, self.ordered(), self.step.parameter_moves,
                           self.step.slab, item.number)
        self.kept.add(token)
        self.arriving[item.value] = item, token

    def store_parameter(self, item: ParameterCopy, begins: bool) -> None:
        self.call_mover(STORE_PARAMETER, self.get(item.value), self.step.parameter_moves,
                        item.number, START_STORE if begins else END_STORE)

    def snapshot(self, operation: Operation) -> None:
        device = random_state.device_of(operation.node)
        state = self.graph.call_function(random_state.take, (device,))
        state.meta["val"] = _like_state(self.joint, device)
        self.step.states[operation.node] = state

    def move_state(self, action: str, bucket: int = -1) -> None:
        self.call_mover(MOVE_STATE, self.step.moves, action, bucket)

    def ordered(self) -> torch.fx.Node:
        """The token that this module's moves write to."""
        if self.state_token is None:
            self.state_token = self.token(STATE_TOKEN)
        return self.state_token

    def call_mover(self, target: Any, *args: Any) -> None:
        self.kept.add(self.graph.call_function(target, (self.ordered(), *args)))

    def update(self, bucket: int) -> None:
        mine = [one for one in self.gradients if one.bucket == bucket]
        roots = [self.joint.root[self.inputs[one.place]] for one in mine]
        for root in {*roots} & {*self.arriving}:
            self.get(root)
        copies_ = [self.current[node] for root in roots for node in self.copied.get(root, ())]
        self.call_mover(
            UPDATE_IN_BACKWARD, [copy for copy in copies_ if (
                copy.op == "placeholder" or copy.target is copies.ARRIVE)],
            [self.get(one.leaf) for one in mine], self.step.moves, bucket)

    def begin_parameters(self, forward: bool) -> None:
        if self.step.parameter_moves is None:
            return
        if forward:
            self.step.epoch = self.token(
                BEGIN_PARAMETERS, [self.given[value] for value in self.step.parameters],
                self.step.parameter_moves)
            self.kept.add(self.step.epoch)
        else:
            self.call_mover(CHECK_EPOCH, self.step.epoch, self.step.parameter_moves)

    def write(self, items: list[Item], forward: bool) -> None:
        self.begin_parameters(forward)
        if forward and self.step.moves is not None:
            self.move_state(BEGIN)
            if self.leaving or self.step.in_backward:
                self.call_mover(CHECK_PARAMETERS, [
                    self.given.get(node) or self.get(node) for node in (
                        self.inputs[one.place] for one in self.gradients)],
                    self.step.moves)
        if not forward and (self.leaving or self.step.in_backward):
            self.move_state(BEGIN_BACKWARD)
        for item, begins in moments(items):
            if isinstance(item, Snapshot):
                self.snapshot(item.operation)
            elif isinstance(item, Run):
                self.run(item.operation)
            elif isinstance(item, StateCopy):
                self.move_state(action_of(item, begins), item.bucket)
            elif isinstance(item, Update):
                self.update(item.bucket)
            elif isinstance(item, ParameterCopy) and item.out:
                self.store_parameter(item, begins)
            elif isinstance(item, ParameterCopy):
                self.load_parameter(item)
            elif isinstance(item, Copy):
                (self.start_offload if begins else self.end_offload if item.out
                 else self.reload)(item)
        for value, (arriving, _) in [*self.arriving.items()]:
            if isinstance(arriving, ParameterCopy) and arriving.kept:
                self.get(value)
        if not forward and self.leaving:
            self.call_mover(LEAVE_GRADIENTS, [self.left[value] for value in self.leaving],
                            self.step.moves)

    def finish(self, frame: torch.fx.GraphModule, outputs: list[Any],
               descriptions: list[Any] | None) -> torch.fx.GraphModule:
        """PyTorch's module with this body. frame: from its partitioner."""
        old = next(iter(frame.graph.find_nodes(op="output")))
        node = self.graph.output(tuple(outputs))
        node.meta.update(old.meta)
        if descriptions is not None:
            node.meta["desc"] = descriptions
        if "output_stack_traces" in node.meta:
            node.meta["output_stack_traces"] = [
                output.meta.get("stack_trace")
                if isinstance(output, torch.fx.Node) else None
                for output in outputs]
        for copy in reversed(self.graph.nodes):
            # Tuple elements and views that nothing reads.
            if copy.op in ("call_function", "get_attr") and not copy.users and (
                    copy not in self.kept and (copy.target is operator.getitem
                                               or not copy.is_impure())):
                self.graph.erase_node(copy)
        for copy in self.graph.find_nodes(op="get_attr"):
            # A branch of torch.cond that PyTorch has in its other module only.
            if not hasattr(frame, copy.target) and "." not in copy.target:
                setattr(frame, copy.target, getattr(self.joint.module, copy.target))
        self.graph.lint()
        mark_places(self.graph)
        return torch.fx.GraphModule(frame, self.graph)


def _like_token(joint: Joint) -> torch.Tensor:
    mode = next(node.meta["val"].fake_mode for node in joint.primals)
    with mode:
        return torch.empty((), dtype=torch.int64)


def _like_state(joint: Joint, device: torch.device) -> torch.Tensor:
    mode = next(node.meta["val"].fake_mode for node in joint.primals)
    with mode:
        return torch.empty(random_state.state_bytes(device), dtype=torch.uint8)
