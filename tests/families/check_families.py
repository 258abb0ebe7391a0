#!/usr/bin/env python3
"""Trains models of other libraries, as two exporters write them, and compares
with PyTorch.

    tests/families/check_families.py [--loadline PROGRAM] [--folder FOLDER]
        [--only PATTERN] [--library NAME] [--exporter NAME] [--quick] [--table FILE]

For every row of *_families.py and each exporter: `loadline check`; the loss and
every gradient of the first step, from one step of SGD; the losses of 20 steps; and
the trained weights' bits at 50 % and at the smallest budget. Without dropout, on
the same batches. --quick leaves out the budgets. Results stay in FOLDER, one JSON
file each; --table writes all that are there as Markdown (docs/families.md).

Needs torch, onnx, onnxscript and the libraries (families-requirements.txt); a
library that is missing is left out. By hand: it takes hours for all.
"""
import argparse
import fnmatch
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import traceback

import numpy as np
import onnx

import compare
import export_family
from table import write_table

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ["torch", "torchvision", "timm", "transformers", "diffusers",
             "ultralytics"]
MODULES = {"torch": "plain_families"}
EXPORTERS = ["torchscript", "dynamo"]
EXPORT_LIMIT_S = 300
RUN_LIMIT_S = 300
NO_PLAN = (3, 5)  # exit codes: none within the budget, or none within the time limit


def families(library):
    try:
        module = importlib.import_module(MODULES.get(library, f"{library}_families"))
    except ImportError as error:
        print(f"{library}: left out, {error}", file=sys.stderr)
        return []
    return module.FAMILIES


class Timeout(Exception):
    pass


def with_alarm(seconds, function, *args):
    def ring(*_):
        raise Timeout(f"not exported within {seconds} s")
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        return function(*args)
    finally:
        signal.alarm(0)


class Command:
    """`loadline` with the settings that every call of one model shares."""

    def __init__(self, program, family, path, folder, frozen):
        self.program, self.path, self.folder = program, path, folder
        self.flags = ["--batch", str(family.batch), "--loss", family.loss,
                      "--data", str(path.with_suffix(".npz"))]
        if family.loss == "cross_entropy" and family.class_axis != -1:
            self.flags += ["--class-axis", str(family.class_axis)]
        for name in frozen:
            self.flags += ["--freeze", name]

    def call(self, verb, *flags):
        """Exit code, stdout, stderr; the code of a run that was ended is 124."""
        command = [self.program, verb, str(self.path), *self.flags, *flags]
        environment = {**os.environ, "LOADLINE_CACHE": str(self.folder / "cache")}
        try:
            done = subprocess.run(command, capture_output=True, text=True,
                                  timeout=RUN_LIMIT_S, env=environment)
        except subprocess.TimeoutExpired:
            return 124, "", f"not done within {RUN_LIMIT_S} s"
        return done.returncode, done.stdout, done.stderr

    def train(self, out, *flags):
        code, text, error = self.call(
            "run", "--optimizer", "sgd", "--no-dropout", "--no-shuffle",
            "--time-limit", "10s", "--json", "-o", str(out), *flags)
        if code:
            raise Failed(code, error)
        return json.loads(text)


class Failed(Exception):
    def __init__(self, code, text):
        super().__init__(f"exit {code}: {compare.last_lines(text)}")
        self.code = code


