"""The sample step of `prepare`: run once, measured, and undone.

Tested by tests/plugins/python/torch_prepare_test.py and torch_whole_step_test.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from loadline.errors import InvalidArgument, LoadlineError, Unsupported
from loadline.torch.compat import dynamo_internals, tiers, torch_internals
from loadline.torch.compat.nested_values import map_leaves, tensors_in
from loadline.torch.compat.trained_leaves import trained_leaves
from loadline.torch.problem.default_machine import device_of, first_device
from loadline.torch.rewrite.ledger import Ledger, WatchedCalls, virtual_device
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.compiler import current_tier, refuse_switched_off
from loadline.torch.session.module_attributes import ModuleAttributes
from loadline.torch.session.random_numbers import random_numbers_kept
from loadline.torch.session.session import Session
from loadline.torch.session.written_inputs import WrittenInputs
from loadline.torch.state.dry_run import dry_run
from loadline.torch.state.predict_state import PredictedState, bytes_on
from loadline.torch.structure.detach_outputs import is_detached


NO_HEAD = ("split: the traced model has no cross entropy, so there is no head to cut. If your "
           "loop computes the loss, pass it as loss_fn(output, target)")


def _cut_off(value: Any) -> Any:
    """A sample's tensor without its history, through which a backward pass would go on."""
    if isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf:
        return value.detach().requires_grad_()
    return value


@contextlib.contextmanager
def _without_hooks(parameters: list[torch.Tensor]) -> Iterator[None]:
    """Hooks on gradients are not called: they may count, or run an optimizer."""
    hooks = {id(found): found for one in parameters
             for name in ("_backward_hooks", "_post_accumulate_grad_hooks")
             if (found := getattr(one, name, None))}
    kept = [(found, dict(found)) for found in hooks.values()]
    for found, _ in kept:
        found.clear()  # in place: PyTorch calls what is in this dict
    try:
        yield
    finally:
        for found, before in kept:
            found.update(before)


@contextlib.contextmanager
def restored_afterwards(model: torch.nn.Module, sample: Any,
                        optimizer: torch.optim.Optimizer | None = None
                        ) -> Iterator[WrittenInputs]:
    """A step inside changes no buffer, attribute, gradient or random number; and no parameter
    or input that is saved in what this yields. optimizer: of which the gradients too."""
    written = WrittenInputs([*model.named_parameters(), *(
        ("the sample", tensor) for tensor in tensors_in(sample))])
    attributes = ModuleAttributes(model)
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    groups = [] if optimizer is None else optimizer.param_groups
    leaves = [*model.parameters(), *(one for group in groups for one in group["params"]), *(
        tensor for tensor in tensors_in(sample)
        if tensor.requires_grad and tensor.is_leaf)]
    gradients: list[tuple[torch.Tensor, torch.Tensor | None]] = [
        (leaf, leaf.grad) for leaf in dict.fromkeys(leaves)]
    for leaf, _ in gradients:
        leaf.grad = None
    devices = {parameter.device for parameter in model.parameters()
               if parameter.device.type == "cuda"}
    with random_numbers_kept(model, devices), _without_hooks(leaves):
        try:
            yield written
        finally:
            attributes.restore()
            written.restore()
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            for leaf, gradient in gradients:
                leaf.grad = gradient


def _with_gradient(output: Any) -> list[torch.Tensor]:
    found = [tensor for tensor in tensors_in(output)
             if tensor.requires_grad and not is_detached(tensor)]
    if not found:
        raise LoadlineError(
            "no output of the model requires a gradient (it returns "
            f"{type(output).__name__}): pass prepare a model in training mode, outside of "
            "torch.no_grad()")
    return found


def _scalar(output: Any) -> torch.Tensor:
    losses = _with_gradient(output)
    return losses[0] if losses[0].dim() == 0 else torch.stack(
        [loss.sum() for loss in losses]).sum()


