"""What `options=` of torch.compile may hold.

Tested by tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import dataclasses
import os
from typing import Any

import torch
from loadline.budget import check_whole, is_share, parse_budget
from loadline.errors import InvalidArgument
from loadline.machine import Machine
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.problem.default_machine import with_host_memory, default_machine
from loadline.torch.problem.make_problem import StateBucket
from loadline.torch.solve.effort import WORK_LIMIT



@dataclasses.dataclass(frozen=True)
class Options:
    budget: int | str  # bytes, "22GiB", or "60%" of what keeping all takes
    inner: str = "inductor"  # or "aot_eager": no C++ compiler, exact ledger
    reserve_bytes: int = 0  # of the budget, for what the graph does not see
    # Of a budget in bytes, for what lies outside PyTorch's allocator: CUDA's context
    # and libraries. Default: as the machine's profile has it, on a GPU.
    outside_bytes: int = 0
    machine: Machine = NOMINAL
    recompute: bool = True
    offload: bool = True  # where the machine has copies
    work_limit: int = WORK_LIMIT
    seed: int = 0
    measure: bool = False  # operators' times instead of the roofline (measure.py)
    # By node, what its result took in a step that was measured (prepare.py).
    found_bytes: tuple[tuple[str, int], ...] = ()
    # Optimizer state that may live on the host, and who keeps it (state_moves.py).
    state: tuple[StateBucket, ...] = ()
    state_number: int = 0
    # Of the budget, by graph in the order of compiling: after a graph break each
    # has its own. None: each the whole.
    shares: tuple[float, ...] = ()
    # One plan for all ranks, where torch.distributed is initialized (rank_consensus.py).
    agree: bool = False

    @staticmethod
    def read(options: dict[str, Any] | None, device: torch.device) -> Options:
        """device: what the graph runs on, for the machine where none is named."""
        given = dict(options or {})
        names = [field.name for field in dataclasses.fields(Options)]
        for name in given:
            if name not in names:
                raise InvalidArgument(
                    f"option {name!r}: no such; there are {', '.join(names)}")
        if "budget" not in given:
            raise InvalidArgument(
                'option "budget" is missing: options={"budget": "22GiB"}')
        if given.get("inner", "inductor") not in ("inductor", "aot_eager"):
            raise InvalidArgument(
                f"option inner={given['inner']!r}: want inductor or aot_eager")
        given["machine"] = _machine(given.get("machine"), device)
        result = Options(**given)
        parse_budget(result.budget, 1 << 40)  # refuses what is no budget
        for name in ("reserve_bytes", "outside_bytes", "work_limit", "seed"):
            check_whole(f"option {name}", getattr(result, name))
        if is_share(result.budget):
            result = dataclasses.replace(result, outside_bytes=0)
        elif "outside_bytes" not in given and device.type == "cuda":
            result = dataclasses.replace(
                result, outside_bytes=result.machine.reserved_bytes)
        return result


def _machine(named: Any, device: torch.device) -> Machine:
    if named is None:
        return default_machine(device)
    if isinstance(named, (str, os.PathLike)):
        machine = Machine.load(named)
        # One that is known by its name; a file says what its host has.
        return machine if os.path.isfile(named) else with_host_memory(machine)
    if not isinstance(named, Machine):
        raise InvalidArgument(
            f"option machine={named!r}: want a loadline.Machine, the path of a profile "
            'or a GPU\'s name such as "h100-sxm"')
    return named
