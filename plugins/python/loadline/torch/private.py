"""Every name of PyTorch used here that is not public, in one place.

Found by trying, never by version numbers: what is missing makes the backend say
so at its first use (compiler.py), not at import.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.descriptors import SavedForBackwardsAOTOutput
from torch._functorch.aot_autograd import aot_function
from torch._functorch.compile_utils import fx_graph_cse
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.custom_graph_pass import (
    CustomPartitionerFn,
    get_hash_for_files,
)
from torch.fx.graph import _BoxedCodeGen
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.checkpoint import CheckpointPolicy
from torch.utils.flop_counter import flop_registry

__all__ = [
    "CheckpointPolicy", "CustomPartitionerFn", "StorageWeakRef", "aot_autograd",
    "aot_function", "boxed", "boxed_compiler", "compile_with_inductor", "flop_registry",
    "frame_id", "fx_graph_cse", "get_hash_for_files",
    "forget_compiled", "ignore_logging", "must_save",
    "partition_by_tags", "pytorch_partition", "saved_description",
]

saved_description = SavedForBackwardsAOTOutput


def boxed(module: torch.fx.GraphModule) -> None:
    """Makes the module take its arguments in a list that it empties, so that an
    argument can be freed at its last use."""
    module.graph.set_codegen(_BoxedCodeGen())
    module.recompile()


def frame_id() -> int:
    """Of the Python frame that is being compiled: another one after a graph
    break, the same one for another shape."""
    compiling = torch._guards.CompileContext.current_compile_id()
    frame = None if compiling is None else compiling.frame_id
    return -1 if frame is None else frame


def ignore_logging(*functions: Any) -> None:
    """They break no graph, and do nothing inside one."""
    torch._dynamo.config.ignore_logging_functions.update(functions)


def forget_compiled(model: torch.nn.Module) -> None:
    """What was compiled of the model's forward, of whatever instance."""
    torch._dynamo.reset_code(model.forward.__code__)


def must_save(node: torch.fx.Node) -> bool:
    """By a policy of the user's own."""
    return node.meta.get("recompute") is CheckpointPolicy.MUST_SAVE


def boxed_compiler(run: Any) -> Any:
    """Says of a function that it takes its arguments in such a list."""
    run._boxed_call = True
    return run


def partition_by_tags(module: torch.fx.GraphModule, inputs: Any,
                      **options: Any) -> tuple[torch.fx.GraphModule,
                                               torch.fx.GraphModule]:
    """The split where every forward node says what becomes of it. CSE would
    rename nodes that the plan names; a budget of PyTorch's own below 1 would
    search, and one of 0 would not even read the tags."""
    with functorch_config.patch(cse=False, activation_memory_budget=1.0):
        return min_cut_rematerialization_partition(module, inputs, **options)


def pytorch_partition(module: torch.fx.GraphModule, inputs: Any, budget: float,
                      **options: Any) -> tuple[torch.fx.GraphModule,
                                               torch.fx.GraphModule]:
    """What PyTorch's own solver makes of a budget from 0 to 1."""
    with functorch_config.patch(activation_memory_budget=budget):
        return min_cut_rematerialization_partition(module, inputs, **options)


@contextlib.contextmanager
def _inductor_partitioner(partitioner: CustomPartitionerFn) -> Iterator[None]:
    import torch._inductor.config as inductor_config

    with inductor_config.patch(custom_partitioner_fn=partitioner):
        yield


def compile_with_inductor(module: torch.fx.GraphModule, inputs: Any,
                          partitioner: CustomPartitionerFn) -> Any:
    from torch._inductor.compile_fx import compile_fx

    # Modules found in AOT autograd's cache would come without a plan to report;
    # the cache of what Inductor makes of each module stays.
    with _inductor_partitioner(partitioner), functorch_config.patch(
            enable_autograd_cache=False):
        return compile_fx(module, inputs)
