"""Loadline's PyTorch plugin on a GPU, compared with PyTorch's own techniques.

    PYTHONPATH=plugins/python LOADLINE_LIBRARY=.../libloadline.so \\
        python tests/bench/pytorch_gpu.py [--models gpt2-124m,llama-1b]
        [--shares 100,75,50,35] [--ways WAY,...] [--machine PROFILE]
        [--knobs 0.9,0.7,0.5,0.3,0.1,0] [--steps 20] [--jobs 1] [--json FILE]

Every cell is a separate process: it compiles, runs warm-up steps, then reports
the median step and the peak bytes allocated by PyTorch's allocator in any
measured step. With --jobs several compile in parallel; while a cell's steps are
measured the others are suspended. --whole takes the bytes of `keep` from an
earlier run. A technique that cannot be given a number of bytes runs at each value
of the knob that it has; each share shows the fastest run within its bytes.

  eager           no compiler
  keep            torch.compile only: its bytes are 100 %
  loadline        prepare(budget=BYTES), recomputation only
  loadline-copies the same with copies to the host, by the machine's profile
  budget          torch.compile with activation_memory_budget
  checkpoint      torch.compile, every block within torch.utils.checkpoint
  fsdp-offload    fully_shard of every block with CPUOffloadPolicy

Losses are compared with those of `keep`. Prints Markdown. `--device cpu` with
`--models tiny` tests the program itself on any machine, without byte counts.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAYS = ["keep", "loadline", "loadline-copies", "budget", "checkpoint",
        "fsdp-offload", "eager"]
BATCH = {"gpt2-124m": (8, 1024), "llama-1b": (2, 2048), "tiny": (2, 32)}
WORST_S = 400
SETTLE_S = 0.3
READY = "READY"
WARM_STEPS = 5


def blocks_of(model, block):
    return [module for module in model.modules() if isinstance(module, block)]


def make(name, checkpointed, device):
    """(model that returns its loss, its kind of block, batch)."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.checkpoint import checkpoint
    sys.path.append(str(ROOT / "models"))
    sys.path.append(str(ROOT / "tests/plugins/python"))
    import models as small
    import torch_models
    torch.manual_seed(0)
    with torch.device(device):
        if name == "llama-1b":  # 16 layers of 67 M and a tied vocabulary
            net, block, words = small.Llama(
                16, 2048, 16, 32768, feed=8192), small.LlamaBlock, 32768
        elif name == "gpt2-124m":
            net, block, words = (torch_models.gpt2_124m(),
                                 torch_models.GptBlock, 50304)
        else:
            net, block, words = (torch_models.Gpt(96, 32),
                                 torch_models.GptBlock, 96)
        for parameter in net.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, tokens, targets):
            with torch.autocast(device, torch.bfloat16):
                if isinstance(net, small.Llama):
                    return net(tokens, targets)
                logits = net(tokens)
                return F.cross_entropy(logits.flatten(0, 1).float(),
                                       targets.flatten())

    if checkpointed:
        for one in blocks_of(net, block):
            inner = one.forward
            one.forward = (lambda *args, inner=inner: checkpoint(
                inner, *args, use_reentrant=False))
    rows, length = BATCH[name]
    generator = torch.Generator().manual_seed(1)
    batch = [torch.randint(words, (rows, length), generator=generator).to(device)
             for _ in range(2)]
    return WithLoss(), block, batch


