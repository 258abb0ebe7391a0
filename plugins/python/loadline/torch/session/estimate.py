"""loadline.torch.estimate: will a training step fit, how fast, and what is the least?

It traces the step as `prepare` does, but stops before anything is compiled or run, and
plans it at several budgets. Parameters without data (device "meta") become memory that is
never touched, so a model far larger than this machine's memory can be estimated.
Tested by tests/plugins/python/torch_estimate_test.py.
"""
from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

import torch
from loadline import planning
from loadline.budget import (SMALLEST, check_flags, format_bytes, is_share, parse_budget,
                             plain_number, read_share)
from loadline.errors import (Infeasible, InvalidArgument, LoadlineError, Stopped,
                             Unsupported)
from loadline.machine import Machine
from loadline.torch.compat import dynamo_internals, tiers
from loadline.torch.compat.nested_values import map_leaves
from loadline.torch.problem.cost_model import with_copy_calls
from loadline.torch.session.choose_structure import (Structure, StructureSearch,
                                                    check_parts, with_loss)
from loadline.torch.session.compiler import check_model, current_tier
from loadline.torch.session.lora import Lora, add_lora
from loadline.torch.session.movable import (buckets_of_problem, check_gradients,
                                            option_of_gradients, state_buckets,
                                            with_host_updates)
from loadline.torch.session.report import write_page
from loadline.torch.session.sample_step import Loss, check_sample, read_sample
from loadline.torch.solve.make_plan import asked_bytes
from loadline.torch.solve.options import DEVICE, Options
from loadline.torch.solve.search_log import log
from loadline.torch.state.foreign_parameters import check_trains
from loadline.torch.state.predict_state import (PredictedState, as_on_gpu, owners_of,
                                                predict_state)
from loadline.torch.state.wrappers import innermost

_STOPPED = "the search was stopped before it found one"
CARD = "card"  # the budget that is the machine's device memory

Optimizer = Union[torch.optim.Optimizer,
                  Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer], None]


@dataclasses.dataclass(frozen=True)
class Row:
    """One budget. All bytes are of the whole step, optimizer state included."""

    budget: int | float | str  # as asked
    budget_bytes: int
    plan: planning.Plan | None  # None: no plan was found
    peak_bytes: int = 0  # what PyTorch's allocator holds at most
    step_ns: int = 0  # of the traced graph, without the optimizer's own step
    slower: float = 0.0  # than keeping everything; 0.05: by 5 %
    recompute_ns: int = 0
    copied_bytes: int = 0  # to the host, in one step
    error: str = ""  # why there is no plan
    structure: Structure = Structure()  # the plan is of one of its parts
    problem: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What `estimate` found. str() of it is a table."""

    machine: Machine
    rows: list[Row]
    problem: dict[str, Any]  # loadline.problem/1, of the traced graph in one piece
    parameter_bytes: int
    trained_bytes: int  # of parameters with a gradient
    optimizer_bytes: int
    outside_bytes: int  # of the card, outside PyTorch's allocator
    trace_s: float
    planning_s: float

    @property
    def fits(self) -> bool:
        """Whether some plan fits the card."""
        return any(map(self._fits, self.rows))

    def _fits(self, row: Row) -> bool:
        return row.plan is not None and (
            row.peak_bytes + self.outside_bytes <= self.machine.device_bytes)

    def report(self, html: str, row: int = -1) -> None:
        """Writes the page of one row's plan, as `loadline report` does."""
        plan = self.rows[row].plan
        if plan is None:
            raise LoadlineError(f"there is no plan at budget {self.rows[row].budget}: "
                                f"{self.rows[row].error}")
        write_page(self.rows[row].problem, plan, html)

    def __str__(self) -> str:
        card = self.machine.device_bytes
        lines = [
            f"{self.machine.name}" + (f", {format_bytes(card)}" if card else "")
            + (", of which " + format_bytes(self.outside_bytes)
               + " are left to CUDA" if self.outside_bytes else ""),
            f"parameters {format_bytes(self.parameter_bytes)}, gradients "
            f"{format_bytes(self.trained_bytes)}, optimizer state "
            f"{format_bytes(self.optimizer_bytes)}; {len(self.problem['nodes'])} "
            f"operators; traced in {self.trace_s:.1f} s, planned in "
            f"{self.planning_s:.1f} s",
            f"{'budget':>12} {'peak':>10} {'step ms':>10} {'slower':>8} "
            f"{'recomputed':>10} {'copied out':>10}  fits"]
        for row in self.rows:
            if row.plan is None:
                lines.append(f"{row.budget!s:>12} no plan: {row.error}")
                continue
            fits = "" if not card else "yes" if self._fits(row) else "no"
            lines.append(
                f"{row.budget!s:>12} {format_bytes(row.peak_bytes):>10} "
                f"{row.step_ns / 1e6:>10.1f} {100 * row.slower:>6.1f} % "
                f"{row.recompute_ns / 1e6:>7.1f} ms {format_bytes(row.copied_bytes):>10}"
                f"  {fits}" + ("" if row.structure == Structure()
                               else f"{'':>{5 - len(fits)}}{row.structure}"))
        return "\n".join(lines)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def with_memory(model: torch.nn.Module, anew: bool = False) -> torch.nn.Module:
    """The model itself, or, if some of it is on meta or `anew`, a copy on the CPU whose
    tensors take address space only until someone writes to them. Tied parameters stay
    tied."""
    tensors = [*model.parameters(), *model.buffers()]
    if not anew and not any(tensor.device.type == "meta" for tensor in tensors):
        return model
    made: dict[int, Any] = {}  # what deepcopy takes in the place of a tensor
    for tensor in tensors:
        if not anew and tensor.device.type != "meta":
            continue
        try:
            empty = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
        except RuntimeError as error:
            raise LoadlineError(
                f"the model needs an address space of {format_bytes(sum(map(_bytes, tensors)))}, "
                f"which the system does not give: {str(error).splitlines()[0]}") from error
        made[id(tensor)] = torch.nn.Parameter(empty, tensor.requires_grad) if (
            isinstance(tensor, torch.nn.Parameter)) else empty
    return copy.deepcopy(model, made)


