#!/usr/bin/env python3
"""Runs pruned models in ONNX Runtime: the exported model without half of its
channels, and the original with the same channels set to zero, give the same
outputs. Checks each file with onnx's checker.

    pruned_onnxruntime.py [--prune PROGRAM] [MODEL.onnx ...]

PROGRAM is prune_bench. Exit status 77 (skipped) where onnx or onnxruntime is
missing, 1 where outputs differ by more than rounding.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ["mlp", "resnet18", "unet", "gpt", "gpt-torchscript", "gpt12"]
TOLERANCE = 1e-4  # of the largest output
BATCH = 3


def without_training(path):
    """The model in inference form: ONNX Runtime cannot train on the CPU."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    false = onnx.helper.make_tensor("no_training", onnx.TensorProto.BOOL, [],
                                    [False])
    model.graph.initializer.append(false)
    for node in model.graph.node:
        if node.op_type == "Dropout" and len(node.input) > 2:
            node.input[2] = "no_training"
        if node.op_type == "BatchNormalization":
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
            del node.output[1:]
    return model.SerializeToString()


onnxruntime.set_default_logger_severity(3)


def outputs(path, feeds):
    session = onnxruntime.InferenceSession(
        without_training(path), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def random_inputs(path):
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    random = np.random.default_rng(1)
    feeds = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = [dim.dim_value or BATCH for dim in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.FLOAT:
            feeds[value.name] = random.standard_normal(shape, np.float32)
        else:
            feeds[value.name] = random.integers(0, 50, shape)
    return feeds


def compare(program, model, folder):
    """The largest difference, as a share of the largest output."""
    pruned, masked = f"{folder}/pruned.onnx", f"{folder}/masked.onnx"
    subprocess.run([program, model, "--exact", "--batch=2",
                    f"--pruned={pruned}", f"--masked={masked}"],
                   check=True, stdout=subprocess.DEVNULL)
    feeds = random_inputs(model)
    worst = 0.0
    for a, b in zip(outputs(masked, feeds), outputs(pruned, feeds),
                    strict=True):
        largest = float(np.abs(a).max())
        if not np.isfinite(a).all() or largest == 0:
            sys.exit(f"{model}: the masked model's outputs say nothing")
        worst = max(worst, float(np.nan_to_num(
            np.abs(a - b), nan=np.inf).max()) / largest)
    sizes = [pathlib.Path(path).stat().st_size for path in (masked, pruned)]
    return worst, sizes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prune",
                        default=ROOT / "build/release/tests/bench/prune_bench")
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    models = arguments.models or [
        str(ROOT / f"models/zoo/{name}.onnx") for name in ZOO]
    wrong = 0
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            worst, (masked, pruned) = compare(arguments.prune, model, folder)
        verdict = "ok" if worst <= TOLERANCE else "DIFFERS"
        wrong += worst > TOLERANCE
        print(f"{pathlib.Path(model).stem:<18}{masked:>12} -> {pruned:>11} "
              f"bytes   largest difference {worst:.1e}   {verdict}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
