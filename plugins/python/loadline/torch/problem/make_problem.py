"""Turns a joint graph into a loadline.problem/1 document, with a map back to its nodes.

One extra node, the boundary, is between forward and backward: it reads what the forward
returns and makes the tangents. What a plan runs before it is the forward module, the
rest is the backward module.

Values of zero bytes (tokens) keep operations in order that must not be swapped: those
with random numbers or effects. A random operation may run again from a saved state of
the generator, which is a value with bytes. What the user's checkpoint recomputes has a
second node after the boundary, and the backward reads that one's result. A loss that is
computed outside of the graph runs at the boundary, in its workspace. Updates of optimizer
state, by bucket, may follow the last gradient, or one step of the whole optimizer: the
planner only knows how many bytes they hold, touch and need as workspace. A gradient that may
leave the device (gradients.py) is read by its bucket's update alone, which ends its life.
Parameters that may leave (parameters.py) may rest on the host between steps.
Tested by tests/plugins/python/torch_step_test.py and torch_host_gradients_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from loadline.machine import Machine
from loadline.torch.compat.random_state import device_of, state_bytes
from loadline.torch.problem.cost_model import NOMINAL, time_of
from loadline.torch.problem.document import Document
from loadline.torch.problem.gradients import Gradient, graph_inputs
from loadline.torch.problem.inside import inside_of
from loadline.torch.problem.joint import Joint, Operation


CPU = torch.device("cpu")
# They may read any element of their operand.
BY_INDEX = {torch.ops.aten.gather.default, torch.ops.aten.index.Tensor,
            torch.ops.aten.embedding.default}


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """Saves the random state before this operation."""

    operation: Operation


@dataclasses.dataclass
class TracedProblem:
    """A problem and the parts of the graph that its numbers stand for."""

    joint: Joint
    document: dict[str, Any]  # loadline.problem/1
    operations: list[Operation | Snapshot | None]  # by node id; None: the boundary
    values: list[torch.fx.Node | None]  # by value id; None: a token, state, or unread
    end: int  # the node after the last gradient; without updates, the number of nodes
    state: dict[int, int]  # value id to bucket, for optimizer state
    gradients: list[Gradient] = dataclasses.field(default_factory=list)  # that may leave
    # By value id: numbers of parameters that may leave (parameters.py), and their memory.
    parameters: dict[int, tuple[int, torch.fx.Node]] = dataclasses.field(
        default_factory=dict)

    @property
    def boundary(self) -> int:
        return self.operations.index(None)


@dataclasses.dataclass(frozen=True)
class StateBucket:
    """Optimizer state that moves together, for the planner."""

    bytes: int
    touched_bytes: int  # by its update
    work_bytes: int = 0  # that its update allocates for itself
    # How many, if the update may run in the backward, when all their gradients exist.
    parameters: int = 0
    host_ns: int = 0  # of the update, if it runs on the host, where the state stays


def updated_inputs(joint: Joint) -> set[torch.fx.Node]:
    """The graph's inputs that the step writes to. An update is in place in every plan, so
    what reads the input as it was runs before the update, and only once."""
    return {operation.updates for operation in joint.operations
            if operation.updates is not None}


def step_order(joint: Joint) -> tuple[list[Operation], list[Operation]]:
    """Operations before and after the boundary, if everything is kept: first those that
    the forward's outputs need; those that only gradients need stay where they are."""
    maker = {made: operation for operation in joint.operations
             for made in operation.makes if isinstance(made, torch.fx.Node)}
    before: set[int] = set()
    open_ = [maker[value] for value in joint.forward_outputs if value in maker]
    updated = updated_inputs(joint)
    open_ += [operation for operation in joint.operations
              if not operation.backward
              and (operation.ordered or operation.updates
                   or not updated.isdisjoint(operation.reads))]
    while open_:
        operation = open_.pop()
        if id(operation) in before:
            continue
        before.add(id(operation))
        open_ += [maker[value] for value in operation.reads if value in maker]
    forward = [o for o in joint.operations if id(o) in before]
    backward: list[Operation] = []
    placed = set(before)

    def place(operation: Operation) -> None:
        stack = [operation]
        while stack:
            top = stack[-1]
            missing = [maker[value] for value in top.reads if value in maker
                       and id(maker[value]) not in placed]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if id(top) not in placed:
                placed.add(id(top))
                backward.append(top)

    for operation in joint.operations:
        if operation.backward:
            place(operation)
    for operation in joint.operations:  # gradients that need no tangent
        place(operation)
    return forward, backward


