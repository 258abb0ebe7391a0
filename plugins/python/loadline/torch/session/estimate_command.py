"""python -m loadline.torch.estimate: will this language model train on that GPU?

Builds a causal language model of the package transformers from its configuration,
without weights, and prints the table of `loadline.torch.estimate`.
Tested by tests/plugins/python/torch_estimate_test.py.
"""
from __future__ import annotations

import argparse
import sys
from typing import Any

import torch
from loadline.budget import SMALLEST
from loadline.errors import InvalidArgument, LoadlineError, Unsupported
from loadline.torch.session.estimate import CARD, Estimate, estimate
from torch import nn

_TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}


class Lora(nn.Module):
    """A linear layer whose weight stays as it is, and a trained product of two narrow
    matrices beside it (Hu et al. 2021, LoRA: Low-Rank Adaptation of Large Language
    Models)."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        kind: dict[str, Any] = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.down = nn.Linear(base.in_features, rank, bias=False, **kind)
        self.up = nn.Linear(rank, base.out_features, bias=False, **kind)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.base(x) + self.up(self.down(x))
        return result


def add_lora(model: nn.Module, rank: int, targets: list[str]) -> int:
    """Freezes the model and gives every linear layer with one of these names an adapter.
    Returns how many."""
    model.requires_grad_(False)
    found = [(parent, name, child) for parent in model.modules()
             for name, child in parent.named_children()
             if name in targets and isinstance(child, nn.Linear)]
    for parent, name, child in found:
        setattr(parent, name, Lora(child, rank))
    return len(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m loadline.torch.estimate",
        description="Will a language model train on a GPU, how fast, and what is the "
                    "least? Needs neither the GPU nor the weights.")
    parser.add_argument("--config", required=True, metavar="FILE",
                        help="config.json of a transformers model, or its folder")
    parser.add_argument("--machine", default="rtx-4090",
                        help="a GPU's name or a profile (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="sequences per step")
    parser.add_argument("--sequence", type=int, default=2048, help="tokens per sequence")
    parser.add_argument("--dtype", choices=sorted(_TYPES), default="bf16",
                        help="of parameters, gradients and AdamW's state")
    parser.add_argument("--lora", type=int, metavar="RANK",
                        help="train adapters only, and keep the weights as they are")
    parser.add_argument("--targets", default="q_proj,k_proj,v_proj,o_proj",
                        help="linear layers that get one (default: %(default)s)")
    parser.add_argument("--budget", action="append", metavar="BYTES",
                        help='such as 22GiB, 60%%, card or smallest; may be repeated '
                             "(default: 100%%, card, smallest)")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS",
                        help="for the search of each budget")
    parser.add_argument("--html", metavar="FILE", help="page of the last budget's plan")
    return parser


def _positive(name: str, value: int | None) -> None:
    if value is not None and value <= 0:
        raise InvalidArgument(f"--{name} {value}: must be more than 0")


def build(config: str, dtype: torch.dtype) -> nn.Module:
    """On meta, in training mode."""
    try:
        import transformers  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise Unsupported("--config needs the package transformers: pip install "
                          "transformers") from error
    try:
        read = transformers.AutoConfig.from_pretrained(config, local_files_only=True)
        read.use_cache = False
        with torch.device("meta"):
            model: nn.Module = transformers.AutoModelForCausalLM.from_config(
                read, dtype=dtype)
    except (OSError, ValueError, KeyError) as error:
        raise InvalidArgument(f"--config {config}: {error}") from error
    return model.to(dtype).train()


def run(arguments: list[str]) -> Estimate:
    given = _parser().parse_args(arguments)
    for name in ("batch", "sequence", "lora"):
        _positive(name, getattr(given, name))
    model = build(given.config, _TYPES[given.dtype])
    if given.lora and not add_lora(model, given.lora, given.targets.split(",")):
        raise InvalidArgument(
            f"--targets {given.targets}: the model has no such linear layer")
    tokens = torch.zeros(given.batch, given.sequence, dtype=torch.long)
    result = estimate(
        model, torch.optim.AdamW, sample={"input_ids": tokens, "labels": tokens},
        machine=given.machine, budgets=given.budget or ("100%", CARD, SMALLEST),
        time_limit_s=given.time_limit)
    print(result)
    if given.html:
        result.report(given.html)
    return result


def main() -> None:
    try:
        run(sys.argv[1:])
    except (LoadlineError, OSError) as error:
        sys.exit(f"loadline.torch.estimate: {error}")
