"""Turns a plan's sequence into a forward and a backward module.

PyTorch's partitioner makes the two modules and their inputs and outputs: every forward
node is tagged as saved or recomputed, all with one ac_graph_id. Then both bodies are
written again (module_body.py) in the plan's order, because the order decides the peak.
The tensors that pass from forward to backward are the plan's as well: PyTorch may treat
tags as hints and choose a minimum cut of its own.
Tested by tests/plugins/python/torch_step_test.py and torch_tags_test.py.
"""
from __future__ import annotations

import dataclasses
import time
from typing import Any

import torch
from loadline.torch.compat import torch_internals
from loadline.torch.problem.joint import computing, is_seeded
from loadline.torch.problem.make_problem import TracedProblem
from loadline.torch.rewrite import copies
from loadline.torch.rewrite.module_body import ModuleWriter, SplitError, Step
from loadline.torch.rewrite.parameter_moves import (ParameterMoves,
                                                    parameter_moves_by_graph)
from loadline.torch.rewrite.program import (Copy, Item, ParameterCopy, Program, Run)
from loadline.torch.rewrite.state_moves import StateMoves, moves_by_graph


@dataclasses.dataclass
class Split:
    forward: torch.fx.GraphModule
    backward: torch.fx.GraphModule
    saved: list[torch.fx.Node]  # values that pass to the backward, inputs included
    slab: copies.Slab  # host memory of this graph
    partition_s: float  # PyTorch's partitioner alone, which any compile runs
    # The modules of PyTorch's partitioner, and the values that it saves although the plan
    # computes them again (because of effects or hooks).
    frames: tuple[torch.fx.GraphModule, torch.fx.GraphModule]
    refused: list[torch.fx.Node]


def saved_values(traced: TracedProblem, backward: list[Item]) -> list[torch.fx.Node]:
    """Values that the backward reads before it computes them, in order of reading."""
    made = {traced.joint.root[node] for node in traced.joint.tangents}
    made.update(traced.joint.root[node] for node in traced.joint.constants)
    saved: dict[torch.fx.Node, None] = {}
    for item in backward:
        if isinstance(item, Copy | ParameterCopy):
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
    for value in traced.joint.backward_outputs:
        if value not in made:
            saved[value] = None
    return list(saved)


def _tag(traced: TracedProblem, backward: list[Item]) -> dict[torch.fx.Node, Any]:
    """Tags every node; returns the tags of values that the forward's outputs need."""
    policy = torch_internals.CheckpointPolicy
    again = {node for item in backward if isinstance(item, Run)
             for node in item.operation.nodes}
    computes = {operation.node: operation for operation in traced.joint.operations}
    needs_tangent = set(traced.joint.tangents)
    tags: dict[torch.fx.Node, Any] = {}
    for node in traced.joint.graph.nodes:
        if any(argument in needs_tangent for argument in node.all_input_nodes):
            needs_tangent.add(node)
            continue
        if node.op != "call_function":
            continue
        source = computing(node)
        # A random operator tagged as recomputed would get a random state from PyTorch.
        kept = source in computes and (source not in again or is_seeded(source))
        node.meta["recompute"] = (
            policy.MUST_SAVE if kept else policy.MUST_RECOMPUTE)
        node.meta["ac_graph_id"] = 0
        # So PyTorch does not know that such an operator is computed again here.
        is_value = traced.joint.root.get(node) is node
        if is_value and source in computes and not is_seeded(source):
            tags[node] = node.meta["recompute"]
    forward = _needed(traced.joint.forward_outputs)
    return {node: tag for node, tag in tags.items() if node in forward}


def _needed(nodes: list[torch.fx.Node]) -> set[torch.fx.Node]:
    """The nodes and everything that they depend on."""
    found, open_ = set(nodes), list(nodes)
    while open_:
        new = [a for a in open_.pop().all_input_nodes if a not in found]
        found.update(new)
        open_ += new
    return found


def _frame_saved(frame: torch.fx.GraphModule, count: int) -> list[torch.fx.Node]:
    output, = frame.graph.find_nodes(op="output")
    return list(output.args[0][count:])


