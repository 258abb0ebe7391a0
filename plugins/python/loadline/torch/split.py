"""A plan's sequence becomes a forward and a backward module.

PyTorch's own partitioner makes the frame: every forward node is tagged to be
saved or recomputed, all with one ac_graph_id, and it finds inputs, outputs and
what passes from one module to the other. Then both bodies are written anew in
the plan's order, because the order decides the peak, and with an operation as
often as the plan runs it. A view is made where it is first read after its base.
Tested by tests/plugins/python/torch_step_test.py.
"""
from __future__ import annotations

import dataclasses
import operator
import time
from typing import Any

import torch
from loadline.torch import copies, private, random_state
from loadline.torch.joint import BATCH_NORM, Operation, computing, is_seeded
from loadline.torch.plan_order import mark_places
from loadline.torch.pose import Posed, Snapshot
from loadline.torch.program import Copy, Item, Program, Run, StateCopy, moments
from loadline.torch.state_moves import (BEGIN, MOVE_STATE, STATE_TOKEN, StateMoves,
                                        action_of, register)


class SplitError(RuntimeError):
    """The plan and the graph do not fit each other: a bug, never silent."""


@dataclasses.dataclass
class Split:
    forward: torch.fx.GraphModule
    backward: torch.fx.GraphModule
    saved: list[torch.fx.Node]  # values that pass, inputs included
    slab: copies.Slab  # what is copied out lies there
    partition_s: float  # of PyTorch's partitioner, which any compile runs
    # What PyTorch's partitioner made of the tags, and where it did not obey: values
    # that it saves although they were to be computed again, and the other way.
    frames: tuple[torch.fx.GraphModule, torch.fx.GraphModule]
    refused: list[torch.fx.Node]
    lost: list[torch.fx.Node]


def saved_values(posed: Posed, backward: list[Item]) -> list[torch.fx.Node]:
    """What the backward part reads before it makes it, in order of reading."""
    made = {posed.joint.root[node] for node in posed.joint.tangents}
    made.update(posed.joint.root[node] for node in posed.joint.constants)
    saved: dict[torch.fx.Node, None] = {}
    for item in backward:
        if isinstance(item, Copy):
            reads = [item.value] if item.out else []
            makes = [] if item.out else [item.value]
        elif isinstance(item, Run):
            reads = item.operation.reads
            makes = [made for made in item.operation.makes
                     if isinstance(made, torch.fx.Node)]
        else:
            continue
        for value in reads:
            if value not in made:
                saved[value] = None
        made.update(makes)
    for value in posed.joint.backward_outputs:
        if value not in made:
            saved[value] = None
    return list(saved)


def _tag(posed: Posed, backward: list[Item]) -> dict[torch.fx.Node, Any]:
    """The tag of each value that the forward cannot do without."""
    policy = private.CheckpointPolicy
    again = {node for item in backward if isinstance(item, Run)
             for node in item.operation.nodes}
    computes = {operation.node: operation for operation in posed.joint.operations}
    behind = set(posed.joint.tangents)
    tags: dict[torch.fx.Node, Any] = {}
    for node in posed.joint.graph.nodes:
        if any(argument in behind for argument in node.all_input_nodes):
            behind.add(node)
            continue
        if node.op != "call_function":
            continue
        source = computing(node)
        # PyTorch would wrap one that can draw and runs again in states of its own.
        kept = source in computes and (source not in again or is_seeded(source))
        node.meta["recompute"] = (
            policy.MUST_SAVE if kept else policy.MUST_RECOMPUTE)
        node.meta["ac_graph_id"] = 0
        # It cannot know of such a one that runs again here.
        is_value = posed.joint.root.get(node) is node
        if is_value and source in computes and not is_seeded(source):
            tags[node] = node.meta["recompute"]
    forward = _needed(posed.joint.forward_outputs)
    return {node: tag for node, tag in tags.items() if node in forward}


def _needed(nodes: list[torch.fx.Node]) -> set[torch.fx.Node]:
    """And all that they are made of."""
    found, open_ = set(nodes), list(nodes)
    while open_:
        new = [a for a in open_.pop().all_input_nodes if a not in found]
        found.update(new)
        open_ += new
    return found


