"""Chooses into how many parts a batch is cut, and into how many segments the head.

Each structure is traced and planned; the one with the smallest predicted step within the
budget is taken. More parts are not tried once a structure keeps everything within the budget:
its parts compute all operators once, and smaller parts only start them more often.
Tested by tests/plugins/python/torch_micro_batches_test.py.
"""
from __future__ import annotations

import dataclasses
import logging
import math
from typing import Any

import torch
from loadline import planning
from loadline.budget import SMALLEST, format_bytes, is_share
from loadline.errors import Infeasible, InvalidArgument, Unsupported
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.session.compiler import current_tier
from loadline.torch.session.sample_step import arguments_of
from loadline.torch.session.trace_step import trace_step
from loadline.torch.solve import rank_consensus
from loadline.torch.solve.make_plan import EFFORT, asked_bytes, make_plan
from loadline.torch.solve.options import AUTO, Options
from loadline.torch.structure.micro_batches import (WithLoss, batch_size, cut_bytes,
                                                    loss_of, rows_of)
from loadline.torch.structure.part_sums import sum_losses

log = logging.getLogger("loadline.torch")

_MOST_PARTS = 64
_SPLITS = (1, 2, 4, 8, 16)
_FEW_SPLITS = (1, 4, 16)  # if parts are chosen too
_SUMS_BYTES = 256  # of the parts' losses and counts


@dataclasses.dataclass(frozen=True)
class Structure:
    parts: int = 1
    rows: int = 0  # examples of a part; the last may have fewer
    split: int | str = 1
    reserved_bytes: int = 0  # of accumulated gradients, and of the batch beside a part

    def options(self, options: Options) -> Options:
        return dataclasses.replace(
            options, split=self.split, part_sums=self.parts > 1,
            reserve_bytes=options.reserve_bytes + self.reserved_bytes)

    def __str__(self) -> str:
        parts = f"{self.parts} micro-batches of {self.rows} examples" if (
            self.parts > 1) else "the batch in one piece"
        return parts + (f", the head in {self.split} segments" if self.split != 1 else "")


def check_parts(micro_batches: Any) -> None:
    if micro_batches not in (None, AUTO) and (isinstance(micro_batches, bool) or not isinstance(
            micro_batches, int) or micro_batches < 1):
        raise InvalidArgument(
            f'micro_batches={micro_batches!r}: want a number, at least 1, or "{AUTO}"')


