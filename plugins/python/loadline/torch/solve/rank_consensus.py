"""One plan for all ranks that train a model together.

Rank 0 plans, and the others receive and verify its plan. First all ranks compare hashes
of their problems. If these differ only in bytes, times and machines, the plan is made
for the maximum over all ranks and for rank 0's machine. If ranks traced different
graphs, each makes its own plan. All ranks must compile the same graphs in the same
order when they first run a model. What a rank compiles again later (another shape) it
plans alone, because the others may not.
Tested by tests/plugins/python/torch_distributed_test.py.
"""
from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from loadline.errors import LoadlineError, LoadlineWarning
from loadline.planning import Plan, problem_bytes, verify


def is_initialized() -> bool:
    return dist.is_available() and dist.is_initialized()


def rank_count() -> int:
    return dist.get_world_size() if is_initialized() else 1


def _in_thread(run: Callable[[], Any]) -> None:
    """In another thread, because tensors have no data inside a compile. Its device is that
    of this thread, which NCCL's collectives use."""
    raised: list[BaseException] = []
    device = torch.cuda.current_device() if torch.cuda.is_available() else None

    def work() -> None:
        try:
            with contextlib.nullcontext() if device is None else (
                    torch.cuda.device(device)):
                run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="loadline-consensus")
    thread.start()
    thread.join()
    if raised:
        raise LoadlineError(
            f"the ranks could not agree on a plan: {raised[0]}") from raised[0]


def gather(mine: Any) -> list[Any]:
    """What each rank has, by rank."""
    all_: list[Any] = [None] * rank_count()
    _in_thread(lambda: dist.all_gather_object(all_, mine))
    return all_


def _merged(problems: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The first problem with the maximum over all; None: the graphs differ."""
    result = copy.deepcopy(problems[0])
    for other in problems[1:]:
        bare = copy.deepcopy(other)
        for part, field in (("values", "bytes"), ("nodes", "time_ns")):
            if len(result[part]) != len(bare[part]):
                return None
            for mine, its in zip(result[part], bare[part]):
                for one in (field, "workspace_bytes"):
                    if one in mine or one in its:
                        mine[one] = its[one] = max(mine.get(one, 0), its.get(one, 0))
        bare.pop("machine", None)  # rank 0 plans, with its own machine
        if "machine" in result:
            bare["machine"] = result["machine"]
        if bare != result:
            return None
    return result


def common_problem(problem: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The problem to plan, and whether all ranks share it."""
    digests = gather(hashlib.sha256(problem_bytes(problem)).digest())
    if len(set(digests)) == 1:
        return problem, True
    texts = gather(json.dumps(problem))
    if (merged := _merged([json.loads(text) for text in texts])) is not None:
        return merged, True
    warnings.warn(
        "loadline: the ranks traced different graphs, so each rank makes its own plan. "
        "If their models are equal, give all ranks the same batch shapes",
        LoadlineWarning, stacklevel=2)
    return problem, False


def plan_of_rank_0(problem: dict[str, Any], solve: Callable[[], Plan]) -> Plan:
    """Rank 0's plan, or its error, on all ranks."""
    sent: list[Any] = [None]
    if dist.get_rank() == 0:
        try:
            sent = [solve().json]
        except LoadlineError as error:
            sent = [error]
    _in_thread(lambda: dist.broadcast_object_list(sent, src=0))
    if isinstance(sent[0], LoadlineError):
        raise sent[0]
    plan = Plan(sent[0])
    if dist.get_rank() != 0:
        verify(problem, plan)
    return plan
