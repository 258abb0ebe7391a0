"""The full tier: takes a joint graph, plans it, and returns two modules.

Tested by tests/plugins/python/torch_step_test.py.
"""
from __future__ import annotations

import dataclasses
import math
import time
import warnings
import weakref
from typing import Any

import torch
from loadline import planning
from loadline.budget import SMALLEST
from loadline.errors import (Infeasible, InternalError, LoadlineError, LoadlineWarning,
                             Stopped)
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.compat.lanes import has_lanes
from loadline.torch.problem.cost_model import node_flops, with_copy_calls
from loadline.torch.problem.fuse import fuse
from loadline.torch.problem.gradients import gradients_of
from loadline.torch.problem.joint import Joint, Operation, clean, read_joint
from loadline.torch.problem.make_problem import TracedProblem, make_problem, staying
from loadline.torch.problem.measure import measured_ns
from loadline.torch.problem.parameters import leaving_parameters
from loadline.torch.rewrite.parameter_moves import ParameterMoves, parameter_moves_of
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.rewrite.planner_pass import PlannerPass
from loadline.torch.rewrite.program import Program, peaks, program_of
from loadline.torch.rewrite.split import split
from loadline.torch.rewrite.state_moves import StateMoves, moves_of
from loadline.torch.solve.make_plan import plan_for_ranks


@dataclasses.dataclass
class Solved:
    traced: TracedProblem
    plan: planning.Plan
    program: Program
    moves: StateMoves
    parameters: ParameterMoves
    peak_bytes: int
    update_peak_bytes: int
    whole_bytes: int  # peak if everything is kept


def recomputed_flops(traced: TracedProblem, sequence: list[int]) -> int:
    """FLOPs of every run of an operation after its first."""
    seen: set[int] = set()
    flops = 0
    for number in sequence:
        operation = traced.operations[number]
        if number in seen and isinstance(operation, Operation):
            flops += sum(map(node_flops, operation.nodes))
        seen.add(number)
    return flops


def copied_device(joint: Joint) -> torch.device | None:
    """The device whose values may be copied to the host: the graph's only one besides the
    CPU, or the CPU itself as a virtual device. None: there is no such device."""
    devices = {node.meta["val"].device for node in joint.primals}
    devices = {device for device in devices if device.type != "cpu"} or devices
    device = devices.pop()
    return None if devices or not has_lanes(device) else device


