"""Traces a training step into a problem. Nothing is compiled or run.

Tested by tests/plugins/python/torch_estimate_test.py.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from loadline.errors import LoadlineError, Unsupported
from loadline.torch.compat import dynamo_internals, torch_internals
from loadline.torch.problem.gradients import Owner, owners_in
from loadline.torch.problem.make_problem import TracedProblem
from loadline.torch.problem.parameters import places_in
from loadline.torch.rewrite.partitioner import Partitioner
from loadline.torch.rewrite.plan_order import PlanOrder
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.compiler import refuse_switched_off, rewrite, wants_heads
from loadline.torch.session.sample_step import NO_HEAD, arguments_of, refuse_batch
from loadline.torch.solve.options import Options


class _TracedOnly(LoadlineError):
    """Ends a compile after its trace."""


class Tracer(Partitioner):
    """Poses the problem of a joint graph, and stops."""

    traced: TracedProblem | None = None

    def partition(self, gm: torch.fx.GraphModule, joint_inputs: Any, **kwargs: Any
                  ) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
        self.traced = self.pose(self.read(gm, kwargs["num_fwd_outputs"]), {})
        raise _TracedOnly("traced")


class _NoRecorder:
    def record(self, graph: PlannedGraph) -> None:
        raise AssertionError("a trace plans no graph for a compile")


def trace_step(model: torch.nn.Module, sample: Any, options: Options,
               owners: Mapping[torch.Tensor, Owner] = MappingProxyType({}),
               parameters: Sequence[torch.Tensor] = ()) -> Tracer:
    """Traces the model's step on the sample, with the structure of the options. owners: the
    parameters whose gradients may leave. parameters: that may leave themselves."""
    tracer = Tracer(options, _NoRecorder())

    def compile_(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        tracer.owners = owners_in(owners, inputs)
        tracer.parameters = places_in(parameters, inputs)
        if not rewrite(gm, options, is_whole=True).heads and wants_heads(options):
            raise Unsupported(NO_HEAD)
        if options.inner == "aot_eager":
            return torch_internals.aot_autograd(
                fw_compiler=lambda graph, _: graph, partition_fn=tracer,
                keep_inference_input_mutations=True)(gm, inputs)
        return torch_internals.compile_with_inductor(gm, inputs, tracer, PlanOrder())

    args, kwargs = arguments_of(sample)
    try:
        with dynamo_internals.without_logging():
            torch.compile(model, backend=compile_, fullgraph=True, dynamic=False)(
                *args, **kwargs)
    except Exception as error:
        if tracer.traced is None:
            dynamo_internals.raise_own(error)
            refuse_batch(error)
            refuse_switched_off()
            raise Unsupported(
                f"the model cannot be traced as one graph: {error}") from error
    finally:
        dynamo_internals.forget_compiled(model)
    if tracer.traced is None:
        refuse_switched_off()
        raise LoadlineError("no traced part of the model needs a gradient")
    return tracer
