#!/usr/bin/env python3
"""What each structure brings for a language model with a large vocabulary: a
Llama of 1.2 billion parameters, 128,256 tokens of vocabulary, 4 x 1,024 tokens.

    tests/bench/llama_structures.py [--loadline PROGRAM] [--machine h100-sxm]
        [--precisions bf16,fp32] [--smallest] [--model FILE.onnx]

Exports the model without its weights, then plans its step whole, with the head
in segments, in micro-batches, and both: the peak and step time of keeping
everything, and with --smallest the smallest budget that is found, its step time
and the proven bound, which takes minutes for each. Times are those of the
machine's data sheet. Needs torch, onnx and onnxscript, or --model with an
earlier export. Prints Markdown.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEQUENCE = 1024
BATCH = 4
STRUCTURES = [[], ["--split", "head=4"], ["--micro-batches", "2"],
              ["--micro-batches", "4"],
              ["--micro-batches", "4", "--split", "head=4"]]


def export(path):
    """Parameters are named by a file that does not exist: planning needs their
    shapes only."""
    sys.path.insert(0, str(ROOT / "models"))
    import onnx_ir
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    import torch_models

    tokens = torch.export.Dim("batch")
    with FakeTensorMode():
        model = torch_models.Llama(sequence=SEQUENCE).train()
        program = torch.onnx.export(
            model, (torch.zeros(2, SEQUENCE, dtype=torch.int64),), dynamo=True,
            input_names=["tokens"], output_names=["logits"],
            dynamic_shapes={"tokens": {0: tokens}}, optimize=False,
            verbose=False)
    constants = dict(zip(("cos", "sin"), torch_models.rotation(
        SEQUENCE, model.blocks[0].size)))
    offset = 0
    for name, value in program.model.graph.initializers.items():
        tensor = value.const_value
        if name in constants:
            value.const_value = onnx_ir.tensor(constants[name].numpy(), name=name)
            continue
        length = math.prod(tensor.shape) * 4
        value.const_value = onnx_ir.ExternalTensor(
            "missing.data", offset, length, tensor.dtype,
            shape=tensor.shape, name=name, base_dir=path.parent)
        offset += length
    onnx_ir.save(program.model, path)
    print(f"{offset // 4 / 1e9:.2f} billion parameters", file=sys.stderr)


def plan(args, model, *flags):
    result = subprocess.run(
        [args.loadline, "plan", model, "--batch", str(BATCH), "--machine",
         args.machine, "--json", *flags], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    if result.returncode != 0:
        sys.exit(f"{' '.join(flags)}: {result.stderr}")
    return json.loads(result.stdout)


def row(args, model, precision, flags):
    flags = ["--precision", precision, *flags]
    # A search without anything to do: what is kept needs none.
    kept = plan(args, model, *flags, "--no-recompute", "--no-offload")
    cells = [precision, " ".join(flags[2:]) or "whole",
             f"{kept['keep_everything_peak_bytes'] / 2**30:.2f} GiB",
             f"{kept['keep_everything_step_ns'] / 1e6:.0f} ms"]
    if args.smallest:
        smallest = plan(args, model, *flags, "--budget", "smallest")
        cells += [f"{smallest['arena_bytes'] / 2**30:.2f} GiB",
                  f"{smallest['predicted_step_ns'] / 1e6:.0f} ms",
                  f"{smallest['bound_peak_bytes'] / 2**30:.2f} GiB"]
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--loadline",
                        default=ROOT / "build/release/tools/loadline")
    parser.add_argument("--machine", default="h100-sxm")
    parser.add_argument("--precisions", default="bf16,fp32")
    parser.add_argument("--smallest", action="store_true")
    parser.add_argument("--model", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or pathlib.Path(folder) / "llama.onnx"
        if not model.exists():
            export(model)
        heads = ["precision", "structure", "everything kept", "step"]
        if args.smallest:
            heads += ["smallest budget", "step", "proven bound"]
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        for precision in args.precisions.split(","):
            for flags in STRUCTURES:
                print(row(args, model, precision, flags), flush=True)


if __name__ == "__main__":
    main()