def worker(cell):
    import torch
    name, way, device = cell["model"], cell["way"], cell["device"]
    cuda = device == "cuda"
    torch.set_float32_matmul_precision("high")
    model, block, batch = make(name, way == "checkpoint", device)
    if way == "fsdp-offload":
        import torch.distributed as dist
        from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if cuda else "gloo", rank=0, world_size=1,
            init_method=f"file://{tempfile.mkdtemp()}/rendezvous")
        for one in blocks_of(model, block):
            fully_shard(one, offload_policy=CPUOffloadPolicy())
        fully_shard(model, offload_policy=CPUOffloadPolicy())
        # Parameters rest on the host; buffers and batch are on the device.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=cuda)
    found = dict(cell)
    began = time.monotonic()
    if way.startswith("loadline"):
        import loadline
        import loadline.torch
        # Of other ways too only the allocator's bytes are counted.
        options = {"offload": way == "loadline-copies", "outside_bytes": 0}
        if cell.get("machine"):
            options["machine"] = loadline.Machine.load(cell["machine"])
        call, optimizer = loadline.torch.prepare(
            model, optimizer, sample=tuple(batch), budget=cell["budget_bytes"],
            **options)
        found["report"] = loadline.torch.report()
    elif way in ("eager", "fsdp-offload"):
        call = model
    else:
        if way == "budget":
            torch._functorch.config.activation_memory_budget = cell["knob"]
        call = torch.compile(model, dynamic=False)
    losses, times, peak = [], [], 0
    for step in range(cell["steps"] + WARM_STEPS):
        if step == WARM_STEPS:
            print(READY, flush=True)
            sys.stdin.readline()  # all others do nothing now
        if cuda:
            if step == WARM_STEPS:
                torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
        start = time.perf_counter_ns()
        loss = call(*batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter_ns() - start)
        losses.append(loss.item())
        if step == 0:
            found["compile_s"] = time.monotonic() - began
    if cuda:
        peak = torch.cuda.max_memory_allocated()
        found["reserved_bytes"] = torch.cuda.max_memory_reserved()
    found.update(step_ns=int(statistics.median(times[WARM_STEPS:])), peak_bytes=peak,
                 losses=losses, parameters=sum(
                     p.numel() for p in model.parameters()))
    print("CELL " + json.dumps(found), flush=True)


class Workers:
    """Processes of which one at a time has the machine for itself."""

    def __init__(self):
        self.running = set()
        self.alone = threading.Lock()

    def start(self, cell, log):
        with self.alone:  # a process of another session: its compilers stop with it
            process = subprocess.Popen(
                [sys.executable, __file__, "--worker", json.dumps(cell)], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True)
            self.running.add(process)
            return process

    def signal(self, processes, number):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    def result(self, process):
        """What it prints of its cell, or None."""
        for line in process.stdout:
            if line.strip() != READY:
                continue
            with self.alone:
                others = self.running - {process}
                self.signal(others, signal.SIGSTOP)
                time.sleep(SETTLE_S)  # what they have launched ends
                try:
                    process.stdin.write("go\n")
                    process.stdin.flush()
                    for line in process.stdout:
                        if line.startswith("CELL "):
                            return json.loads(line[5:])
                except BrokenPipeError:
                    return None
                finally:
                    self.signal(others, signal.SIGCONT)
        return None

    def end(self, process):
        with self.alone:
            self.running.discard(process)
        self.signal([process], signal.SIGKILL)
        process.wait()


def run(cell, jobs, workers):
    """The cell with its figures, or with why it failed."""
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        process = workers.start(cell, log)
        late = threading.Event()

        def stop():
            late.set()
            workers.signal([process], signal.SIGKILL)

        timer = threading.Timer(WORST_S * jobs, stop)  # it waits for others
        timer.start()
        try:
            done = workers.result(process)
        finally:
            timer.cancel()
            workers.end(process)
        log.seek(0)
        said = log.read()
    if done is None:
        why = f"stopped after {WORST_S * jobs} s: " if late.is_set() else ""
        return {**cell, "failed": (why + said.strip()[-3000:]) or "it said nothing"}
    return {**done, "warnings": [w for w in said.splitlines()
                                 if "loadline: " in w][:4]}


def line_of(done):
    if "failed" in done:
        return "failed: " + done["failed"].splitlines()[-1]
    return (f"{done['step_ns'] / 1e6:.1f} ms, {done['peak_bytes'] / 2**20:.0f} MiB, "
            f"first step {done['compile_s']:.0f} s")


