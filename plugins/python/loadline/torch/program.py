"""A plan as a list of what happens, in one order: runs, copies out, copies in.

A plan has three lanes and waits; a module has one order. In the order of its
steps a run or a copy in finds every copy out before it ended, so the source of a
copy out is free from there on, and the destination of a copy in is there from
its place on: what the planner counts, too. Tested by
tests/plugins/python/torch_offload_test.py.
"""
from __future__ import annotations

import dataclasses
from typing import Any

import torch
from loadline.torch.joint import Operation
from loadline.torch.pose import Posed


@dataclasses.dataclass(frozen=True)
class Run:
    operation: Operation


@dataclasses.dataclass(frozen=True)
class Copy:
    value: torch.fx.Node
    slot: int  # of the host, by the plan's buffer
    out: bool  # to the host


Item = Run | Copy


def program_of(posed: Posed, plan: dict[str, Any]) -> tuple[list[Item],
                                                            list[Item]]:
    """Before and after the boundary."""
    buffers = {buffer["id"]: buffer for buffer in plan["buffers"]}
    halves: tuple[list[Item], list[Item]] = ([], [])
    part = halves[0]
    for step in plan["steps"]:
        if step["lane"] == "compute":
            operation = posed.operations[step["node"]]
            if operation is None:
                part = halves[1]
            else:
                part.append(Run(operation))
            continue
        out = step["lane"] == "d2h"
        value = posed.values[buffers[step["from"]]["value"]]
        assert value is not None
        part.append(Copy(value, step["to" if out else "from"], out))
    return halves


def program_of_sequence(posed: Posed, sequence: list[int]) -> tuple[list[Item],
                                                                    list[Item]]:
    """Of a plan without copies, as the nodes that it runs."""
    at = sequence.index(posed.boundary)
    first, second = ([Run(posed.operations[n]) for n in part]  # type: ignore
                     for part in (sequence[:at], sequence[at + 1:]))
    return first, second


def peak_bytes(problem: dict[str, Any], plan: dict[str, Any]) -> int:
    """Most bytes on the device while the program runs."""
    steps, bytes_, value_of = plan["steps"], {}, {}
    for buffer in plan["buffers"]:
        if buffer["space"] == "device":
            bytes_[buffer["id"]] = buffer["bytes"]
            value_of[buffer["id"]] = buffer["value"]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    made: dict[int, int] = {}  # by value: its latest buffer
    replaced = set()
    for at, step in enumerate(steps):
        writes = step.get("out", [step["to"]] if "to" in step else [])
        reads = step.get("in", [step["from"]] if "from" in step else [])
        for buffer in [*reads, *writes]:
            if buffer in bytes_:
                first.setdefault(buffer, at if buffer in writes else -1)
                last[buffer] = at
                if buffer in writes:
                    made[value_of[buffer]] = buffer
        if step["lane"] == "compute":
            node = problem["nodes"][step["node"]]
            replaced.update(
                reads[node["inputs"].index(old)]
                for old, _ in node.get("inplace", ()))
    held = set(problem["outputs"])
    for buffer, value in value_of.items():
        stays = value in held or (problem["values"][value].get("persistent")
                                  and buffer not in replaced)
        updated = any([old, value] in node.get("inplace", ())
                      for node in problem["nodes"] for old in node["inputs"]
                      if value in node["outputs"])
        if (stays or updated) and made.get(value, buffer) == buffer:
            first.setdefault(buffer, -1)
            last[buffer] = len(steps)
    change = [0] * (len(steps) + 3)
    for buffer, at in first.items():
        change[at + 1] += bytes_[buffer]
        change[last[buffer] + 2] -= bytes_[buffer]
    # An update in place and what it replaces are one.
    for at, step in enumerate(steps):
        if step["lane"] == "compute":
            node = problem["nodes"][step["node"]]
            for old, _ in node.get("inplace", ()):
                old_bytes = problem["values"][old]["bytes"]
                change[at + 1] -= old_bytes
                change[at + 2] += old_bytes
    live = peak = 0
    for at, difference in enumerate(change):
        live += difference
        step = steps[at - 1] if 1 <= at <= len(steps) else None
        if step is None or step["lane"] != "d2h":
            peak = max(peak, live)
    return peak
