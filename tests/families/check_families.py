#!/usr/bin/env python3
"""Trains models of other libraries, as two exporters write them, and compares
with PyTorch.

    tests/families/check_families.py [--loadline PROGRAM] [--folder FOLDER]
        [--only PATTERN] [--library NAME] [--exporter NAME] [--parts LIST]
        [--table FILE]

For every row of *_families.py and each exporter: `loadline check`, and the parts

    train    the loss and every gradient of the first step, from one step of SGD, and
             the losses of 20 steps
    bf16     the first step's loss and gradients with --precision autocast
    budgets  the bits of weights trained for 2 steps, all kept, at 50 % and at the
             smallest budget, with short searches

without dropout, on the same batches. Results stay in FOLDER, one JSON file each;
--table puts all that are there in the Markdown FILE (docs/families.md), where rows
without a new result stay.

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

import onnx

import compare
import export_family
from table import write_table

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ["torch", "torchvision", "timm", "transformers", "diffusers",
             "ultralytics", "written", "notebooks", "papers"]
MODULES = {"torch": "plain_families", "notebooks": "notebook_families",
           "papers": "paper_families"}
EXPORTERS = ["torchscript", "dynamo"]
PARTS = ["train", "bf16", "budgets"]
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

    def train(self, out, *flags, limit="10s"):
        code, text, error = self.call(
            "run", "--optimizer", "sgd", "--no-dropout", "--no-shuffle",
            "--time-limit", limit, "--json", "-o", str(out), *flags)
        if code:
            raise Failed(code, error)
        return json.loads(text)

    def trained(self, *flags, **options):
        """The report, and the trained weights."""
        out = self.path.with_suffix(".out.onnx")
        report = self.train(out, *flags, **options)
        found = compare.weights(out)
        out.unlink()
        return report, found

    def first_step(self, *flags):
        return self.trained("--steps", "1", "--momentum", "0", "--lr",
                            str(compare.GRADIENT_RATE), *flags)


class Failed(Exception):
    def __init__(self, code, text):
        super().__init__(f"exit {code}: {compare.last_lines(text)}")
        self.code = code


def train_part(command, family, expected, result):
    result["stage"] = "first step"
    report, first = command.first_step()
    result["loss by rounding"] = expected["rounding of losses"][0]
    result["steps by rounding"] = max(expected["rounding of losses"])
    result["loss"] = compare.relative(report["losses"][0], expected["losses"][0])
    result.update(compare.gradients(compare.weights(command.path), first, expected))
    result["stage"] = "20 steps"
    report, _ = command.trained("--steps", str(export_family.STEPS), "--momentum",
                                "0.9", "--lr", str(family.learning_rate))
    result["steps"] = max(map(compare.relative, report["losses"], expected["losses"]))


def bf16_part(command, names, expected, result):
    result["stage"] = "bf16"
    if "error" in expected:
        result["bf16"] = expected
        return
    report, first = command.first_step("--precision", "autocast")
    result["bf16"] = compare.mixed(report, compare.weights(command.path), first, names,
                                   expected)


def budgets_part(command, family, result):
    trained = {}
    for budget in ["100%", "50%", "smallest"]:
        result["stage"] = f"budget {budget}"
        try:
            trained[budget] = command.trained(
                "--steps", "2", "--momentum", "0.9", "--lr", str(family.learning_rate),
                "--budget", budget, limit="2s")[1]
        except Failed as failure:
            # Where weights are most of the bytes, half of them is too little.
            if budget != "50%" or failure.code not in NO_PLAN:
                raise
    result["same bits"] = {
        budget: compare.same_bits(trained["100%"], trained[budget])
        for budget in trained if budget != "100%"}


def examine(family, command, references, result):
    """Fills in the result, part by part, and ends with the first failure."""
    model = onnx.load(command.path)
    result["operators"] = sum(n.op_type != "Constant" for n in model.graph.node)
    result["stage"] = "check"
    code, text, error = command.call("check")
    if code:
        raise Failed(code, text + error)
    if "train" in references:
        train_part(command, family, {**references["facts"], **references["train"]},
                   result)
    if "bf16" in references:
        bf16_part(command, references["facts"]["names"], references["bf16"], result)
    if "budgets" in references:
        budgets_part(command, family, result)
    result["stage"] = "done"


def mixed_or_error(family, model, data):
    try:
        return export_family.mixed_reference(family, model, data)
    except Exception as error:  # PyTorch has not every operator in bf16
        return {"error": f"PyTorch: {compare.first_line(error)}"}


def prepare(family, exporter, path, parts):
    """The exported file with its data, and what each part compares with: what is
    there already, or made now."""
    found = {part: compare.load_reference(path, part) for part in ["facts", *parts]}
    if None not in found.values():
        return found
    model = export_family.build(family)
    if found["facts"] is None:
        with_alarm(EXPORT_LIMIT_S, export_family.export, family, model, exporter, path)
    data = export_family.make_data(family, model)
    export_family.save_data(data, path.with_suffix(".npz"))
    make = {"facts": lambda: export_family.facts(model), "budgets": dict,
            "train": lambda: export_family.reference(family, model, data),
            "bf16": lambda: mixed_or_error(family, model, data)}
    for part in found:
        if found[part] is None:
            found[part] = make[part]()
            compare.save_reference(path, part, found[part])
    return found


def command_of(family, path, facts, options):
    frozen = [name for name in compare.weights(path)
              if name in facts["frozen"] or name.endswith(family.buffers)]
    return Command(str(options.loadline), family, path, options.folder, frozen)


def file_of(family, exporter, folder):
    return folder / f"{family.library}-{family.name}-{exporter}.onnx"


def run_one(family, exporter, options):
    path = file_of(family, exporter, options.folder)
    name = path.stem
    result = kept_result(path)
    result.update({"name": family.name, "library": family.library,
                   "exporter": exporter, "stage": "export"})
    begin = time.monotonic()
    try:
        references = prepare(family, exporter, path, options.parts)
        if options.export_only:
            print(f"{name}: exported, {time.monotonic() - begin:.0f} s", flush=True)
            return
        command = command_of(family, path, references["facts"], options)
        examine(family, command, references, result)
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


def kept_result(path):
    """What earlier parts of the export have found."""
    file = path.with_suffix(".json")
    result = json.loads(file.read_text()) if file.exists() else {}
    result.pop("error", None)
    return result


def is_done(path, parts):
    keys = {"train": "steps", "bf16": "bf16", "budgets": "same bits"}
    file = path.with_suffix(".json")
    if not file.exists():
        return False
    result = json.loads(file.read_text())
    return "error" in result or all(keys[part] in result for part in parts)


def parser_of(description):
    """With the flags that say what to export and where."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--loadline", type=pathlib.Path,
                        default=ROOT / "build" / "release" / "tools" / "loadline")
    parser.add_argument("--folder", type=pathlib.Path,
                        default=pathlib.Path("/tmp/families"))
    parser.add_argument("--only", default="*", help="pattern of names")
    parser.add_argument("--library", choices=LIBRARIES)
    parser.add_argument("--exporter", choices=EXPORTERS)
    return parser


def chosen(options):
    """Families with an exporter each."""
    for library in [options.library] if options.library else LIBRARIES:
        for family in families(library):
            if any(fnmatch.fnmatch(family.name, p) for p in options.only.split(",")):
                for exporter in [options.exporter] if options.exporter else EXPORTERS:
                    yield family, exporter


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=PARTS,
                        help="of train,bf16,budgets; default all")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("--missing", action="store_true",
                        help="only those without a result of the parts")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.table:
        write_table(options.folder, options.table)
        return
    export_family.quiet()
    for family, exporter in chosen(options):
        path = file_of(family, exporter, options.folder)
        if not (options.missing and is_done(path, options.parts)):
            run_one(family, exporter, options)


if __name__ == "__main__":
    main()
