"""Every name of PyTorch used here that is not public, in one place, and which tier
(tiers.py) needs it.

Found by trying, never by version numbers: what a PyTorch does not have is None, and
`missing` says so before a tier is used.
"""
from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy

__all__ = ["CheckpointPolicy"]

_PLACES: dict[str, tuple[str, str]] = {}  # by our name: where PyTorch has it


def _find(name: str, module: str, theirs: str = "") -> Any:
    theirs = theirs or name
    _PLACES[name] = (module, theirs)
    try:
        return getattr(importlib.import_module(module), theirs)
    except (ImportError, AttributeError):
        pass
    try:
        return importlib.import_module(f"{module}.{theirs}")
    except ImportError:
        return None


functorch_config = _find("functorch_config", "torch._functorch", "config")
dynamo = _find("dynamo", "torch._dynamo", "config")
lookup_backend = _find("lookup_backend", "torch._dynamo.backends.registry")
BackendCompilerFailed = _find(
    "BackendCompilerFailed", "torch._dynamo.exc") or RuntimeError
aot_autograd = _find("aot_autograd", "torch._dynamo.backends.common")
saved_description = _find(
    "saved_description", "torch._functorch._aot_autograd.descriptors",
    "SavedForBackwardsAOTOutput")
aot_function = _find("aot_function", "torch._functorch.aot_autograd")
fx_graph_cse = _find("fx_graph_cse", "torch._functorch.compile_utils")
partition = _find("partition", "torch._functorch.partitioners",
                  "min_cut_rematerialization_partition")
CustomPartitionerFn = _find("CustomPartitionerFn", "torch._inductor.custom_graph_pass")
CustomKnapsackSolver = _find("CustomKnapsackSolver",
                             "torch._inductor.custom_graph_pass")
CustomSchedulerPass = _find("CustomSchedulerPass",
                            "torch._inductor.custom_graph_pass")
get_hash_for_files = _find("get_hash_for_files", "torch._inductor.custom_graph_pass")
boxed_code = _find("boxed_code", "torch.fx.graph", "_BoxedCodeGen")
StorageWeakRef = _find("StorageWeakRef", "torch.multiprocessing.reductions")
flop_registry = _find("flop_registry", "torch.utils.flop_counter")
pytree = _find("pytree", "torch.utils", "_pytree")
OpOverload = _find("OpOverload", "torch._ops")
raw_stream = _find("raw_stream", "torch._C", "_cuda_getCurrentRawStream")

_GRAPH = ("functorch_config", "flop_registry", "pytree", "OpOverload",
          "get_hash_for_files")
_NEEDED = {
    "full": (*_GRAPH, "aot_autograd", "aot_function", "saved_description",
             "fx_graph_cse", "partition", "CustomPartitionerFn", "boxed_code",
             "StorageWeakRef"),
    "recompute": (*_GRAPH, "lookup_backend", "CustomKnapsackSolver"),
    "public": (),
}
# Options of PyTorch's that are set for a while.
_OPTIONS = {
    "full": ("cse", "activation_memory_budget"),
    "recompute": ("activation_memory_budget", "activation_memory_budget_solver"),
    "public": (),
}


def missing(tier: str) -> list[str]:
    """What the tier needs and this PyTorch does not have."""
    names = [".".join(_PLACES[name]) for name in _NEEDED[tier]
             if globals()[name] is None]
    if functorch_config is not None:
        names += [f"torch._functorch.config.{name}" for name in _OPTIONS[tier]
                  if not hasattr(functorch_config, name)]
    return names


def storage_key(tensor: torch.Tensor) -> int:
    """The same for all that share memory, with data or without."""
    return tensor.untyped_storage()._cdata


def is_view(target: Any) -> bool:
    return isinstance(target, OpOverload) and target.is_view


def boxed(module: torch.fx.GraphModule) -> None:
    """Makes the module take its arguments in a list that it empties, so that an
    argument can be freed at its last use."""
    module.graph.set_codegen(boxed_code())
    module.recompile()


def traced_frame() -> tuple[int, Any]:
    """What is being compiled: Dynamo's number, another one after a graph break or a
    reset, the same one for another shape; and its code, None where PyTorch does not
    tell."""
    guards: Any = getattr(torch, "_guards", None)
    try:
        number = guards.CompileContext.current_compile_id().frame_id
    except AttributeError:
        return -1, None
    try:
        return number, guards.TracingContext.get_traced_code()[0]
    except (AttributeError, IndexError, TypeError):
        return number, None


def break_reason(gm: torch.fx.GraphModule) -> str:
    """Why the graph ends before the function does; empty where it does not."""
    reason: Any = getattr(gm, "compile_subgraph_reason", None)
    if not getattr(reason, "graph_break", False):
        return ""
    lines = str(getattr(reason, "reason", "")).strip().splitlines() or ["no reason given"]
    stack = getattr(reason, "user_stack", None)
    return lines[0] + (
        f", {stack[-1].filename}:{stack[-1].lineno}" if stack else "")


