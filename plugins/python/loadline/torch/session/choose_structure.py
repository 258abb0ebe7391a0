"""Chooses into how many parts a batch is cut, and into how many segments the head.

Each structure is traced and planned; the one with the smallest predicted step within the
budget is taken. More parts are not tried once a structure keeps everything within the budget:
its parts compute all operators once, and smaller parts only start them more often.
Tested by tests/plugins/python/torch_micro_batches_test.py.
"""
from __future__ import annotations

import copy
import dataclasses
import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from loadline import planning
from loadline.budget import SMALLEST, format_bytes, is_share
from loadline.errors import (Infeasible, InvalidArgument, LoadlineError, LoadlineWarning,
                             Unsupported)
from loadline.torch.compat import dynamo_internals, tiers
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.problem.gradients import Owner
from loadline.torch.problem.make_problem import staying
from loadline.torch.session.compiler import current_tier
from loadline.torch.session.sample_step import (arguments_of, check_loss_fn,
                                               restored_afterwards)
from loadline.torch.session.trace_step import Tracer, trace_step
from loadline.torch.solve import rank_consensus
from loadline.torch.solve.make_plan import EFFORT, asked_bytes, make_plan
from loadline.torch.solve.options import AUTO, Options
from loadline.torch.structure.micro_batches import (WithLoss, batch_size, cut_bytes,
                                                    examples_of, loss_of, rows_of)
from loadline.torch.structure.part_sums import SumForm, sum_losses

log = logging.getLogger("loadline.torch")

_MOST_PARTS = 64
_SPLITS = (1, 2, 4, 8, 16)
_FEW_SPLITS = (1, 4, 16)  # if parts are chosen too
_SUMS_BYTES = 256  # of the parts' losses and counts
# By how much the loss of two examples may differ from the sum of both: so many units in the
# last place of what is computed in, and so many times what the loss of one example twice is
# off, which is rounding if it is small.
_NOISE = 8
_MOST_NOISE = 0.02
_MOST_ROUNDINGS = 64
_EPSILONS = 4
_LEAST_ROUNDING = 2e-6  # of sums in fp32
_TF32_EPSILON = 2**-11


@dataclasses.dataclass(frozen=True)
class Structure:
    parts: int = 1
    rows: int = 0  # examples of a part; the last may have fewer
    split: int | str = 1
    reserved_bytes: int = 0  # of accumulated gradients, and of the batch beside a part
    counts_first: bool = False  # what the loss's terms divide by (part_counts.py)

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


