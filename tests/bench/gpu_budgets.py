#!/usr/bin/env python3
"""Step times by budget on a GPU: predicted, measured, and PyTorch's.

    tests/bench/gpu_budgets.py [--loadline PROGRAM] [--device cuda]
        [--models gpt,resnet18] [--precisions fp32,bf16] [--steps 30] [--pairs 3] [--json FILE]

Plans every model and precision (the large models, which models/make_large.py
makes here, in bf16 only) at 100, 75, 50 and 35 % of the bytes that keeping
everything needs. Reports the predicted and the measured step time (median of the
steps of a run whose step is one graph), the bytes of the arena and of the whole
device by its driver, and from a traced run the share of the copies' time that
overlapped with compute. At 50 % also with recomputation only and with copies
only. The profile is measured anew, into a separate folder. If PyTorch with CUDA
is installed, its eager and compiled steps alternate with the step that keeps
everything.

Prints Markdown. --json: the same figures as one document. `tools/dev/gpu_check run`
runs this on a GPU; `--device cpu` tests the script itself on any machine. Tested by
tests/gpu/gpu_budgets_test.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "models" / "zoo"
SHARES = ["100%", "75%", "50%", "35%"]
MODELS = {  # name: data, batch
    "mlp": ("digits-train.npz", 256),
    "gpt": ("text-train.npz", 128),
    "gpt12": ("text-train.npz", 128),
    "resnet18": ("digits-train.npz", 256),
    "gpt2-124m": ("large/gpt2-124m-data.npz", 8),
    "resnet50": ("large/resnet50-data.npz", 64),
}
LARGE = {name for name, (data, _) in MODELS.items()
         if data.startswith("large/")}
CANNOT_FIT = 3
TRACED_STEPS = 3


def model_file(model):
    return ZOO / ("large" if model in LARGE else "") / f"{model}.onnx"


class Bench:
    """The command, with a profile that was measured for it."""

    def __init__(self, program, device, steps, folder):
        self.program, self.device, self.steps = program, device, steps
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ, LOADLINE_CACHE=str(folder))

    def loadline(self, *args):
        """(exit code, document or None, log)."""
        result = subprocess.run(
            [self.program, *map(str, args)], env=self.environment, text=True,
            capture_output=True)
        document = json.loads(result.stdout) if result.stdout else None
        return result.returncode, document, result.stderr

    def step(self, verb, model, precision, *more):
        data, batch = MODELS[model]
        return self.loadline(
            verb, model_file(model), "--device", self.device, "--data",
            ZOO / data, "--batch", batch, "--precision", precision,
            "--no-dropout", "--json", *more)

    def run(self, model, precision, *more, steps=None):
        return self.step("run", model, precision, "--steps",
                         steps or self.steps, *more)

    def plan(self, model, precision, number, share, flags):
        """Arguments that `run` needs, or the point with the reason for a failure."""
        files = [self.folder / f"{what}{number}.json"
                 for what in ("plan", "problem")]
        code, _, log = self.step(
            "plan", model, precision, "--budget", share, *flags,
            "--output", files[0], "--problem", files[1])
        point = {"budget": share, "flags": list(flags)}
        if code != 0:
            return None, failed(point, code, log)
        return ("--plan", files[0], "--problem", files[1]), point

    def point(self, model, precision, planned, point):
        """Figures of one plan, or the reason why it did not run."""
        if planned is None:
            return point
        code, ran, log = self.run(model, precision, *planned)
        if code != 0:
            return failed(point, code, log)
        for field in ("arena_bytes", "measured_arena_bytes", "host_bytes",
                      "predicted_step_ns", "step_ns", "d2h_bytes", "h2d_bytes",
                      "recompute_ns", "weights_sha256", "budget_bytes"):
            point[field] = ran[field]
        for field in ("measured_device_bytes", "reserved_bytes"):
            if field in ran:  # absent if the device is the host
                point[field] = ran[field]
        trace = self.folder / "trace.json"
        code, _, log = self.run(model, precision, *planned, "--trace", trace,
                                steps=TRACED_STEPS)
        if code == 0:
            point["copies_under_compute"] = copies_under_compute(
                json.loads(trace.read_text())["traceEvents"])
        return point

    def points(self, model, precision):
        """The first run measures operators; then all points are planned in
        parallel and run one after the other."""
        code, _, log = self.run(model, precision, steps=TRACED_STEPS)
        asked = [(share, ()) for share in SHARES]
        asked += [("50%", (flag,)) for flag in ("--no-offload",
                                                "--no-recompute")]
        if code != 0:
            return [failed({"budget": share, "flags": list(flags)}, code, log)
                    for share, flags in asked]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            planned = list(pool.map(
                lambda entry: self.plan(model, precision, entry[0], *entry[1]),
                enumerate(asked)))
        return [self.point(model, precision, *one) for one in planned]


def failed(point, code, log):
    point["failed"] = ("no plan within these bytes"
                       if code == CANNOT_FIT else log.strip()[-500:])
    point["exit_code"] = code
    return point


def copies_under_compute(events):
    """Share of the copies' measured time that overlapped with compute; None
    without copies."""
    spans = {tid: sorted((e["ts"], e["ts"] + e["dur"]) for e in events
                         if e["ph"] == "X" and e["pid"] == 1 and e["tid"] == tid)
             for tid in (0, 1, 2)}
    total = under = 0.0
    for begin, end in spans[1] + spans[2]:
        total += end - begin
        under += sum(max(0.0, min(end, b) - max(begin, a))
                     for a, b in spans[0])
    return under / total if total > 0 else None


def torch_worker(model, precision, compiled, steps, device):
    """Prints the median nanoseconds of a training step of PyTorch's."""
    import numpy as np
    import torch
    from torch.nn import functional as F
    sys.path.insert(0, str(ROOT / "models"))
    import torch_models
    data, batch = MODELS[model]
    arrays = np.load(ZOO / data)
    net = {
        "mlp": lambda: torch_models.Mlp(dropout=0.0),
        "gpt": lambda: torch_models.Gpt(96, 64, dropout=0.0),
        "resnet18": torch_models.ResNet18,
        "gpt2-124m": torch_models.gpt2_124m,
        "resnet50": torch_models.ResNet50,
    }[model]().train().to(device)
    stepper = torch.optim.AdamW(net.parameters(), lr=1e-3,
                                fused=device == "cuda")
    name = next(key for key in arrays if key != "target")
    inputs = torch.from_numpy(arrays[name]).to(device)
    target = torch.from_numpy(arrays["target"]).to(device)
    forward = torch.compile(net) if compiled else net
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = []
    for step in range(steps + 10):
        rows = torch.arange(step * batch, (step + 1) * batch,
                            device=device) % len(inputs)
        wait()
        start = time.perf_counter_ns()
        with torch.autocast(device, torch.bfloat16, precision == "bf16"):
            logits = forward(inputs[rows])
            loss = F.cross_entropy(
                logits.reshape(-1, logits.shape[-1]).float(),
                target[rows].reshape(-1))
        stepper.zero_grad()
        loss.backward()
        stepper.step()
        wait()
        times.append(time.perf_counter_ns() - start)
    print(json.dumps({"step_ns": int(statistics.median(times[10:]))}))