@dataclasses.dataclass
class _Step:
    """What both modules of a step know of each other."""

    slab: int  # in copies.slabs
    moves: int | None  # in state_moves, where state moves
    ran: set[torch.fx.Node]  # so far
    waiting: set[torch.fx.Node]  # inputs that are not updated yet
    tokens: dict[int, torch.fx.Node]  # by slot: of its copy out, here
    states: dict[torch.fx.Node, torch.fx.Node]  # by random operation, here


def _layout(item: Copy) -> tuple[list[int], list[int], int]:
    value = item.value.meta["val"]
    return list(value.size()), list(value.stride()), value.storage_offset()


class _Body:
    """Writes one module's graph: `now` holds the latest copy of each node."""

    def __init__(self, posed: Posed, step: _Step):
        self.joint = posed.joint
        self.step = step
        self.graph = torch.fx.Graph()
        self.now: dict[torch.fx.Node, torch.fx.Node] = {}
        # By value: the nodes whose copies are stale once it is made again.
        self.copied: dict[torch.fx.Node, list[torch.fx.Node]] = {}
        self.state_token: torch.fx.Node | None = None  # of moves of state, here
        self.leaving: dict[int, torch.fx.Node] = {}  # by slot: what a copy reads
        # What is reloaded and not read yet, and the token of its arrival.
        self.coming: dict[torch.fx.Node, tuple[Copy, torch.fx.Node]] = {}
        # What stays though nothing here reads it. A run that draws random numbers
        # moves the generator on, even where its result is made anew before a reader.
        self.kept: set[torch.fx.Node] = set()
        operations = [one for operation in posed.joint.operations
                      for one in (*operation.inner, operation)]
        self.computed = {operation.node for operation in operations}
        self.computed.update(made for operation in operations
                             for made in operation.makes
                             if isinstance(made, torch.fx.Node))

    def set(self, node: torch.fx.Node, copy: torch.fx.Node) -> None:
        self.now[node] = copy
        if node in self.joint.root:
            self.copied.setdefault(self.joint.root[node], []).append(node)

    def get(self, node: torch.fx.Node) -> torch.fx.Node:
        """The latest copy; a view or a constant is made here if it is missing."""
        stack = [node]
        while stack:
            top = stack[-1]
            root = self.joint.root.get(top)
            if top in self.now:
                stack.pop()
            elif top in self.coming:
                self.arrive(*self.coming.pop(top))
            elif top in self.computed or top.op == "placeholder":
                raise SplitError(f"{node.name} needs {top.name}, which is not there")
            elif (root is not None and root is not top and root.args == top.args
                  and root.target is operator.getitem):  # the same element again
                self.set(top, self.get(root))
            elif missing := [a for a in top.all_input_nodes if a not in self.now]:
                stack.extend(missing)
            else:
                self.set(top, self.graph.node_copy(top, self.now.__getitem__))
        return self.now[node]

    def run(self, operation: Operation) -> None:
        # Copies in other kernels, or in memory, stay what they are.
        values = {self.joint.root[inner.node] for inner in operation.inner}
        others = {value: {node: self.now[node] for node in self.copied.pop(value, ())}
                  for value in values}
        coming = {value: self.coming.pop(value) for value in values & {*self.coming}}
        for nodes in others.values():
            for node in nodes:
                del self.now[node]
        for inner in operation.inner:
            self.run_alone(inner)
        self.run_alone(operation)
        for value in values:
            self.forget(value)
            for node, copy in others[value].items():
                self.set(node, copy)
        self.coming.update(coming)

    def run_alone(self, operation: Operation) -> None:
        node = operation.node
        args, kwargs = node.args, node.kwargs
        if operation.updates is not None:
            self.step.waiting.discard(operation.updates)
        if node.target is BATCH_NORM and node in self.step.ran:
            # Running statistics that have moved on may not be here, and what
            # would be made of them is not read: any tensor of their shape serves.
            statistics = [
                old if isinstance(old, torch.fx.Node)
                and self.joint.root[old] in self.step.waiting else args[1]
                for old in args[3:5]]
            args = (*args[:3], *statistics, *args[5:])
        args, kwargs = torch.fx.map_arg((args, kwargs), self.get)
        for made in operation.makes:
            if isinstance(made, torch.fx.Node):
                self.forget(made)
        self.now.pop(node, None)
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
                self.set(made, self.graph.node_copy(made, self.now.__getitem__))

    def forget(self, value: torch.fx.Node) -> None:
        """Copies of what is made anew."""
        self.coming.pop(value, None)
        for stale in self.copied.pop(value, ()):
            del self.now[stale]

    def token(self, target: Any, *args: Any) -> torch.fx.Node:
        token = self.graph.call_function(target, args)
        token.meta["val"] = _like_token(self.joint)
        return token

    def leave(self, item: Copy) -> None:
        source = self.leaving[item.slot] = self.get(item.value)
        token = self.token(
            copies.OFFLOAD, source, self.step.slab, item.slot, *_layout(item))
        self.kept.add(token)
        self.step.tokens[item.slot] = token

    def left(self, item: Copy) -> None:
        """What is copied out is there until here. The token that goes on is the
        wait's, so that nobody can think it unused."""
        token = self.token(copies.WAIT, self.leaving.pop(item.slot),
                           self.step.tokens[item.slot], self.step.slab, item.slot)
        self.kept.add(token)
        self.step.tokens[item.slot] = token

    def reload(self, item: Copy) -> None:
        self.forget(item.value)
        self.coming[item.value] = item, self.token(
            copies.RELOAD, self.step.tokens[item.slot], self.step.slab, item.slot)

    def arrive(self, item: Copy, token: torch.fx.Node) -> None:
        value = item.value.meta["val"]
        copy = self.graph.call_function(copies.ARRIVE, (
            token, self.step.slab, *_layout(item), value.dtype, value.device))
        copy.meta = dict(item.value.meta)
        self.set(item.value, copy)

    def snapshot(self, operation: Operation) -> None:
        device = random_state.device_of(operation.node)
        state = self.graph.call_function(random_state.take, (device,))
        state.meta["val"] = _like_state(self.joint, device)
        self.step.states[operation.node] = state

    def move_state(self, action: str, bucket: int = -1) -> None:
        if self.state_token is None:
            self.state_token = self.token(STATE_TOKEN)
        self.kept.add(self.graph.call_function(MOVE_STATE, (
            self.state_token, self.step.moves, action, bucket)))

    def write(self, items: list[Item], forward: bool) -> None:
        if forward and self.step.moves is not None:
            self.move_state(BEGIN)
        for item, begins in moments(items):
            if isinstance(item, Snapshot):
                self.snapshot(item.operation)
            elif isinstance(item, Run):
                self.run(item.operation)
            elif isinstance(item, StateCopy):
                self.move_state(action_of(item, begins), item.bucket)
            elif isinstance(item, Copy):
                (self.leave if begins else self.left if item.out else self.reload)(item)

    def finish(self, frame: torch.fx.GraphModule, outputs: list[Any],
               descriptions: list[Any] | None) -> torch.fx.GraphModule:
        """The frame's module with this body."""
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
            # Getitems and views that nothing came to read.
            if copy.op in ("call_function", "get_attr") and not copy.users and (
                    copy not in self.kept and (copy.target is operator.getitem
                                               or not copy.is_impure())):
                self.graph.erase_node(copy)
        self.graph.lint()
        mark_places(self.graph)
        return torch.fx.GraphModule(frame, self.graph)


