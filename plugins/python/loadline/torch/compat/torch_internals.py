"""Every private name of PyTorch that the plugin uses, and which tier (tiers.py) needs it.

Names are looked up, and versions are never compared: a name that this PyTorch lacks is
None, and `missing` reports it before a tier is used. Tested by
tests/plugins/python/torch_tiers_test.py.
"""
from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import logging
import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
from loadline.errors import LoadlineError
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


def is_view(target: Any) -> bool:
    return isinstance(target, OpOverload) and target.is_view


def boxed(module: torch.fx.GraphModule) -> None:
    """Makes the module take its arguments in one list and empty it, so that an argument
    can be freed after its last use."""
    module.graph.set_codegen(boxed_code())
    module.recompile()


def traced_frame() -> tuple[int, Any]:
    """The Python function that is being compiled: Dynamo's number and the code object.

    Another shape has the same number; a graph break or a reset gives a new one. The
    number is -1, and the code None, if this PyTorch does not say."""
    guards: Any = getattr(torch, "_guards", None)
    try:
        number = guards.CompileContext.current_compile_id().frame_id
    except AttributeError:
        return -1, None
    try:
        return number, guards.TracingContext.get_traced_code()[0]
    except (AttributeError, IndexError, TypeError):
        return number, None


def resumes(code: Any) -> bool:
    """Whether the compiled function is what follows a graph break in another one."""
    return str(getattr(code, "co_name", "")).startswith("torch_dynamo_resume_in")


def break_reason(gm: torch.fx.GraphModule) -> str:
    """Why the graph ends before its function does; empty if it does not."""
    reason: Any = getattr(gm, "compile_subgraph_reason", None)
    if not getattr(reason, "graph_break", False):
        return ""
    lines = str(getattr(reason, "reason", "")).strip().splitlines() or ["no reason given"]
    stack = getattr(reason, "user_stack", None)
    place = f", {stack[-1].filename}:{stack[-1].lineno}" if stack else ""
    explained = [text for line in lines[1:]
                 if (text := line.strip().removeprefix("Explanation: ")) != line.strip()]
    return lines[0] + place + (f". {explained[0].rstrip('.')}" if explained else "")


def compiles_inside_modes() -> bool:
    """Whether compiled code runs as such inside a dispatch mode that allows it; an older
    PyTorch falls back to eager there."""
    return hasattr(TorchDispatchMode, "ignore_compile_internals")


def splits_for_ddp() -> bool:
    """Whether this is called to compile one of several graphs that
    DistributedDataParallel's optimizer makes of a traced one, to send each one's gradients
    while the next are computed. Nothing in such a graph says so."""
    if SubmodCompiler is None or getattr(dynamo, "optimize_ddp", False) not in (
            True, "ddp_optimizer"):
        return False
    # By code: reading a frame's locals would keep them alive.
    codes = [code for method in vars(SubmodCompiler).values()
             if (code := getattr(method, "__code__", None)) is not None]
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


# What users set to the same end.
WHOLE_UNDER_DDP = "torch._dynamo.config.optimize_ddp = False"


def keep_whole_under_ddp() -> None:
    """From now on DistributedDataParallel's optimizer splits no graph."""
    if getattr(dynamo, "optimize_ddp", False) in (True, "ddp_optimizer"):
        dynamo.optimize_ddp = False


def depends_on_data(size: Any) -> bool:
    """Whether a symbolic size follows from a tensor's values, as that of nonzero does."""
    if unbacked_symbols is None:
        return False
    return bool(unbacked_symbols(size))


def break_count() -> dict[str, int]:
    """How often PyTorch gave up tracing so far, by the reason's first two lines."""
    found: dict[str, int] = {}
    for kind in ("graph_break", "unimplemented"):
        for reason, count in (graph_counters or {}).get(kind, {}).items():
            line = " ".join(part.strip() for part in str(reason).splitlines()[:2])
            found[line] = found.get(line, 0) + count
    return found


