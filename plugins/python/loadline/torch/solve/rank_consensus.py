"""Processes that train one model together run one plan.

Rank 0 plans and the others get its plan. All first compare the hashes of their
problems: where they differ only in bytes, times and machines, the plan is made for the
worst rank's numbers and rank 0's machine; where ranks traced different graphs there is
no common plan, and each makes its own. Every rank must compile the same graphs in the
same order, as PyTorch's own collectives in the compiler ask too.
Tested by tests/plugins/python/torch_distributed_test.py.
"""
from __future__ import annotations

import copy
import hashlib
import json
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from loadline.errors import LoadlineError, LoadlineWarning
from loadline.planning import Plan, problem_bytes, verify


def rank_count() -> int:
    return dist.get_world_size() if (
        dist.is_available() and dist.is_initialized()) else 1


def _in_thread(run: Callable[[], Any]) -> None:
    """In a thread of its own: in that of a compiler tensors have no data."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="loadline-agree")
    thread.start()
    thread.join()
    if raised:
        raise LoadlineError(
            f"the ranks could not agree on a plan: {raised[0]}") from raised[0]


def _gather(mine: Any) -> list[Any]:
    all_: list[Any] = [None] * rank_count()
    _in_thread(lambda: dist.all_gather_object(all_, mine))
    return all_


def _merged(problems: list[dict[str, Any]]) -> dict[str, Any] | None:
    """With the largest numbers of all; None: these are different graphs."""
    result = copy.deepcopy(problems[0])
    for other in problems[1:]:
        bare = copy.deepcopy(other)
        for part, field in (("values", "bytes"), ("nodes", "time_ns")):
            if len(result[part]) != len(bare[part]):
                return None
            for mine, its in zip(result[part], bare[part]):
                mine[field] = its[field] = max(mine[field], its[field])
        bare.pop("machine", None)  # rank 0's counts: it plans
        if "machine" in result:
            bare["machine"] = result["machine"]
        if bare != result:
            return None
    return result


def common_problem(problem: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """What all ranks plan for, and whether they do so together."""
    digests = _gather(hashlib.sha256(problem_bytes(problem)).digest())
    if len(set(digests)) == 1:
        return problem, True
    texts = _gather(json.dumps(problem))
    if (merged := _merged([json.loads(text) for text in texts])) is not None:
        return merged, True
    warnings.warn(
        "loadline: the ranks traced different graphs, so each plans its own. If the "
        "model does not differ from rank to rank, give all the same batch shapes",
        LoadlineWarning, stacklevel=2)
    return problem, False


def plan_of_rank_0(problem: dict[str, Any], solve: Callable[[], Plan]) -> Plan:
    """Rank 0's plan or its error, on all."""
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
