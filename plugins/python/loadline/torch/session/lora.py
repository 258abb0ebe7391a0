"""Low-rank adapters, for estimates (Hu et al. 2021, LoRA: Low-Rank Adaptation of Large
Language Models). To train them use a library for it, such as PEFT.

Tested by tests/plugins/python/torch_estimate_test.py.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from loadline.budget import check_whole
from loadline.errors import InvalidArgument
from torch import nn

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


@dataclasses.dataclass(frozen=True)
class Lora:
    """rank: of the adapters. targets: names of the linear layers that get one."""

    rank: int
    targets: Sequence[str] = ATTENTION

    @staticmethod
    def read(lora: int | dict[str, Any] | Lora) -> Lora:
        """From 16, or {"rank": 16, "targets": ["q_proj", "v_proj"]}."""
        if isinstance(lora, Lora):
            return lora
        if isinstance(lora, dict):
            unknown = lora.keys() - {"rank", "targets"}
            if unknown or "rank" not in lora:
                raise InvalidArgument(f"lora={lora!r}: want rank and perhaps targets")
            made = Lora(**lora)
        else:
            made = Lora(lora)
        check_whole("lora rank", made.rank, 1 << 20)
        if made.rank == 0 or isinstance(made.targets, str):
            raise InvalidArgument(
                f"lora={lora!r}: want a rank of 1 or more, and a list of targets")
        return made


class _Adapted(nn.Module):
    """A linear layer whose weight stays as it is, and a trained product beside it."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        kind: dict[str, Any] = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.down = nn.Linear(base.in_features, rank, bias=False, **kind)
        self.up = nn.Linear(rank, base.out_features, bias=False, **kind)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.base(x) + self.up(self.down(x))
        return result


def add_lora(model: nn.Module, lora: Lora) -> None:
    """Freezes the model and gives every target an adapter."""
    model.requires_grad_(False)
    found = [(parent, name, child) for parent in model.modules()
             for name, child in parent.named_children()
             if name in lora.targets and isinstance(child, nn.Linear)]
    if not found:
        raise InvalidArgument(
            f"lora: the model has no linear layer named {', '.join(lora.targets)}")
    for parent, name, child in found:
        setattr(parent, name, _Adapted(child, lora.rank))
