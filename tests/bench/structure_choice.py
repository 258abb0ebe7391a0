#!/usr/bin/env python3
"""Compares `--micro-batches auto` with every structure tried one by one.

  structure_choice.py LOADLINE MODEL BATCH MACHINE PERCENT...

For each budget: the step time that auto's plan predicts, that of the best
fixed structure, and the seconds that each took. The structures are those that
`auto` chooses among. One whose operators alone take as long as auto's plan
cannot be faster and is not searched. Where auto finds no plan, every structure
is searched. The exit status is 1 if a fixed structure is faster.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time


def plan(program, model, flags):
    """The plan as JSON and the seconds it took; none if nothing fits."""
    begin = time.monotonic()
    run = subprocess.run(
        [program, "plan", model, "--json", *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begin
    if run.returncode == 3:
        return None, seconds
    if run.returncode != 0:
        sys.exit(f"{' '.join(flags)}: {run.stderr[-500:]}")
    return json.loads(run.stdout), seconds


def structures_of(program, model, same):
    """What auto chooses among, by a budget that every structure meets."""
    flags = ["--budget", "100%", "--micro-batches", "auto"]
    return plan(program, model, [*same, *flags])[0]["structures"]


def flags_of(structure):
    """The flags that ask for one entry of `structures` in the JSON."""
    flags = ["--micro-batches", str(structure["micro_batches"])]
    splits = structure.get("splits", [])
    for split in splits:
        flags += ["--split", split]
    return flags if splits else [*flags, "--no-split"] if flags[1] == "1" else flags


def main():
    program, model, batch, machine, *percents = sys.argv[1:]
    same = ["--batch", batch, "--machine", machine]
    with tempfile.TemporaryDirectory() as folder:
        problem = pathlib.Path(folder) / "problem.json"
        own = ["--no-split", "--problem", str(problem)]
        whole, _ = plan(program, model, [*same, *own])
        step = json.loads(problem.read_text())
    keep_bytes = whole["keep_everything_peak_bytes"]
    reserved = step["machine"].get("reserved_bytes", 0)
    structures = structures_of(program, model, same)
    slower = False
    print("budget  auto ms    s  best fixed ms    s  structures  fastest")
    for percent in percents:
        budget = f"{int(keep_bytes * float(percent) / 100) + reserved}B"
        flags = [*same, "--budget", budget]
        chosen, auto_s = plan(program, model, [*flags, "--micro-batches", "auto"])
        auto_ns = chosen["predicted_step_ns"] if chosen else None
        best_ns, best, all_s, count = None, "none", 0.0, 0
        for structure in structures:
            own = flags_of(structure)
            if auto_ns is not None:
                kept, _ = plan(program, model, [*same, *own])
                if kept["keep_everything_step_ns"] >= auto_ns:
                    continue
            fixed, seconds = plan(program, model, [*flags, *own])
            all_s += seconds
            count += 1
            if fixed and (best_ns is None or fixed["predicted_step_ns"] < best_ns):
                best_ns = fixed["predicted_step_ns"]
                best = " ".join(own)
        faster = best_ns is not None and (auto_ns is None or best_ns < auto_ns)
        slower = slower or faster
        print(
            f"{percent:>5}%  {auto_ns / 1e6 if auto_ns else 0:7.3f} {auto_s:4.0f}"
            f"  {best_ns / 1e6 if best_ns else 0:13.3f} {all_s:4.0f}"
            f"  {count:10}  {best}{'  FASTER' if faster else ''}",
            flush=True,
        )
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
