#!/usr/bin/env python3
"""Step time compared with eager PyTorch, with the same models and threads.

Runs the two alternately, as separate processes, A B A B ..., and prints the
median step of each and the ratio of each pair, so that a drift of the machine's
speed affects both. No budget: the plan keeps everything.

Usage: tests/bench/pytorch_compare.py [--steps 20] [--pairs 5] [--only FAMILY]
Without PyTorch prints a line that says so and exits with 0.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "models" / "zoo"
FAMILIES = {
    # name: data, batch
    "mlp": ("digits-train.npz", 32),
    "resnet18": ("digits-train.npz", 32),
    "gpt": ("text-train.npz", 32),
}


def torch_worker(family, optimizer, steps, threads):
    """Prints the median nanoseconds of an eager training step."""
    import numpy as np
    import torch
    from torch.nn import functional as F
    sys.path.insert(0, str(ROOT / "models"))
    import torch_models
    torch.set_num_threads(threads)
    data, batch = FAMILIES[family]
    model = {
        "mlp": lambda: torch_models.Mlp(dropout=0.0),
        "resnet18": torch_models.ResNet18,
        "gpt": lambda: torch_models.Gpt(96, 64, dropout=0.0),
    }[family]().train()
    stepper = (torch.optim.AdamW(model.parameters(), lr=1e-3)
               if optimizer == "adamw"
               else torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
    arrays = np.load(ZOO / data)
    inputs = torch.from_numpy(arrays[[k for k in arrays if k != "target"][0]])
    target = torch.from_numpy(arrays["target"])
    times = []
    for step in range(steps + 3):
        rows = torch.arange(step * batch, (step + 1) * batch) % len(inputs)
        start = time.perf_counter_ns()
        logits = model(inputs[rows])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]),
                               target[rows].reshape(-1))
        stepper.zero_grad()
        loss.backward()
        stepper.step()
        times.append(time.perf_counter_ns() - start)
    print(json.dumps({"step_ns": statistics.median(times[3:])}))


def last_json(command, environment):
    result = subprocess.run(command, env=environment, check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(result.stdout.decode().strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    parser.add_argument("--only", choices=sorted(FAMILIES))
    parser.add_argument("--loadline", default=str(ROOT / "tools" / "loadline"))
    parser.add_argument("--torch-worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch_worker:
        torch_worker(args.torch_worker, args.optimizer, args.steps, args.threads)
        return
    try:
        import torch
    except ImportError as error:
        print(f"skipped: no PyTorch ({error})")
        return

    environment = dict(os.environ, OMP_NUM_THREADS=str(args.threads),
                       OMP_WAIT_POLICY="PASSIVE")
    print(f"torch {torch.__version__}, {args.threads} threads, "
          f"{args.optimizer}, {args.steps} steps, {args.pairs} pairs")
    print(f"{'family':<10}{'loadline':>12}{'torch':>12}{'ratio':>8}  (min..max)")
    for family, (data, batch) in FAMILIES.items():
        if args.only and family != args.only:
            continue
        ours, theirs = [], []
        for _ in range(args.pairs):
            ours.append(last_json(
                [args.loadline, "run", str(ZOO / f"{family}.onnx"), "--data",
                 str(ZOO / data), "--no-dropout", "--optimizer", args.optimizer,
                 "--batch", str(batch), "--steps", str(args.steps), "--json"],
                environment)["step_ns"])
            theirs.append(last_json(
                [sys.executable, __file__, "--torch-worker", family,
                 "--optimizer", args.optimizer, "--steps", str(args.steps),
                 "--threads", str(args.threads)], environment)["step_ns"])
        ratios = [a / b for a, b in zip(ours, theirs)]
        print(f"{family:<10}{statistics.median(ours) / 1e6:>9.2f} ms"
              f"{statistics.median(theirs) / 1e6:>9.2f} ms"
              f"{statistics.median(ratios):>8.2f}  "
              f"({min(ratios):.2f}..{max(ratios):.2f})")


if __name__ == "__main__":
    main()
