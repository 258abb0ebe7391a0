#!/usr/bin/env python3
"""Step times and bytes by structure on this machine: predicted and measured.

    tests/bench/structure_times.py [--loadline PROGRAM] [--models gpt,unet]
        [--steps 40] [--time-limit 5s] [--json FILE]

For the step in one piece, in 4 micro-batches and, where it has chains, in
segments, runs `loadline sweep --run` at five budgets, from the smallest to that
which keeps everything. The sweep measures operators and copies again in every
round of steps, so predictions and steps come from the same minutes. Profiles go
to a separate folder. Prints Markdown: `off` is measured over predicted. Fails
where measured bytes are not those predicted.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "models" / "zoo"
BUDGETS = 5
MODELS = {  # name: data, batch, structures
    "gpt": ("text-train.npz", 32, [[], ["--micro-batches", "4"],
                                   ["--split", "mlp=4"]]),
    # No chain of it can be split.
    "unet": ("digits-train.npz", 64, [[], ["--micro-batches", "4"]]),
}


def sweep(args, model, flags):
    """The points of one structure, largest budget first."""
    data, batch, _ = MODELS[model]
    command = [args.loadline, "sweep", ZOO / f"{model}.onnx", "--data",
               ZOO / data, "--batch", str(batch), *flags, "--budgets",
               str(BUDGETS), "--run", str(args.steps), "--time-limit",
               args.time_limit, "--json"]
    result = subprocess.run(command, env=args.environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {result.stderr}")
    points = json.loads(result.stdout)["points"]
    return [{"model": model, "structure": " ".join(flags) or "one piece",
             **point} for point in reversed(points)]


def table(points):
    lines = ["| model | structure | arena | predicted | step | off |",
             "|---|---|---|---|---|---|"]
    for point in points:
        predicted_ns, step_ns = point["predicted_step_ns"], point["step_ns"]
        lines.append(
            f"| {point['model']} | {point['structure']} "
            f"| {point['arena_bytes'] / 2**20:.2f} MiB "
            f"| {predicted_ns / 1e6:.1f} ms | {step_ns / 1e6:.1f} ms "
            f"| {step_ns / predicted_ns:.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--loadline",
                        default=ROOT / "build/release/tools/loadline")
    parser.add_argument("--models", default="gpt,unet")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--time-limit", default="5s")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.environment = dict(os.environ, LOADLINE_CACHE=folder)
        points = [point for model in args.models.split(",")
                  for flags in MODELS[model][2]
                  for point in sweep(args, model, flags)]
    print(table(points))
    if args.json:
        args.json.write_text(json.dumps(points, indent=1) + "\n")
    if any(point["arena_bytes"] != point["measured_arena_bytes"]
           for point in points):
        sys.exit("the arena has other bytes than planned")


if __name__ == "__main__":
    main()
