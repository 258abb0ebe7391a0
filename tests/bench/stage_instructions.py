#!/usr/bin/env python3
"""Instructions per stage of the planner, to detect regressions.

    tests/bench/stage_instructions.py [--keep] [PLANNER_BENCH]

Plans generated GPT steps with planner_bench under valgrind's callgrind and
prints a table of the instructions of each stage, including its callees, next to
the figures in stage_instructions.txt. --keep replaces that table. Counts do not
depend on the machine's load, and only slightly on compiler and libraries. Without
valgrind it prints a message and exits with 77.
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "stage_instructions.txt"
BENCH = HERE.parent.parent / "build/release/tests/bench/planner_bench"
# The first spends most time in the greedy search, the second in annealing.
RUNS = [["--transformer=6", "30", "--work=200000"],
        ["--transformer=4", "60", "--work=3000000", "--recompute-only"]]
SPACE = "loadline::planner::"
# Stages and their functions. These are called from other files, so the compiler
# cannot inline them.
STAGES = [
    ("model", "MakeSearchModel"),
    ("orders", "SeedOrders"),
    ("search", "SearchAtPoint"),
    ("  greedy", "LowerPeak"),
    ("  anneal", "Anneal"),
    ("  peak cut seed", "SeedFromPeakCut"),
    ("  clean-up", "CleanUp"),
    ("emit", "LowerSchedule"),
    ("  pack", "Pack"),
    ("peak bound", "BoundPeak"),
    ("step bound", "BoundStepAt"),
    ("replay", "Replay"),
    ("explain", "Explain"),
    ("verify", "Verify"),
    ("all", "Solve"),
]


def count(bench, arguments):
    """Instructions by function name, inclusive."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
             str(bench), *arguments],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        listing = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--threshold=100",
             "--auto=no", str(out)],
            check=True, capture_output=True, text=True).stdout
    counts = collections.Counter()
    line = re.compile(r"^\s*([\d,]+) .*?:" + SPACE + r"(\w+)\(")
    for match in filter(None, map(line.match, listing.splitlines())):
        name, number = match[2], int(match[1].replace(",", ""))
        counts[name] = max(counts[name], number)
    return counts


def read_kept():
    rows = KEPT.read_text().splitlines() if KEPT.exists() else []
    pairs = (row.rsplit(None, 1) for row in rows)
    return {stage.strip(): int(number) for stage, number in pairs}


def main(arguments):
    keep = "--keep" in arguments
    paths = [a for a in arguments if a != "--keep"]
    bench = pathlib.Path(paths[0]) if paths else BENCH
    if not shutil.which("valgrind") or not shutil.which("callgrind_annotate"):
        print("stage_instructions: skipped, there is no valgrind here")
        return 77
    if not bench.exists():
        print(f"stage_instructions: there is no {bench}; build planner_bench")
        return 2
    counts = sum((count(bench, run) for run in RUNS), collections.Counter())
    kept = read_kept()
    for stage, function in STAGES:
        if function not in counts:
            print(f"stage_instructions: {SPACE}{function} was never called")
            return 1
        number, before = counts[function], kept.get(stage.strip())
        change = f"{100 * (number / before - 1):+8.1f} %" if before else ""
        print(f"{stage:<12} {function:<12} {number:>16,} {change}")
    if keep:
        rows = [f"{stage:<12} {counts[function]:>16}\n"
                for stage, function in STAGES]
        KEPT.write_text("".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
