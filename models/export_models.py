#!/usr/bin/env python3
"""Makes models/zoo: real PyTorch exports, real data, and PyTorch's own results
on them. Needs torch, onnx, numpy and scikit-learn. The outputs are committed,
so building and testing need none of these.

  *.onnx          exports (stack traces and file paths stripped)
  *.weights.json  recipes by which make_weights.py makes weights that are too
                  large to commit
  large/          the same for models that only benchmarks on a GPU train;
                  make_large.py makes their weights and data
  digits-*.npz    scikit-learn's handwritten digits, 1,437 + 360 images
  text-*.npz      characters of the licence texts that every Debian holds
  reference/*.json  20 losses and the first step's gradients, by PyTorch
  ../../tests/models/data/resnet18_group_norm*.onnx
                  the two forms that exporters give GroupNorm, without weights

Usage: export_models.py [--only NAME]
"""

import argparse
import json
import math
import pathlib

import numpy as np
import onnx
import torch
from torch.nn import functional as F

import make_weights
import torch_models

ZOO = pathlib.Path(__file__).resolve().parent / "zoo"
GRAPHS = ZOO.parents[1] / "tests" / "models" / "data"
SEQUENCE = 64


def initial_kind(name, shape):
    """The initialisation of a parameter, for make_weights.initial_values."""
    if name.endswith("num_batches_tracked"):
        return "i64_zeros"
    # The last scale of each residual branch starts at zero (Goyal et al. 2017):
    # blocks start as identities. Otherwise these models, on images of 8 x 8,
    # amplify rounding so much that PyTorch in f32 and in f64 diverge within five
    # steps.
    if name.endswith(("bias", "running_mean", "bn2.weight", "bn3.weight")):
        return "zeros"
    if len(shape) == 1:
        return "ones"  # scales of normalizations, running variances
    if "tokens" in name or "positions" in name:
        return f"uniform:{0.02 * math.sqrt(3)!r}"
    fan_in = math.prod(shape[1:])
    gain = math.sqrt(6) if len(shape) == 4 else math.sqrt(3)
    return f"uniform:{gain / math.sqrt(fan_in)!r}"


def initialise(model):
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            kind = initial_kind(name, tensor.shape)
            values = make_weights.initial_values(name, tensor.shape, kind)
            dtype = np.int64 if kind == "i64_zeros" else np.float32
            tensor.copy_(torch.from_numpy(
                np.array(values, dtype=dtype).reshape(tensor.shape)))
    return model


def export(name, model, sample, exporter, external, folder=ZOO, opset=None):
    """Exports in training mode with a dynamic batch; strips file paths.

    optimize=False in the newer exporter: its optimizer merges parameters of
    equal contents (every LayerNorm's ones become one tensor), drops biases that
    are zero and folds a transposed copy of a tied weight. Right for inference,
    wrong for a model that is still to be trained.
    """
    path = folder / f"{name}.onnx"
    input_name = next(iter(sample))
    model.train()
    if exporter == "torchscript":
        torch.onnx.export(
            model, (sample[input_name],), str(path), dynamo=False,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False, opset_version=opset or 17,
            input_names=[input_name], output_names=["logits"],
            dynamic_axes={input_name: {0: "batch"}, "logits": {0: "batch"}})
    else:
        torch.onnx.export(
            model, (sample[input_name],), str(path), dynamo=True,
            opset_version=opset, input_names=[input_name], output_names=["logits"],
            dynamic_shapes={input_name: {0: torch.export.Dim("batch")}},
            external_data=False, optimize=False)
    proto = onnx.load(str(path))
    strip(proto)
    # Exporting runs the model in training mode, which changes its running
    # statistics, so restore the initial values.
    state = model.state_dict()
    named = [t for t in proto.graph.initializer if t.name in state]
    recipe = path.with_suffix(".weights.json")
    recipe.unlink(missing_ok=True)
    if not external:
        for tensor in named:
            kind = initial_kind(tensor.name, list(tensor.dims))
            tensor.raw_data = make_weights.initial_values(
                tensor.name, list(tensor.dims), kind).tobytes()
    else:
        tensors, offset = [], 0
        for tensor in named:
            shape = list(tensor.dims)
            kind = initial_kind(tensor.name, shape)
            size = math.prod(shape) * (8 if kind == "i64_zeros" else 4)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            del tensor.external_data[:]
            for key, value in (("location", f"{name}.data"),
                               ("offset", offset), ("length", size)):
                tensor.external_data.add(key=key, value=str(value))
            tensors.append({"name": tensor.name, "shape": shape,
                            "kind": kind, "offset": offset})
            offset += size
        recipe.write_text(json.dumps(
            {"location": f"{name}.data", "bytes": offset, "tensors": tensors},
            indent=0) + "\n")
        if folder == ZOO:
            make_weights.write_weights(ZOO, recipe)
    path.write_bytes(proto.SerializeToString(deterministic=True))
    ops = sorted({n.op_type for n in proto.graph.node})
    print(f"{path.name}: {path.stat().st_size} bytes, "
          f"{len(proto.graph.node)} nodes: {' '.join(ops)}")


