#!/usr/bin/env python3
"""Accuracy on the digits after structured pruning, beside no pruning.

    tests/bench/prune_accuracy.py [--loadline PROGRAM] [--widths 8,16,16 | --mlp]
        [--sparsities 0.5,0.75] [--criteria l2,taylor] [--schedules cubic]
        [--window 100:990] [--steps 1320] [--seeds 3] [--lr 0.001]

Trains a convolutional network (three convolutions of these widths, two batch
normalizations, one linear layer), or models/zoo/mlp.onnx, on
models/zoo/digits-train.npz, once without a recipe and once for each sparsity,
criterion and schedule. Masks change every 10 steps of the window; one_shot
prunes at its end. Prints Markdown: the mean accuracy on digits-test.npz over
the seeds. Needs numpy and onnx.

The table of schedules in docs/compression.md:

    tests/bench/prune_accuracy.py --mlp --steps 600 --window 100:400
        --sparsities 0.5,0.75,0.875 --schedules cubic,one_shot
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "models" / "zoo"


def make_model(path, widths):
    """The network of tests/onnxruntime/quantized_models.cc at any width, with
    He's initial weights."""
    random = np.random.default_rng(1)
    parameters, nodes = {}, []

    def uniform(*shape):
        bound = np.sqrt(6 / np.prod(shape[1:]))
        return random.uniform(-bound, bound, shape).astype(np.float32)

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], output,
                                      **attributes))
        return output

    value, channels = "image", 1
    for i, width in enumerate(widths, 1):
        parameters[f"conv{i}_weight"] = uniform(width, channels, 3, 3)
        value = add("Conv", [value, f"conv{i}_weight"], f"conv{i}",
                    kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        if i < len(widths):
            names = [f"bn{i}_{part}" for part in ("weight", "bias", "mean", "var")]
            for name, number in zip(names, (1, 0, 0, 1)):
                parameters[name] = np.full(width, number, np.float32)
            value = add("BatchNormalization", [value, *names], f"norm{i}")
        value = add("Relu", [value], f"relu{i}")
        if i + 1 == len(widths):
            value = add("MaxPool", [value], "pool", kernel_shape=[2, 2],
                        strides=[2, 2])
        channels = width
    parameters["fc_weight"] = uniform(10, channels * 16) / np.float32(np.sqrt(2))
    parameters["fc_bias"] = np.zeros(10, np.float32)
    value = add("Flatten", [value], "flat")
    add("Gemm", [value, "fc_weight", "fc_bias"], "logits", transB=1)
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT,
                                       ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT,
                                       ["batch", 10])],
        [numpy_helper.from_array(value, name)
         for name, value in parameters.items()])
    onnx.save(helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def recipe(args, sparsity, criterion, schedule):
    start, end = map(int, args.window.split(":"))
    return {"compression": [{
        "name": "prune",
        "method": {"kind": "prune", "criterion": criterion},
        "object": {} if args.mlp else {"op_types": ["Conv"]},
        "degree": {"sparsity": sparsity},
        "process": {"schedule": schedule,
                    "start_step": end if schedule == "one_shot" else start,
                    "end_step": end, "update_frequency": 10}}]}


def accuracy(args, model, folder, seed, written):
    flags = []
    if written is not None:
        path = folder / "recipe.json"
        path.write_text(json.dumps(written))
        flags = ["--recipe", path]
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    result = subprocess.run(
        [args.loadline, "run", model, "--data", ZOO / "digits-train.npz",
         "--eval-data", ZOO / "digits-test.npz", "--steps", str(args.steps),
         "--lr", str(args.lr), "--seed", str(seed), "--metrics", metrics,
         *flags], text=True, capture_output=True)
    if result.returncode != 0:
        sys.exit(result.stderr)
    evaluations = [line for line in map(json.loads, metrics.open())
                   if "eval_accuracy" in line]
    return 100 * evaluations[-1]["eval_accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--loadline",
                        default=ROOT / "build/release/tools/loadline")
    parser.add_argument("--widths", default="8,16,16")
    parser.add_argument("--mlp", action="store_true")
    parser.add_argument("--sparsities", default="0.5,0.75")
    parser.add_argument("--criteria", default="l2,taylor")
    parser.add_argument("--schedules", default="cubic")
    parser.add_argument("--window", default="100:990")
    parser.add_argument("--steps", type=int, default=1320)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.001)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = ZOO / "mlp.onnx"
        if not args.mlp:
            model = folder / "cnn.onnx"
            make_model(model, [int(width) for width in args.widths.split(",")])

        def mean(written):
            return np.mean([accuracy(args, model, folder, seed, written)
                            for seed in range(1, args.seeds + 1)])

        kinds = [(criterion, schedule)
                 for criterion in args.criteria.split(",")
                 for schedule in args.schedules.split(",")]
        print(f"not pruned: {mean(None):.2f} %\n\n| sparsity | "
              + " | ".join(f"`{c}`, {s}" for c, s in kinds)
              + " |\n" + "|---" * (len(kinds) + 1) + "|", flush=True)
        for sparsity in map(float, args.sparsities.split(",")):
            found = [mean(recipe(args, sparsity, *kind)) for kind in kinds]
            print(f"| {100 * sparsity:g} % | "
                  + " | ".join(f"{share:.2f} %" for share in found) + " |",
                  flush=True)


if __name__ == "__main__":
    main()
