"""The private names of PyTorch that the plugin uses, and which tier (tiers.py) needs them.

Only this file, dynamo_internals.py and recompile_internals.py know any.

Names are looked up, and versions are never compared: a name that this PyTorch lacks is
None, and `missing` reports it before a tier is used. Tested by
tests/plugins/python/torch_tiers_test.py.
"""
from __future__ import annotations

import contextlib
import importlib
from collections import OrderedDict
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy

__all__ = ["CheckpointPolicy"]

_PLACES: dict[str, tuple[str, str]] = {}  # our name to PyTorch's module and name


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
wrap_inline = _find("wrap_inline", "torch._dynamo.external_utils")
compile_metrics = _find("compile_metrics", "torch._dynamo.utils", "get_metrics_context")
graph_counters = _find("graph_counters", "torch._dynamo.utils", "counters")
unbacked_symbols = _find("unbacked_symbols", "torch.fx.experimental.symbolic_shapes",
                         "free_unbacked_symbols")
BackendCompilerFailed = _find(
    "BackendCompilerFailed", "torch._dynamo.exc") or RuntimeError
before_compile_hooks = _find("before_compile_hooks", "torch._dynamo.utils",
                             "get_hook_for_recompile_user_context")
register_before_compile = _find("register_before_compile", "torch._dynamo.utils",
                                "register_hook_for_recompile_user_context")
SubmodCompiler = _find("SubmodCompiler", "torch._dynamo.backends.distributed")
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
FakeTensorMode = _find("FakeTensorMode", "torch._subclasses.fake_tensor")
OpOverload = _find("OpOverload", "torch._ops")
TorchDispatchMode = _find("TorchDispatchMode", "torch.utils._python_dispatch") or (
    contextlib.nullcontext)
default_to_foreach = _find("default_to_foreach", "torch.optim.optimizer",
                           "_default_to_fused_or_foreach")
fused_devices = _find("fused_devices", "torch.utils._foreach_utils",
                      "_get_fused_kernels_supported_devices")
dispatch_mode = _find("dispatch_mode", "torch.utils._python_dispatch",
                      "_get_current_dispatch_mode")
function_transform = _find("function_transform", "torch._C._functorch",
                           "maybe_current_level")
eval_frame = _find("eval_frame", "torch._dynamo")
saved_tensor_hooks = _find("saved_tensor_hooks", "torch._C._autograd",
                           "_top_saved_tensors_default_hooks")
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
# Options of PyTorch that are set during a compile.
_OPTIONS = {
    "full": ("cse", "activation_memory_budget"),
    "recompute": ("activation_memory_budget", "activation_memory_budget_solver"),
    "public": (),
}


def missing(tier: str) -> list[str]:
    """The names that the tier needs and this PyTorch lacks."""
    names = [".".join(_PLACES[name]) for name in _NEEDED[tier]
             if globals()[name] is None]
    if functorch_config is not None:
        names += [f"torch._functorch.config.{name}" for name in _OPTIONS[tier]
                  if not hasattr(functorch_config, name)]
    return names


def runs_foreach(group: dict[str, Any], on_gpu: bool = False) -> bool:
    """Whether an optimizer updates all of a group's parameters at once. on_gpu: if they
    were there."""
    chosen = group.get("foreach")
    if chosen is not None or group.get("fused") or "foreach" not in group:
        return bool(chosen)
    if on_gpu:
        chosen = not group.get("differentiable", False) and all(
            type(one) in (torch.Tensor, torch.nn.Parameter) for one in group["params"])
    elif default_to_foreach is None:
        return False
    else:
        _, chosen = default_to_foreach(
            group["params"], group.get("differentiable", False), use_fused=False)
    # As PyTorch's optimizers decide.
    return bool(chosen) and not (
        isinstance(group.get("lr"), torch.Tensor) and not group.get("capturable"))


def has_fused_steps(device: torch.device) -> bool:
    """Whether PyTorch's optimizers with `fused=True` run there."""
    return fused_devices is not None and device.type in fused_devices()


