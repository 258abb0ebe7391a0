"""A budget for the Trainer of Hugging Face transformers, as a callback.

    Trainer(..., callbacks=[BudgetCallback("22GiB")])

Tested by tests/plugins/python/torch_examples_test.py.
"""
from __future__ import annotations

import logging
from typing import Any

from loadline.errors import LoadlineError
from loadline.torch.compat import dynamo_internals
from loadline.torch.session.in_place import check_planned, compile_in_place
from transformers import TrainerCallback


class BudgetCallback(TrainerCallback):  # type: ignore[misc]
    """Other options are those of the backend (docs/pytorch.md)."""

    def __init__(self, budget: int | float | str, **options: Any):
        self.budget, self.options = budget, options
        self._unchecked: Any = None  # the model, until its first step is done

    def on_train_begin(self, args: Any, state: Any, control: Any,
                       **kwargs: Any) -> None:
        if args.torch_compile:
            raise LoadlineError("torch_compile=True and a budget would both compile "
                                "the model: remove torch_compile")
        # Models log while they run, and each log call would break the graph.
        dynamo_internals.ignore_logging(*(
            getattr(logging.Logger, name) for name in ("warning_once", "info_once")
            if hasattr(logging.Logger, name)))
        optimizer = kwargs.get("optimizer")
        self._unchecked = kwargs["model"]
        compile_in_place(
            self._unchecked, self.budget,
            optimizers=[] if optimizer is None else [optimizer],
            accumulate=args.gradient_accumulation_steps > 1,
            **{"host_state": True, "detach_outputs": True, **self.options})

    def on_step_end(self, args: Any, state: Any, control: Any,
                    **ignored: Any) -> None:
        if self._unchecked is not None:
            check_planned(self._unchecked)
            self._unchecked = None