def _on_cpu(sample: Any) -> Any:
    return map_leaves(
        lambda leaf: torch.empty_strided(
            leaf.size(), leaf.stride(), dtype=leaf.dtype, requires_grad=leaf.requires_grad)
        if isinstance(leaf, torch.Tensor) and leaf.device.type == "meta" else leaf, sample)


def _machine_of(named: Any) -> Machine:
    machine = named if isinstance(named, Machine) else Machine.load(named)
    return with_copy_calls(  # as `prepare` does on such a device
        machine, torch.device("cuda" if machine.device_bytes else "cpu"))


def _budget(budget: int | float | str, machine: Machine) -> int | str:
    if budget != CARD:
        return read_share(budget)
    if not machine.device_bytes:
        raise InvalidArgument(
            f'budget "{CARD}": the machine {machine.name} has no device_bytes')
    return machine.device_bytes


def _check_budgets(budgets: Any, machine: Machine) -> list[int | float | str]:
    """Those that the machine has, checked before the model is traced, which takes long."""
    if isinstance(plain_number(budgets), (str, int, float)):
        budgets = [budgets]
    if not isinstance(budgets, (list, tuple)) or not budgets:
        raise InvalidArgument(
            f'budgets={budgets!r}: want a list of budgets, such as ["100%", "{CARD}"]')
    for budget in budgets:
        if budget == DEVICE:
            raise InvalidArgument(
                f'budgets: "{DEVICE}" is for prepare; "{CARD}" is the machine\'s memory')
        if budget != CARD and read_share(budget) != SMALLEST:
            parse_budget(budget, 1 << 40)  # raises for anything but a budget
    if not machine.device_bytes and {*budgets} == {CARD}:
        _budget(CARD, machine)  # raises
    return [one for one in budgets if one != CARD or machine.device_bytes]


def _better_row(search: StructureSearch, asked: int | float | str,
                micro_batches: int | str) -> Row:
    """Of the plans in which parameters may leave, and those in which they stay. The search
    finds the latter more easily, because it has less to choose."""
    if not search.parameters:
        return _row(search, asked, micro_batches)
    search = search.within(time_limit_s=search.options.part_of_time(2))
    first = _row(search, asked, micro_batches)
    stay = _row(search.staying(), asked, micro_batches)
    if first.plan is None or stay.plan is None:
        return stay if first.plan is None else first
    return min(first, stay, key=lambda row: (
        row.budget_bytes if asked == SMALLEST else 0, row.step_ns))


def _least(error: Infeasible, outside_bytes: int) -> str:
    of_cuda = f", of which CUDA takes {format_bytes(outside_bytes)}" if outside_bytes else ""
    return f"needs {format_bytes(error.smallest_met_bytes)}{of_cuda}"