def _hooks(handle: Any) -> Any:
    """Those registered in the same place, in their order, if the handle is among them."""
    hooks = handle.hooks_dict_ref()
    return hooks if isinstance(hooks, OrderedDict) and handle.id in hooks else None


def runs_last(handle: Any) -> bool:
    """Whether no hook in the same place runs after this one."""
    return (hooks := _hooks(handle)) is None or next(reversed(hooks)) == handle.id


def run_last(handle: Any) -> None:
    """From now on this hook runs after the others in the same place."""
    if not runs_last(handle):
        _hooks(handle).move_to_end(handle.id)


def run_first(handle: Any) -> None:
    """From now on this hook runs before the others in the same place."""
    if (hooks := _hooks(handle)) is not None and next(iter(hooks)) != handle.id:
        hooks.move_to_end(handle.id, last=False)


def storage_key(tensor: torch.Tensor) -> int:
    """Equal for tensors that share a storage; fake tensors have one too."""
    return tensor.untyped_storage()._cdata


def tensor_without_data(subclass: Any, like: torch.Tensor) -> Any:
    """A tensor of the subclass with the layout of `like` and a storage of no bytes."""
    return torch.Tensor._make_wrapper_subclass(
        subclass, like.size(), strides=like.stride(), dtype=like.dtype,
        device=like.device, storage_size=0)


def enter_fake_mode() -> None:
    """Call this before a short-lived thread traces anything.

    Without a GPU, PyTorch 2.10 and 2.11 keep what takes its place in memory of the thread that
    first enters a FakeTensorMode, and crash in the next one if that thread has ended."""
    if FakeTensorMode is not None:
        with FakeTensorMode():
            pass


def is_view(target: Any) -> bool:
    return isinstance(target, OpOverload) and target.is_view


def boxed(module: torch.fx.GraphModule) -> None:
    """Makes the module take its arguments in one list and empty it, so that an argument
    can be freed after its last use."""
    module.graph.set_codegen(boxed_code())
    module.recompile()


def depends_on_data(size: Any) -> bool:
    """Whether a symbolic size follows from a tensor's values, as that of nonzero does."""
    if unbacked_symbols is None:
        return False
    return bool(unbacked_symbols(size))


def lacks_compiler(error: BaseException) -> bool:
    """Whether Inductor found no working C++ compiler."""
    causes: list[BaseException | None] = [error]
    while causes:
        if (one := causes.pop()) is None:
            continue
        if type(one).__name__ == "InvalidCxxCompiler":
            return True
        causes += [one.__cause__, getattr(one, "inner_exception", None)]
    return False


def is_compiled_backward(node: Any) -> bool:
    """Whether a node of autograd's graph is the backward of a compiled graph."""
    return "CompiledFunction" in node.name()


def accumulator(parameter: torch.Tensor) -> Any:
    """The node of autograd's graph that adds to the parameter's gradient. None if PyTorch
    has no name for it. Inside of an operator nobody can ask for it."""
    edge_of = getattr(torch.autograd.graph, "get_gradient_edge", None)
    with torch.enable_grad():
        return None if edge_of is None else edge_of(parameter).node


def runs(node: Any) -> bool:
    """Whether the backward pass that runs in this thread runs the node of `accumulator`.
    True if PyTorch does not say."""
    executes = getattr(torch._C, "_will_engine_execute_node", None)
    if executes is None or node is None:
        return True
    try:
        return bool(executes(node))
    except RuntimeError:  # torch.autograd.grad of a leaf
        return False


def retains_graph() -> bool:
    """Whether the backward pass that runs in this thread keeps its graph."""
    asked = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return bool(asked is not None and asked())


def saves_through_hooks() -> bool:
    """Whether what a forward saves here goes through hooks of the program. A checkpoint of
    PyTorch's has such hooks too, and keeps nothing of it."""
    hooks = None if saved_tensor_hooks is None else saved_tensor_hooks(True)
    return hooks is not None and (
        getattr(hooks[0], "__module__", "") != "torch.utils.checkpoint")


