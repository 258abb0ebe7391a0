"""A language model of the shape of Llama and Qwen, for estimates without transformers.

RMS norm, rotary positions, grouped attention, gated feed-forward, cross entropy. It has
the sizes and operators of such a model and computes the same kind of step; its weights are
nobody's. Tested by tests/plugins/python/torch_estimate_test.py.
"""
from __future__ import annotations

import dataclasses
from typing import Any

import torch
from loadline.budget import check_whole
from loadline.errors import InvalidArgument
from torch import nn
from torch.nn import functional as F

# Names in config.json of transformers.
NAMES = {"hidden_size": "width", "intermediate_size": "feed_forward",
          "num_hidden_layers": "layers", "num_attention_heads": "heads",
          "num_key_value_heads": "key_value_heads", "vocab_size": "vocabulary",
          "tie_word_embeddings": "tied", "head_dim": "head_width"}
_MOST = {"layers": 10_000}  # each takes time; of the others 1 << 32
_FLAGS = ("tied", "attention_bias")
_MAY_BE_0 = ("key_value_heads", "head_width")


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    feed_forward: int  # of the gated layer in between
    heads: int
    vocabulary: int
    key_value_heads: int = 0  # 0: as many as heads
    head_width: int = 0  # 0: width / heads
    tied: bool = False  # embedding and head are one parameter
    attention_bias: bool = False  # of q, k and v, as in Qwen 2

    @staticmethod
    def read(fields: dict[str, Any]) -> Shape:
        """From fields of this name, or of transformers' configuration, which has a model_type
        and fields that say nothing of a shape."""
        known = {field.name for field in dataclasses.fields(Shape)}
        named = {NAMES.get(name, name): value for name, value in fields.items()}
        unknown = sorted(str(name) for name in named if name not in known)
        if unknown and "model_type" not in named:
            there = ", ".join(field.name for field in dataclasses.fields(Shape))
            raise InvalidArgument(
                f"model: no field {', '.join(unknown)}; there are {there}")
        if str(named.get("model_type")).startswith("qwen2"):
            named.setdefault("attention_bias", True)
        given = {name: value for name, value in named.items()
                 if name in known and value is not None}
        missing = {"layers", "width", "feed_forward", "heads", "vocabulary"} - given.keys()
        if missing:
            raise InvalidArgument(f"the model has no field {', '.join(sorted(missing))}")
        check_sizes(given)
        shape = Shape(**given)
        heads, groups = shape.heads, shape.key_value_heads or shape.heads
        if heads % groups or not shape.head_width and shape.width % heads:
            raise InvalidArgument(
                f"model: {heads} heads cannot share {groups} key_value_heads and a width "
                f"of {shape.width}")
        head_width = shape.head_width or shape.width // heads
        if head_width % 2:
            raise InvalidArgument(
                f"model: a head has a width of {head_width}; rotary positions need an even one")
        if shape.parameters > 1 << 42:
            raise InvalidArgument(f"model: {shape.parameters} parameters, more than {1 << 42}")
        return shape

    @property
    def parameters(self) -> int:
        """Their number, without the small ones of norms and biases."""
        head_width = self.head_width or self.width // self.heads
        heads = 2 * self.heads + 2 * (self.key_value_heads or self.heads)
        return self.width * (self.layers * (heads * head_width + 3 * self.feed_forward)
                             + self.vocabulary * (1 if self.tied else 2))


def check_sizes(fields: dict[str, Any]) -> None:
    """Raises InvalidArgument for a field of a shape, by its name here or in transformers'
    configuration, whose value no model can have."""
    for name, value in fields.items():
        own = NAMES.get(name, name)
        if own in _FLAGS and not isinstance(value, bool):
            raise InvalidArgument(f"model.{name}={value!r}: want true or false")
        if own not in _FLAGS and own in Shape.__dataclass_fields__:
            check_whole(f"model.{name}", value, _MOST.get(own, 1 << 32),
                        0 if own in _MAY_BE_0 else 1)


class _Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.groups = shape.heads, shape.key_value_heads or shape.heads
        self.size = shape.head_width or shape.width // shape.heads
        bias = shape.attention_bias
        self.q_proj = nn.Linear(shape.width, self.heads * self.size, bias=bias)
        self.k_proj = nn.Linear(shape.width, self.groups * self.size, bias=bias)
        self.v_proj = nn.Linear(shape.width, self.groups * self.size, bias=bias)
        self.o_proj = nn.Linear(self.heads * self.size, shape.width, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
                ) -> torch.Tensor:
        def heads(y: torch.Tensor, count: int) -> torch.Tensor:
            return y.unflatten(-1, (count, self.size)).transpose(1, 2)

        def rotated(y: torch.Tensor) -> torch.Tensor:
            first, second = y.chunk(2, -1)
            return y * cos + torch.cat((-second, first), -1) * sin

        def repeated(y: torch.Tensor) -> torch.Tensor:
            return y.repeat_interleave(self.heads // self.groups, 1)

        q = rotated(heads(self.q_proj(x), self.heads))
        k = repeated(rotated(heads(self.k_proj(x), self.groups)))
        v = repeated(heads(self.v_proj(x), self.groups))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        result: torch.Tensor = self.o_proj(y.transpose(1, 2).flatten(-2))
        return result


class _Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


class _Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm, self.mlp_norm = _Norm(shape.width), _Norm(shape.width)
        self.attention = _Attention(shape)
        self.gate_proj = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.down_proj = nn.Linear(shape.feed_forward, shape.width, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
                ) -> torch.Tensor:
        x = x + self.attention(self.norm(x), cos, sin)
        y = self.mlp_norm(x)
        result: torch.Tensor = x + self.down_proj(F.silu(self.gate_proj(y))
                                                  * self.up_proj(y))
        return result


class LlamaShaped(nn.Module):
    """forward(input_ids, labels), both [batch, tokens], returns the loss."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(_Layer(shape) for _ in range(shape.layers))
        self.norm = _Norm(shape.width)
        self.lm_head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        if shape.tied:
            self.lm_head.weight = self.embed.weight
        self.size = shape.head_width or shape.width // shape.heads

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids)
        steps = torch.arange(0, self.size, 2, device=x.device, dtype=torch.float32)
        angles = torch.outer(
            torch.arange(x.shape[1], device=x.device, dtype=torch.float32),
            500_000.0 ** (-steps / self.size))
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        logits = self.lm_head(self.norm(x)).float()
        shifted = F.pad(labels, (0, 1), value=-100)[:, 1:]
        return F.cross_entropy(logits.flatten(0, 1), shifted.flatten())