def switched_off() -> str:
    """What of the program keeps PyTorch from compiling a model, in silence, here and now;
    empty if nothing that is known does."""
    if getattr(dynamo, "disable", False):
        return "torch._dynamo.config.disable is on, as TORCH_COMPILE_DISABLE=1 sets it"
    if os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        return "the environment has TORCHDYNAMO_DISABLE=1"
    stance = getattr(getattr(eval_frame, "_stance", None), "stance", "default")
    if stance in ("force_eager", "eager_on_recompile"):
        return f'torch.compiler.set_stance("{stance}")'
    if inside_transform():
        return "the call is inside of a transform of torch.func, such as vmap"
    mode = None if dispatch_mode is None else dispatch_mode()
    if mode is not None and not getattr(mode, "ignore_compile_internals", bool)():
        return f"the call is inside of {type(mode).__name__}, a TorchDispatchMode"
    return ""


def inside_transform() -> bool:
    """Of torch.func: tensors of an outer level do not say whether they need a gradient."""
    return function_transform is not None and function_transform() is not None


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


def raise_own(error: BaseException) -> None:
    """Raises the error of ours that PyTorch wrapped, if it did."""
    cause = getattr(error, "inner_exception", None)
    if isinstance(cause, LoadlineError):
        raise cause from None


def failed_call(error: BaseException) -> str:
    """What an operator said that cannot run on tensors of these shapes and types, and where;
    empty if this is another error."""
    found = re.search(r"got \w+\((['\"])(.*)\1\)$", str(error), re.MULTILINE)
    if type(error).__name__ != "TorchRuntimeError" or found is None:
        return ""
    stack = [one for one in getattr(error, "real_stack", None) or ()
             if not one.filename.startswith(os.path.dirname(torch.__file__))]
    place = f", {stack[-1].filename}:{stack[-1].lineno}" if stack else ""
    return found[2].rstrip(".") + place


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


# As users set them.
SUPPRESS_ERRORS = "torch._dynamo.config.suppress_errors"
RECOMPILE_LIMIT = "torch._dynamo.config.recompile_limit"


def suppresses_errors() -> bool:
    return bool(getattr(dynamo, "suppress_errors", False))


def recompile_limit() -> int:
    """How often PyTorch compiles one function; 0: it does not say."""
    return min((limit for name in ("recompile_limit", "accumulated_recompile_limit")
                if isinstance(limit := getattr(dynamo, name, None), int)), default=0)


def recompile_reason() -> str:
    """Which guard failed, if the current function is compiled again; empty if PyTorch does
    not say."""
    metrics = {} if compile_metrics is None else getattr(compile_metrics(), "_metrics", {})
    return str(metrics.get("recompile_reason") or "").partition("\n")[0]


def is_last_compile() -> bool:
    """Whether PyTorch will not compile the current function again."""
    guards: Any = getattr(torch, "_guards", None)
    try:
        before = guards.CompileContext.current_compile_id().frame_compile_id
    except AttributeError:
        return False
    return isinstance(before, int) and before + 1 == recompile_limit()


class _RaiseOnce(int):
    """True for the next reader of fail_on_recompile_limit_hit, which is PyTorch's check
    of the limit; then the option has its old value again. PyTorch writes its options as
    JSON, so this is a number."""

    before: Any

    @staticmethod
    def instead_of(before: Any) -> _RaiseOnce:
        option = _RaiseOnce(1)
        option.before = before
        return option

    def __bool__(self) -> bool:
        dynamo.fail_on_recompile_limit_hit = self.before
        return True


# Dynamo's numbers of functions whose last compile was announced.
_at_limit: set[int] = set()


def below_recompile_limit() -> None:
    """The function that is being compiled did not exceed its limit, so nothing raises."""
    current = getattr(dynamo, "fail_on_recompile_limit_hit", False)
    if isinstance(current, _RaiseOnce):
        dynamo.fail_on_recompile_limit_hit = current.before


# The value of skip_nnmodule_hook_guards before guard_module_hooks; None: it has this value.
_skips_hooks: bool | None = None


def guard_module_hooks() -> None:
    """The guards of the function that is being compiled see hooks that modules get or lose
    later: PyTorch then compiles it again, instead of leaving them out in silence.

    PyTorch has this option for all functions at once, and reads it after the backend has
    returned: end_module_hook_guards, at the function's first call or before another is
    compiled, ends it."""
    global _skips_hooks
    if (dynamo is None or not hasattr(dynamo, "skip_nnmodule_hook_guards")
            or not _calls_before_compiles()):
        return
    if _skips_hooks is None:
        _skips_hooks = bool(dynamo.skip_nnmodule_hook_guards)
    dynamo.skip_nnmodule_hook_guards = False


