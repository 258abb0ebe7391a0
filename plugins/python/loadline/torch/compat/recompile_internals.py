"""Dynamo's limit of compilations for one function, and what makes it compile again.

Tested by tests/plugins/python/torch_unplanned_test.py.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from loadline.torch.compat import torch_internals
from loadline.torch.compat.dynamo_internals import traced_frame


# As users set them.
SUPPRESS_ERRORS = "torch._dynamo.config.suppress_errors"
RECOMPILE_LIMIT = "torch._dynamo.config.recompile_limit"


def suppresses_errors() -> bool:
    return bool(getattr(torch_internals.dynamo, "suppress_errors", False))


def recompile_limit() -> int:
    """How often PyTorch compiles one function; 0: it does not say."""
    return min((limit for name in ("recompile_limit", "accumulated_recompile_limit")
                if isinstance(limit := getattr(torch_internals.dynamo, name, None), int)),
               default=0)


def recompile_reason() -> str:
    """Which guard failed, if the current function is compiled again; empty if PyTorch does
    not say."""
    of_compile = torch_internals.compile_metrics
    metrics = {} if of_compile is None else getattr(of_compile(), "_metrics", {})
    return str(metrics.get("recompile_reason") or "").partition("\n")[0]


@contextlib.contextmanager
def own_metrics() -> Iterator[None]:
    """What is compiled inside leaves the metrics of the compile around it as they are: PyTorch
    2.10 refuses a metric that is set twice."""
    of_compile = torch_internals.compile_metrics
    metrics = None if of_compile is None else getattr(of_compile(), "_metrics", None)
    before = dict(metrics or {})
    try:
        yield
    finally:
        if metrics is not None:
            metrics.clear()
            metrics.update(before)


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
        torch_internals.dynamo.fail_on_recompile_limit_hit = self.before
        return True


# Dynamo's numbers of functions whose last compile was announced.
_at_limit: set[int] = set()


def below_recompile_limit() -> None:
    """The function that is being compiled did not exceed its limit, so nothing raises."""
    current = getattr(torch_internals.dynamo, "fail_on_recompile_limit_hit", False)
    if isinstance(current, _RaiseOnce):
        torch_internals.dynamo.fail_on_recompile_limit_hit = current.before


# The value of skip_nnmodule_hook_guards before guard_module_hooks; None: it has this value.
_skips_hooks: bool | None = None


def guard_module_hooks() -> None:
    """The guards of the function that is being compiled see hooks that modules get or lose
    later: PyTorch then compiles it again, instead of leaving them out in silence.

    PyTorch has this option for all functions at once, and reads it after the backend has
    returned: end_module_hook_guards, at the function's first call or before another is
    compiled, ends it."""
    global _skips_hooks
    if not hasattr(torch_internals.dynamo, "skip_nnmodule_hook_guards") or (
            not _calls_before_compiles()):
        return
    if _skips_hooks is None:
        _skips_hooks = bool(torch_internals.dynamo.skip_nnmodule_hook_guards)
    torch_internals.dynamo.skip_nnmodule_hook_guards = False


def end_module_hook_guards() -> None:
    global _skips_hooks
    if _skips_hooks is not None:
        torch_internals.dynamo.skip_nnmodule_hook_guards = _skips_hooks
        _skips_hooks = None


def _calls_before_compiles() -> bool:
    """Whether PyTorch calls _before_compile from now on."""
    hooks, register = (torch_internals.before_compile_hooks,
                       torch_internals.register_before_compile)
    if hooks is None or register is None:
        return False
    if _before_compile not in (hooks() or ()):
        register(_before_compile)
    return True


def _before_compile() -> str:
    """PyTorch calls this for every function, just before it checks the limit. The result
    goes into its metrics."""
    if torch_internals.dynamo is None:
        return ""
    end_module_hook_guards()
    below_recompile_limit()
    current = torch_internals.dynamo.fail_on_recompile_limit_hit
    guards: Any = getattr(torch, "_guards", None)
    try:
        compiling = guards.CompileContext.current_compile_id()
        number, before = compiling.frame_id, compiling.frame_compile_id
    except AttributeError:
        return ""
    if before == 0:
        _at_limit.discard(number)  # another function has the number since a reset
    elif number in _at_limit and not current and not suppresses_errors():
        torch_internals.dynamo.fail_on_recompile_limit_hit = _RaiseOnce.instead_of(current)
    return ""


def stop_at_recompile_limit() -> bool:
    """From now on PyTorch raises if the function that is being compiled exceeds its
    limit, instead of running it uncompiled.

    PyTorch has this option for all functions at once, and refuses it together with
    suppress_errors; then False. A PyTorch without hooks before a compile keeps the option
    on for the process."""
    if suppresses_errors() or not hasattr(torch_internals.dynamo,
                                          "fail_on_recompile_limit_hit"):
        return False
    number, _ = traced_frame()
    if number < 0 or not _calls_before_compiles():
        torch_internals.dynamo.fail_on_recompile_limit_hit = True
        return True
    _at_limit.add(number)
    return True