def _row(search: StructureSearch, asked: int | float | str,
         micro_batches: int | str) -> Row:
    budget = _budget(asked, search.options.machine)
    if is_share(budget):  # of what PyTorch's allocator takes
        search = search.within(outside_bytes=0)
    bytes_: int | float | str = SMALLEST
    try:
        bytes_ = search.bytes_of(budget)
        structure, plan = search.choose(micro_batches, bytes_)
    except Stopped:
        return Row(asked, 0 if bytes_ == SMALLEST else parse_budget(bytes_), None,
                   error=_STOPPED)
    except Infeasible as error:
        # Without the part in the unit of the graph alone.
        return Row(asked, error.budget_bytes, None,
                   error=_least(error, search.options.outside_bytes)
                   if error.smallest_met_bytes else str(error))
    within = dataclasses.replace(structure.options(search.options), budget=bytes_)
    kept_ns = sum(node["time_ns"] for node in search.problem(Structure())["nodes"])
    step_ns = search.step_ns(structure, plan)
    return Row(asked, asked_bytes(within, 0, plan), plan,
               plan.peak_bytes + within.reserve_bytes, step_ns,
               step_ns / kept_ns - 1 if kept_ns else 0.0,
               structure.parts * plan.recompute_ns,
               structure.parts * plan.document["predicted"]["d2h_bytes"], "", structure,
               search.problem(structure))


def no_slower_with_more(rows: list[Row], outside_bytes: int) -> list[Row]:
    """The search for a large budget may find a slower plan than that for a small one. Then a
    row has the latter."""
    def least(row: Row) -> Row:
        limit = row.budget_bytes - (0 if is_share(row.budget) else outside_bytes)
        fit = [one for one in rows if one.plan is not None and one.peak_bytes <= limit
               and (row.plan is None or one.step_ns < row.step_ns)]
        best = min(fit, key=lambda one: one.step_ns, default=row)
        return dataclasses.replace(best, budget=row.budget, budget_bytes=row.budget_bytes)

    return [row if row.budget == SMALLEST else least(row) for row in rows]