def torch_version(device):
    """A PyTorch that can use the device; otherwise None and the reason."""
    try:
        import torch
    except ImportError as error:
        return None, str(error)
    if device == "cuda" and not torch.cuda.is_available():
        return None, f"PyTorch {torch.__version__} sees no GPU"
    return torch.__version__, ""


def beside_torch(bench, model, precision, pairs):
    """Medians of steps that keep everything, in alternating runs."""
    steps = {"loadline": [], "eager": [], "compiled": []}
    failed = {}
    for _ in range(pairs):
        code, ran, log = bench.run(model, precision)
        if code == 0:
            steps["loadline"].append(ran["step_ns"])
        else:
            failed["loadline"] = log.strip()[-500:]
        for kind in ("eager", "compiled"):
            result = subprocess.run(
                [sys.executable, __file__, "--torch-worker", model, precision,
                 kind, str(bench.steps), bench.device],
                text=True, capture_output=True)
            if result.returncode == 0:
                steps[kind].append(json.loads(
                    result.stdout.strip().splitlines()[-1])["step_ns"])
            else:
                failed[kind] = result.stderr.strip()[-500:]
    out = {kind: int(statistics.median(ns)) for kind, ns in steps.items() if ns}
    if failed:
        out["failed"] = failed
    return out


def measure(bench, models, precisions, pairs, save):
    """The document; calls `save` with it after each model, so that an
    interrupted run loses at most one."""
    version, why_not = torch_version(bench.device)
    code, _, log = bench.loadline("doctor", "--device", bench.device, "--json")
    if code != 0:
        sys.exit(f"gpu_budgets: doctor: {log.strip()[-2000:]}")
    result = {"format": "loadline.gpu_budgets/1", "device": bench.device,
              "steps": bench.steps, "pytorch": version,
              "why_no_pytorch": why_not, "models": []}
    for model in models:
        if model in LARGE:
            subprocess.run([sys.executable, ROOT / "models" / "make_large.py",
                            "--only", model], check=True)
        for precision in ("bf16",) if model in LARGE else precisions:
            entry = {"model": model, "precision": precision,
                     "batch": MODELS[model][1],
                     "points": bench.points(model, precision)}
            if version and model != "gpt12":
                entry["pytorch"] = beside_torch(bench, model, precision, pairs)
            result["models"].append(entry)
            save(result)
    result["failed"] = sum(
        p.get("exit_code", CANNOT_FIT) != CANNOT_FIT
        for entry in result["models"] for p in entry["points"])
    # Every plan gives the same bits.
    result["bits_differ"] = sum(
        len({p["weights_sha256"] for p in entry["points"]
             if "weights_sha256" in p}) > 1 for entry in result["models"])
    return result


