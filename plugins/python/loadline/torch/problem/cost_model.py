"""Predicted time of a kernel: a roofline over PyTorch's FLOP counts.

Tested by tests/plugins/python/torch_step_test.py and torch_fuse_test.py.
"""
from __future__ import annotations

import dataclasses
import operator

import torch
from loadline.machine import Machine
from loadline.torch.compat import torch_internals
from loadline.torch.problem.inside import inside_of
from loadline.torch.problem.joint import is_view

# Round numbers for a CPU: a plan depends on ratios of times only.
NOMINAL = Machine(
    name="nominal", matmul_flop_per_s={"f32": 1e11, "f16": 2e11, "bf16": 2e11},
    memory_bytes_per_s=5e10, launch_ns=2000)

# Host time to issue one copy to or from a GPU: 240 to 370 us were measured
# (docs/gpu.md).
COPY_CALL_NS = 250_000

# Bytes per second that an update on the host moves. Nominal: two channels of DDR5-4800 have
# 77e9 at most.
HOST_UPDATE_BYTES_PER_S = 5e10

_TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def with_copy_calls(machine: Machine, device: torch.device | None) -> Machine:
    """The machine with the price of a copy's call. device: whose values are copied.

    On a CPU the copy itself is the host's work, so its call has no price of its own."""
    if device is None or device.type == "cpu":
        return machine
    return dataclasses.replace(
        machine, copy_overhead_ns=machine.copy_overhead_ns + COPY_CALL_NS)


def host_update_ns(state_bytes: int, parameter_bytes: int, machine: Machine) -> int:
    """Of one bucket of several. The update reads gradients, parameters and state, and writes
    the latter two, while parameters and gradients of other buckets are copied."""
    update = (2 * state_bytes + 3 * parameter_bytes) / HOST_UPDATE_BYTES_PER_S
    out = 2 * parameter_bytes / machine.d2h_bytes_per_s
    back = parameter_bytes / machine.h2d_bytes_per_s
    return max(1, int(1e9 * max(update, out, back)))


def _meta(argument: object) -> object:
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else (
        argument)


def product_flops(node: torch.fx.Node) -> int:
    """FLOPs of matrix products and convolutions, as PyTorch counts them; 0 for others."""
    packet = getattr(node.target, "overloadpacket", None)
    if packet not in torch_internals.flop_registry:
        return 0
    args, kwargs = torch_internals.pytree.tree_map(_meta, (node.args, node.kwargs))
    return int(torch_internals.flop_registry[packet](
        *args, **kwargs, out_val=node.meta.get("val")))


def _elements(value: object) -> int:
    return sum(leaf.numel() for leaf in torch_internals.pytree.tree_leaves(value)
               if isinstance(leaf, torch.Tensor))


def node_flops(node: torch.fx.Node) -> int:
    """As `product_flops`; for other operators one for each element made or reduced."""
    if (inside := inside_of(node)) is not None:
        return inside.flops
    if (flops := product_flops(node)) > 0 or node.target is operator.getitem or (
            is_view(node)):
        return flops
    return max(_elements(value.meta.get("val"))
               for value in (node, *node.all_input_nodes))


def _tensor_bytes(value: object) -> int:
    return sum(leaf.numel() * leaf.element_size()
               for leaf in torch_internals.pytree.tree_leaves(value)
               if isinstance(leaf, torch.Tensor))


def _base(node: torch.fx.Node) -> torch.fx.Node:
    """The node that this is a view or an element of, or the node itself."""
    while node.target is operator.getitem or is_view(node):
        node = node.args[0]  # type: ignore[assignment]
    return node


def _rate(machine: Machine, dtype: torch.dtype) -> float:
    rates = machine.matmul_flop_per_s
    return rates.get(_TYPES.get(dtype, "f32")) or rates.get("f32") or 1e11


def _bandwidth(machine: Machine) -> float:
    return machine.memory_bytes_per_s or 5e10


def time_of(nodes: list[torch.fx.Node], machine: Machine) -> int:
    """Nanoseconds of one kernel that computes all nodes: it reads what none of them makes
    and writes what the last one makes."""
    node = nodes[-1]
    if (inside := inside_of(node)) is not None:
        return machine.launch_ns + int(1e9 * (
            inside.flops / _rate(machine, inside.dtype)
            + inside.moved_bytes / _bandwidth(machine)))
    flops = sum(map(node_flops, nodes))
    moved = _tensor_bytes(node.meta.get("val")) + sum(
        _tensor_bytes(argument.meta.get("val"))
        for argument in dict.fromkeys(a for n in nodes for a in n.all_input_nodes)
        if _base(argument) not in nodes)
    value = next((leaf
                  for leaf in torch_internals.pytree.tree_leaves(node.meta.get("val"))
                  if isinstance(leaf, torch.Tensor)), None)
    rate = _rate(machine, torch.float32 if value is None else value.dtype)
    return machine.launch_ns + int(1e9 * max(flops / rate, moved / _bandwidth(machine)))
