"""A budget for Lightning's Trainer, as a callback.

    lightning.Trainer(..., callbacks=[BudgetCallback("22GiB", module="model")])

Tested by tests/plugins/python/torch_examples_test.py.
"""
from __future__ import annotations

from typing import Any

import lightning
from loadline.errors import InvalidArgument
from loadline.torch.session.in_place import check_planned, compile_in_place


class BudgetCallback(lightning.Callback):  # type: ignore[misc]
    """module: the attribute that is planned, by default the only child with parameters.
    training_step itself is not compiled, so it may log. Other options are those of the
    backend (docs/pytorch.md)."""

    def __init__(self, budget: int | float | str, module: str | None = None, **options: Any):
        self.budget, self.module, self.options = budget, module, options
        self._unchecked: Any = None  # the module, until its first step is done

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        children = [name for name, child in pl_module.named_children()
                    if any(True for _ in child.parameters())]
        name = self.module
        if name is None:
            if len(children) != 1:
                raise InvalidArgument(
                    f"BudgetCallback cannot choose between {', '.join(children)}: give "
                    "the name of one as module=...")
            name = children[0]
        self._unchecked = pl_module.get_submodule(name)
        compile_in_place(
            self._unchecked, self.budget,
            optimizers=trainer.optimizers,
            accumulate=trainer.accumulate_grad_batches > 1,
            **{"host_state": True, **self.options})

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
                             ) -> None:
        """Lightning's own loop does this between forward and backward, but the forward is
        planned without gradients of an earlier step."""
        if pl_module.automatic_optimization and (
                batch_idx % trainer.accumulate_grad_batches == 0):
            for optimizer in trainer.optimizers:
                pl_module.optimizer_zero_grad(trainer.current_epoch, batch_idx, optimizer)

    def on_train_batch_end(self, *ignored: Any) -> None:
        if self._unchecked is not None:
            check_planned(self._unchecked)
            self._unchecked = None