def _frame_saved(frame: torch.fx.GraphModule, count: int) -> list[torch.fx.Node]:
    output, = frame.graph.find_nodes(op="output")
    return list(output.args[0][count:])


def split(posed: Posed, program: Program, inputs: Any,
          moves: StateMoves | None = None, **options: Any) -> Split:
    """moves: of optimizer state, where the program has any; `options` are those that
    AOT autograd hands to a partitioner."""
    joint = posed.joint
    forward_part, backward_part, _ = program
    tags = _tag(posed, backward_part)
    start = time.perf_counter()
    forward_frame, backward_frame = private.partition_by_tags(
        joint.module, inputs, **options)
    partition_s = time.perf_counter() - start
    by_name = {node.name: node for node in joint.graph.nodes}
    framed = [by_name[node.name] for node in _frame_saved(
        forward_frame, joint.num_forward_outputs)]
    wanted = saved_values(posed, backward_part)
    # In the frame's order, then what it lacks. A copy wants the value and no view.
    copied = {item.value for item in backward_part if isinstance(item, Copy)}
    kept = [node for node in framed if joint.root[node] in wanted
            and (joint.root[node] is node or joint.root[node] not in copied)]
    refused = [node for node in dict.fromkeys(joint.root[node] for node in framed)
               if tags.get(node) is private.CheckpointPolicy.MUST_RECOMPUTE
               and node not in wanted]
    covered = {joint.root[node] for node in framed}
    lost = [value for value in wanted if value not in covered
            and tags.get(value) is private.CheckpointPolicy.MUST_SAVE]
    covered = {joint.root[node] for node in kept}
    passed = kept + [value for value in wanted if value not in covered]
    if any(node.meta.get("saved_tensor_with_no_vc_check") for node in passed):
        raise SplitError("saved tensors of two kinds")
    output, = joint.graph.find_nodes(op="output")
    leaves = private.pytree.tree_leaves(
        output.args[0], is_leaf=lambda leaf: leaf is None)
    count = joint.num_forward_outputs
    moved = {item.slot: item.value for part in program
             for item in part if isinstance(item, Copy)}
    device = next((value.meta["val"].device for value in moved.values()),
                  torch.device("cpu"))
    number, slab = copies.new_slab(
        {slot: joint.bytes[value] for slot, value in moved.items()}, device)
    graph = register(moves) if moves is not None and moves.moved else None
    step = _Step(number, graph, set(), {o.updates for o in joint.operations
                                 if o.updates is not None}, {}, {})

    def returned(body: _Body, part: list[Any]) -> list[Any]:
        return [body.get(leaf) if isinstance(leaf, torch.fx.Node) else leaf
                for leaf in part]

    body = _Body(posed, step)
    for node in forward_frame.graph.find_nodes(op="placeholder"):
        body.set(by_name[node.name], body.graph.node_copy(node))
    body.write(forward_part, True)
    # Tokens pass too, of what the backward part brings back.
    brought = {item.slot for item in backward_part
               if isinstance(item, Copy) and not item.out}
    tokens = {slot: token for slot, token in step.tokens.items()
              if slot in brought}
    # And states of what the backward part runs again.
    rerun = {item.operation.node for item in backward_part if isinstance(item, Run)}
    states = {node: state for node, state in step.states.items() if node in rerun}
    forward = body.finish(
        forward_frame,
        [*returned(body, leaves[:count] + passed), *tokens.values(),
         *states.values()],
        _descriptions(forward_frame, count,
                      len(passed) + len(tokens) + len(states)))

    forward.__dict__.update(loadline_slab=slab, loadline_moves=moves)

    body = _Body(posed, step)
    framed_names = {node.name for node in framed}
    for node in passed:
        copy = body.graph.placeholder(node.name)
        copy.meta = dict(node.meta)
        body.set(node, copy)
    for slot, token in tokens.items():
        step.tokens[slot] = body.graph.placeholder(f"host_token_{slot}")
        step.tokens[slot].meta = dict(token.meta)
    for node, state in states.items():
        step.states[node] = body.graph.placeholder(f"random_state_{node.name}")
        step.states[node].meta = dict(state.meta)
    for node in backward_frame.graph.find_nodes(op="placeholder"):
        if node.name not in framed_names:
            body.set(by_name[node.name], body.graph.node_copy(node))
    body.write(backward_part, False)
    backward = body.finish(backward_frame, returned(body, leaves[count:]), None)
    for node in backward.graph.nodes:
        if node.op in ("call_function", "get_attr"):
            node.meta["autograd_backward"] = True
    backward.__dict__.update(loadline_slab=slab, loadline_moves=moves)
    return Split(forward, backward, passed, slab, partition_s,
                 (forward_frame, backward_frame), refused, lost)


def _like_token(joint: Any) -> torch.Tensor:
    mode = next(node.meta["val"].fake_mode for node in joint.primals)
    with mode:
        return torch.empty((), dtype=torch.int64)


def _like_state(joint: Any, device: torch.device) -> torch.Tensor:
    mode = next(node.meta["val"].fake_mode for node in joint.primals)
    with mode:
        return torch.empty(random_state.state_bytes(device), dtype=torch.uint8)


def _descriptions(frame: torch.fx.GraphModule, count: int,
                  saved: int) -> list[Any] | None:
    """Of the outputs: the frame's, with as many saved ones as there now are."""
    output, = frame.graph.find_nodes(op="output")
    old = output.meta.get("desc")
    if old is None:
        return None
    described = list(old[:count])
    return described + [private.saved_description(i) for i in range(saved)]
