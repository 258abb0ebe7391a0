#!/usr/bin/env python3
"""What a run on the CPU takes of the machine's memory, against its budget.

    tests/bench/resident_bytes.py [--loadline PROGRAM] [--models resnet18,unet]
        [--budgets 100%,75%,50%,smallest] [--time-limit SECONDS] [--emulate-device]
        [--json FILE]

Trains each model for three steps within each budget and writes the trained model,
first with an empty cache, so that the run measures the machine and its operators,
and then again with what the first run kept. The bound is the budget and the base,
which is what the process had in memory before its arena (libraries, the model, its
data); or, if that is more, what the second run took to plan, which no budget is
about. Both are from the run's own document. *measured* is the most that the process had in
memory in its whole life, as the kernel tells the parent of the process (ru_maxrss).

Prints Markdown. Exits with 1 if a run takes more than 5 % and LIBRARY_BYTES above its
bound. tests/CMakeLists.txt runs it as resident_bytes.MODEL.
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
MODELS = {  # name: data, flags
    "gpt12": ("text-train.npz", ["--batch", "128"]),
    "resnet18": ("digits-train.npz", ["--optimizer", "sgd", "--lr", "0.02"]),
    "unet": ("digits-train.npz", ["--batch", "1024"]),
}
MOST_ABOVE = 0.05
MIB = 1 << 20
# What oneDNN holds for itself, generated code and packed operands, depends on the
# processor's instructions: nothing was seen with AVX-512, 14 MiB with AVX2.
LIBRARY_BYTES = 24 * MIB


def run(args, model, budget, cache, folder):
    """One run's document, with the bytes that the kernel counted."""
    data, flags = MODELS[model]
    command = [args.loadline, "run", ZOO / f"{model}.onnx", "--data", ZOO / data, *flags,
               "--steps", "3", "--budget", budget, "-o", folder / "trained.onnx", "--json"]
    if args.emulate_device:
        command.append("--emulate-device")
    if args.time_limit:
        command += ["--time-limit", f"{args.time_limit}s"]
    with open(folder / "out", "w+") as out, open(folder / "err", "w+") as err:
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=err,
                                   env=dict(os.environ, LOADLINE_CACHE=str(cache)))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            err.seek(0)
            sys.exit(f"{model} at {budget}: exit code {process.returncode}\n{err.read()}")
        out.seek(0)
        document = json.load(out)
    document["kernel_resident_bytes"] = usage.ru_maxrss << 10
    return document


def row(model, budget, cache, document, planning_bytes):
    bound = max(document["resident_base_bytes"] + document["budget_bytes"], planning_bytes)
    measured = document["kernel_resident_bytes"]
    return {"model": model, "budget": budget, "cache": cache,
            "budget_bytes": document["budget_bytes"],
            "arena_bytes": document["arena_bytes"],
            "host_store_bytes": document["host_bytes"],
            "base_bytes": document["resident_base_bytes"],
            "planning_bytes": planning_bytes,
            "bound_bytes": bound, "measured_bytes": measured,
            "above": measured / bound - 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loadline", default=str(ROOT / "build/release/tools/loadline"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--budgets", default="100%,75%,50%,smallest")
    parser.add_argument("--time-limit", type=int)
    parser.add_argument("--emulate-device", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()

    print("| model | budget | cache | budget, MiB | arena | copied to disk | base "
          "| planning | bound | measured | above |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    rows = []
    for model in args.models.split(","):
        for budget in args.budgets.split(","):
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                documents = {cache: run(args, model, budget, folder / "cache", folder)
                             for cache in ("empty", "kept")}
            # Of the run that measured nothing.
            planning_bytes = documents["kept"]["resident_planning_bytes"]
            for cache, document in documents.items():
                rows.append(row(model, budget, cache, document, planning_bytes))
                line = rows[-1]
                figures = [line[name] / MIB for name in (
                    "budget_bytes", "arena_bytes", "host_store_bytes", "base_bytes",
                    "planning_bytes", "bound_bytes", "measured_bytes")]
                print(f"| {model} | {budget} | {cache} | "
                      + " | ".join(f"{figure:.1f}" for figure in figures)
                      + f" | {100 * line['above']:+.1f} % |", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    above = [line for line in rows if line["measured_bytes"]
             > (1 + MOST_ABOVE) * line["bound_bytes"] + LIBRARY_BYTES]
    for line in above:
        print(f"{line['model']} at {line['budget']} ({line['cache']} cache): "
              f"{line['measured_bytes']} bytes, more than {line['bound_bytes']} "
              f"and {100 * MOST_ABOVE:.0f} % and {LIBRARY_BYTES} bytes", file=sys.stderr)
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
