#!/usr/bin/env python3
"""Compares dependency groups with Torch-Pruning's: the same PyTorch models, half
of every group's channels removed, parameters and multiply-adds counted before
and after.

    torch_pruning_groups.py [--prune PROGRAM] [--ratio 0.5]

PROGRAM is prune_bench. Needs torch, onnx and torch_pruning (torchvision for
three models more); exit status 77 (skipped) without them. Exit status 1 where
parameters or multiply-adds after pruning differ by more than --tolerance.

Torch-Pruning is told which layers make outputs and how many heads an attention
has; Loadline is told nothing.
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


def models():
    """(name, model, example input)"""
    image = torch.randn(1, 3, 32, 32)
    yield "mlp", torch_models.Mlp(), torch.randn(1, 1, 8, 8)
    yield "resnet18", torch_models.ResNet18(), torch.randn(1, 1, 16, 16)
    yield "resnet50", torch_models.ResNet50(), torch.randn(1, 3, 64, 64)
    yield "mobilenet-like", Depthwise(), image
    yield "densenet-like", Dense(), image
    yield "vgg-like", Flattened(), image
    try:
        import torchvision
    except ImportError:
        return
    for name in ("mobilenet_v2", "densenet121", "vgg11_bn"):
        yield name, getattr(torchvision.models, name)(), torch.randn(
            1, 3, 224, 224)


def count(model, example):
    """Parameters, and multiply-adds of convolutions and linear layers."""
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
    return sum(p.numel() for p in model.parameters()), macs


def by_torch_pruning(model, example, ratio):
    model = copy.deepcopy(model).eval()
    last = [layer for layer in model.modules() if isinstance(layer, nn.Linear)
            and layer.out_features in (10, 1000)]
    pruner = torch_pruning.pruner.MagnitudePruner(
        model, example,
        importance=torch_pruning.importance.MagnitudeImportance(p=1),
        pruning_ratio=ratio, ignored_layers=last)
    groups = sum(1 for _ in pruner.DG.get_all_groups(
        ignored_layers=last, root_module_types=[nn.Conv2d, nn.Linear]))
    pruner.step()
    return groups, *count(model, example)


def by_loadline(program, model, example, ratio):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        torch.onnx.export(copy.deepcopy(model).train(), (example,), path,
                          dynamo=False,
                          training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False)
        found = json.loads(subprocess.run(
            [program, path, f"--ratio={ratio}", "--batch=1"], check=True,
            stdout=subprocess.PIPE).stdout)
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
        theirs = by_torch_pruning(model, example, arguments.ratio)
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