def split(traced: TracedProblem, program: Program, inputs: Any,
          moves: StateMoves | None = None, parameters: ParameterMoves | None = None,
          **options: Any) -> Split:
    """moves: of optimizer state, if the program has any; parameters: of these. inputs,
    options: what AOT autograd passes to a partitioner."""
    joint = traced.joint
    forward_part, backward_part, _ = program
    tags = _tag(traced, backward_part)
    start = time.perf_counter()
    forward_frame, backward_frame = torch_internals.partition_by_tags(
        joint.module, inputs, **options)
    partition_s = time.perf_counter() - start
    by_name = {node.name: node for node in joint.graph.nodes}
    frame_saved = _frame_saved(forward_frame, joint.num_forward_outputs)
    framed = [by_name[node.name] for node in frame_saved]
    wanted = saved_values(traced, backward_part)
    # In PyTorch's order, then what is missing. A copy needs the value itself, no view.
    copied = {item.value for item in backward_part if isinstance(item, Copy | ParameterCopy)}
    kept = [node for node in framed if joint.root[node] in wanted
            and (joint.root[node] is node or joint.root[node] not in copied)]
    policy = torch_internals.CheckpointPolicy
    forced = (joint.root[by_name[node.name]] for node in frame_saved
              if node.meta.get("recompute") is policy.MUST_SAVE)
    refused = [value for value in dict.fromkeys(forced)
               if tags.get(value) is policy.MUST_RECOMPUTE and value not in wanted]
    covered = {joint.root[node] for node in kept}
    passed = kept + [value for value in wanted if value not in covered]
    if any(node.meta.get("saved_tensor_with_no_vc_check") for node in passed):
        raise SplitError("saved tensors of two kinds")
    output, = joint.graph.find_nodes(op="output")
    leaves = torch_internals.pytree.tree_leaves(
        output.args[0], is_leaf=lambda leaf: leaf is None)
    count = joint.num_forward_outputs
    moved = {item.slot: item.value for part in program
             for item in part if isinstance(item, Copy)}
    device = next((item.value.meta["val"].device for part in program for item in part
                   if isinstance(item, Copy | ParameterCopy)), torch.device("cpu"))
    slab = copies.Slab({slot: joint.bytes[value] for slot, value in moved.items()}, device)
    number = copies.slabs.add(slab)
    graph = moves_by_graph.add(moves) if moves is not None and moves.updated else None
    gradients = () if moves is None else moves.gradients
    if moves is not None:
        moves.slab = number
    step = Step(number, graph, set(), {o.updates for o in joint.operations
                                       if o.updates is not None}, {}, {}, gradients,
                frozenset() if moves is None else moves.in_backward,
                parameter_moves_by_graph.add(parameters) if (
                    parameters is not None and parameters.moved) else None,
                *_parameters_of(traced, parameters))
    gone = {one.leaf for one, move in zip(traced.gradients, gradients)
            if move.left or one.bucket in step.in_backward}

    def returned(body: ModuleWriter, part: list[Any]) -> list[Any]:
        """None for a gradient that is on the host then, or used: autograd adds nothing."""
        return [None if leaf in gone else body.get(leaf)
                if isinstance(leaf, torch.fx.Node) else leaf for leaf in part]

    body = ModuleWriter(traced, step)
    for node in forward_frame.graph.find_nodes(op="placeholder"):
        body.input(by_name[node.name], body.graph.node_copy(node))
    body.write(forward_part, True)
    # Tokens of values that the backward reloads pass as well.
    brought = {item.slot for item in backward_part
               if isinstance(item, Copy) and not item.out}
    tokens = {slot: token for slot, token in step.tokens.items()
              if slot in brought}
    # So do random states of operators that the backward computes again.
    rerun = {item.operation.node for item in backward_part if isinstance(item, Run)}
    states = {node: state for node, state in step.states.items() if node in rerun}
    epochs = [] if step.epoch is None else [step.epoch]
    forward = body.finish(
        forward_frame,
        [*returned(body, leaves[:count] + passed), *tokens.values(),
         *states.values(), *epochs],
        _descriptions(forward_frame, count,
                      len(passed) + len(tokens) + len(states) + len(epochs)))

    forward.__dict__.update(loadline_slab=slab, loadline_moves=(moves, parameters))

    body = ModuleWriter(traced, step)
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
    if step.epoch is not None:
        meta = dict(step.epoch.meta)
        step.epoch = body.graph.placeholder("host_token_epoch")
        step.epoch.meta = meta
    for node in backward_frame.graph.find_nodes(op="placeholder"):
        if node.name not in framed_names:
            body.set(by_name[node.name], body.graph.node_copy(node))
    body.write(backward_part, False)
    backward = body.finish(backward_frame, returned(body, leaves[count:]), None)
    for node in backward.graph.nodes:
        if node.op in ("call_function", "get_attr"):
            node.meta["autograd_backward"] = True
    backward.__dict__.update(loadline_slab=slab, loadline_moves=(moves, parameters))
    return Split(forward, backward, passed, slab, partition_s,
                 (forward_frame, backward_frame), refused)


def _parameters_of(traced: TracedProblem, moves: ParameterMoves | None
                   ) -> tuple[dict[torch.fx.Node, int], frozenset[torch.fx.Node]]:
    """Numbers of those that move, by their memory; and those that rest on the host."""
    if moves is None:
        return {}, frozenset()
    values = {number: value for number, value in traced.parameters.values()}
    return ({values[number]: number for number in moves.moved},
            frozenset(values[number] for number in moves.resting_on_host))


def _descriptions(frame: torch.fx.GraphModule, count: int,
                  saved: int) -> list[Any] | None:
    """PyTorch's descriptions of the outputs, for the present number of saved values."""
    output, = frame.graph.find_nodes(op="output")
    old = output.meta.get("desc")
    if old is None:
        return None
    described = list(old[:count])
    return described + [torch_internals.saved_description(i) for i in range(saved)]
