"""Counts what the terms of a loss divide by, before the parts of a batch run.

A loss that adds a cross entropy to other terms needs, in each part, the gradient of each
term divided by the count of the whole batch. A part's backward takes these divisors as the
gradient of its rows (term_sums.py), so they must be known first. The model is traced
once more, and of that graph only what counts targets is run.
Tested by tests/plugins/python/torch_micro_batches_test.py.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from loadline.errors import LoadlineError, Unsupported
from loadline.torch.compat import dynamo_internals
from loadline.torch.structure.part_sums import count_targets

_numbers = itertools.count()


class _Counted(BaseException):
    """Carries the counts out of the compiled call, before what the model's Python code does
    after it, such as assigning an attribute."""

    def __init__(self, counts: torch.Tensor | None):
        super().__init__()
        self.counts = counts


def _count_only(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
    by_term = count_targets(gm)

    def run(*arguments: Any) -> Any:
        with torch.no_grad():
            raise _Counted(gm(*arguments)[0] if by_term else None)

    return run


class TargetCounter:
    """Of one model, or of a model with its loss."""

    def __init__(self, model: torch.nn.Module):
        def count(*args: Any, **kwargs: Any) -> Any:
            return model(*args, **kwargs)

        # PyTorch limits the compiles of one code object, and closures share theirs.
        count.__code__ = count.__code__.replace(co_name=f"count_targets_{next(_numbers)}")
        self._call: Callable[..., Any] = torch.compile(
            count, backend=_count_only, fullgraph=True, dynamic=False)

    def of_part(self, args: Any, kwargs: Any) -> torch.Tensor | None:
        """A number for each row of term_sums; none if the loss is one sum and one count."""
        try:
            self._call(*args, **kwargs)
        except _Counted as found:
            return found.counts
        except Exception as error:
            dynamo_internals.raise_own(error)
            raise Unsupported("micro_batches: the targets of a part cannot be counted: "
                              f"{error}") from error
        raise LoadlineError("micro_batches: PyTorch did not run the count of targets")