class _Through(torch.autograd.Function):
    """The same tensor as a result, to which a loss may write, as to the model's output."""

    @staticmethod
    def forward(_context: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach()

    @staticmethod
    def backward(_context: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def _refusal(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Why the function does not take these arguments; empty if it does, as far as it says.

    What a decorator wraps may take others."""
    try:
        inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    except ValueError:  # a function without a signature
        pass
    return ""


def check_loss_fn(function: Callable[..., Any], with_target: bool) -> None:
    """Raises InvalidArgument for a loss_fn that takes other arguments."""
    if why := _refusal(function, *(None,) * (2 if with_target else 1)):
        raise InvalidArgument(
            f"loss_fn ({why}): with micro_batches or split it takes the model's output and "
            "the target, otherwise only the output: loss_fn=lambda output: "
            "loss(output, target)")


@dataclasses.dataclass
class Loss:
    """The caller's loss, and the bytes that it took: gradients of the outputs included."""

    function: Callable[[Any], Any]
    model: torch.nn.Module
    bytes: int = 0
    # Of parameters that the loss has besides the model, and of gradients that its backward
    # makes: these stay while the model's backward runs.
    held_bytes: int = 0
    # Of the largest gradient that is added to one of the model's backward.
    sum_bytes: int = 0
    forward_peak_bytes: int = 0  # on a GPU, whose peak is counted anew for the loss
    _gradient_bytes: int = 0  # of held_bytes

    def __post_init__(self) -> None:
        check_loss_fn(self.function, with_target=False)

    def learn(self, sample: Any) -> None:
        """Finds its bytes before the model runs, on zeros of the output's shapes. A model
        that cannot run without data shows them when it runs."""
        if torch_internals.FakeTensorMode is None:
            return
        args, kwargs = map_leaves(_cut_off, arguments_of(sample))
        with torch_internals.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            def fake(value: Any) -> Any:
                return mode.from_tensor(value) if isinstance(
                    value, torch.Tensor) else value

            tensors = {name: fake(tensor) for name, tensor in (
                *self.model.named_parameters(), *self.model.named_buffers())}
            try:
                output = torch.func.functional_call(
                    self.model, tensors, *map_leaves(
                        fake, (args, kwargs)), tie_weights=True)
            except Exception:
                return
        self.backward(map_leaves(
            lambda leaf: torch.zeros(leaf.shape, dtype=leaf.dtype, device=leaf.device,
                                     requires_grad=leaf.requires_grad)
            if isinstance(leaf, torch.Tensor) else leaf, output))

    def backward(self, output: Any) -> None:
        """Computes the loss apart from the model, so that its bytes are known."""
        outputs = _with_gradient(output)
        self.held_bytes = 0
        ends = {id(one): one.detach().requires_grad_() for one in outputs}
        inner = {key: _Through.apply(end) for key, end in ends.items()}
        cut = map_leaves(
            lambda leaf: inner.get(id(leaf), leaf), output)
        del inner
        cuda = next((one.device for one in outputs if one.device.type == "cuda"), None)
        if cuda is not None:
            self.forward_peak_bytes = torch.cuda.max_memory_allocated(cuda)
            before = torch.cuda.memory_allocated(cuda)
            torch.cuda.reset_peak_memory_stats(cuda)
            gradients = self._gradients(cut, [*ends.values()])
            # Parameters were there before.
            self.bytes = max(0, torch.cuda.max_memory_allocated(cuda) - before
                             - self._gradient_bytes)
        else:
            ledger = Ledger()
            ledger.watch([output, *self.model.parameters(), *self.model.buffers()])
            before = ledger.sample("outputs")
            with WatchedCalls(ledger):
                gradients = self._gradients(cut, [*ends.values()])
            self.bytes = max(0, ledger.peak_bytes - before - self.held_bytes)
        del cut, ends
        read = [(one, gradient) for one, gradient in zip(
            {id(one): one for one in outputs}.values(), gradients)
            if gradient is not None]
        torch.autograd.backward([one for one, _ in read],
                                [gradient for _, gradient in read])

    def _gradients(self, output: Any, ends: list[torch.Tensor]
                   ) -> tuple[torch.Tensor | None, ...]:
        """Of the loss, by the tensors `ends` of the output."""
        loss = self.function(output)
        if not isinstance(loss, torch.Tensor) or loss.dim() or not loss.requires_grad:
            raise InvalidArgument(
                "loss_fn must return a scalar tensor that depends on the model's output, "
                f"not {loss if not isinstance(loss, torch.Tensor) else loss.shape}")
        leaves = [one for one in trained_leaves(loss) if all(one is not end for end in ends)]
        self._hold(leaves)
        if leaves:  # the gradient of the loss, which views of it keep
            self.held_bytes += loss.nbytes
        return torch.autograd.grad(loss, [*ends, *leaves], allow_unused=True)

    def _hold(self, leaves: list[torch.Tensor]) -> None:
        """Counts what the leaves of the loss hold during the model's backward."""
        own = {id(one) for one in self.model.parameters()}
        others = {torch_internals.storage_key(one): one.untyped_storage().nbytes()
                  for one in leaves if id(one) not in own}
        self._gradient_bytes = sum(one.nbytes for one in leaves)
        self.sum_bytes = max((one.nbytes for one in leaves if id(one) in own), default=0)
        self.held_bytes = self._gradient_bytes + sum(others.values())


def read_sample(sample: Any) -> Any:
    """A batch as a program's loader yields it: a mapping of another class, as transformers'
    BatchEncoding, becomes a dict. Raises InvalidArgument for what is no batch."""
    given = type(sample).__name__
    if sample is None or isinstance(sample, (
            str, Iterator, torch.utils.data.DataLoader, torch.utils.data.Dataset)):
        raise InvalidArgument(
            f"sample: want one batch, with the arguments of forward as a tensor, a tuple or a "
            f"dict, and not {'None' if sample is None else f'a {given}'}. The first batch of a "
            "DataLoader is next(iter(loader))")
    if not isinstance(sample, Mapping):
        return sample
    if other := [key for key in sample if not isinstance(key, str)]:
        raise InvalidArgument(
            f"sample: the keys of a {given} are the names of forward's arguments, and not "
            f"{other[0]!r}. If forward takes a {given}, the sample is a tuple of it")
    return sample if isinstance(sample, dict) else dict(sample)


def arguments_of(sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(sample, dict):
        return (), sample
    return (tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)), {}


def check_sample(model: torch.nn.Module, sample: Any) -> None:
    """Raises InvalidArgument for a sample that has other arguments than `forward`."""
    if model._forward_pre_hooks:  # which may change the arguments
        return
    args, kwargs = arguments_of(sample)
    if why := _refusal(model.forward, *args, **kwargs):
        raise InvalidArgument(
            f"sample: {type(model).__name__}.forward: {why}. The sample has the arguments of "
            "forward, as a tensor, a tuple or a dict, and no targets that only your loss reads")


def refuse_batch(error: Exception) -> None:
    """Raises InvalidArgument if it is that the model cannot run on the sample."""
    if said := dynamo_internals.failed_call(error):
        raise InvalidArgument("the model cannot run on the sample, which must be a batch as in "
                              f"training: {said}") from error


@dataclasses.dataclass
class SampleStep:
    """How the sample step runs: by default the model on the sample and the sum of its
    outputs, or the caller's loss, or the caller's function."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer | None
    sample: Any
    inner: str
    loss: Loss | None
    function: Callable[[Any], Any] | None
    predicted: PredictedState
    split: int | str = 1

    def run(self, call: Any, ledger: Ledger | None) -> int:
        """Forward and backward. The peak that neither the ledger nor the GPU counts."""
        if self.function is not None:
            self.function(call)
            return 0
        args, kwargs = map_leaves(_cut_off, arguments_of(self.sample))
        output = call(*args, **kwargs)
        if self.loss is None:
            _scalar(output).backward()
            return 0
        live = 0 if ledger is None else ledger.sample("loss")
        self.loss.backward(output)
        return max(live + self.loss.bytes if ledger is not None else 0,
                   self.loss.forward_peak_bytes)

    @property
    def held_bytes(self) -> tuple[int, int]:
        """By the loss, during the model's backward; and for a moment after it."""
        return (0, 0) if self.loss is None else (self.loss.held_bytes, self.loss.sum_bytes)

    def step_bytes(self, graphs: list[PlannedGraph]) -> int:
        """What the optimizer's own step takes, besides gradients: 0 if the plan runs it
        bucket by bucket."""
        if any(graph.moves.updated for graph in graphs):
            return 0
        return self.predicted.step_bytes + sum(
            graph.resident_state_bytes for graph in graphs)


def learn_loss(loss: Loss, sample: Any) -> int:
    """Its bytes, or 0 if they are not known before a step."""
    with restored_afterwards(loss.model, sample):
        loss.learn(sample)
    return loss.bytes


def run_sample_step(step: SampleStep, call: Any, session: Session, keep_budgets: bool
                    ) -> tuple[list[PlannedGraph], int | None]:
    """The graphs planned for one step, and its peak in bytes if it can be measured: with
    the optimizer state that the plans keep on the device, and no other state."""
    model, optimizer, sample = step.model, step.optimizer, step.sample
    device = first_device(model.parameters())
    cuda = device if device.type == "cuda" else None
    breaks = dynamo_internals.break_count()
    session.restart(keep_budgets)
    session.counts_forwards = step.function is not None
    with restored_afterwards(model, sample, optimizer) as session.written, dry_run(
            session.number, device_of(model)), contextlib.ExitStack() as stack:
        ledger = stack.enter_context(virtual_device()) if (
            step.inner == "aot_eager" and cuda is None
            and current_tier() == tiers.FULL) else None
        end = 0  # bytes that are left for the optimizer's step
        try:
            uncounted = step.run(call, ledger)
            if ledger is not None and step.function is not None and (
                    dynamo_internals.compiles_inside_modes()):
                # Once more, because compiling computes too.
                for parameter in model.parameters():
                    parameter.grad = None
                ledger = stack.enter_context(virtual_device(whole_step=True))
                step.run(call, ledger)
            if ledger is not None:
                ledger.watch([(p, p.grad) for p in model.parameters()])
                end = ledger.sample("end of the backward")
            if cuda is not None:  # once more, because compiling itself takes memory
                for parameter in model.parameters():
                    parameter.grad = None
                torch.cuda.empty_cache()  # of compiling, and of earlier plans
                torch.cuda.reset_peak_memory_stats(cuda)
                uncounted = step.run(call, None)
                end = torch.cuda.memory_allocated(cuda)
        except torch_internals.BackendCompilerFailed as error:
            dynamo_internals.raise_own(error)
            raise
        except RuntimeError as error:
            refuse_batch(error)
            raise
    session.written = None
    session.counts_forwards = False
    graphs = session.graphs
    if not graphs:
        dynamo_internals.say_nothing_compiled()
        refuse_switched_off()
        reasons = [reason for reason, count in dynamo_internals.break_count().items()
                   if count > breaks.get(reason, 0)]
        raise LoadlineError(
            "nothing was planned: " + (
                f"PyTorch cannot trace the model ({'; '.join(reasons)})" if reasons else
                "no traced part of the model needs a gradient")
            + ". torch.compile(model, fullgraph=True) says where")
    if step.split != 1 and not session.heads:
        raise Unsupported(NO_HEAD)
    # State that never moves takes memory in a real step.
    resident = sum(graph.resident_state_bytes for graph in graphs)
    end += step.step_bytes(graphs)
    if cuda is not None:
        present = 0 if optimizer is None else bytes_on(optimizer, cuda)
        peak = max(max(torch.cuda.max_memory_allocated(cuda), uncounted) + resident,
                   end)
        return graphs, peak - present - step.held_bytes[0]
    if ledger is None:
        return graphs, None
    for graph in graphs:
        graph.surprises = ledger.surprises
    return graphs, max(max(ledger.peak_bytes, uncounted) + resident, end)