def must_save(node: torch.fx.Node) -> bool:
    """The user's checkpoint policy saves this value."""
    return node.meta.get("recompute") is CheckpointPolicy.MUST_SAVE


def must_recompute(node: torch.fx.Node) -> bool:
    """The user's checkpoint recomputes this value. A plain checkpoint says PREFER."""
    return node.meta.get("recompute") in (CheckpointPolicy.MUST_RECOMPUTE,
                                          CheckpointPolicy.PREFER_RECOMPUTE)


def region(node: torch.fx.Node) -> Any:
    """The checkpoint that the node is in, or None."""
    return node.meta.get("ac_graph_id")


def boxed_compiler(run: Any) -> Any:
    """Marks a function as taking its arguments in such a list."""
    run._boxed_call = True
    return run


def partition_by_tags(module: torch.fx.GraphModule, inputs: Any,
                      **options: Any) -> tuple[torch.fx.GraphModule,
                                               torch.fx.GraphModule]:
    """PyTorch's split into forward and backward, by each forward node's tag.

    CSE is off because it would rename nodes that the plan names. PyTorch's own budget is
    1, because it searches below 1 and ignores the tags at 0."""
    with functorch_config.patch(cse=False, activation_memory_budget=1.0):
        return partition(module, inputs, **options)


def pytorch_partition(module: torch.fx.GraphModule, inputs: Any, budget: float,
                      **options: Any) -> tuple[torch.fx.GraphModule,
                                               torch.fx.GraphModule]:
    """The split by PyTorch's own solver, for a budget from 0 to 1."""
    with functorch_config.patch(activation_memory_budget=budget):
        return partition(module, inputs, **options)


def compile_with_inductor(module: torch.fx.GraphModule, inputs: Any,
                          partitioner: Any, order: Any) -> Any:
    """order: a pass that orders the scheduler's kernels last. If this PyTorch has no such
    pass, Inductor's order stays."""
    import torch._inductor.config as inductor_config
    from torch._inductor.compile_fx import compile_fx

    # Patches, because the backward may be compiled later.
    patches = {"_post_fusion_custom_pass": order, "reorder_for_peak_memory": False}
    if not all(hasattr(inductor_config, name) for name in patches):
        patches = {}
    # A module from AOT autograd's cache would have no plan to report, so that cache is
    # off. Inductor's cache of each compiled module stays on.
    with inductor_config.patch(custom_partitioner_fn=partitioner), (
            functorch_config.patch(enable_autograd_cache=False)):
        return compile_fx(module, inputs, config_patches=patches)


def origins(kernel: Any) -> set[torch.fx.Node]:
    """The last graph nodes of one of the scheduler's kernels."""
    found: set[torch.fx.Node] = set()
    for part in kernel.get_nodes():
        node = getattr(part, "node", None)
        last = getattr(node, "origin_node", None)
        found |= {last} if last is not None else set(getattr(node, "origins", ()))
    return found


def buffers(kernel: Any) -> list[str]:
    """The buffers that the kernel writes."""
    return list(kernel.get_buffer_names())


def needed_buffers(kernel: Any) -> list[str]:
    """The buffers that the kernel reads."""
    return sorted(need.name for need in kernel.unmet_dependencies)


def compile_with_solver(module: torch.fx.GraphModule, inputs: Any, inner: str,
                        solver: Any) -> Any:
    """Compiles with PyTorch's backend `inner`, whose partitioner asks `solver` which of the
    values that are expensive to compute are saved.

    It asks only at a budget below 1, and at 0 it would save inputs alone."""
    with functorch_config.patch(
            activation_memory_budget=1e-12, activation_memory_budget_solver=solver,
            enable_autograd_cache=False):
        return lookup_backend(inner)(module, inputs)