def strip(proto):
    """Drops stack traces, file paths and prose from an exported model."""
    def walk(graph):
        graph.doc_string = ""
        del graph.metadata_props[:]
        for thing in (*graph.node, *graph.input, *graph.output,
                      *graph.value_info, *graph.initializer):
            thing.doc_string = ""
            del thing.metadata_props[:]
        for node in graph.node:
            for attribute in node.attribute:
                attribute.doc_string = ""
                if attribute.type == onnx.AttributeProto.GRAPH:
                    walk(attribute.g)
    proto.doc_string = ""
    del proto.metadata_props[:]
    walk(proto.graph)
    for function in proto.functions:
        function.doc_string = ""
        del function.metadata_props[:]
        for node in function.node:
            node.doc_string = ""
            del node.metadata_props[:]


def make_digits():
    from sklearn.datasets import load_digits
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    image = (digits.images[order, None] / 16).astype(np.float32)
    target = digits.target[order].astype(np.int64)
    for name, part in (("train", slice(0, 1437)), ("test", slice(1437, None))):
        np.savez_compressed(ZOO / f"digits-{name}.npz",
                            image=image[part], target=target[part])


def make_text():
    folder = pathlib.Path("/usr/share/common-licenses")
    text = "".join((folder / name).read_text(errors="ignore")
                   for name in ("GPL-3", "Apache-2.0", "LGPL-2.1", "MPL-2.0"))
    # Printable ASCII is 1 .. 95, everything else 0.
    codes = np.frombuffer(text.encode("ascii", "replace"), np.uint8)
    tokens = np.where((codes >= 32) & (codes < 127), codes.astype(np.int64) - 31, 0)
    windows = (len(tokens) - 1) // SEQUENCE
    x = tokens[:windows * SEQUENCE].reshape(windows, SEQUENCE)
    y = tokens[1:windows * SEQUENCE + 1].reshape(windows, SEQUENCE)
    order = np.random.RandomState(0).permutation(windows)
    cut = windows * 9 // 10
    for name, part in (("train", order[:cut]), ("test", order[cut:])):
        np.savez_compressed(ZOO / f"text-{name}.npz", tokens=x[part], target=y[part])