def examine(family, exporter, command, expected, quick, result):
    """Fills in the result, row by row, and ends with the first failure."""
    model = onnx.load(command.path)
    result["operators"] = sum(n.op_type != "Constant" for n in model.graph.node)
    result["stage"] = "check"
    code, text, error = command.call("check")
    if code:
        raise Failed(code, text + error)
    result["stage"] = "first step"
    first = command.folder / f"{family.name}-{exporter}-first.onnx"
    report = command.train(first, "--steps", "1", "--momentum", "0",
                           "--lr", str(compare.GRADIENT_RATE))
    result["loss by rounding"] = expected["rounding of losses"][0]
    result["steps by rounding"] = max(expected["rounding of losses"])
    result["loss"] = compare.relative(report["losses"][0], expected["losses"][0])
    result.update(compare.gradients(compare.weights(command.path),
                                    compare.weights(first), expected))
    first.unlink()
    result["stage"] = "20 steps"
    trained = {}
    for budget in ["100%"] if quick else ["100%", "50%", "smallest"]:
        out = command.folder / f"{family.name}-{exporter}-{budget.strip('%')}.onnx"
        try:
            report = command.train(out, "--steps", str(export_family.STEPS),
                                   "--momentum", "0.9", "--lr",
                                   str(family.learning_rate), "--budget", budget)
        except Failed as failure:
            # Where weights are most of the bytes, half of them is too little.
            if budget == "50%" and failure.code in NO_PLAN:
                continue
            raise
        if budget == "100%":
            result["steps"] = max(map(compare.relative, report["losses"],
                                      expected["losses"]))
        result["stage"] = f"budget {'50%' if budget == '100%' else 'smallest'}"
        trained[budget] = compare.weights(out)
        out.unlink()
    if not quick:
        result["same bits"] = {
            budget: compare.same_bits(trained["100%"], trained[budget])
            for budget in trained if budget != "100%"}
    result["stage"] = "done"


def run_one(family, exporter, options):
    name = f"{family.library}-{family.name}-{exporter}"
    path = options.folder / f"{name}.onnx"
    result = {"name": family.name, "library": family.library, "exporter": exporter,
              "stage": "export"}
    begin = time.monotonic()
    try:
        if options.reuse and path.exists():
            expected = compare.load_reference(path)
        else:
            model = export_family.build(family)
            with_alarm(EXPORT_LIMIT_S, export_family.export, family, model, exporter,
                       path)
            expected = export_family.reference(family, model)
            np.savez(path.with_suffix(".npz"), **expected["data"])
            compare.save_reference(path, expected)
        if options.export_only:
            print(f"{name}: exported, {time.monotonic() - begin:.0f} s", flush=True)
            return
        frozen = [name for name in compare.weights(path)
                  if name in expected["frozen"] or name.endswith(family.buffers)]
        command = Command(str(options.loadline), family, path, options.folder, frozen)
        examine(family, exporter, command, expected, options.quick, result)
    except Failed as failure:
        result["error"] = str(failure)
    except (Exception, Timeout) as error:  # a library's or an exporter's own
        result["error"] = f"{type(error).__name__}: {compare.first_line(error)}"
        if options.verbose:
            traceback.print_exc()
    result["verdict"] = compare.verdict(result)
    result["seconds"] = round(time.monotonic() - begin)
    path.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"{name}: {compare.line(result)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loadline", type=pathlib.Path,
                        default=ROOT / "build" / "release" / "tools" / "loadline")
    parser.add_argument("--folder", type=pathlib.Path,
                        default=pathlib.Path("/tmp/families"))
    parser.add_argument("--only", default="*", help="pattern of names")
    parser.add_argument("--library", choices=LIBRARIES)
    parser.add_argument("--exporter", choices=EXPORTERS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--reuse", action="store_true",
                        help="exports that are in the folder already")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("--missing", action="store_true",
                        help="only those without a result")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.table:
        write_table(options.folder, options.table)
        return
    export_family.quiet()
    for library in [options.library] if options.library else LIBRARIES:
        for family in families(library):
            if not any(fnmatch.fnmatch(family.name, p) for p in options.only.split(",")):
                continue
            for exporter in [options.exporter] if options.exporter else EXPORTERS:
                stem = options.folder / f"{library}-{family.name}-{exporter}"
                done = stem.with_name(stem.name + (
                    ".reference" if options.export_only else ".json"))
                if not (options.missing and done.exists()):
                    run_one(family, exporter, options)


if __name__ == "__main__":
    main()