class Partitioner(
        PlannerPass,
        torch_internals.CustomPartitionerFn or object):  # type: ignore[misc]
    def __call__(self, gm: torch.fx.GraphModule, joint_inputs: Any,
                 **kwargs: Any) -> tuple[torch.fx.GraphModule,
                                         torch.fx.GraphModule]:
        try:
            return self.partition(gm, joint_inputs, **kwargs)
        except LoadlineError:
            raise
        except Exception as error:
            # After some exceptions PyTorch would run the model unplanned.
            raise InternalError(
                f"{type(error).__name__} while planning: {error}") from error

    def partition(self, gm: torch.fx.GraphModule, joint_inputs: Any,
                  **kwargs: Any) -> tuple[torch.fx.GraphModule,
                                          torch.fx.GraphModule]:
        start = time.perf_counter()
        joint = self.read(gm, kwargs["num_fwd_outputs"])
        times = measured_ns(joint.operations, joint.primals[0].meta["val"].device) if (
            self.options.measure) else {}
        solved = self.solve(joint, times)
        parts = split(solved.traced, solved.program, joint_inputs, solved.moves,
                      solved.parameters, **kwargs)
        partition_s = parts.partition_s
        if parts.refused:  # plan again, with these values saved
            joint.keep(parts.refused)
            solved = self.solve(joint, times)
            parts = split(solved.traced, solved.program, joint_inputs, solved.moves,
                          solved.parameters, **kwargs)
            partition_s += parts.partition_s
        names = [node.name for node in parts.refused]
        self.recorder.record(PlannedGraph(
            solved.traced.document, solved.plan, solved.peak_bytes, solved.whole_bytes,
            time.perf_counter() - start - partition_s, self.options, tiers.FULL,
            self.number, solved.traced, solved.update_peak_bytes,
            StateMoves(0) if names else solved.moves,
            recomputed_flops(solved.traced, solved.plan.sequence),
            len(parts.saved), weakref.ref(parts.slab), not_obeyed=names,
            parameters=ParameterMoves() if names else solved.parameters))
        if names:
            warnings.warn(
                "loadline: PyTorch's partitioner saves values that the plan computes "
                f"again, for the second time ({', '.join(names[:5])}), so this graph runs "
                "as PyTorch splits it and may take more than its budget. "
                "loadline.torch.prepare measures its peak. Please report this",
                LoadlineWarning, stacklevel=2)
            return parts.frames
        return parts.forward, parts.backward

    def read(self, gm: torch.fx.GraphModule, num_fwd_outputs: int) -> Joint:
        """The operations of a joint graph, as they will run."""
        clean(gm)
        joint = read_joint(gm, num_fwd_outputs, dict(self.options.found_bytes))
        if self.options.inner == "inductor":
            fuse(joint)
        return joint

    def whole_bytes(self, problem: dict[str, Any]) -> int:
        """The peak if everything is kept, and the optimizer makes one step of all."""
        kept = planning.keep_everything(problem)
        return max(kept.peak_bytes, peaks(problem, kept.document, 0)[2]
                   + (self.options.step_bytes if self.options.state else 0))

    def pose(self, joint: Joint, times: dict[torch.fx.Node, int]) -> TracedProblem:
        """The problem of the joint graph."""
        copies = copied_device(joint)
        machine = with_copy_calls(self.options.machine, copies)
        if copies is None and not self.options.state:
            machine = dataclasses.replace(machine, d2h_bytes_per_s=0)
        gradients, early = gradients_of(
            joint, self.owners, [about.parameters for about in self.options.state])
        # Inductor replaces random operators, so they run again only in eager kernels.
        return make_problem(joint, machine, self.options.state, copies,
                            self.options.inner == "aot_eager", times,
                            self.options.loss_bytes, self.options.step_bytes,
                            gradients, early, leaving_parameters(
                                joint, self.parameters, gradients, early))

    def better_plan(self, traced: TracedProblem
                    ) -> tuple[dict[str, Any], int, planning.Plan]:
        """Of those in which parameters may leave, and in which they stay, as an estimate's.
        The search finds the latter more easily, because it has less to choose."""
        whole = self.whole_bytes(traced.document)
        documents = [traced.document, *([staying(traced)] if traced.parameters else [])]
        options = dataclasses.replace(
            self.options, time_limit_s=self.options.part_of_time(len(documents)))
        found: list[tuple[dict[str, Any], int, planning.Plan]] = []
        refused: list[Infeasible | Stopped] = []
        for document in documents:
            try:
                found.append(plan_for_ranks(document, options, whole))
            except (Infeasible, Stopped) as error:
                refused.append(error)
        if not found:
            raise min(refused, key=lambda error: isinstance(error, Infeasible)
                      and error.smallest_met_bytes or math.inf)
        smallest = self.options.budget == SMALLEST
        return min(found, key=lambda made: (
            made[2].budget_bytes if smallest else 0, made[2].step_ns))

    def solve(self, joint: Joint, times: dict[torch.fx.Node, int]) -> Solved:
        traced = self.pose(joint, times)
        traced.document, whole, plan = self.better_plan(traced)
        program = program_of(traced, plan.document)
        steps = plan.document["steps"]
        tail_steps = next((len(steps) - 1 - at for at, step in enumerate(steps)
                       if step.get("node") == traced.end), 0)  # the last gradient
        peak, update_peak, end = peaks(traced.document, plan.document, tail_steps)
        if max(peak, update_peak) > plan.budget_bytes:
            raise InternalError(
                f"the plan takes {max(peak, update_peak)} of {plan.budget_bytes} bytes when "
                "its steps run in one order. Please report this")
        moves = moves_of(traced, plan.document, self.options.state_number, program,
                         any(bucket.host_ns for bucket in self.options.state))
        at_once = end + self.options.step_bytes
        at_home = not (moves.on_host or moves.moved or moves.gradients)
        if at_home and at_once <= plan.budget_bytes:
            # The optimizer's own step updates all buckets.
            moves = dataclasses.replace(moves, updated=frozenset(), tail=())
            update_peak = max(update_peak, at_once) if tail_steps else update_peak
        return Solved(traced, plan, program, moves, parameter_moves_of(
            traced, plan.document, self.options.state_number, program), peak, update_peak,
            whole)
