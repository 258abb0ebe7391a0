"""The model families of the zoo in PyTorch, as people write them."""

import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    """Digits classifier: image [N, 1, 8, 8] -> logits [N, 10]."""

    def __init__(self, hidden=128, dropout=0.1):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 10)
        self.dropout = nn.Dropout(dropout)

    def forward(self, image):
        x = image.flatten(1)
        x = self.dropout(F.relu(self.fc1(x)))
        x = self.dropout(F.relu(self.fc2(x)))
        return self.fc3(x)


def group_norm(channels):
    """32 groups, as Wu and He (2018) have it."""
    return nn.GroupNorm(32, channels)


def projection(channels_in, channels, stride, norm=nn.BatchNorm2d):
    """The layers on a residual block's shortcut; None: the identity."""
    if stride == 1 and channels_in == channels:
        return None
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, 1, stride, bias=False),
        norm(channels))


def residual(block, x, y):
    return F.relu(y + (x if block.shortcut is None else block.shortcut(x)))


class BasicBlock(nn.Module):
    def __init__(self, channels_in, channels, stride, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = norm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = norm(channels)
        self.shortcut = projection(channels_in, channels, stride, norm)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return residual(self, x, y)


class ResNet18(nn.Module):
    """ResNet-18 in its CIFAR form (3x3 stem, stride 1), with a stride-1 max
    pool after the stem: image [N, C, H, W] -> logits [N, 10]. `stem`: size,
    stride and padding of its convolution, and the stride of the pool."""

    def __init__(self, channels_in=1, width=64, classes=10, norm=nn.BatchNorm2d,
                 stem=(3, 1, 1, 1)):
        super().__init__()
        size, stride, padding, pool_stride = stem
        self.conv1 = nn.Conv2d(channels_in, width, size, stride, padding, bias=False)
        self.bn1 = norm(width)
        self.pool = nn.MaxPool2d(3, pool_stride, 1)
        blocks = []
        channels = width
        for stage in range(4):
            out = width << stage
            blocks.append(BasicBlock(channels, out, 1 if stage == 0 else 2, norm))
            blocks.append(BasicBlock(out, out, 1, norm))
            channels = out
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, classes)

    def forward(self, image):
        x = self.pool(F.relu(self.bn1(self.conv1(image))))
        x = self.blocks(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def resnet18_group_norm():
    """ResNet-18 for images of 224 x 224, as torchvision has it, with
    GroupNorm."""
    return ResNet18(3, 64, 1000, group_norm, stem=(7, 2, 3, 2))


class Bottleneck(nn.Module):
    def __init__(self, channels_in, width, stride):
        super().__init__()
        channels = 4 * width
        self.conv1 = nn.Conv2d(channels_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels)
        self.shortcut = projection(channels_in, channels, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return residual(self, x, y)


class ResNet50(nn.Module):
    """ResNet-50 as torchvision has it (the stride in the 3x3 convolution):
    image [N, 3, H, W] -> logits [N, classes]."""

    def __init__(self, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks = []
        channels = 64
        for stage, count in enumerate((3, 4, 6, 3)):
            width = 64 << stage
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(Bottleneck(channels, width, stride))
                channels = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, classes)

    def forward(self, image):
        x = self.pool(F.relu(self.bn1(self.conv1(image))))
        x = self.blocks(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class UNet(nn.Module):
    """A U-Net with what U-Nets are written with (group and instance
    normalization, reflected borders, a transposed convolution, bilinear and
    nearest upsampling), whose mean classifies: image [N, C, H, W] -> logits
    [N, classes]."""

    def __init__(self, channels_in=1, width=8, classes=10):
        super().__init__()
        self.zeros = width
        self.stem = nn.Conv2d(channels_in, width, 3, padding=1,
                              padding_mode="reflect")
        self.norm1 = nn.GroupNorm(4, width)
        self.down1 = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.norm2 = nn.InstanceNorm2d(2 * width, affine=True)
        self.down2 = nn.Conv2d(2 * width, 4 * width, 3, 2, 1)
        self.norm3 = nn.GroupNorm(4, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.wide2 = nn.Conv2d(4 * width, 2 * width, 1)
        self.up1 = nn.Conv2d(4 * width, width, 3, padding=1)
        self.wide1 = nn.Conv2d(2 * width, width, 1)
        self.head = nn.Conv2d(2 * width, classes, 1)

    def forward(self, image):
        a = F.silu(self.norm1(self.stem(image)))
        b = F.silu(self.norm2(self.down1(a)))
        c = F.silu(self.norm3(self.down2(b)))
        skip = self.wide2(F.interpolate(c, scale_factor=2, mode="nearest"))
        b = torch.cat([b, F.silu(self.up2(c) + skip)], 1)
        b = F.interpolate(b, scale_factor=2, mode="bilinear")
        up = F.silu(self.up1(b)) + self.wide1(F.pad(a, (0, 0, 0, 0, 0, self.zeros)))
        return self.head(torch.cat([a, up], 1)).mean((2, 3))


class GptBlock(nn.Module):
    def __init__(self, width, heads, dropout, gelu):
        super().__init__()
        self.heads = heads
        self.gelu = gelu
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n, s, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(d, dim=2)
        q, k, v = (t.view(n, s, self.heads, d // self.heads).transpose(1, 2)
                   for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(n, s, d)
        x = x + self.dropout(self.proj(y))
        y = F.gelu(self.up(self.ln2(x)), approximate=self.gelu)
        return x + self.dropout(self.down(y))


class Gpt(nn.Module):
    """GPT-2's form, tied head: tokens [N, S] -> logits [N, S, vocabulary].
    Layers alternate between the two forms of GELU where none is given."""

    def __init__(self, vocabulary, sequence, layers=4, width=64, heads=4,
                 dropout=0.1, gelu=None):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(sequence, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*[
            GptBlock(width, heads, dropout, gelu or ("none", "tanh")[i % 2])
            for i in range(layers)])
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        position = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.tokens(tokens) + self.positions(position))
        return self.head(self.ln(self.blocks(x)))


def gpt2_124m(dropout=0.0):
    """GPT-2's smallest, its vocabulary of 50,257 filled up to a multiple of 128
    as trainers of it do: rows of logits then suit tensor cores."""
    return Gpt(50304, 1024, layers=12, width=768, heads=12, dropout=dropout,
               gelu="tanh")


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.norm1 = nn.RMSNorm(width, eps=1e-5)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v = nn.Linear(width, kv_heads * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.norm2 = nn.RMSNorm(width, eps=1e-5)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def repeat(self, x):
        """Keys or values for every head."""
        n, _, s, d = x.shape
        x = x[:, :, None].expand(n, self.kv_heads, self.heads // self.kv_heads, s, d)
        return x.reshape(n, self.heads, s, d)

    def forward(self, x, cos, sin):
        n, s, d = x.shape
        y = self.norm1(x)
        q, k, v = (t.view(n, s, -1, self.size).transpose(1, 2)
                   for t in (self.q(y), self.k(y), self.v(y)))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, self.repeat(k), self.repeat(v),
                                           is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(n, s, d))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotation(sequence, size):
    """Cosines and sines of rotary positions, [sequence, size of a head]."""
    rates = 10000.0 ** (-torch.arange(0, size, 2) / size)
    angles = torch.outer(torch.arange(sequence), torch.cat([rates, rates]))
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """Rotary positions: pairs are an element and the one half a head later."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


class Llama(nn.Module):
    """Llama's form, tied head: tokens [N, S] -> logits [N, S, vocabulary].
    The defaults are TinyLlama's 1.1 B with the vocabulary of Llama 3."""

    def __init__(self, vocabulary=128256, sequence=2048, layers=22, width=2048,
                 heads=32, kv_heads=4, hidden=5632):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, kv_heads, hidden)
                                    for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for name, table in zip(("cos", "sin"), rotation(sequence, width // heads)):
            self.register_buffer(name, table, persistent=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))