def cells_of(way, shares, knobs, whole):
    if way == "budget":
        return [{"knob": knob} for knob in knobs]
    if way.startswith("loadline"):
        return [{"share": share, "budget_bytes": whole * share // 100}
                for share in shares]
    return [{}]


def named(cell):
    return " ".join([cell["way"], *(f"{key} {cell[key]}"
                                    for key in ("share", "knob") if key in cell)])


def markdown(model, shares, whole, cells):
    lines = [f"## {model}, {BATCH[model][0]} x {BATCH[model][1]} tokens, bf16 by "
             "autocast, AdamW", "",
             "| way | MiB | share | ms | against keep | first step s | largest "
             "difference of a loss |", "|---|---|---|---|---|---|---|"]
    keep = next((c for c in cells if c["way"] == "keep" and "step_ns" in c), None)
    for cell in cells:
        if "failed" in cell:
            lines.append(f"| {named(cell)} | {cell['failed'].splitlines()[-1]} "
                         "| | | | | |")
            continue
        beside, far = "-", "-"
        if keep:
            beside = f"{cell['step_ns'] / keep['step_ns']:.3f}"
            far = f"{max(abs(a - b) for a, b in zip(cell['losses'], keep['losses'])):.1e}"
        lines.append(
            f"| {named(cell)} | {cell['peak_bytes'] / 2**20:.0f} "
            f"| {cell['peak_bytes'] / max(whole, 1):.1%} "
            f"| {cell['step_ns'] / 1e6:.1f} | {beside} "
            f"| {cell['compile_s']:.0f} | {far} |")
    ways = [w for w in WAYS if any(c["way"] == w for c in cells)]
    lines += ["", "Fastest step in ms within a share of the bytes:", "",
              "| share | " + " | ".join(ways) + " |",
              "|---" * (len(ways) + 1) + "|"]
    for share in shares:
        row = []
        for way in ways:
            within = [c["step_ns"] for c in cells
                      if c["way"] == way and "step_ns" in c
                      and c["peak_bytes"] <= whole * share // 100]
            row.append(f"{min(within) / 1e6:.1f}" if within else "-")
        lines.append(f"| {share} % | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", default="gpt2-124m,llama-1b")
    parser.add_argument("--shares", default="100,75,50,35")
    parser.add_argument("--knobs", default="0.9,0.7,0.5,0.3,0.1,0")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--whole", type=int)
    parser.add_argument("--machine")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(json.loads(args.worker))
        return
    shares = [int(share) for share in args.shares.split(",")]
    knobs = [float(knob) for knob in args.knobs.split(",")]
    workers = Workers()
    document = {"format": "loadline.pytorch_gpu/1", "models": []}
    for model in args.models.split(","):
        entry = {"model": model, "cells": []}
        document["models"].append(entry)

        def measure(cell):
            done = run({"model": model, "steps": args.steps, "device": args.device,
                        "machine": args.machine, **cell}, args.jobs, workers)
            entry["cells"].append(done)
            print(f"{model} {named(done)}: {line_of(done)}", file=sys.stderr,
                  flush=True)
            if args.json:  # what is there is not lost
                args.json.write_text(json.dumps(document, indent=1) + "\n")
            return done

        whole = args.whole or (
            measure({"way": "keep"}).get("peak_bytes") or 1 << 28)
        entry["whole_bytes"] = whole
        cells = [{"way": way, **cell} for way in args.ways.split(",")
                 if way != "keep" or args.whole
                 for cell in cells_of(way, shares, knobs, whole)]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(measure, cells))
        entry["cells"].sort(key=lambda cell: WAYS.index(cell["way"]))
        print(markdown(model, shares, whole, entry["cells"]), flush=True)


if __name__ == "__main__":
    main()