def milliseconds(ns):
    return f"{ns / 1e6:.2f}"


def device_bytes(point):
    """The measured time, and its relative excess over the prediction."""
    if "measured_device_bytes" not in point:
        return "-"
    measured = point["measured_device_bytes"]
    predicted = point["arena_bytes"] + point["reserved_bytes"]
    return f"{measured / 2**20:.1f} ({measured / predicted - 1:+.2%})"


def row_of(point):
    name = " ".join([point["budget"], *point["flags"]])
    if "failed" in point:
        return f"| {name} | {point['failed'].splitlines()[-1]} | | | | | | |"
    error = point["step_ns"] / max(point["predicted_step_ns"], 1) - 1
    hidden = point.get("copies_under_compute")
    return (f"| {name} | {milliseconds(point['predicted_step_ns'])} "
            f"| {milliseconds(point['step_ns'])} | {error:+.1%} "
            f"| {1e9 / point['step_ns']:.1f} "
            f"| {point['measured_arena_bytes'] / 2**20:.1f} "
            f"| {device_bytes(point)} "
            f"| {'-' if hidden is None else f'{hidden:.0%}'} |")


def markdown(result):
    lines = []
    for entry in result["models"]:
        lines += [f"## {entry['model']}, {entry['precision']}, batch "
                  f"{entry['batch']}", "",
                  "| budget | predicted ms | measured ms | error | steps/s "
                  "| arena MiB | device MiB | copies under compute |",
                  "|---|---|---|---|---|---|---|---|"]
        lines += [row_of(point) for point in entry["points"]]
        torch = entry.get("pytorch")
        if torch:
            shown = ", ".join(f"{kind} {milliseconds(torch[kind])} ms "
                              f"({entry['batch'] * 1e9 / torch[kind]:.1f} "
                              "examples/s)"
                              for kind in ("loadline", "eager", "compiled")
                              if kind in torch)
            lines += ["", f"Everything kept, in turns: {shown}."]
            lines += [f"{kind} failed: {why.splitlines()[-1]}"
                      for kind, why in torch.get("failed", {}).items()]
        lines.append("")
    lines.append(f"PyTorch {result['pytorch']}." if result["pytorch"] else
                 f"Not beside PyTorch: {result['why_no_pytorch']}.")
    if result["failed"]:
        lines.append(f"{result['failed']} runs failed.")
    if result["bits_differ"]:
        lines.append(f"Weights differ between plans of {result['bits_differ']} "
                     "models.")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--loadline",
                        default=str(ROOT / "build/release/tools/loadline"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models",
                        default="gpt,gpt12,resnet18,gpt2-124m,resnet50")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--torch-worker", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch_worker:
        model, precision, kind, steps, device = args.torch_worker
        torch_worker(model, precision, kind == "compiled", int(steps), device)
        return 0

    def save(result):
        if args.json:  # whole or not at all
            beside = args.json.with_name(args.json.name + ".new")
            beside.write_text(json.dumps(result, indent=1) + "\n")
            beside.replace(args.json)

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args.loadline, args.device, args.steps, folder)
        result = measure(bench, args.models.split(","),
                         args.precisions.split(","), args.pairs, save)
    save(result)
    print(markdown(result), end="")
    return 1 if result["failed"] or result["bits_differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
