"""The options of the backend, as torch.compile(options=...) takes them.

Tested by tests/plugins/python/torch_prepare_test.py.
"""
from __future__ import annotations

import dataclasses
import difflib
import os
from fractions import Fraction
from typing import Any

import torch
from loadline.budget import (SMALLEST, check_flags, check_seconds, check_whole, is_share,
                             parse_budget, plain_number, read_share)
from loadline.errors import InvalidArgument
from loadline.machine import Machine
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.problem.default_machine import default_machine, with_host_memory
from loadline.torch.problem.make_problem import StateBucket


DEVICE = "device"
# Set by the plugin itself, and by no user.
_OWN = {"part_sums", "part_statistics", "found_bytes", "state", "state_number", "loss_bytes",
        "step_bytes", "corrected_bytes", "shares", "share"}
# Arguments that are no options, by the functions that take them.
_ARGUMENTS = {
    **dict.fromkeys(("sample", "loss_fn", "micro_batches", "allow_micro_batch_statistics"),
                    "loadline.torch.prepare and estimate"),
    **dict.fromkeys(("offload_gradients", "update_in_backward", "offload_parameters",
                     "host_updates"), "loadline.torch.prepare and estimate"),
    "step_fn": "loadline.torch.prepare",
    **dict.fromkeys(("budgets", "lora"), "loadline.torch.estimate"),
    "accumulate": "loadline.torch.prepare and compile_in_place",
    **dict.fromkeys(("optimizers", "host_state"), "loadline.torch.compile_in_place")}
AUTO = "auto"

# By graph of prepare's step, in the order of compiling: its number (graph_breaks.py) and
# share of the budget.
Shares = tuple[tuple[int, Fraction], ...]


@dataclasses.dataclass(frozen=True)
class Options:
    # Bytes, "22GiB", "60%" or 0.6 of what keeping everything takes, "smallest", or
    # "device": what is free on the GPU when the options are read.
    budget: int | float | str
    inner: str = "inductor"  # or "aot_eager": needs no C++ compiler, exact ledger
    reserve_bytes: int = 0  # of the budget, for memory outside the graph
    # Of a budget in bytes, for memory outside PyTorch's allocator: CUDA's context and
    # libraries. Default: from the machine profile, on a GPU.
    outside_bytes: int = 0
    machine: Machine = NOMINAL
    recompute: bool = True
    offload: bool = True  # where the machine has copies
    work_limit: int = 0  # candidate edits of the first search; 0: the effort's
    seed: int = 0
    threads: int = 0  # that search at a time; 0: one per processor
    # Seconds after which the search stops, with the best plan found or loadline.Stopped.
    # Without it the same graph and options give the same plan.
    time_limit_s: float | None = None
    measure: bool = False  # measured times instead of the roofline (measure.py)
    # The head of the model in so many segments of rows, or "auto" (split_head.py). 1: in
    # one piece.
    split: int | str = 1
    # No gradient through the model's outputs beside its loss (detach_outputs.py).
    detach_outputs: bool = False
    # The loss as sum and count of a part of the batch (part_sums.py), and whether batch
    # norm may take the statistics of a part.
    part_sums: bool = False
    part_statistics: bool = False
    # By node name, the bytes of its result in a measured step (prepare.py).
    found_bytes: tuple[tuple[str, int], ...] = ()
    # Optimizer state that may be on the host, and the number of the session whose host
    # state moves it (state_moves.py).
    state: tuple[StateBucket, ...] = ()
    state_number: int = 0
    # That a loss outside of the graph and the optimizer's step take (make_problem.py).
    loss_bytes: int = 0
    step_bytes: int = 0
    # Of the budget, for what a measured step took beyond its plan. No share counts it.
    corrected_bytes: int = 0
    # Empty: each graph has the whole budget.
    shares: Shares = ()
    share: Fraction = Fraction(1)  # of these, this graph's
    # One plan for all ranks, if torch.distributed is initialized (rank_consensus.py).
    agree: bool = False

    @staticmethod
    def read(options: dict[str, Any] | None, device: torch.device) -> Options:
        """device: of the graph, which selects the machine if none is named."""
        given = {name: plain_number(value) for name, value in (options or {}).items()}
        names = [field.name for field in dataclasses.fields(Options)]
        for name in given:
            if name not in names:
                raise InvalidArgument(
                    f"{name} is an argument of {_ARGUMENTS[name]} only"
                    if name in _ARGUMENTS else _unknown(name, names))
        check_flags(allow_micro_batch_statistics=given.get("part_statistics", False))
        if "budget" not in given:
            raise InvalidArgument(
                'option "budget" is missing: options={"budget": "22GiB"}')
        if given.get("inner", "inductor") not in ("inductor", "aot_eager"):
            raise InvalidArgument(
                f"option inner={given['inner']!r}: want inductor or aot_eager")
        given["machine"] = _machine(given.get("machine"), device)
        given["budget"] = _budget(given["budget"])
        if given["budget"] == DEVICE:
            given.update(budget=_free_bytes(device), outside_bytes=0)
        result = Options(**given)
        if result.budget != SMALLEST:
            parse_budget(result.budget, 1 << 40)  # raises for anything but a budget
        for name in ("reserve_bytes", "outside_bytes", "work_limit", "seed", "loss_bytes",
                     "step_bytes", "corrected_bytes"):
            check_whole(f"option {name}", getattr(result, name))
        check_flags(**{f"option {name}": getattr(result, name)
                       for name in ("recompute", "offload", "measure", "agree",
                                    "detach_outputs")})
        check_whole("option threads", result.threads, (1 << 31) - 1)
        _check_split(result.split)
        check_seconds("option time_limit_s", result.time_limit_s)
        if is_share(result.budget):  # of what PyTorch's allocator takes
            result = dataclasses.replace(result, outside_bytes=0)
        elif "outside_bytes" not in given and device.type == "cuda":
            result = dataclasses.replace(
                result, outside_bytes=result.machine.reserved_bytes)
        return result

    def part_of_time(self, searches: int) -> float | None:
        """time_limit_s of one of so many searches, which share the limit."""
        return None if self.time_limit_s is None else self.time_limit_s / searches