def _each_at_its_place(argument: torch.fx.Node, reader: torch.fx.Node,
                       made: torch.Tensor) -> bool:
    """Whether each result element depends on the operand's element at its place only."""
    read = argument.meta.get("val")
    if not isinstance(read, torch.Tensor) or reader.target in BY_INDEX:
        return False
    return read.numel() == made.numel() and (
        read.shape == made.shape and read.stride() == made.stride()
        or read.is_contiguous() and made.is_contiguous())


def _workspace(bytes_: int) -> dict[str, int]:
    return {"workspace_bytes": bytes_} if bytes_ > 0 else {}


class _Writer:
    def __init__(self, joint: Joint, machine: Machine,
                 state: Sequence[StateBucket], copies: torch.device | None,
                 states: bool, measured_ns: Mapping[torch.fx.Node, int],
                 loss_bytes: int, step_bytes: int, gradients: Sequence[Gradient],
                 early: frozenset[int], parameters: Mapping[torch.fx.Node, int]):
        self.joint = joint
        self.parameters = parameters
        # By value id, of all versions.
        self.leaving_parameters: dict[int, tuple[int, torch.fx.Node]] = {}
        self.loss_bytes = loss_bytes
        self.step_bytes = step_bytes
        self.machine = machine
        self.state = state
        self.copies = copies
        self.states = states
        self.measured_ns = measured_ns
        self.state_of: dict[int, int] = {}
        self.document = Document("torch step")
        self.values: list[torch.fx.Node | None] = []
        self.operations: list[Operation | Snapshot | None] = []
        self.id_of: dict[torch.fx.Node, int] = {}
        self.token: int | None = None  # of the last ordered operation
        self.snapshots: dict[torch.fx.Node, int] = {}  # by random operation
        self.handed_over: dict[int, int] = {}  # gradients, if updates follow
        self.gradients = list(gradients)
        self.early = early  # buckets
        self.leaving = {gradient.value for gradient in gradients}
        self.complete: list[int] = []  # one value for each operation that makes such
        self.makers = {made: operation for operation in joint.operations
                       for made in operation.makes}
        self.returned = set(joint.forward_outputs)
        self.caller = {joint.root[node] for node in (*joint.primals, *joint.constants)}
        self.before: set[torch.fx.Node] = set()  # what runs before the boundary
        self.updated = updated_inputs(joint)
        # By such an input: what its update waits for, one value for each reader.
        self.readings: dict[torch.fx.Node, list[int]] = {}

    def value(self, name: str, bytes_: int, node: torch.fx.Node | None,
              **fields: Any) -> int:
        if len(self.document.values) not in self.state_of and (
                self.copies is None
                or node is not None and node.meta["val"].device != self.copies):
            fields["offload"] = False
        id_ = self.document.value(name, bytes_, **fields)
        self.values.append(node)
        if node is not None:
            self.id_of[node] = id_
        return id_

    def node(self, operation: Operation | Snapshot | None, name: str, time_ns: int,
             inputs: list[int], outputs: list[int], **fields: Any) -> None:
        self.document.node(name, time_ns, inputs, outputs, **fields)
        self.operations.append(operation)

    def ordered(self, inputs: list[int], outputs: list[int], name: str) -> None:
        """Orders a node after the last ordered one, and before the next."""
        if self.token is not None:
            inputs.append(self.token)
        self.token = self.value(f"after.{name}", 0, None)
        outputs.append(self.token)

    def snapshot(self, operation: Operation) -> bool:
        """Saves the random state, if recomputing frees more bytes than the state takes."""
        bytes_ = state_bytes(device_of(operation.node))
        if not self.states or sum(operation.element_bytes) <= bytes_:
            return False
        name = f"random.{operation.name}"
        state = self.value(name, bytes_, None, offload=False)
        self.snapshots[operation.node] = state
        inputs: list[int] = []
        outputs = [state]
        self.ordered(inputs, outputs, name)
        self.node(Snapshot(operation), name, self.machine.launch_ns, inputs,
                  outputs, recompute=False)
        return True

    def operation(self, operation: Operation, again: bool = False) -> None:
        """again: the second node of a checkpoint's operation, for the backward."""
        fields: dict[str, Any] = {}
        repeatable = operation.repeatable and not self.reads_before_update(operation)
        if operation.random and not again:
            repeatable = repeatable and self.snapshot(operation)
        # The caller owns what the forward returns, so it cannot be freed and computed
        # again. After the last gradient only updates and copies follow, so a gradient
        # that may leave does not run again either.
        leaving = self.leaving & {*operation.makes}
        if not repeatable or leaving or self.returned & {*operation.makes}:
            fields["recompute"] = False
        suffix = ".again" if again else ""
        inputs = [self.id_of[value] for value in operation.reads]
        outputs = [
            self.value((f"{operation.name}.{made}" if isinstance(made, int)
                        else made.name) + suffix, bytes_,
                       None if isinstance(made, int) else made,
                       **({"offload": False} if made in self.returned else {}))
            for made, bytes_ in zip(operation.makes, operation.element_bytes)]
        if leaving:
            self.complete.append(self.value(f"made.{operation.name}", 0, None))
            outputs.append(self.complete[-1])
        self.precede_updates(operation, outputs)
        if operation.updates is not None:
            old = self.id_of[operation.updates]
            if old not in inputs:
                inputs.append(old)
            inputs += self.readings.pop(operation.updates, [])
            new = self.value(f"{operation.updates.name}.new",
                             self.joint.bytes[operation.updates],
                             operation.updates, offload=False)
            outputs.append(new)
            fields["inplace"] = [[old, new]]
        elif operation.in_place and (pairs := self.pairs(operation, outputs)):
            fields["inplace"] = pairs
        if operation.node in self.snapshots:
            inputs.append(self.snapshots[operation.node])
        if operation.ordered and not again:
            self.ordered(inputs, outputs, operation.name)
        time_ns = self.measured_ns.get(operation.node)
        if time_ns is None:
            time_ns = time_of(operation.nodes, self.machine)
        inside = inside_of(operation.node)
        self.node(operation, operation.name + suffix, time_ns, inputs, outputs,
                  **_workspace(inside.workspace_bytes if inside else 0), **fields)

    def reads_before_update(self, operation: Operation) -> bool:
        return not operation.backward and any(
            value in self.updated for value in operation.reads
            if value is not operation.updates)

    def precede_updates(self, operation: Operation, outputs: list[int]) -> None:
        """Orders the operation before the updates of what it reads."""
        if not self.reads_before_update(operation):
            return
        read = self.value(f"read.{operation.name}", 0, None)
        outputs.append(read)
        for value in self.updated.intersection(operation.reads) - {operation.updates}:
            self.readings.setdefault(value, []).append(read)

    def pairs(self, operation: Operation, outputs: list[int]) -> list[list[int]]:
        """Operands that the result may overwrite, as [operand, result] ids."""
        made = operation.node.meta["val"]
        return [[self.id_of[value], outputs[0]] for value in operation.reads
                if value not in self.caller
                and value.meta["val"].dtype == made.dtype
                and self.joint.bytes[value] == operation.element_bytes[0]
                and all(_each_at_its_place(argument, node, made)
                        for node in operation.nodes
                        for argument in node.all_input_nodes
                        if self.joint.root.get(argument) is value)]

    def dropped(self, operation: Operation) -> bool:
        """Whether the backward computes it again because of the user's checkpoint."""
        return operation.dropped and operation.node in self.before and (
            not operation.random or operation.node in self.snapshots
        ) and not self.reads_before_update(operation)

    def backward(self, operations: list[Operation]) -> None:
        here: set[torch.fx.Node] = set()  # computed again so far
        for last in operations:
            stack = [last]
            while stack:
                top = stack[-1]
                missing = [maker for value in top.reads if (
                    maker := self.makers.get(value)) is not None
                    and maker.node not in here and self.dropped(maker)]
                if missing:
                    stack.extend(reversed(missing))
                    continue
                stack.pop()
                if top is last:
                    self.operation(top)
                elif top.node not in here:
                    here.add(top.node)
                    self.operation(top, again=True)

    def boundary(self) -> None:
        inputs = [self.id_of[value] for value in self.joint.forward_outputs]
        inputs += [self.id_of[operation.updates]
                   for operation in self.operations
                   if isinstance(operation, Operation) and operation.updates]
        if self.token is not None:
            inputs.append(self.token)
        outputs = [self.value(node.name, self.joint.bytes[node], node,
                              offload=False)
                   for node in self.joint.tangents]
        self.token = self.value("after.boundary", 0, None)
        tangents = sum(self.joint.bytes[node] for node in self.joint.tangents)
        self.node(None, "boundary", 0, list(dict.fromkeys(inputs)),
                  [*outputs, self.token], recompute=False,
                  **_workspace(self.loss_bytes - tangents))

    def gradient(self, value: torch.fx.Node) -> int:
        id_ = self.id_of[value]
        return self.handed_over.get(id_, id_)

    def parameter(self, root: torch.fx.Node, name: str, node: torch.fx.Node | None,
                  **fields: Any) -> int:
        """A version of an input. The caller owns the inputs, so most stay on the device."""
        leaves = root in self.parameters
        id_ = self.value(name, self.joint.bytes[root], node, **fields,
                         **({} if leaves else {"offload": False}))
        if leaves:
            self.leaving_parameters[id_] = self.parameters[root], root
        return id_

    def new_parameters(self, bucket: int) -> list[list[int]]:
        """An update in the backward follows whatever reads the bucket's parameters."""
        inputs = graph_inputs(self.joint)
        pairs = []
        for gradient in self.gradients:
            if gradient.bucket == bucket:
                root = self.joint.root[inputs[gradient.place]]
                pairs.append([self.id_of[root], self.parameter(
                    root, f"{root.name}.new", None)])
        return pairs

    def updates(self) -> None:
        """Updates run when all gradients exist. From then on the caller owns the gradients
        that cannot leave, and they can be neither freed nor computed again."""
        assert self.token is not None
        stay = [value for value in self.joint.backward_outputs
                if value not in self.leaving]
        made = dict.fromkeys(self.id_of[value] for value in stay
                             if value in self.makers and value not in self.returned)
        for value in made:
            gradient = self.document.values[value]
            self.handed_over[value] = self.value(
                f"{gradient['name']}.handed.over", gradient["bytes"], None,
                offload=False)
        tangents = [self.id_of[node] for node in self.joint.tangents]
        gradients = list(dict.fromkeys(self.gradient(value) for value in stay))
        end = self.value("after.gradients", 0, None)
        self.node(None, "gradients", 0, [*dict.fromkeys(
            [*(self.id_of[value] for value in stay), *tangents, *self.complete]),
            self.token], [*self.handed_over.values(), end],
            recompute=False, inplace=[list(pair) for pair in self.handed_over.items()])
        bandwidth = self.machine.memory_bytes_per_s or NOMINAL.memory_bytes_per_s
        for old, bucket in list(self.state_of.items()):
            about = self.state[bucket]
            self.state_of[len(self.document.values)] = bucket
            new = self.value(f"state.{bucket}.new", about.bytes, None)
            pairs = [[old, new]]
            if bucket in self.early:
                pairs += self.new_parameters(bucket)
            self.node(None, f"update.{bucket}", about.host_ns or self.machine.launch_ns + int(
                1e9 * (about.bytes + about.touched_bytes) / bandwidth),
                [*(old for old, _ in pairs),
                 *([] if bucket in self.early else (end, *gradients)),
                 *(self.id_of[one.value] for one in self.gradients
                   if one.bucket == bucket)],
                [new for _, new in pairs], recompute=False, inplace=pairs,
                **_workspace(about.work_bytes))
        if not self.state:
            self.node(None, "optimizer.step", 0, [end, *gradients], [], recompute=False,
                      **_workspace(self.step_bytes))

    def write(self) -> TracedProblem:
        for number, about in enumerate(self.state):
            self.state_of[number] = number
            self.value(f"state.{number}", about.bytes, None, persistent=True)
        for node in dict.fromkeys(self.joint.root[n] for n in (
                *self.joint.primals, *self.joint.constants)):
            self.parameter(node, node.name, node, persistent=True)
        forward, backward = step_order(self.joint)
        for operation in forward:
            self.operation(operation)
        self.before = {operation.node for operation in forward}
        self.boundary()
        self.backward(backward)
        end = len(self.document.nodes)
        if updated := bool(self.state or self.step_bytes):
            self.updates()
        # The caller owns the results, and autograd holds the tangents until it has all
        # gradients.
        held = [*(self.id_of[value] for value in (
            *self.joint.forward_outputs,
            *(self.joint.tangents if not updated else ()))),
            *(self.gradient(value) for value in self.joint.backward_outputs
              if value not in self.leaving)]
        rewritten = {old for node in self.document.nodes
                     for old, _ in node.get("inplace", ())
                     if self.document.values[old].get("persistent")}
        document = self.document.problem(
            v for v in dict.fromkeys(held) if v not in rewritten)
        if self.machine.d2h_bytes_per_s and self.machine.h2d_bytes_per_s:
            machine = self.machine.document()
            machine.pop("rates", None)  # already in the operators' times
            document["machine"] = machine
        return TracedProblem(self.joint, document, self.operations, self.values, end,
                             self.state_of, self.gradients,
                             self.leaving_parameters)