def reference(name, make_model, data, optimizer, steps=20, batch=32):
    """PyTorch's losses without dropout, examples in order, and the gradients
    of the first step: per parameter its sum, L2 norm and first four numbers."""
    torch.manual_seed(0)
    model = initialise(make_model(dropout=0.0)).train()
    make, settings = {
        "sgd": (torch.optim.SGD, dict(lr=0.01, momentum=0.9, weight_decay=5e-4)),
        "adamw": (torch.optim.AdamW, dict(lr=1e-3, weight_decay=0.01)),
    }[optimizer]
    if name == "resnet18":
        settings["lr"] /= 10  # as above, so that rounding in f32 does not dominate
    stepper = make(model.parameters(), **settings)
    arrays = np.load(ZOO / data)
    inputs = torch.from_numpy(arrays[[k for k in arrays if k != "target"][0]])
    target = torch.from_numpy(arrays["target"])
    losses, gradients = [], {}
    for step in range(steps):
        rows = torch.arange(step * batch, (step + 1) * batch) % len(inputs)
        logits = model(inputs[rows])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]),
                               target[rows].reshape(-1))
        stepper.zero_grad()
        loss.backward()
        if step == 0:
            for key, p in model.named_parameters():
                g = p.grad.double()
                gradients[key] = {"sum": g.sum().item(), "l2": g.norm().item(),
                                  "first": g.flatten()[:4].tolist()}
        stepper.step()
        losses.append(loss.item())
    (ZOO / "reference" / f"{name}-{optimizer}.json").write_text(json.dumps(
        {"torch": torch.__version__, "data": data, "batch": batch,
         "optimizer": optimizer, **settings,
         "losses": losses, "gradients": gradients}, indent=1) + "\n")
    print(f"{name} {optimizer}: {losses[0]:.6f} ... {losses[-1]:.6f}")


def export_large(only):
    """Models of which only the shapes matter; make_weights.py makes their weights."""
    large = ZOO / "large"
    large.mkdir(exist_ok=True)
    for name, make_model, sample in (
            ("gpt2-124m", torch_models.gpt2_124m,
             {"tokens": torch.zeros(2, 1024, dtype=torch.int64)}),
            ("resnet50", torch_models.ResNet50,
             {"image": torch.rand(2, 3, 224, 224)})):
        if only in (None, name):
            export(name, make_model(), sample, "torchscript", True, large)


def export_graphs(only):
    """Models that tests only plan: graphs whose weights nobody makes."""
    for name, exporter, opset in (
            ("resnet18_group_norm", "dynamo", 21),  # GroupNormalization
            ("resnet18_group_norm_torchscript", "torchscript", None)):
        if only in (None, name):
            export(name, torch_models.resnet18_group_norm(),
                   {"image": torch.rand(2, 3, 224, 224)}, exporter, True,
                   GRAPHS, opset)
            (GRAPHS / f"{name}.weights.json").unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="one model of the zoo, on the data there are")
    only = parser.parse_args().only
    (ZOO / "reference").mkdir(parents=True, exist_ok=True)
    if not only:
        make_digits()
        make_text()
    image = {"image": torch.rand(2, 1, 8, 8)}
    tokens = {"tokens": torch.zeros(2, SEQUENCE, dtype=torch.int64)}

    def resnet(dropout=0.0):
        return torch_models.ResNet18()

    def unet(dropout=0.0):
        return torch_models.UNet()

    def gpt(dropout=0.1, layers=4):
        return torch_models.Gpt(96, SEQUENCE, layers=layers, dropout=dropout)

    families = [
        # name, model, sample input, exporter, weights as external data, data
        ("mlp", torch_models.Mlp, image, "dynamo", False, "digits-train.npz"),
        ("resnet18", resnet, image, "torchscript", True, "digits-train.npz"),
        ("unet", unet, image, "torchscript", False, "digits-train.npz"),
        ("gpt", gpt, tokens, "dynamo", False, "text-train.npz"),
        ("gpt-torchscript", gpt, tokens, "torchscript", True, None),
        ("gpt12", lambda: gpt(layers=12), tokens, "torchscript", True, None),
    ]
    for name, make_model, sample, exporter, external, data in families:
        if only and only != name:
            continue
        export(name, initialise(make_model()), sample, exporter, external)
        if data:
            for optimizer in ("sgd", "adamw"):
                reference(name, make_model, data, optimizer)
    export_large(only)
    export_graphs(only)


if __name__ == "__main__":
    main()
