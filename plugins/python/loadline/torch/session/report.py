"""The report: what was planned and what was measured, as text or as a page.

Tested by tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any

from loadline import planning
from loadline.budget import format_bytes
from loadline.errors import LoadlineError
from loadline.torch.compat import tiers
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.session import Prepared, Session, live_sessions, recent_graphs


def _lines_of(graph: PlannedGraph, unmeasured: str) -> list[str]:
    """unmeasured: why, if it was not measured."""
    lines = [f"  {graph.describe()}", f"  tier {graph.tier}"]
    if graph.tier != tiers.FULL:
        lines[-1] += f": {tiers.LIMITS[graph.tier]}"
    machine = graph.options.machine
    lines.append(f"  operator times: of {machine.name}" + (
        " (from its data sheet)" if machine.nominal else ""))
    if graph.moves.moved or graph.moves.on_host:
        lines.append(_state_line(graph))
    if graph.moves.gradients:
        lines.append(_gradient_line(graph))
    if graph.parameters.moved:
        lines.append(_parameter_line(graph))
    if graph.not_obeyed:
        lines.append("  not run as planned: PyTorch's partitioner decides differently "
                     f"about {', '.join(graph.not_obeyed)}")
    if graph.measured_bytes is None:
        lines.append(f"  not measured: {unmeasured}")
        return lines
    difference = graph.measured_bytes - graph.step_peak_bytes
    lines.append(f"  measured {format_bytes(graph.measured_bytes)}, "
                 f"{difference:+d} bytes against the plan")
    if graph.surprises:
        name, (predicted, found) = max(
            graph.surprises.items(), key=lambda item: abs(item[1][1] - item[1][0]))
        lines.append(f"  largest surprise: {name} made {format_bytes(found)} instead "
                     f"of the predicted {format_bytes(predicted)}")
    return lines


def _state_line(graph: PlannedGraph) -> str:
    moves = graph.moves
    if moves.on_host:
        return (f"  optimizer state: all on the host and updated there, in "
                f"{len(moves.updated)} buckets")
    moved, rest = (sum(moves.bytes[bucket] for bucket in buckets)
                   for buckets in (moves.moved, moves.resting_on_host))
    return (f"  optimizer state: {format_bytes(moved)} on the host for a part of the "
            f"step, in {len(moves.moved)} buckets, of which {format_bytes(rest)} are there "
            f"between steps; {format_bytes(graph.resident_state_bytes)} on the device; "
            f"updates take {format_bytes(graph.update_peak_bytes)} at most")


def _gradient_line(graph: PlannedGraph) -> str:
    assert graph.traced is not None
    moves = [(move, graph.traced.joint.bytes[gradient.value])
             for gradient, move in zip(graph.traced.gradients, graph.moves.gradients)]
    left = sum(bytes_ for move, bytes_ in moves if move.left)
    return (f"  gradients: {format_bytes(left)} of {format_bytes(sum(b for _, b in moves))} "
            "are on the host until the optimizer's step; "
            f"{len(graph.moves.in_backward)} of {len(graph.moves.updated)} buckets are updated "
            "in the backward")


def _parameter_line(graph: PlannedGraph) -> str:
    assert graph.traced is not None
    bytes_ = {number: graph.traced.joint.bytes[value]
              for number, value in graph.traced.parameters.values()}
    moved, rest = (sum(bytes_[number] for number in numbers) for numbers in (
        graph.parameters.moved, graph.parameters.resting_on_host))
    return (f"  parameters: {format_bytes(moved)} on the host for a part of the step, in "
            f"{len(graph.parameters.moved)} tensors, of which {format_bytes(rest)} are there "
            "between steps")


def _command() -> str:
    if named := os.environ.get("LOADLINE_COMMAND"):
        return named
    try:
        import loadline_command  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return "loadline"  # wherever the path has it
    return str(loadline_command.PROGRAM)


def write_page(document: dict[str, Any], made: planning.Plan, path: str) -> None:
    """Runs the command `loadline report` on a problem and its plan."""
    command = _command()
    with tempfile.TemporaryDirectory() as folder:
        problem, plan = (pathlib.Path(folder) / name
                         for name in ("problem.json", "plan.json"))
        problem.write_text(json.dumps(document))
        plan.write_text(made.json)
        try:
            done = subprocess.run(
                [command, "report", plan, "--problem", problem, "--html", path],
                capture_output=True, text=True)
        except OSError as error:
            raise LoadlineError(f"the page needs the command loadline ({error}): build it "
                                "by tools/loadline of a checkout and set LOADLINE_COMMAND "
                                "to its path, or run pip install ./tools/wheel there"
                                ) from error
    if done.returncode != 0:
        raise LoadlineError(done.stderr.strip())


def _session() -> Session | None:
    """Of the graph planned last."""
    last = recent_graphs[-1]
    return next((session for session in live_sessions()
                 if any(graph is last for graph in session.graphs)), None)


_NOT_RUN = "only prepare runs a step to measure it"


def _unmeasured(prepared: Prepared) -> str:
    if prepared.measured_bytes is not None:
        return "not alone, because the step has several graphs"
    return "bytes are known on a CUDA device, and on the CPU with inner=\"aot_eager\""


def _lines_of_graphs(graphs: list[PlannedGraph], first: int, unmeasured: str) -> list[str]:
    lines = []
    for number, graph in enumerate(graphs, first):
        lines.append(f"graph {number}, {len(graph.problem['nodes'])} operations")
        lines.extend(_lines_of(graph, unmeasured))
    return lines


def _lines_of_prepared(prepared: Prepared) -> list[str]:
    lines = [f"budget {prepared.budget}; optimizer state "
             f"{format_bytes(prepared.optimizer_bytes)}, accumulated gradients "
             f"{format_bytes(prepared.accumulated_bytes)}, corrected by "
             f"{format_bytes(prepared.corrected_bytes)}",
             f"the optimizer's step takes {format_bytes(prepared.step_bytes)} for itself"
             + (f", the loss {format_bytes(prepared.loss_bytes)}"
                if prepared.loss_bytes else "")]
    if prepared.structure:
        lines.append(f"structure: {prepared.structure}" + (
            f"; {format_bytes(prepared.parts_bytes)} for gradients that are added up and "
            "the batch" if prepared.parts_bytes else ""))
    if prepared.detached_outputs:
        lines.append(f"outputs beside the loss that have no backward: {prepared.detached_outputs}")
    if prepared.outside_bytes:
        lines.append("subtracted for memory outside PyTorch's allocator: "
                     f"{format_bytes(prepared.outside_bytes)}")
    if prepared.allocator_bytes is not None and prepared.found_outside_bytes is not None:
        lines.append("device memory: PyTorch's allocator holds "
                     f"{format_bytes(prepared.allocator_bytes)}, everything else, other "
                     "processes included, "
                     f"{format_bytes(prepared.found_outside_bytes)}")
    if len(prepared.graphs) > 1 and prepared.measured_bytes is not None:
        lines.append(f"measured {format_bytes(prepared.measured_bytes)} in all")
    return lines


def report(html: str | os.PathLike[str] | None = None) -> str:
    """The prepared model as text, if the graph planned last is of that model, else the
    graphs planned last. html: also writes the page of the last graph that `prepare` planned,
    as `loadline report` does. Graphs of models that no longer exist are not reported."""
    if not recent_graphs:
        raise LoadlineError("no model that still exists has been planned: run a step "
                            "first")
    session = _session()
    prepared = None if session is None else session.prepared
    if session is None or prepared is None:
        graphs = list(recent_graphs)
        lines = _lines_of_graphs(graphs, 0, _NOT_RUN)
    else:
        graphs = prepared.graphs
        lines = [*_lines_of_prepared(prepared),
                 *_lines_of_graphs(graphs, 0, _unmeasured(prepared))]
        later = [graph for graph in session.graphs
                 if all(graph is not one for one in prepared.graphs)]
        if later:
            lines += ["planned since, for another batch or other settings:",
                      *_lines_of_graphs(later, len(graphs), _NOT_RUN)]
    if html is not None:
        write_page(graphs[-1].problem, graphs[-1].plan, os.fspath(html))
    return "\n".join(lines)