def make_problem(joint: Joint, machine: Machine, state: Sequence[StateBucket] = (),
                 copies: torch.device | None = CPU, states: bool = True,
                 measured_ns: Mapping[torch.fx.Node, int] = MappingProxyType({}),
                 loss_bytes: int = 0, step_bytes: int = 0,
                 gradients: Sequence[Gradient] = (),
                 early: frozenset[int] = frozenset(),
                 parameters: Mapping[torch.fx.Node, int] = MappingProxyType({})
                 ) -> TracedProblem:
    """copies: the device whose values may be copied, or None; state may always be.
    states: random operations may run again, from a saved state (random_state.py).
    measured_ns: by operator; the roofline prices the others. loss_bytes: that a loss
    outside of the graph takes, gradients of the outputs included. step_bytes: that the
    optimizer's step allocates for itself, if no state is planned. gradients: that may leave,
    of parameters in the buckets of `state`. early: buckets whose update may run before the
    last gradient. parameters: that may rest on the host (parameters.py)."""
    return _Writer(joint, machine, state, copies, states, measured_ns, loss_bytes,
                   step_bytes, gradients, early, parameters).write()


def staying(traced: TracedProblem) -> dict[str, Any]:
    """The same problem with all parameters on the device."""
    return {**traced.document, "values": [
        {**value, "offload": False} if value["id"] in traced.parameters else value
        for value in traced.document["values"]]}
