"""What was planned and what was measured, for people.

Tested by tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile

from loadline.budget import format_bytes
from loadline.errors import LoadlineError
from loadline.torch.compat import tiers
from loadline.torch.rewrite.planned_graph import PlannedGraph, describe, planned
from loadline.torch.session.prepare import prepared


def _lines_of(graph: PlannedGraph) -> list[str]:
    lines = [f"  {describe(graph)}", f"  tier {graph.tier}"]
    if graph.tier != tiers.FULL:
        lines[-1] += f": {tiers.LIMITS[graph.tier]}"
    machine = graph.options.machine
    lines.append(f"  prices: {machine.name}" + (
        " (from its data sheet)" if machine.nominal else ""))
    if graph.moves.moved:
        lines.append(_state_line(graph))
    if graph.not_obeyed:
        lines.append("  not run as planned: PyTorch's partitioner does otherwise with "
                     f"{', '.join(graph.not_obeyed)}")
    if graph.measured_bytes is None:
        lines.append("  not measured: only inner=\"aot_eager\" on the CPU and CUDA "
                     "devices tell their bytes")
        return lines
    difference = graph.measured_bytes - graph.peak_bytes
    lines.append(f"  measured {format_bytes(graph.measured_bytes)}, "
                 f"{difference:+d} bytes against the plan")
    if graph.surprises:
        name, (predicted, found) = max(
            graph.surprises.items(), key=lambda item: abs(item[1][1] - item[1][0]))
        lines.append(f"  largest surprise: {name} made {format_bytes(found)} where "
                     f"{format_bytes(predicted)} were predicted")
    return lines


def _state_line(graph: PlannedGraph) -> str:
    moves = graph.moves
    moved, rest = (sum(moves.bytes[bucket] for bucket in buckets)
                   for buckets in (moves.moved, moves.resting_on_host))
    return (f"  optimizer state: {format_bytes(moved)} on the host for a part of the "
            f"step, in {len(moves.moved)} buckets, {format_bytes(rest)} of it between "
            f"steps; {format_bytes(graph.resident_state_bytes)} on the device; updates "
            f"take {format_bytes(graph.update_peak_bytes)} at most")


def _write_page(graph: PlannedGraph, path: str) -> None:
    """By the command, from the same problem and plan."""
    command = os.environ.get("LOADLINE_COMMAND") or str(
        pathlib.Path(__file__).parents[2] / "_lib" / "loadline")
    with tempfile.TemporaryDirectory() as folder:
        problem, plan = (pathlib.Path(folder) / name
                         for name in ("problem.json", "plan.json"))
        problem.write_text(json.dumps(graph.problem))
        plan.write_text(graph.plan.json)
        try:
            done = subprocess.run(
                [command, "report", plan, "--problem", problem, "--html", path],
                capture_output=True, text=True)
        except OSError as error:
            raise LoadlineError(f"the command loadline is not here: {error}; "
                                "LOADLINE_COMMAND may name it") from error
    if done.returncode != 0:
        raise LoadlineError(done.stderr.strip())


def report(html: str | os.PathLike[str] | None = None) -> str:
    """The prepared model, if it was the last that was planned, or else the graphs
    planned last, as text; with `html` also the last graph's page, the one that
    `loadline report` writes."""
    if not planned:
        raise LoadlineError("nothing has been planned yet: run a step first")
    last = prepared[-1] if prepared and any(
        graph.options == planned[-1].options for graph in prepared[-1].graphs) else None
    graphs = planned if last is None else last.graphs
    lines = []
    if last is not None:
        lines.append(f"budget {last.budget}; optimizer state "
                     f"{format_bytes(last.optimizer_bytes)}, gradients that stay "
                     f"{format_bytes(last.accumulated_bytes)}, corrected by "
                     f"{format_bytes(last.corrected_bytes)}")
        if last.outside_bytes:
            lines.append(f"taken off for what lies outside PyTorch's allocator: "
                         f"{format_bytes(last.outside_bytes)}")
        if last.allocator_bytes is not None and last.found_outside_bytes is not None:
            lines.append(f"of the device the allocator holds "
                         f"{format_bytes(last.allocator_bytes)}, and all else, other "
                         f"processes too, {format_bytes(last.found_outside_bytes)}")
        if len(last.graphs) > 1 and last.measured_bytes is not None:
            lines.append(f"measured {format_bytes(last.measured_bytes)} in all")
    for number, graph in enumerate(graphs):
        lines.append(f"graph {number}, {len(graph.problem['nodes'])} operations")
        lines.extend(_lines_of(graph))
    if html is not None:
        _write_page(graphs[-1], os.fspath(html))
    return "\n".join(lines)
