"""A plan as one sequence of items: runs, copies, saved random states, state updates.

A plan has three lanes with waits; a module has one order. In the order of the plan's
steps a copy out is listed where it has ended, and its source is free from there on. A
copy in is listed where it starts, and its destination exists from there on. That is also
what the planner counts. The copy out may start long before its place, and the copy in may
end long after it. Tested by tests/plugins/python/torch_offload_test.py and
torch_host_state_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from loadline.torch.problem.joint import Operation
from loadline.torch.problem.make_problem import TracedProblem, Snapshot


@dataclasses.dataclass(frozen=True)
class Run:
    operation: Operation


@dataclasses.dataclass(frozen=True)
class Copy:
    value: torch.fx.Node
    slot: int  # the plan's host buffer
    out: bool  # to the host


@dataclasses.dataclass(frozen=True)
class StateCopy:
    """Of a bucket of optimizer state."""

    bucket: int
    out: bool


@dataclasses.dataclass(frozen=True)
class ParameterCopy:
    """Of a parameter, or of what its update has made of it."""

    value: torch.fx.Node  # its memory
    number: int
    out: bool
    # The device memory that a copy in fills is updated, or stays when the step ends.
    kept: bool = False


@dataclasses.dataclass(frozen=True)
class Update:
    bucket: int
    parameters: tuple[torch.fx.Node, ...] = ()  # memory of those that may leave


Item = Run | Copy | Snapshot | StateCopy | ParameterCopy | Update
Program = tuple[list[Item], list[Item], list[Item]]


def program_of(traced: TracedProblem, plan: dict[str, Any]) -> Program:
    """The items before the boundary, after it, and after the last gradient."""
    buffers = {buffer["id"]: buffer for buffer in plan["buffers"]}
    kept = _kept(traced, plan)
    parts: Program = ([], [], [])
    part = parts[0]
    for step in plan["steps"]:
        if step["lane"] == "compute":
            number = step["node"]
            if number > traced.end:
                part.append(Update(number - traced.end - 1, tuple(
                    traced.parameters[id_][1] for id_ in (
                        buffers[buffer]["value"] for buffer in step["in"])
                    if id_ in traced.parameters)))
            elif (operation := traced.operations[number]) is not None:
                part.append(operation if isinstance(operation, Snapshot)
                            else Run(operation))
            else:
                part = parts[1 if number == traced.boundary else 2]
            continue
        out = step["lane"] == "d2h"
        id_ = buffers[step["from"]]["value"]
        value = traced.values[id_]
        if id_ in traced.parameters:
            number, value = traced.parameters[id_]
            part.append(ParameterCopy(value, number, out, step["to"] in kept))
        elif value is not None:
            part.append(Copy(value, step["to" if out else "from"], out))
        else:
            part.append(StateCopy(traced.state[id_], out))
    return parts


def _kept(traced: TracedProblem, plan: dict[str, Any]) -> set[int]:
    """Device buffers of parameters in which these are updated, or stay."""
    found: set[int] = set()
    if not traced.parameters:
        return found
    buffers = {buffer["id"]: buffer for buffer in plan["buffers"]}
    latest: dict[int, int] = {}  # by parameter: the device buffer that came last
    for step in plan["steps"]:
        if step["lane"] == "compute" and step["node"] > traced.end:
            found.update(step["in"])
        if step["lane"] == "h2d" and (
                parameter := traced.parameters.get(buffers[step["to"]]["value"])):
            latest[parameter[0]] = step["to"]
    resting = {traced.parameters[value][0] for value in resting_on_host(plan)
               if value in traced.parameters}
    return found | {buffer for number, buffer in latest.items() if number not in resting}


def starts(items: list[Item]) -> dict[int, list[Copy | StateCopy | ParameterCopy]]:
    """The copies out that start after each item, by its place (-1: before the first).

    Each starts as soon as its source exists, but not before the copy that ends first.
    The items themselves list a copy out where it has ended."""
    made: dict[Any, int] = {}  # by value or bucket
    found: dict[int, list[Copy | StateCopy | ParameterCopy]] = {}
    start = -1
    for at, item in enumerate(items):
        if isinstance(item, Run):
            made.update(dict.fromkeys(item.operation.makes, at))
        elif isinstance(item, Update):
            made["state", item.bucket] = at
            made.update(dict.fromkeys(item.parameters, at))
        elif isinstance(item, Copy | StateCopy | ParameterCopy):
            source = ("state", item.bucket) if isinstance(item, StateCopy) else item.value
            if item.out:
                start = max(start, made.get(source, -1))
                found.setdefault(start, []).append(item)
            else:
                made[source] = at
    return found


def moments(items: list[Item]) -> Iterator[tuple[Item, bool]]:
    """The items in order, each with False; and each copy out with True, where it starts."""
    leaving = starts(items)
    for at in range(-1, len(items)):
        if at >= 0:
            yield items[at], False
        for copy in leaving.get(at, ()):
            yield copy, True


def resting_on_host(plan: dict[str, Any]) -> set[int]:
    """Values that are on the host when a step begins, and so between steps."""
    written = {step["to"] for step in plan["steps"] if "to" in step}
    return {buffer["value"] for buffer in plan["buffers"]
            if buffer["space"] == "host" and buffer["id"] not in written}


def peak_bytes(problem: dict[str, Any], plan: dict[str, Any]) -> int:
    return max(peaks(problem, plan, 0))


def _taken_over(step: dict[str, Any], node: dict[str, Any],
                values: list[dict[str, Any]], updates: dict[int, int],
                ends: Callable[[int], bool]) -> int:
    """Bytes of inputs that become outputs in place: they are counted once, not twice."""
    read = dict(zip(node["inputs"], step["in"]))
    passed: set[int] = set()  # each input becomes one output, and vice versa
    bytes_ = 0
    for old, new in node.get("inplace", ()):
        if old not in updates and (passed & {old, new} or not ends(read[old])):
            continue
        passed |= {old, new}
        bytes_ += values[old]["bytes"]
    return bytes_


def peaks(problem: dict[str, Any], plan: dict[str, Any],
          tail_steps: int) -> tuple[int, int, int]:
    """Peak bytes on the device before the last `tail_steps` steps, in them, and the bytes
    that stay at the end.

    A buffer is alive from the first step that touches it (an input: from the beginning)
    to the last one (an input or a result: to the end, unless it rests on the host). An
    update in place shares the buffer of what it updates."""
    steps, nodes = plan["steps"], problem["nodes"]
    device = {buffer["id"]: buffer for buffer in plan["buffers"]
              if buffer["space"] == "device"}
    values = problem["values"]
    updates = dict(pair for node in nodes for pair in node.get("inplace", ())
                   if values[pair[0]].get("persistent"))
    held = {*problem["outputs"], *updates.values(),
            *(value["id"] for value in problem["values"]
              if value.get("persistent"))} - updates.keys()
    for value in resting_on_host(plan):
        held -= {value, updates.get(value)}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    latest: dict[int, int] = {}  # by value: its buffer
    for at, step in enumerate(steps):
        writes = step.get("out", [step["to"]] if "to" in step else [])
        reads = step.get("in", [step["from"]] if "from" in step else [])
        for buffer in (b for b in (*reads, *writes) if b in device):
            first.setdefault(buffer, at if buffer in writes else -1)
            last[buffer] = at
            latest[device[buffer]["value"]] = buffer
    stays_there = {buffer for buffer, about in device.items() if about["value"] in held
                   and latest.get(about["value"], buffer) == buffer}
    change = [0] * (len(steps) + 3)  # the beginning, every step, the end, beyond

    def count(begin: int, end: int, bytes_: int) -> None:
        change[begin + 1] += bytes_
        change[end + 1] -= bytes_

    for buffer, about in device.items():
        stays = buffer in stays_there
        if stays or buffer in first:
            count(first.get(buffer, -1),
                  len(steps) + 1 if stays else last[buffer] + 1, about["bytes"])
    for at, step in enumerate(steps):
        if step["lane"] == "compute":
            count(at, at + 1, nodes[step["node"]].get("workspace_bytes", 0))
            count(at, at + 1, -_taken_over(step, nodes[step["node"]], values, updates, (
                lambda buffer: last.get(buffer) == at and buffer not in stays_there)))
    live = 0
    peak = [0, 0]
    for moment, (difference, step) in enumerate(zip(change, [None, *steps, None])):
        live += difference
        # A copy out allocates nothing on the device.
        if step is None or step["lane"] != "d2h":
            part = 0 < tail_steps and moment > len(steps) - tail_steps
            peak[part] = max(peak[part], live)
    return peak[0], peak[1], live
