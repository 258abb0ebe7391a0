#!/usr/bin/env python3
"""Trains models of other libraries in micro-batches and in segments, and compares
each gradient of the first step with that of the step in one piece.

    tests/families/check_structures.py [--loadline PROGRAM] [--folder FOLDER]
        [--only PATTERN] [--library NAME] [--exporter NAME] [--most N]

Exports as check_families.py does, into the same folder. The structures are those
that `--micro-batches auto` chooses among, each chain in two and in three segments,
at most N (default 8) of a model; each with everything kept and at the smallest
budget. A structure that a model cannot have is printed with the reason. Exit status 1
if a gradient differs by more than rounding. By hand: it takes an hour for all.
"""
import json
import sys

import numpy as np

import check_families
import compare
import export_family

# Sums have another order, and where a gradient cancels, rounding is a larger part of
# it: so the limit is that of check_families.py, and a parameter's gradient counts as at
# least this share of the norm of all.
LIMIT = compare.GRADIENT_LIMIT
LEAST_SHARE = 1e-3
BUDGETS = [[], ["--budget", "smallest"]]


def structures_of(command, batch):
    """Flags of each structure to try."""
    code, text, error = command.call(
        "plan", "--optimizer", "sgd", "--no-dropout", "--machine", "l4", "--json",
        "--micro-batches", "auto", "--budget", "100%", "--time-limit", "3s")
    if code:
        raise check_families.Failed(code, error)
    found = [["--micro-batches", "2"]] if batch % 2 == 0 else []
    chains = set()
    for structure in json.loads(text)["structures"]:
        parts = structure["micro_batches"]
        chains.update((parts, split.split("=")[0])
                      for split in structure.get("splits", []))
        flags = ["--micro-batches", str(parts)]
        if parts > 1 and flags not in found:
            found.append(flags)
    return found + [["--micro-batches", str(parts), "--split", f"{chain}={segments}"]
                    for parts, chain in sorted(chains) for segments in (2, 3)]


def largest_gap(before, whole, parts):
    """Largest difference of a parameter's gradient, norm-wise, and its name."""
    moved = {name: compare.moved_by(before, whole, [name]) for name in whole
             if name in before and before[name].dtype.kind == "f"}
    total = np.sqrt(sum(np.linalg.norm(gradient) ** 2 for gradient in moved.values()))
    gaps = {name: compare.distance(compare.moved_by(before, parts, [name]), gradient)
            / max(np.linalg.norm(gradient), LEAST_SHARE * total, 1e-30)
            for name, gradient in moved.items()}
    worst = max(gaps, key=gaps.get)
    return gaps[worst], worst


def check_model(family, exporter, options):
    """The number of structures with wrong gradients."""
    path = check_families.file_of(family, exporter, options.folder)
    references = check_families.prepare(family, exporter, path, [])
    before = compare.weights(path)
    command = check_families.command_of(family, path, references["facts"], options)
    report, whole = command.first_step()
    wrong = 0
    for flags in structures_of(command, family.batch)[:options.most]:
        for budget in BUDGETS:
            name = f"{path.stem} {' '.join([*flags, *budget])}"
            try:
                found, parts = command.first_step(*flags, *budget)
            except check_families.Failed as failure:
                print(f"{name}: {failure}", flush=True)
                break
            gap, parameter = largest_gap(before, whole, parts)
            loss = compare.relative(found["losses"][0], report["losses"][0])
            good = gap <= LIMIT and loss <= compare.LOSS_LIMIT
            wrong += not good
            print(f"{name}: {'same' if good else 'WRONG'}, loss {loss:.1e}, gradient "
                  f"{gap:.1e} ({parameter})", flush=True)
    return wrong


def main():
    parser = check_families.parser_of(__doc__)
    parser.add_argument("--most", type=int, default=8)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    export_family.quiet()
    wrong = 0
    for family, exporter in check_families.chosen(options):
        try:
            wrong += check_model(family, exporter, options)
        except (Exception, check_families.Timeout) as error:  # an exporter's own
            name = check_families.file_of(family, exporter, options.folder).stem
            print(f"{name}: {type(error).__name__}: {compare.first_line(error)}",
                  flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