def _unknown(name: str, names: list[str]) -> str:
    there = [known for known in names if known not in _OWN]
    near = difflib.get_close_matches(name, [*there, *_ARGUMENTS], 1)
    meant = f": did you mean {near[0]}" + (
        f", an argument of {_ARGUMENTS[near[0]]}?" if near[0] in _ARGUMENTS else "?"
    ) if near else ""
    return f"option {name!r} does not exist{meant}; the options are {', '.join(there)}"


def _budget(budget: Any) -> Any:
    if isinstance(budget, str) and budget.strip() == "card":
        raise InvalidArgument(
            f'budget "card" is for estimate; "{DEVICE}" is what is free on the GPU here')
    return read_share(budget)


def _check_split(split: Any) -> None:
    if split == AUTO:
        return
    if isinstance(split, bool) or not isinstance(split, int) or not 0 < split <= 1 << 20:
        raise InvalidArgument(
            f'option split={split!r}: want a number of segments, at least 1, or "{AUTO}"')


def _free_bytes(device: torch.device) -> int:
    """What this process may allocate on the GPU, what it has allocated included."""
    if device.type != "cuda":
        raise InvalidArgument(
            f'budget "{DEVICE}": the model is on the CPU, whose free memory other programs '
            "share; give bytes")
    free_bytes, _ = torch.cuda.mem_get_info(device)
    return int(free_bytes) + int(torch.cuda.memory_reserved(device))


def _machine(named: Any, device: torch.device) -> Machine:
    if named is None:
        return default_machine(device)
    if isinstance(named, (str, os.PathLike)):
        machine = Machine.load(named)
        # A profile in a file has its own host memory; a named GPU has this host's.
        return machine if os.path.isfile(named) else with_host_memory(machine)
    if not isinstance(named, Machine):
        raise InvalidArgument(
            f"option machine={named!r}: want a loadline.Machine, the path of a profile "
            'or a GPU\'s name such as "h100-sxm"')
    return named