def structure_of(parts: int, split: int | str, sample: Any, trained_bytes: int) -> Structure:
    if parts == 1:
        return Structure(split=split)
    size = batch_size(sample)
    if parts > size:
        raise InvalidArgument(f"micro_batches={parts}: the sample has {size} examples")
    rows = -(-size // parts)
    return Structure(-(-size // rows), rows, split,
                     trained_bytes + cut_bytes(sample) + _SUMS_BYTES)


def check_independent(model: torch.nn.Module, sample: Any) -> None:
    """Raises InvalidArgument if the loss of two examples together is not that of each alone:
    of the first and the last of the sample, without dropout and gradients."""
    size = batch_size(sample)
    if size < 2:
        return
    pair = torch_internals.pytree.tree_map(
        lambda leaf: leaf[[0, -1]] if isinstance(leaf, torch.Tensor) and leaf.dim()
        and leaf.shape[0] == size else leaf, sample)

    def backend(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        sum_losses(gm, True)
        return gm.forward

    def run(batch: Any) -> torch.Tensor:
        args, kwargs = arguments_of(batch)
        call = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
        return loss_of(call(*args, **kwargs)).double()

    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            together, alone = run(pair), [run(rows_of(pair, at, at + 1)) for at in (0, 1)]
    except torch_internals.BackendCompilerFailed as error:
        raise getattr(error, "inner_exception", error) from None
    finally:
        for module, training in modes:
            module.training = training
        torch_internals.forget_compiled(model)
    counts_add = together[1] < 0 or torch.allclose(together[1], alone[0][1] + alone[1][1])
    if not counts_add or not torch.allclose(
            together[0], alone[0][0] + alone[1][0], rtol=0.02, atol=1e-6):
        raise InvalidArgument(
            "micro_batches: examples of a batch depend on each other: the loss of two of the "
            f"sample is {float(together[0]):.6g} together, and {float(alone[0][0]):.6g} and "
            f"{float(alone[1][0]):.6g} alone. A step in parts would be another one")


def _plan_of(model: torch.nn.Module, sample: Any, structure: Structure, options: Options
             ) -> planning.Plan:
    part = sample if structure.parts == 1 else rows_of(sample, 0, structure.rows)
    within = structure.options(options)
    tracer = trace_step(model, part, within)
    assert tracer.traced is not None
    document = tracer.traced.document
    return make_plan(document, tracer.whole_bytes(document), within, 0, EFFORT)


def _step_ns(plan: planning.Plan, structure: Structure, trained_bytes: int,
             options: Options) -> int:
    """Of all parts. An accumulated gradient is read, added to and written."""
    bandwidth = options.machine.memory_bytes_per_s or NOMINAL.memory_bytes_per_s
    adding = 0 if structure.parts == 1 else int(1e9 * 3 * trained_bytes / bandwidth)
    return structure.parts * (plan.step_ns + adding)


def _keeps_everything(plan: planning.Plan) -> bool:
    predicted = plan.document["predicted"]
    return not predicted["recompute_ns"] and not predicted["d2h_bytes"]


def resolved_budget(model: torch.nn.Module, sample: Any, options: Options
                    ) -> int | float | str:
    """A share in bytes: of the step in one piece, whatever its structure becomes."""
    if not is_share(options.budget):
        return options.budget
    options = dataclasses.replace(options, split=1, part_sums=False)
    tracer = trace_step(model, sample, options)
    assert tracer.traced is not None
    return asked_bytes(options, tracer.whole_bytes(tracer.traced.document), 0)


def choose_structure(model: torch.nn.Module, sample: Any, options: Options,
                     micro_batches: int | str, trained_bytes: int) -> Structure:
    """options: with a budget in bytes or the smallest. Raises Infeasible with the smallest
    budget that some structure meets."""
    both = micro_batches == AUTO and options.split == AUTO
    splits = (_FEW_SPLITS if both else _SPLITS) if options.split == AUTO else (
        options.split,)
    size = batch_size(sample) if micro_batches == AUTO else 0
    counts = [1 << power for power in range(int(math.log2(min(size, _MOST_PARTS))) + 1)] if (
        micro_batches == AUTO) else [int(micro_batches)]
    found: list[tuple[int, Structure]] = []
    refused: list[Infeasible] = []
    for parts in counts:
        done = False
        for split in splits:
            structure = structure_of(parts, split, sample, trained_bytes)
            try:
                plan = _plan_of(model, sample, structure, options)
            except Infeasible as error:
                refused.append(error)
                log.info("%s: no plan", structure)
                continue
            price = plan.budget_bytes + structure.reserved_bytes if (
                options.budget == SMALLEST) else _step_ns(
                    plan, structure, trained_bytes, options)
            log.info("%s: peak %s, %.1f ms", structure, format_bytes(plan.peak_bytes),
                     structure.parts * plan.step_ns / 1e6)
            found.append((price, structure))
            if options.budget != SMALLEST and _keeps_everything(plan):
                done = True
                break
        if done:
            break
    if not found:
        raise min(refused, key=lambda error: error.smallest_met_bytes or math.inf)
    return min(found, key=lambda one: one[0])[1]


def with_loss(model: torch.nn.Module, function: Any, sample: Any) -> WithLoss:
    """The loss as a part of the step."""
    if not isinstance(sample, (tuple, list)) or len(sample) < 2:
        raise InvalidArgument(
            "with micro_batches or split, loss_fn takes the model's output and the target: "
            "give sample=(input, target), and call the prepared model in the same way")
    return WithLoss(model, function)


def find_structure(model: torch.nn.Module, sample: Any, options: Options,
                   micro_batches: int | str, trained_bytes: int, has_step: bool
                   ) -> tuple[int | float | str, Structure]:
    """The budget in bytes, and the structure to use within it."""
    if micro_batches != 1:
        if has_step:
            raise InvalidArgument("micro_batches: a step_fn cuts its batch itself")
        if rank_consensus.rank_count() > 1:
            raise Unsupported("micro_batches: with several ranks, each part would send its "
                              "gradients")
        if current_tier() != tiers.FULL:
            raise Unsupported("micro_batches need the full tier (docs/pytorch.md)")
        check_independent(model, sample)
    if has_step:  # whose structure only its own function knows
        return options.budget, Structure(split=options.split)
    budget = resolved_budget(model, sample, options)
    if AUTO not in (micro_batches, options.split):
        return budget, structure_of(int(micro_batches), options.split, sample, trained_bytes)
    options = dataclasses.replace(options, budget=budget)
    return budget, choose_structure(model, sample, options, micro_batches, trained_bytes)