def check_independent(model: torch.nn.Module, sample: Any) -> bool:
    """Raises InvalidArgument if the loss of two examples together is not that of each alone:
    of the first and the last of the sample, without dropout and gradients. Each loss that is
    added up is compared. How far they may be apart is told by the losses of one example twice,
    where only rounding differs. Returns whether the loss has terms whose targets are to be
    counted first (part_counts.py)."""
    size = batch_size(sample)
    if size < 2:
        return False

    pair = examples_of(sample, [0, -1])
    forms: list[SumForm] = []

    def backend(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        forms.append(sum_losses(gm, True, apart=True))
        return gm.forward

    def run(batch: Any) -> torch.Tensor:
        args, kwargs = arguments_of(batch)
        call = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
        return loss_of(call(*args, **kwargs)).double().view(-1, 2)

    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with restored_afterwards(model, sample), torch.no_grad():
            together = run(pair)
            alone = [run(examples_of(pair, [at])) for at in (0, 1)]
            twice = [run(examples_of(pair, [at, at])) for at in (0, 1)]
    except LoadlineError:
        raise
    except Exception as error:
        dynamo_internals.raise_own(error)
        raise Unsupported("micro_batches: two examples of the sample cannot be traced as one "
                          f"graph and run: {error}") from error
    finally:
        for module, training in modes:
            module.training = training
        dynamo_internals.forget_compiled(model)
    rounding = _rounding(model)
    for index, of_two in enumerate(together):
        sums = [one[index, 0] for one in alone]
        counts = [one[index, 1] for one in alone]
        noise = max(float((of_both[index, 0] - 2 * one).abs())
                    for of_both, one in zip(twice, sums))
        scale = float(sum(one.abs() for one in sums))
        most = rounding * scale + min(_NOISE * noise, _MOST_NOISE * scale,
                                      _MOST_ROUNDINGS * rounding * scale)
        counts_add = of_two[1] < 0 or torch.allclose(of_two[1], counts[0] + counts[1])
        if not counts_add or not float((of_two[0] - sums[0] - sums[1]).abs()) <= most:
            raise InvalidArgument(
                "micro_batches: examples of a batch depend on each other: the loss of two of "
                f"the sample is {_mean(of_two):.6g} together, and "
                f"{_mean(alone[0][index]):.6g} and {_mean(alone[1][index]):.6g} alone. A step "
                "in parts would be another one")
    if reasons := dict.fromkeys(why for form in forms for why in form.not_counted):
        warnings.warn(
            "loadline: micro_batches: the loss adds a cross entropy to other losses, and which "
            f"targets it ignores {', '.join(reasons)}, so that they cannot be counted before "
            "the parts run: a batch in which it ignores some will raise an error",
            LoadlineWarning, stacklevel=2)
    return any(form.by_term for form in forms)


def _mean(sum_and_count: torch.Tensor) -> float:
    total, count = sum_and_count.tolist()
    return total / count if count > 0 else total


def _rounding(model: torch.nn.Module) -> float:
    """Relative, of a loss."""
    kinds = {parameter.dtype for parameter in model.parameters()
             if parameter.is_floating_point()} or {torch.float32}
    devices = {parameter.device.type for parameter in model.parameters()}
    kinds |= {torch.get_autocast_dtype(device) for device in devices
              if torch.is_autocast_enabled(device)}
    epsilon = max(torch.finfo(kind).eps for kind in kinds)
    if "cuda" in devices:
        epsilon = max(epsilon, _TF32_EPSILON)
    return max(_EPSILONS * epsilon, _LEAST_ROUNDING)


def _keeps_everything(plan: planning.Plan) -> bool:
    predicted = plan.document["predicted"]
    return not predicted["recompute_ns"] and not predicted["d2h_bytes"]


def _price(found: tuple[int, Structure, planning.Plan]) -> int:
    return found[0]


class StructureSearch:
    """The structures of one step. Each is traced once. options: of the step in one piece."""

    def __init__(self, model: torch.nn.Module, sample: Any, options: Options,
                 trained_bytes: int,
                 owners: Mapping[torch.Tensor, Owner] = MappingProxyType({}),
                 parameters: Sequence[torch.Tensor] = ()):
        """parameters: that may leave."""
        self.model, self.sample, self.trained_bytes = model, sample, trained_bytes
        self.owners, self.parameters = owners, parameters
        self.parameters_stay = False
        self.options = dataclasses.replace(options, split=1, part_sums=False)
        self.asked_split = options.split
        self._tracers: dict[Structure, Tracer] = {}

    def within(self, **changes: Any) -> StructureSearch:
        """The same traces, planned with other options, which change no trace."""
        found = copy.copy(self)
        found.options = dataclasses.replace(self.options, **changes)
        return found

    def staying(self) -> StructureSearch:
        """The same traces, planned with all parameters on the device."""
        found = copy.copy(self)
        found.parameters_stay = True
        return found

    def tracer(self, structure: Structure) -> Tracer:
        if structure not in self._tracers:
            part = self.sample if structure.parts == 1 else rows_of(
                self.sample, 0, structure.rows)
            self._tracers[structure] = trace_step(
                self.model, part, structure.options(self.options), self.owners,
                self.parameters)
        return self._tracers[structure]

    def problem(self, structure: Structure) -> dict[str, Any]:
        """Of one part."""
        traced = self.tracer(structure).traced
        assert traced is not None
        if not self.parameters_stay:
            return traced.document
        return staying(traced)

    def structure(self, parts: int, split: int | str) -> Structure:
        return structure_of(parts, split, self.sample, self.trained_bytes)

    def bytes_of(self, budget: int | float | str) -> int | float | str:
        """A share in bytes: of the step in one piece, whatever its structure becomes."""
        if not is_share(budget):
            return budget
        whole = self.tracer(Structure()).whole_bytes(self.problem(Structure()))
        return asked_bytes(dataclasses.replace(self.options, budget=budget), whole)

    def plan(self, structure: Structure, budget: int | float | str) -> planning.Plan:
        """budget: bytes or the smallest. Raises Infeasible."""
        within = dataclasses.replace(structure.options(self.options), budget=budget)
        document = self.problem(structure)
        return make_plan(document, self.tracer(structure).whole_bytes(document), within, EFFORT)

    def fastest_ns(self, structure: Structure) -> int:
        """No plan's step is shorter: every operator runs once in each part."""
        return self._of_parts(structure, sum(
            node["time_ns"] for node in self.problem(structure)["nodes"]))

    def step_ns(self, structure: Structure, plan: planning.Plan) -> int:
        return self._of_parts(structure, plan.step_ns)

    def _of_parts(self, structure: Structure, part_ns: int) -> int:
        """Of all parts. An accumulated gradient is read, added to and written."""
        bandwidth = (self.options.machine.memory_bytes_per_s
                     or NOMINAL.memory_bytes_per_s)
        adding = 0 if structure.parts == 1 else int(
            1e9 * 3 * self.trained_bytes / bandwidth)
        return structure.parts * (part_ns + adding)

    def candidates(self, micro_batches: int | str) -> list[Structure]:
        both = micro_batches == AUTO and self.asked_split == AUTO
        splits: tuple[int | str, ...] = (self.asked_split,)
        if self.asked_split == AUTO:
            splits = _FEW_SPLITS if both else _SPLITS
        counts = [int(micro_batches)] if micro_batches != AUTO else [
            1 << power for power in range(
                min(batch_size(self.sample), _MOST_PARTS).bit_length())]
        return list(dict.fromkeys(self.structure(parts, split)
                                  for parts in counts for split in splits))

    def choose(self, micro_batches: int | str, budget: int | float | str
               ) -> tuple[Structure, planning.Plan]:
        """budget: bytes or the smallest. Raises Infeasible with the smallest budget that
        some structure meets."""
        found: list[tuple[int, Structure, planning.Plan]] = []
        refused: list[Infeasible] = []
        for structure in self.candidates(micro_batches):
            if budget != SMALLEST and found and (
                    self.fastest_ns(structure) >= min(found, key=_price)[0]):
                continue
            try:
                plan = self.plan(structure, budget)
            except Infeasible as error:
                refused.append(error)
                log.info("%s: no plan", structure)
                continue
            step_ns = self.step_ns(structure, plan)
            log.info("%s: peak %s, %.1f ms", structure, format_bytes(plan.peak_bytes),
                     step_ns / 1e6)
            found.append((plan.budget_bytes + structure.reserved_bytes
                          if budget == SMALLEST else step_ns, structure, plan))
            if budget != SMALLEST and _keeps_everything(plan):
                break
        if not found:
            raise min(refused, key=lambda error: error.smallest_met_bytes or math.inf)
        _, structure, plan = min(found, key=_price)
        return structure, plan


def with_loss(model: torch.nn.Module, function: Any, sample: Any) -> WithLoss:
    """The loss as a part of the step."""
    if not isinstance(sample, (tuple, list)) or len(sample) < 2:
        raise InvalidArgument(
            "with micro_batches or split, loss_fn takes the model's output and the target: "
            "give sample=(input, target), and call the prepared model in the same way")
    check_loss_fn(function, with_target=True)
    return WithLoss(model, function)


def find_structure(model: torch.nn.Module, sample: Any, options: Options,
                   micro_batches: int | str, trained_bytes: int, has_step: bool,
                   owners: Mapping[torch.Tensor, Owner],
                   parameters: Sequence[torch.Tensor] = ()
                   ) -> tuple[int | float | str, Structure]:
    """The budget in bytes, and the structure to use within it."""
    counts_first = False
    if micro_batches != 1:
        if has_step:
            raise InvalidArgument("micro_batches: a step_fn cuts its batch itself")
        if rank_consensus.rank_count() > 1:
            raise Unsupported("micro_batches: with several ranks, each part would send its "
                              "gradients")
        if current_tier() != tiers.FULL:
            raise Unsupported("micro_batches need the full tier (docs/pytorch.md)")
        counts_first = check_independent(model, sample)
    if has_step:  # whose structure only its own function knows
        return options.budget, Structure(split=options.split)
    search = StructureSearch(model, sample, options, trained_bytes, owners, parameters)
    budget = search.bytes_of(options.budget)
    structure = search.structure(int(micro_batches), options.split) if AUTO not in (
        micro_batches, options.split) else search.choose(micro_batches, budget)[0]
    return budget, dataclasses.replace(structure, counts_first=counts_first)
