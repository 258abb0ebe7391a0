#!/usr/bin/env python3
"""Compares dependency groups with Torch-Pruning's: the same PyTorch models, half
of every group's channels removed, parameters and multiply-adds counted before
and after.

    torch_pruning_groups.py [--prune PROGRAM] [--ratio 0.5]

PROGRAM is prune_bench. Needs torch, onnx and torch_pruning (torchvision for
three models more); exit status 77 (skipped) without them. Exit status 1 where
parameters or multiply-adds after pruning differ by more than --tolerance.

Torch-Pruning 1.6.1 fails for two models: it cuts the rows of an LSTM's weight_hh
twice by hidden units and never by gates, and of the three parts of a Split
before scaled_dot_product_attention it takes the indices for those of the output
(GPT). At a ratio of one half these are compared with the same model built at half
the width ("small" instead of groups), at another they are left out.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    import torch_pruning
    from torch import nn
    import onnx  # torch.onnx needs it
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
import torch_models  # noqa: E402


class Depthwise(nn.Module):
    """Two inverted residuals, as in MobileNetV2."""

    def __init__(self):
        super().__init__()
        self.stem = self.layer(3, 32, 3, 1)
        self.blocks = nn.ModuleList([self.block(32, 16, 1),
                                     self.block(16, 24, 6),
                                     self.block(24, 24, 6)])
        self.fc = nn.Linear(24, 10)

    @staticmethod
    def layer(inputs, outputs, kernel, groups):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel, 1, kernel // 2, groups=groups,
                      bias=False), nn.BatchNorm2d(outputs), nn.ReLU6())

    def block(self, inputs, outputs, expansion):
        wide = inputs * expansion
        return nn.Sequential(
            self.layer(inputs, wide, 1, 1), self.layer(wide, wide, 3, wide),
            nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, image):
        x = self.stem(image)
        for block in self.blocks:
            y = block(x)
            x = x + y if x.shape == y.shape else y
        return self.fc(x.mean((2, 3)))


class Dense(nn.Module):
    """A dense block of four layers and a transition, as in DenseNet."""

    def __init__(self, growth=12):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 3, padding=1, bias=False)
        self.norms, self.layers = nn.ModuleList(), nn.ModuleList()
        channels = 24
        for _ in range(4):
            self.norms.append(nn.BatchNorm2d(channels))
            self.layers.append(nn.Conv2d(channels, growth, 3, padding=1,
                                         bias=False))
            channels += growth
        self.transition = nn.Conv2d(channels, channels // 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels // 2)
        self.fc = nn.Linear(channels // 2, 10)

    def forward(self, image):
        x = self.stem(image)
        for norm, layer in zip(self.norms, self.layers):
            x = torch.cat([x, layer(torch.relu(norm(x)))], 1)
        x = torch.relu(self.norm(self.transition(x)))
        return self.fc(x.mean((2, 3)))


class Flattened(nn.Module):
    """Convolutions before linear layers, as in VGG."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * 4 * 4, 128)
        self.fc = nn.Linear(128, 10)

    def forward(self, image):
        x = torch.max_pool2d(torch.relu(self.conv1(image)), 4)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc(torch.relu(self.fc1(x.flatten(1))))


class Attention(nn.Module):
    """As timm writes it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        n, s, _ = x.shape
        qkv = self.qkv(x).reshape(n, s, 3, self.heads, self.size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = (q @ k.transpose(-2, -1) * self.size**-0.5).softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(n, s, self.heads * self.size))


class VisionBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


class Vision(nn.Module):
    """A vision transformer: patches, a class token, positions."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Embedding(17, width)
        self.blocks = nn.Sequential(*[VisionBlock(width, heads)
                                      for _ in range(4)])
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, 10)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        x = x + self.positions(torch.arange(17))
        return self.fc(self.norm(self.blocks(x))[:, 0])


class Lstm(nn.Module):
    """Tags the words of a sentence."""

    def __init__(self, width=32):
        super().__init__()
        self.embedding = nn.Embedding(40, width)
        self.lstm = nn.LSTM(width, 2 * width, batch_first=True)
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, words):
        return self.fc(self.lstm(self.embedding(words))[0])


