"""plugins/c/loadline.h through ctypes.

ctypes instead of a compiled binding: only a text goes in and a text comes out, a few
times per compiled model, so a binding would save no time, and one wheel serves every
Python version.
"""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import threading
from collections.abc import Callable
from typing import Any

from loadline import errors

_PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class ProgressStruct(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("elapsed_s", ctypes.c_double),
        ("peak_bytes", ctypes.c_int64), ("step_ns", ctypes.c_int64),
        ("bound_step_ns", ctypes.c_int64),
    ]


class InfeasibilityStruct(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("budget_bytes", ctypes.c_int64),
        ("smallest_met_bytes", ctypes.c_int64),
        ("proven_bound_bytes", ctypes.c_int64),
    ]


class OptionsStruct(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("budget_bytes", ctypes.c_int64),
        ("forbid_recompute", ctypes.c_int32),
        ("forbid_offload", ctypes.c_int32), ("allow_lossy", ctypes.c_int32),
        ("allow_inexact", ctypes.c_int32), ("work_limit", ctypes.c_int64),
        ("time_limit_ns", ctypes.c_int64), ("seed", ctypes.c_uint64),
        ("progress", _PROGRESS), ("user", ctypes.c_void_p),
        ("cancel", ctypes.c_void_p), ("forbid_harder", ctypes.c_int32),
        ("budget_share_ppb", ctypes.c_int64),
        ("budget_counts_reserved", ctypes.c_int32), ("effort", ctypes.c_int32),
        ("threads", ctypes.c_int32), ("forbid_codecs", ctypes.c_int64),
    ]


@functools.cache
def _load() -> ctypes.CDLL:
    path = os.environ.get("LOADLINE_LIBRARY") or str(
        pathlib.Path(__file__).parent / "_lib" / "libloadline.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise errors.InternalError(
            f"{path} cannot be loaded ({error}): install the wheel, or build the "
            "target loadline_c and set LOADLINE_LIBRARY to its file") from error
    text, size = ctypes.c_char_p, ctypes.c_size_t
    out = ctypes.POINTER(ctypes.c_void_p)
    for name, result, arguments in (
        ("version", ctypes.c_char_p, []),
        ("last_error", ctypes.c_char_p, []),
        ("last_infeasibility", ctypes.c_int,
         [ctypes.POINTER(InfeasibilityStruct)]),
        ("cancel_new", ctypes.c_void_p, []),
        ("cancel_now", None, [ctypes.c_void_p]),
        ("cancel_free", None, [ctypes.c_void_p]),
        ("solve", ctypes.c_int,
         [text, size, ctypes.POINTER(OptionsStruct), out]),
        ("keep_everything", ctypes.c_int, [text, size, out]),
        ("verify", ctypes.c_int, [text, size, text, size]),
        ("canonical_problem", ctypes.c_int, [text, size, out]),
        ("known_machine", ctypes.c_int, [text, out]),
        ("free", None, [ctypes.c_void_p]),
    ):
        function = getattr(library, "loadline_" + name)
        function.restype, function.argtypes = result, arguments
    return library


def version() -> str:
    return _load().loadline_version().decode()


def _raise_last(code: int) -> None:
    library = _load()
    message = library.loadline_last_error().decode("utf-8", "replace")
    if code == 2:
        facts = InfeasibilityStruct(size=ctypes.sizeof(InfeasibilityStruct))
        library.loadline_last_infeasibility(ctypes.byref(facts))
        raise errors.Infeasible(message, facts.budget_bytes,
                                facts.smallest_met_bytes,
                                facts.proven_bound_bytes)
    kinds = {1: errors.InvalidArgument, 3: errors.Stopped, 4: errors.NotValid}
    raise kinds.get(code, errors.InternalError)(message)


def _call_for_text(name: str, *arguments: Any) -> str:
    library = _load()
    out = ctypes.c_void_p()
    code = getattr(library, "loadline_" + name)(*arguments, ctypes.byref(out))
    if code != 0:
        _raise_last(code)
    try:
        return ctypes.string_at(out).decode("utf-8")
    finally:
        library.loadline_free(out)


def keep_everything(problem: bytes) -> str:
    return _call_for_text("keep_everything", problem, len(problem))


def canonical_problem(problem: bytes) -> str:
    return _call_for_text("canonical_problem", problem, len(problem))


def known_machine(name: str) -> str:
    return _call_for_text("known_machine", name.encode())


def verify(problem: bytes, plan: bytes) -> None:
    code = _load().loadline_verify(problem, len(problem), plan, len(plan))
    if code != 0:
        _raise_last(code)


def solve(problem: bytes, options: dict[str, Any],
          progress: Callable[[ProgressStruct], None] | None) -> str:
    """Runs in another thread, so that Ctrl-C reaches Python during the search: it stops
    the search, and KeyboardInterrupt is raised when the search has ended. An exception
    of `progress` does the same."""
    library = _load()
    cancel = library.loadline_cancel_new()
    raised: list[BaseException] = []
    result: list[str] = []

    def report(found: int, _user: int) -> None:
        try:
            assert progress is not None
            progress(ProgressStruct.from_address(found))
        except BaseException as error:  # must not cross the C library
            raised.append(error)
            library.loadline_cancel_now(cancel)

    callback = _PROGRESS(report) if progress is not None else _PROGRESS()
    struct = OptionsStruct(size=ctypes.sizeof(OptionsStruct), progress=callback,
                           cancel=cancel, **options)

    def run() -> None:
        try:
            result.append(_call_for_text(
                "solve", problem, len(problem), ctypes.byref(struct)))
        except errors.LoadlineError as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="loadline-solve")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        library.loadline_cancel_now(cancel)
        thread.join()
        raise
    finally:
        if not thread.is_alive():
            library.loadline_cancel_free(cancel)
    if raised:
        raise raised[0]
    return result[0]