def end_module_hook_guards() -> None:
    global _skips_hooks
    if _skips_hooks is not None:
        dynamo.skip_nnmodule_hook_guards = _skips_hooks
        _skips_hooks = None


def _calls_before_compiles() -> bool:
    """Whether PyTorch calls _before_compile from now on."""
    if before_compile_hooks is None or register_before_compile is None:
        return False
    if _before_compile not in (before_compile_hooks() or ()):
        register_before_compile(_before_compile)
    return True


def _before_compile() -> str:
    """PyTorch calls this for every function, just before it checks the limit. The result
    goes into its metrics."""
    if dynamo is None:
        return ""
    end_module_hook_guards()
    below_recompile_limit()
    current = dynamo.fail_on_recompile_limit_hit
    guards: Any = getattr(torch, "_guards", None)
    try:
        compiling = guards.CompileContext.current_compile_id()
        number, before = compiling.frame_id, compiling.frame_compile_id
    except AttributeError:
        return ""
    if before == 0:
        _at_limit.discard(number)  # another function has the number since a reset
    elif number in _at_limit and not current and not suppresses_errors():
        dynamo.fail_on_recompile_limit_hit = _RaiseOnce.instead_of(current)
    return ""


def stop_at_recompile_limit() -> bool:
    """From now on PyTorch raises if the function that is being compiled exceeds its
    limit, instead of running it uncompiled.

    PyTorch has this option for all functions at once, and refuses it together with
    suppress_errors; then False. A PyTorch without hooks before a compile keeps the option
    on for the process."""
    if suppresses_errors() or not hasattr(dynamo, "fail_on_recompile_limit_hit"):
        return False
    number, _ = traced_frame()
    if number < 0 or not _calls_before_compiles():
        dynamo.fail_on_recompile_limit_hit = True
        return True
    _at_limit.add(number)
    return True


def ignore_logging(*functions: Any) -> None:
    """Calls of these functions break no graph, and do nothing inside one."""
    if dynamo is not None and hasattr(dynamo, "ignore_logging_functions"):
        dynamo.ignore_logging_functions.update(functions)


# Of logging.Logger, and of Logger's subclasses.
_LOGGING = ("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal",
            "log")


@contextlib.contextmanager
def without_logging() -> Iterator[None]:
    """What is traced inside logs nothing, for a trace that is never run: a call of a logger
    would break the graph. Libraries add methods to Logger (transformers: warning_once)."""
    if dynamo is None or not hasattr(dynamo, "ignore_logging_functions"):
        yield
        return
    kinds = {logging.Logger, logging.getLoggerClass()}
    functions = {function for kind in kinds for name, function in vars(kind).items()
                 if name in _LOGGING or callable(function)
                 and getattr(function, "__module__", "logging") != "logging"}
    with dynamo.patch(ignore_logging_functions={
            *dynamo.ignore_logging_functions, *functions}):
        yield


def original_module(model: torch.nn.Module) -> torch.nn.Module:
    """The module that torch.compile was given, if the model is what it returned."""
    original: Any = getattr(model, "_orig_mod", None)
    return original if isinstance(original, torch.nn.Module) else model


def forget_compiled(model: torch.nn.Module) -> None:
    """Drops the compiled code of the model's forward, for all instances of its class.

    A program's hooks may have put another function in the place of `forward`."""
    forward: Any = model.forward
    while isinstance(forward, functools.partial):
        forward = forward.func
    for function in (forward, inspect.unwrap(forward), type(model).forward):
        if (code := getattr(function, "__code__", None)) is not None:
            torch._dynamo.reset_code(code)
    # PyTorch compiles no function of its own, such as nn.Sequential's forward, but one around.
    if getattr(inspect.unwrap(forward), "__module__", "").startswith("torch."):
        _stale_calls[:] = [True]
    forget_calls()


_stale_calls: list[bool] = []  # empty or True


def say_nothing_compiled() -> None:
    """PyTorch ran a model uncompiled. It may have code for that in the place of a function
    that calls modules of every kind, and then runs all of these uncompiled, now and later:
    forget_calls drops it."""
    _stale_calls[:] = [True]


def forget_calls() -> None:
    """Drops stale code of functions that call modules of every kind."""
    if not _stale_calls:
        return
    _stale_calls.clear()
    torch._dynamo.reset_code(torch.nn.Module._call_impl.__code__)
    if wrap_inline is not None:
        torch._dynamo.reset_code(wrap_inline(forget_calls).__code__)


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