def models():
    """(name, model, example input)"""
    image = torch.randn(1, 3, 32, 32)
    yield "mlp", torch_models.Mlp(), torch.randn(1, 1, 8, 8)
    yield "resnet18", torch_models.ResNet18(), torch.randn(1, 1, 16, 16)
    yield "resnet50", torch_models.ResNet50(), torch.randn(1, 3, 64, 64)
    yield "mobilenet-like", Depthwise(), image
    yield "densenet-like", Dense(), image
    yield "vgg-like", Flattened(), image
    yield "unet", torch_models.UNet(), torch.randn(1, 1, 16, 16)
    yield "vit", Vision(), image
    yield "lstm", Lstm(), torch.randint(0, 40, (1, 12))
    yield "gpt", torch_models.Gpt(96, 64), torch.randint(0, 96, (1, 64))
    try:
        import torchvision
    except ImportError:
        return
    for name in ("mobilenet_v2", "densenet121", "vgg11_bn"):
        yield name, getattr(torchvision.models, name)(), torch.randn(
            1, 3, 224, 224)


def built_small(name):
    """The model at half the width, where Torch-Pruning fails."""
    if name == "lstm":
        return Lstm(16)
    if name == "gpt":
        return torch_models.Gpt(96, 64, width=32, heads=2)
    return None


def bench(program, model, example, *flags):
    """What prune_bench says of the model."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        torch.onnx.export(copy.deepcopy(model).train(), (example,), path,
                          dynamo=False,
                          training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False)
        return json.loads(subprocess.run(
            [program, path, "--batch=1", *flags], check=True,
            stdout=subprocess.PIPE).stdout)


def count(program, model, example):
    """Parameters, and multiply-adds: of convolutions and linear layers as
    PyTorch runs them; Loadline counts where a model has other products."""
    parameters = sum(p.numel() for p in model.parameters())
    if any(isinstance(layer, (nn.LSTM, nn.ConvTranspose2d, Attention,
                              torch_models.GptBlock))
           for layer in model.modules()):
        return parameters, bench(program, model, example)["before"]["macs"]
    macs = 0

    def hook(layer, _, output):
        nonlocal macs
        macs += output.numel() * layer.weight[0].numel()

    hooks = [layer.register_forward_hook(hook) for layer in model.modules()
             if isinstance(layer, (nn.Conv2d, nn.Linear))]
    with torch.no_grad():
        model(example)
    for one in hooks:
        one.remove()
    return parameters, macs


def by_torch_pruning(program, model, example, ratio):
    model = copy.deepcopy(model).eval()
    last = [layer for name, layer in model.named_modules()
            if name == "head" or (isinstance(layer, nn.Linear)
                                  and layer.out_features in (10, 1000))]
    attentions = [layer for layer in model.modules()
                  if isinstance(layer, Attention)]
    pruner = torch_pruning.pruner.MagnitudePruner(
        model, example,
        importance=torch_pruning.importance.MagnitudeImportance(p=1),
        pruning_ratio=ratio, ignored_layers=last,
        num_heads={layer.qkv: layer.heads for layer in attentions},
        prune_num_heads=True, prune_head_dims=False, head_pruning_ratio=ratio,
        unwrapped_parameters=[(model.token, 2)]
        if isinstance(model, Vision) else None)
    groups = sum(1 for _ in pruner.DG.get_all_groups(
        ignored_layers=last, root_module_types=[nn.Conv2d, nn.Linear]))
    pruner.step()
    for layer in attentions:
        layer.heads = pruner.num_heads[layer.qkv]
    return groups, *count(program, model, example)


def by_loadline(program, model, example, ratio):
    found = bench(program, model, example, f"--ratio={ratio}")
    after = found["after"]
    return (len(found["groups"]), after["parameters"], after["macs"],
            found["find_seconds"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prune",
                        default=ROOT / "build/release/tests/bench/prune_bench")
    parser.add_argument("--ratio", type=float, default=0.5)
    parser.add_argument("--tolerance", type=float, default=0.0)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    different = 0
    print(f"{'model':<16}{'groups':>14}{'parameters after':>28}"
          f"{'MACs after':>30}{'found in':>12}")
    print(f"{'':<16}{'TP':>7}{'ours':>7}{'TP':>15}{'ours':>13}{'TP':>16}"
          f"{'ours':>14}")
    for name, model, example in models():
        small = built_small(name)
        if small is None:
            theirs = by_torch_pruning(arguments.prune, model, example,
                                      arguments.ratio)
        elif arguments.ratio == 0.5:
            theirs = "small", *count(arguments.prune, small, example)
        else:
            continue
        *ours, seconds = by_loadline(arguments.prune, model, example,
                                     arguments.ratio)
        equal = all(abs(a - b) <= arguments.tolerance * a
                    for a, b in zip(theirs[1:], ours[1:]))
        different += not equal
        print(f"{name:<16}{theirs[0]:>7}{ours[0]:>7}{theirs[1]:>15,}"
              f"{ours[1]:>13,}{theirs[2]:>16,}{ours[2]:>14,}"
              f"{seconds * 1e3:>9.1f} ms{'' if equal else '  DIFFERENT'}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