# As people set them.
SUPPRESS_ERRORS = "torch._dynamo.config.suppress_errors"
RECOMPILE_LIMIT = "torch._dynamo.config.recompile_limit"


def suppresses_errors() -> bool:
    return bool(getattr(dynamo, "suppress_errors", False))


def recompile_limit() -> int:
    """How often a function is compiled; 0: nobody says."""
    return min((limit for name in ("recompile_limit", "accumulated_recompile_limit")
                if isinstance(limit := getattr(dynamo, name, None), int)), default=0)


def is_last_compile() -> bool:
    """Of the function that is being compiled, before PyTorch gives up on it."""
    guards: Any = getattr(torch, "_guards", None)
    try:
        before = guards.CompileContext.current_compile_id().frame_compile_id
    except AttributeError:
        return False
    return isinstance(before, int) and before + 1 == recompile_limit()


def stop_at_recompile_limit() -> bool:
    """PyTorch then raises, for any function, and does not run it as it is. It knows
    no such thing beside suppress_errors."""
    if suppresses_errors() or not hasattr(dynamo, "fail_on_recompile_limit_hit"):
        return False
    dynamo.fail_on_recompile_limit_hit = True
    return True


def ignore_logging(*functions: Any) -> None:
    """They break no graph, and do nothing inside one."""
    if dynamo is not None and hasattr(dynamo, "ignore_logging_functions"):
        dynamo.ignore_logging_functions.update(functions)


def original_module(model: torch.nn.Module) -> torch.nn.Module:
    """The module that torch.compile was given, if the model is what it returned."""
    original: Any = getattr(model, "_orig_mod", None)
    return original if isinstance(original, torch.nn.Module) else model


def forget_compiled(model: torch.nn.Module) -> None:
    """What was compiled of the model's forward, of whatever instance."""
    torch._dynamo.reset_code(model.forward.__code__)


def must_save(node: torch.fx.Node) -> bool:
    """By a policy of the user's own."""
    return node.meta.get("recompute") is CheckpointPolicy.MUST_SAVE


def must_recompute(node: torch.fx.Node) -> bool:
    """By a checkpoint of the user's own. PREFER is what a plain one says."""
    return node.meta.get("recompute") in (CheckpointPolicy.MUST_RECOMPUTE,
                                          CheckpointPolicy.PREFER_RECOMPUTE)


def region(node: torch.fx.Node) -> Any:
    """The checkpoint that the node is within; None: no one's."""
    return node.meta.get("ac_graph_id")


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
        return partition(module, inputs, **options)


def pytorch_partition(module: torch.fx.GraphModule, inputs: Any, budget: float,
                      **options: Any) -> tuple[torch.fx.GraphModule,
                                               torch.fx.GraphModule]:
    """What PyTorch's own solver makes of a budget from 0 to 1."""
    with functorch_config.patch(activation_memory_budget=budget):
        return partition(module, inputs, **options)


def compile_with_inductor(module: torch.fx.GraphModule, inputs: Any,
                          partitioner: Any, order: Any) -> Any:
    """order: a pass over the scheduler's kernels, the last to order them; where this
    PyTorch asks for none, they stand as Inductor has them."""
    import torch._inductor.config as inductor_config
    from torch._inductor.compile_fx import compile_fx

    # Also for a backward that is compiled later.
    patches = {"_post_fusion_custom_pass": order, "reorder_for_peak_memory": False}
    if not all(hasattr(inductor_config, name) for name in patches):
        patches = {}
    # Modules found in AOT autograd's cache would come without a plan to report;
    # the cache of what Inductor makes of each module stays.
    with inductor_config.patch(custom_partitioner_fn=partitioner), (
            functorch_config.patch(enable_autograd_cache=False)):
        return compile_fx(module, inputs, config_patches=patches)


def origins(kernel: Any) -> set[torch.fx.Node]:
    """The nodes that one of the scheduler's kernels ends with."""
    found: set[torch.fx.Node] = set()
    for part in kernel.get_nodes():
        node = getattr(part, "node", None)
        last = getattr(node, "origin_node", None)
        found |= {last} if last is not None else set(getattr(node, "origins", ()))
    return found


def buffers(kernel: Any) -> list[str]:
    """What it makes."""
    return list(kernel.get_buffer_names())


def needed_buffers(kernel: Any) -> list[str]:
    return sorted(need.name for need in kernel.unmet_dependencies)


def compile_with_solver(module: torch.fx.GraphModule, inputs: Any, inner: str,
                        solver: Any) -> Any:
    """By a backend of PyTorch's own, where `solver` says which of the values that
    are dear to compute are saved. It is asked at a budget below 1 only, and one of
    0 would save inputs alone."""
    with functorch_config.patch(
            activation_memory_budget=1e-12, activation_memory_budget_solver=solver,
            enable_autograd_cache=False):
        return lookup_backend(inner)(module, inputs)
