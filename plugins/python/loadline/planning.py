"""Plans problems and verifies plans (docs/formats.md describes both documents)."""
from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any, Union

from loadline import _library
from loadline.budget import (budget_fields, check_flags, check_seconds, check_whole,
                             plain_number)
from loadline.errors import InvalidArgument

_EFFORTS = ("normal", "quick", "thorough", "moderate")  # as loadline_effort numbers them

Problem = Union[str, bytes, dict[str, Any]]  # a loadline.problem/1 document


@dataclasses.dataclass(frozen=True)
class Progress:
    """A better plan that a running search has found."""

    elapsed_s: float
    peak_bytes: int
    step_ns: int
    bound_step_ns: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """A plan that has passed the verifier. `document` is loadline.plan/1."""

    json: str

    @functools.cached_property
    def document(self) -> dict[str, Any]:
        return json.loads(self.json)

    @property
    def budget_bytes(self) -> int:
        return self.document["budget_bytes"]

    @property
    def arena_bytes(self) -> int:
        return self.document["arena_bytes"]

    @property
    def peak_bytes(self) -> int:
        return self.document["predicted"]["peak_bytes"]

    @property
    def step_ns(self) -> int:
        return self.document["predicted"]["step_ns"]

    @property
    def recompute_ns(self) -> int:
        return self.document["predicted"]["recompute_ns"]

    @property
    def compressed(self) -> dict[int, list[str]]:
        """The codecs by which each value is stored compressed, by the value's id."""
        values = {b["id"]: b["value"] for b in self.document["buffers"]}
        codecs: dict[int, list[str]] = {}
        for step in self.document["steps"]:
            if "encode" not in step:
                continue
            used = codecs.setdefault(values[step["from"]], [])
            if step["encode"] not in used:
                used.append(step["encode"])
        return codecs

    @property
    def sequence(self) -> list[int]:
        """Node ids in running order; a node that is computed again is listed again."""
        return self.document["sequence"]


def problem_bytes(problem: Problem) -> bytes:
    if isinstance(problem, bytes):
        return problem
    if isinstance(problem, str):
        return problem.encode()
    try:
        return json.dumps(problem, separators=(",", ":"),
                          ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"problem: {error}") from error


def keep_everything(problem: Problem) -> Plan:
    """The plan that runs every node once, in the given order. Its peak is 100 %."""
    return Plan(_library.keep_everything(problem_bytes(problem)))


def plan(problem: Problem, budget: int | float | str, *, recompute: bool = True,
         offload: bool = True, codecs: bool = True, lossy: bool = False,
         inexact: bool = False, work_limit: int = 0, harder: bool = True,
         effort: str = "normal", counts_reserved: bool = False,
         time_limit_s: float | None = None, seed: int = 0, threads: int = 0,
         progress: Callable[[Progress], None] | None = None) -> Plan:
    """A verified plan within the budget: bytes, "3GiB", "60%", 0.6 or
    "smallest".

    codecs: values may be stored compressed, where the problem has codecs; lossy: also by
    those that change them. inexact: variants of nodes with other rounding. effort:
    "normal", "quick", "thorough" or "moderate" (loadline_effort in plugins/c/loadline.h).
    work_limit: candidate edits that the first search may price; 0: the effort's. harder:
    False: never search again. counts_reserved: a budget in bytes is a whole GPU's, so the
    machine's reserved_bytes are subtracted. time_limit_s: plans then differ from run to run.
    threads: the most that search at a time; 0: one per processor. Raises Infeasible with the
    smallest budget met.
    """
    work_limit, seed, threads, time_limit_s = map(
        plain_number, (work_limit, seed, threads, time_limit_s))
    check_flags(recompute=recompute, offload=offload, codecs=codecs, lossy=lossy,
                inexact=inexact, harder=harder, counts_reserved=counts_reserved)
    check_whole("work_limit", work_limit)
    check_whole("seed", seed, (1 << 64) - 1)
    check_whole("threads", threads, (1 << 31) - 1)
    check_seconds("time_limit_s", time_limit_s)
    if effort not in _EFFORTS:
        raise InvalidArgument(f"effort={effort!r}: there are {', '.join(_EFFORTS)}")
    document = problem_bytes(problem)

    def report(found: _library.ProgressStruct) -> None:
        assert progress is not None
        progress(Progress(found.elapsed_s, found.peak_bytes, found.step_ns,
                          found.bound_step_ns))

    return Plan(_library.solve(
        document,
        {**budget_fields(budget), "forbid_recompute": not recompute,
         "forbid_offload": not offload,
         "forbid_codecs": not codecs, "allow_lossy": lossy,
         "allow_inexact": inexact, "work_limit": work_limit,
         "forbid_harder": not harder, "effort": _EFFORTS.index(effort),
         "budget_counts_reserved": counts_reserved, "seed": seed,
         "threads": threads,
         "time_limit_ns": int((time_limit_s or 0) * 1e9)},
        report if progress is not None else None))


def verify(problem: Problem, plan: Plan | str | bytes | dict[str, Any]) -> None:
    """Returns if the plan is valid for the problem, else raises NotValid."""
    text = plan.json if isinstance(plan, Plan) else plan
    _library.verify(problem_bytes(problem), problem_bytes(text))