def estimate(model: torch.nn.Module, optimizer: Optimizer = None,
             loss_fn: Callable[[Any], Any] | None = None, *, sample: Any,
             machine: Machine | str = "rtx-4090",
             budgets: Sequence[int | float | str] = ("100%", CARD, SMALLEST),
             lora: int | dict[str, Any] | Lora | None = None,
             micro_batches: int | str | None = None,
             allow_micro_batch_statistics: bool = False, offload_gradients: bool = False,
             update_in_backward: bool = False, offload_parameters: bool = False,
             host_updates: bool = False, **options: Any) -> Estimate:
    """Plans the training step of a model for a machine that need not be here.

    model: may be on the device meta: `with torch.device("meta"): model = Model(config)`.
    optimizer: of the model's parameters, or a function that makes one of them.
    loss_fn, sample: as `prepare` takes them; the sample may be on meta too.
    machine: a GPU's name, a profile's path, or a loadline.Machine.
    budgets: bytes, "22GiB", "60%" of what keeping everything takes, "card" (the
    machine's device memory), or "smallest".
    lora: a rank, or {"rank": 16, "targets": ["q_proj", ...]}: the model is frozen and these
    linear layers get adapters, in the estimate only. optimizer must be a function then.
    micro_batches, allow_micro_batch_statistics: as `prepare` takes them, and "auto" is for
    each budget. Whether examples depend on each other is not checked without data.
    offload_gradients, update_in_backward: as `prepare` takes them.
    offload_parameters: also, parameters may rest on the host and be on the device only around
    their uses: frozen ones, and with update_in_backward, which it implies, those that the
    backward updates.
    host_updates: as `prepare` takes it; state and copies of parameters on the host are not in
    a row's plan, but the machine's host memory has room for them.
    Other options are those of the backend (docs/pytorch.md).
    Raises Unsupported if PyTorch cannot trace the model as one graph.
    """
    if not isinstance(model, torch.nn.Module):
        raise InvalidArgument(
            f"estimate({type(model).__name__}): want a torch.nn.Module")
    check_model(model)
    if "budget" in options:
        raise InvalidArgument("estimate: the argument is budgets, a list of them")
    check_parts(micro_batches)
    check_flags(offload_gradients=offload_gradients, update_in_backward=update_in_backward,
                offload_parameters=offload_parameters, host_updates=host_updates)
    sample = read_sample(sample)
    structured = micro_batches is not None or options.get("split", 1) != 1
    if not structured or loss_fn is None:  # else the target is in the sample
        check_sample(model, sample)
    start = time.perf_counter()
    model = dynamo_internals.original_module(model)
    if lora is not None:
        if isinstance(optimizer, torch.optim.Optimizer):
            raise InvalidArgument(
                "lora=: the optimizer has the frozen parameters; give a function that makes "
                "one, such as torch.optim.AdamW")
        model = with_memory(model, anew=True)
        add_lora(model, Lora.read(lora))
    if optimizer is not None and not callable(optimizer) and not isinstance(
            optimizer, torch.optim.Optimizer):
        raise InvalidArgument(f"estimate: optimizer {optimizer!r}: want an optimizer, or a "
                              "function that makes one, such as torch.optim.AdamW")
    made = optimizer(p for p in model.parameters() if p.requires_grad) if (
        optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer)
    ) else optimizer
    if current_tier() != tiers.FULL:
        raise Unsupported("an estimate needs the full tier of this plugin (docs/pytorch.md)")
    read = Options.read(
        {"detach_outputs": loss_fn is None, **options, "budget": "100%",
         "machine": _machine_of(machine),
         "part_statistics": allow_micro_batch_statistics}, torch.device("cpu"))
    budgets = _check_budgets(budgets, read.machine)
    log.info("tracing the model")
    here, batch = with_memory(model), _on_cpu(sample)
    inner = None if made is None else innermost(made)
    if inner is not None:
        check_trains(model, inner, loss_fn)
    if inner is not None and read.machine.device_bytes:
        inner = as_on_gpu(inner)
    predicted = PredictedState([], False) if inner is None else predict_state(inner)
    buckets = state_buckets(here, inner, predicted, read)
    owners: dict[torch.Tensor, Any] = {}
    update_in_backward |= offload_parameters and bool(buckets)
    if offload_gradients or update_in_backward or host_updates:
        check_gradients(buckets, micro_batches,
                        option=option_of_gradients(host_updates, update_in_backward))
        with_data: dict[torch.Tensor, torch.Tensor] = dict(
            zip(model.parameters(), here.parameters()))
        owners = {with_data[one]: owner for one, owner in owners_of(buckets).items()}
    if host_updates and inner is not None:
        read = with_host_updates(inner, buckets, read, update_in_backward)
    step: torch.nn.Module = here
    if loss_fn is not None and structured:
        step, loss_fn = with_loss(here, loss_fn, batch), None
    loss = None if loss_fn is None else Loss(loss_fn, here)
    if loss is not None:
        loss.learn(batch)
    held_bytes, sum_bytes = (0, 0) if loss is None else (loss.held_bytes, loss.sum_bytes)
    read = dataclasses.replace(
        read, outside_bytes=read.machine.reserved_bytes,
        reserve_bytes=read.reserve_bytes + predicted.bytes - sum(
            bucket.state_bytes for bucket in buckets) + held_bytes + (
            sum_bytes if buckets else 0),
        loss_bytes=0 if loss is None else loss.bytes,
        step_bytes=max(0 if host_updates else predicted.step_bytes, sum_bytes),
        state=buckets_of_problem(buckets, update_in_backward,
                                 read.machine if host_updates else None))
    trained_bytes = sum(p.untyped_storage().nbytes() for p in here.parameters()
                        if p.requires_grad)
    search = StructureSearch(step, batch, read, trained_bytes, owners,
                             [*here.parameters()] if offload_parameters else ())
    problem = search.problem(Structure())
    traced = time.perf_counter()
    log.info("%d operators, traced in %.1f s", len(problem["nodes"]), traced - start)
    rows = []
    for budget in budgets:
        log.info("planning %s", budget)
        rows.append(_better_row(search, budget, micro_batches or 1))
    if all(row.error == _STOPPED for row in rows):
        raise Stopped(f"within {read.time_limit_s:g} s no plan was found for any budget")
    return Estimate(
        read.machine, no_slower_with_more(rows, read.machine.reserved_bytes), problem,
        sum(map(_bytes, here.parameters())),
        sum(_bytes(p) for p in here.parameters() if p.requires_grad),
        predicted.bytes, read.machine.reserved_bytes, traced - start,
        time.perf_counter() - traced)
