"""Small models of the usual kinds, whole steps with their loss."""
import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

# The zoo's own definitions.
sys.path.append(str(pathlib.Path(__file__).parents[3] / "models"))
from torch_models import BasicBlock  # noqa: E402


class Mlp(nn.Module):
    def __init__(self, width=64, depth=6):
        super().__init__()
        self.layers = nn.Sequential(*[
            layer for _ in range(depth)
            for layer in (nn.Linear(width, width), nn.GELU())])

    def forward(self, x):
        return self.layers(x).square().mean()

    @staticmethod
    def batch():
        return (torch.randn(512, 64),)


class Attention(nn.Module):
    def __init__(self, width, heads, causal, dropout=0.0):
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(
            batch, length, 3, self.heads, width // self.heads).permute(
                2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        if self.causal:
            mask = torch.ones(length, length, dtype=torch.bool,
                              device=x.device).tril()
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = F.dropout(scores.softmax(-1), self.dropout, self.training)
        return self.out((weights @ v).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, width, heads, causal, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal, dropout)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, layers=2, width=32, heads=4, words=64, length=32,
                 dropout=0.0):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, True, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.places.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @staticmethod
    def batch():
        return torch.randint(64, (4, 32)), torch.randint(64, (4, 32))


class Vit(nn.Module):
    def __init__(self, width=32, layers=2):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.blocks = nn.ModuleList(Block(width, 4, False) for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, images, targets):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x[:, 0]), targets)

    @staticmethod
    def batch():
        return torch.randn(4, 3, 16, 16), torch.randint(10, (4,))


class ResNet18(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        sizes = [width, 2 * width, 4 * width, 8 * width]
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False),
                                  nn.BatchNorm2d(width), nn.ReLU())
        blocks, before = [], width
        for stage, size in enumerate(sizes):
            for block in range(2):
                blocks.append(BasicBlock(before, size, 1 if block or not stage else 2))
                before = size
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(sizes[-1], 10)

    def forward(self, images, targets):
        x = self.blocks(self.stem(images)).mean((2, 3))
        return F.cross_entropy(self.head(x), targets)

    @staticmethod
    def batch():
        return torch.randn(4, 3, 16, 16), torch.randint(10, (4,))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()

        def pair(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, 1, 1), nn.GroupNorm(4, b),
                                 nn.SiLU(), nn.Conv2d(b, b, 3, 1, 1), nn.SiLU())

        self.down1, self.down2 = pair(1, width), pair(width, 2 * width)
        self.middle = pair(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.merge2 = pair(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.merge1 = pair(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, images, targets):
        a = self.down1(images)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        d = self.merge2(torch.cat([self.up2(c), b], 1))
        e = self.merge1(torch.cat([self.up1(d), a], 1))
        return F.mse_loss(self.out(e), targets)

    @staticmethod
    def batch():
        return torch.randn(2, 1, 32, 32), torch.randn(2, 1, 32, 32)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, True) + 1e-6) * self.weight


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, feed):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q, self.k, self.v, self.o = (
            nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (
            nn.Linear(width, feed, bias=False) for _ in range(2))
        self.down = nn.Linear(feed, width, bias=False)

    def forward(self, x, cos, sin):
        y = self.norm1(x)
        q, k, v = (linear(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for linear in (self.q, self.k, self.v))

        def turn(t):
            a, b = t.chunk(2, -1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

        y = F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers=2, width=32, heads=4, words=64, feed=64):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(
            LlamaBlock(width, heads, feed) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.half = width // heads // 2

    def forward(self, ids, targets):
        place = torch.arange(ids.shape[1], device=ids.device)
        angles = place[:, None] * 10000.0 ** (
            -torch.arange(self.half, device=ids.device) / self.half)
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        logits = self.norm(x) @ self.tokens.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @staticmethod
    def batch():
        return torch.randint(64, (4, 32)), torch.randint(64, (4, 32))


class GptDropout(Gpt):
    def __init__(self):
        super().__init__(dropout=0.1)


MODELS = {"mlp": Mlp, "gpt": Gpt, "gpt_dropout": GptDropout, "vit": Vit,
          "resnet18": ResNet18, "unet": UNet, "llama": Llama}
