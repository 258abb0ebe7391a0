"""What Dynamo, PyTorch's tracer, says of the code that it compiles, and what it is told.

Tested by tests/plugins/python/torch_unplanned_test.py and torch_session_test.py.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from loadline.errors import LoadlineError
from loadline.torch.compat import torch_internals


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
    return hasattr(torch_internals.TorchDispatchMode, "ignore_compile_internals")


def splits_for_ddp() -> bool:
    """Whether this is called to compile one of several graphs that
    DistributedDataParallel's optimizer makes of a traced one, to send each one's gradients
    while the next are computed. Nothing in such a graph says so."""
    compiler = torch_internals.SubmodCompiler
    if compiler is None or getattr(torch_internals.dynamo, "optimize_ddp", False) not in (
            True, "ddp_optimizer"):
        return False
    # By code: reading a frame's locals would keep them alive.
    codes = [code for method in vars(compiler).values()
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
    if getattr(torch_internals.dynamo, "optimize_ddp", False) in (True, "ddp_optimizer"):
        torch_internals.dynamo.optimize_ddp = False


def break_count() -> dict[str, int]:
    """How often PyTorch gave up tracing so far, by the reason's first two lines."""
    found: dict[str, int] = {}
    for kind in ("graph_break", "unimplemented"):
        for reason, count in (torch_internals.graph_counters or {}).get(kind, {}).items():
            line = " ".join(part.strip() for part in str(reason).splitlines()[:2])
            found[line] = found.get(line, 0) + count
    return found


def not_traced(call: Callable[..., Any], reason: str) -> Callable[..., Any]:
    """The call as it is for a function that PyTorch traces: a graph break, with the reason.
    What is compiled within stays so."""
    made: Callable[..., Any] = torch.compiler.disable(call, reason=reason)
    return made


def switched_off() -> str:
    """What of the program keeps PyTorch from compiling a model, in silence, here and now;
    empty if nothing that is known does."""
    if getattr(torch_internals.dynamo, "disable", False):
        return "torch._dynamo.config.disable is on, as TORCH_COMPILE_DISABLE=1 sets it"
    if os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        return "the environment has TORCHDYNAMO_DISABLE=1"
    stance = getattr(getattr(torch_internals.eval_frame, "_stance", None), "stance", "default")
    if stance in ("force_eager", "eager_on_recompile"):
        return f'torch.compiler.set_stance("{stance}")'
    if inside_transform():
        return "the call is inside of a transform of torch.func, such as vmap"
    mode = None if torch_internals.dispatch_mode is None else torch_internals.dispatch_mode()
    if mode is not None and not getattr(mode, "ignore_compile_internals", bool)():
        return f"the call is inside of {type(mode).__name__}, a TorchDispatchMode"
    return ""


def inside_transform() -> bool:
    """Of torch.func: tensors of an outer level do not say whether they need a gradient."""
    level = torch_internals.function_transform
    return level is not None and level() is not None


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


def ignore_logging(*functions: Any) -> None:
    """Calls of these functions break no graph, and do nothing inside one."""
    if (option := _logging_option()):
        getattr(torch_internals.dynamo, option).update(functions)


def _logging_option() -> str:
    """The name of PyTorch's set of functions that it does not trace; empty: it has none."""
    return next((name for name in ("ignore_logging_functions",
                                   "ignore_logger_methods")  # in PyTorch 2.10
                 if hasattr(torch_internals.dynamo, name)), "")


# Of logging.Logger, and of Logger's subclasses.
_LOGGING = ("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal",
            "log")


@contextlib.contextmanager
def without_logging() -> Iterator[None]:
    """What is traced inside logs nothing, for a trace that is never run: a call of a logger
    would break the graph. Libraries add methods to Logger (transformers: warning_once)."""
    option = _logging_option()
    if not option:
        yield
        return
    kinds = {logging.Logger, logging.getLoggerClass()}
    functions = {function for kind in kinds for name, function in vars(kind).items()
                 if name in _LOGGING or callable(function)
                 and getattr(function, "__module__", "logging") != "logging"}
    with torch_internals.dynamo.patch(**{
            option: {*getattr(torch_internals.dynamo, option), *functions}}):
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
    # Generated code, as of torch.export and torch.fx, has no module.
    if str(getattr(inspect.unwrap(forward), "__module__", "")).startswith("torch."):
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
    if torch_internals.wrap_inline is not None:
        torch._dynamo.reset_code(torch_internals.wrap_inline(forget_calls).__code__)
