#!/usr/bin/env python3
"""Step times and bytes by structure on this machine: predicted and measured.

    tests/bench/structure_times.py [--loadline PROGRAM] [--models gpt,unet]
        [--steps 10] [--repeats 5] [--time-limit 5s] [--json FILE]

Plans the step in one piece, in 4 micro-batches and, where it has chains, in
segments at five budgets, with a profile that is measured anew into a separate
folder. Then runs every plan several times, each time right after the step in one
piece with everything kept.
`step` is the fastest run's. `off` is measured over predicted, and `off by whole`
the median of that ratio relative to the neighbouring run's, for a machine that
others use too. Fails where measured bytes are not those predicted. Prints
Markdown.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "models" / "zoo"
BUDGETS = ["100%", "75%", "50%", "35%", "smallest"]
MODELS = {  # name: data, batch, structures
    "gpt": ("text-train.npz", 32, [[], ["--micro-batches", "4"],
                                   ["--split", "mlp=4"]]),
    # No chain of it can be split.
    "unet": ("digits-train.npz", 64, [[], ["--micro-batches", "4"]]),
}


def call(args, *rest):
    command = [args.loadline, *rest, "--json"]
    result = subprocess.run(command, env=args.environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {result.stderr}")
    return json.loads(result.stdout)


def plan_all(args, folder):
    """Every plan: its model, flags, budget, file and predictions."""
    points = []
    for model in args.models.split(","):
        data, batch, structures = MODELS[model]
        structures = [[ZOO / f"{model}.onnx", "--data", ZOO / data,
                       "--batch", str(batch), *flags] for flags in structures]
        # All operators are measured before the first plan, which knows prices.
        for flags in structures:
            call(args, "run", *flags, "--steps", "1", "--time-limit", "1s")
        for flags in structures:
            for budget in BUDGETS:
                path = folder / f"{len(points)}.json"
                try:
                    call(args, "plan", *flags, "--calibrate", "--budget", budget,
                         "--time-limit", args.time_limit, "-o", path)
                except RuntimeError as error:  # a longer search may find one
                    print(error, file=sys.stderr)
                    continue
                points.append({"model": model, "flags": flags, "budget": budget,
                               "plan": path, "steps": [], "ratios": []})
    return points


def run_once(args, point):
    run = call(args, "run", *point["flags"], "--plan", point["plan"],
               "--steps", str(args.steps))
    point["steps"].append(run["step_ns"])
    point["predicted_ns"] = run["predicted_step_ns"]
    point["bytes"] = run["arena_bytes"], run["measured_arena_bytes"]
    return run["step_ns"] / run["predicted_step_ns"]


def run_all(args, points):
    # The first point of a model is the step in one piece with everything kept.
    first = {}
    for _ in range(args.repeats):
        for point in points:
            whole = run_once(args, first.setdefault(point["model"], point))
            point["ratios"].append(run_once(args, point) / whole)


def table(points):
    lines = ["| model | structure | budget | arena | predicted | step | off "
             "| off by whole |", "|---|---|---|---|---|---|---|---|"]
    for point in points:
        step_ns = min(point["steps"])
        structure = " ".join(map(str, point["flags"][5:])) or "one piece"
        lines.append(
            f"| {point['model']} | {structure} | {point['budget']} "
            f"| {point['bytes'][0] / 2**20:.2f} MiB "
            f"| {point['predicted_ns'] / 1e6:.1f} ms "
            f"| {step_ns / 1e6:.1f} ms "
            f"| {step_ns / point['predicted_ns']:.2f} "
            f"| {statistics.median(point['ratios']):.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--loadline",
                        default=ROOT / "build/release/tools/loadline")
    parser.add_argument("--models", default="gpt,unet")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--time-limit", default="5s")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.environment = dict(os.environ, LOADLINE_CACHE=folder)
        points = plan_all(args, pathlib.Path(folder))
        run_all(args, points)
    print(table(points))
    if args.json:
        args.json.write_text(json.dumps(points, default=str, indent=1) + "\n")
    if any(planned != measured for planned, measured in
           (point["bytes"] for point in points)):
        sys.exit("the arena has other bytes than planned")


if __name__ == "__main__":
    main()
