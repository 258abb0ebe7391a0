"""What the graph of a part computes instead of its loss: sums and counts.

part_sums.py puts these functions into the graph, so PyTorch traces them with the model.
Tested by tests/plugins/python/torch_micro_batches_test.py.
"""
from __future__ import annotations

from typing import Any

import torch
from loadline.errors import Unsupported

# The count of a loss that is a sum.
IS_SUM = -1.0


def target_count(target: torch.Tensor, class_weight: torch.Tensor | None,
                 ignore_index: int) -> torch.Tensor:
    """What the mean of a cross entropy divides by."""
    if target.is_floating_point():
        raise Unsupported("micro_batches: the step cannot run in parts: the targets of "
                          "cross_entropy are probabilities")
    counts = target != ignore_index
    if class_weight is None:
        return counts.sum()
    return torch.where(counts, class_weight[torch.where(counts, target, 0)], 0).sum()


def cross_entropy_sums(total: torch.Tensor, target: torch.Tensor,
                       class_weight: torch.Tensor | None, ignore_index: int
                       ) -> torch.Tensor:
    """Of a cross entropy that is a sum: that sum, and what its mean divides by."""
    return sums(total, target_count(target, class_weight, ignore_index))


def sums(total: torch.Tensor, count: torch.Tensor | float) -> torch.Tensor:
    wide = torch.promote_types(total.dtype, torch.float32)
    number = count.to(wide) if isinstance(count, torch.Tensor) else torch.full(
        (), count, dtype=wide, device=total.device)
    return torch.stack([total.to(wide), number])


def mean_sums(mean: torch.Tensor, count: float) -> torch.Tensor:
    return sums(mean.to(torch.promote_types(mean.dtype, torch.float32)) * count, count)


def weighted_sums(pairs: tuple[torch.Tensor, ...], factors: tuple[float, ...],
                  constants: tuple[torch.Tensor, ...], weights: tuple[float, ...],
                  number: float) -> torch.Tensor:
    """The sum and the count of factors times losses that are given as such. Factors are
    relative to the first loss's count. What no example changes counts as often."""
    total = sum(factor * pair[0] for factor, pair in zip(factors, pairs))
    assert isinstance(total, torch.Tensor)
    found = pairs[0][1]
    if constants or number:
        total = total + found * _constant(constants, weights, number, total)
    return torch.stack([total, found])


def term_sums(pairs: tuple[torch.Tensor, ...], factors: tuple[float, ...],
              assumed: tuple[float | None, ...], constants: tuple[torch.Tensor, ...],
              weights: tuple[float, ...], number: float) -> torch.Tensor:
    """A row for each loss: factor times sum, count, and targets that are ignored although
    `assumed` counts all. What no example changes is the last row, with 1 in each part."""
    rows = [torch.stack([factor * pair[0], *(
        (pair[1].detach(), torch.zeros_like(pair[1])) if count is None else
        (torch.full_like(pair[1], count), count - pair[1].detach()))])
        for pair, factor, count in zip(pairs, factors, assumed)]
    if constants or number:
        value = _constant(constants, weights, number, pairs[0])
        one = torch.ones_like(pairs[0][1])
        rows.append(torch.stack([one * value, one, torch.zeros_like(one)]))
    return torch.stack(rows)


def _constant(constants: tuple[torch.Tensor, ...], weights: tuple[float, ...],
              number: float, like: torch.Tensor) -> Any:
    return number + sum(
        weight * one.to(like.dtype) for weight, one in zip(weights, constants))


def term_counts(counts: tuple[Any, ...], device: torch.device) -> torch.Tensor:
    """The second column of term_sums."""
    return torch.stack([torch.as_tensor(one, dtype=torch.float32, device=device)
                        for one in counts])


def pairs_apart(*made: torch.Tensor) -> torch.Tensor:
    """All as sums and counts, one after the other."""
    return torch.cat([*made])
