#!/usr/bin/env python3
"""Plans of a full fine-tune beside two fixed rules for what is on the host, at equal prices.

    pytorch_offload_rules.py [--model 8B] [--sequence 2048] [--machine rtx-4090]
        [--host-memory 64GiB] [--host-bandwidth 50e9,100e9] [--time-limit SECONDS]

Traces the model of pytorch_estimates.py once (bf16, AdamW, no weights) and prints the step
within the card's memory

  Loadline   of `estimate(update_in_backward=True)`, and with `offload_parameters=True`;
  state      if all optimizer state is on the host, as by DeepSpeed's optimizer offload:
             each gradient is copied out when it exists, the host updates all parameters
             after the last one has arrived, and each bucket is copied in when it is updated;
  all        if parameters are there too, as by FSDP2's CPUOffloadPolicy: they are copied in
             for the forward and again for the backward, ahead of their use as far as
             --window allows. The host updates them where they are.

Both rules have the planner's own choice of what is computed again, in the card's memory less
what streams through it. Operators, copies (their rates, latency and the price of a call) are
priced by the machine's profile. An update on the host takes the time to move its bytes: it
reads gradients, parameters and state, and writes the latter two. A rule's copies in one
direction do not slow those in the other, which they do in Loadline's plans.
"""
import argparse
import dataclasses
import time

import torch

import loadline
from loadline import planning
from loadline.budget import format_bytes, parse_budget
from loadline.torch.session.llama_shaped import LlamaShaped
from pytorch_estimates import SHAPES


@dataclasses.dataclass
class Bucket:
    parameters: list  # value ids
    gradients: list
    state_bytes: int


class Step:
    """The traced step, without updates."""

    def __init__(self, problem):
        self.values = problem["values"]
        self.machine = problem["machine"]
        self.end = next(node["id"] for node in problem["nodes"]
                        if node["name"] == "gradients")
        self.boundary = next(node["id"] for node in problem["nodes"]
                             if node["name"] == "boundary")
        self.nodes = problem["nodes"][:self.end + 1]
        self.buckets = []
        for node in problem["nodes"][self.end + 1:]:
            (state, _), *pairs = node["inplace"]
            old = [one for one, _ in pairs]
            gradients = [one for one in node["inputs"] if one not in (state, *old)]
            self.buckets.append(Bucket(old, gradients, self.values[state]["bytes"]))
        self.parameters = {one for bucket in self.buckets for one in bucket.parameters}
        self.gradients = {one for bucket in self.buckets for one in bucket.gradients}
        other = [value for value in self.values if value.get("persistent")
                 and value["bytes"] >= 4096 and value["id"] not in self.parameters
                 and not value["name"].startswith("state.") and value.get("offload", True)]
        assert not other, f"a parameter without an update: {other[0]['name']}"

    def bytes(self, values):
        return sum(self.values[one]["bytes"] for one in values)

    def plan(self, budget, streamed, time_limit_s):
        """Which operators run, in order, and the peak. A gradient is gone when it is made."""
        ids = {one for node in self.nodes for one in (*node["inputs"], *node["outputs"])}
        number = {old: new for new, old in enumerate(sorted(ids))}
        values = [{**self.values[old], "id": new, "offload": False, "bytes": 0 if (
            streamed and old in self.parameters) else self.values[old]["bytes"]}
            for old, new in number.items()]
        nodes = [{**node, "inputs": [number[one] for one in node["inputs"]],
                  "outputs": [number[one] for one in node["outputs"]],
                  **({"inplace": [[number[old], number[new]] for old, new in node["inplace"]]}
                     if "inplace" in node else {})} for node in self.nodes]
        problem = {"format": "loadline.problem/1", "name": "rule", "values": values,
                   "nodes": nodes, "outputs": [], "addresses": False}
        plan = planning.plan(problem, budget, effort="moderate", time_limit_s=time_limit_s)
        return plan.sequence, plan.peak_bytes

    def copy_ns(self, lane, bytes_):
        link = self.machine[lane]
        return 1e9 * bytes_ / link["bytes_per_s"] + link.get("latency_ns", 0)


class Streams:
    """Parameters that are copied in ahead of their uses in the forward and in the backward,
    and dropped after them."""

    def __init__(self, step, sequence, window):
        boundary = sequence.index(step.boundary)
        uses = {}  # by parameter and half: the first and the last use
        for at, number in enumerate(sequence):
            for one in step.parameters.intersection(step.nodes[number]["inputs"]):
                first, _ = uses.get((one, at > boundary), (at, at))
                uses[one, at > boundary] = first, at
        self.step, self.window = step, window
        self.waiting = sorted((first, last, one) for (one, _), (first, last) in uses.items())
        self.last = {}  # by position: bytes that it uses last
        self.arrival = {}  # by first use and parameter: the end of its copy
        self.free_ns = 0.0
        self.resident = self.peak = 0

    def before(self, at, now_ns):
        """Issues copies; when the operator may start, and how many were issued."""
        ready_ns, count = now_ns, 0
        while self.waiting:
            first, last, one = self.waiting[0]
            bytes_ = self.step.values[one]["bytes"]
            if first > at and self.resident + bytes_ > self.window:
                break
            self.waiting.pop(0)
            count += 1
            self.free_ns = max(self.free_ns, now_ns) + self.step.copy_ns("h2d", bytes_)
            self.arrival[first, one] = self.free_ns
            self.resident += bytes_
            self.peak = max(self.peak, self.resident)
            self.last[last] = self.last.get(last, 0) + bytes_
        for (first, one), arrived in [*self.arrival.items()]:
            if first <= at:
                ready_ns = max(ready_ns, arrived)
                del self.arrival[first, one]
        return ready_ns, count

    def after(self, at):
        self.resident -= self.last.pop(at, 0)


def rule(step, sequence, host_bytes_per_s, streams=None):
    """Nanoseconds of a step, and the most bytes of gradients and streamed parameters."""
    call_ns = step.machine.get("copy_overhead_ns", 0)
    now = d2h_free = 0.0
    leaving = []  # when each gradient has arrived, and its bytes
    most = 0
    for at, number in enumerate(sequence):
        node = step.nodes[number]
        if streams is not None:
            start, count = streams.before(at, now)
            now = start + count * call_ns
        now += node["time_ns"]
        if streams is not None:
            streams.after(at)
        for one in step.gradients.intersection(node["outputs"]):
            bytes_ = step.values[one]["bytes"]
            d2h_free = max(d2h_free, now) + step.copy_ns("d2h", bytes_)
            now += call_ns
            leaving = [(end, size) for end, size in leaving if end > now]
            leaving.append((d2h_free, bytes_))
            most = max(most, sum(size for _, size in leaving))
    host = max(now, d2h_free)
    h2d_free = host
    for bucket in step.buckets:
        parameters = step.bytes(bucket.parameters)
        host += 1e9 * (2 * bucket.state_bytes + 2 * parameters
                       + step.bytes(bucket.gradients)) / host_bytes_per_s
        if streams is None:
            h2d_free = max(h2d_free, host) + step.copy_ns("h2d", parameters)
    return max(host, h2d_free), most + (0 if streams is None else streams.peak)


def say(name, host, peak, step_ns, host_bytes):
    print(f"| {name} | {host} | {format_bytes(peak)} | {step_ns / 1e6:,.0f} | "
          f"{format_bytes(host_bytes)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="8B", choices=SHAPES)
    parser.add_argument("--sequence", type=int, default=2048)
    parser.add_argument("--machine", default="rtx-4090")
    parser.add_argument("--host-memory", default="64GiB")
    parser.add_argument("--host-bandwidth", default="50e9,100e9", help="bytes per second")
    parser.add_argument("--window", default="3GiB", help="of parameters that stream")
    parser.add_argument("--time-limit", type=float, help="seconds for each search")
    given = parser.parse_args()
    machine = dataclasses.replace(loadline.Machine.load(given.machine),
                                  host_bytes=parse_budget(given.host_memory, 0))
    start = time.process_time()
    with torch.device("meta"):
        model = LlamaShaped(SHAPES[given.model])
    tokens = torch.zeros(1, given.sequence, dtype=torch.long)
    found = loadline.torch.estimate(
        model.to(torch.bfloat16), torch.optim.AdamW,
        sample={"input_ids": tokens, "labels": tokens}, machine=machine,
        offload_parameters=True, budgets=["card"], time_limit_s=given.time_limit)
    row, = found.rows
    step = Step(found.problem)
    times = [node["time_ns"] / 1e6 for node in found.problem["nodes"]]
    print(f"parameters {format_bytes(found.parameter_bytes)}, state "
          f"{format_bytes(found.optimizer_bytes)}; everything kept: {sum(times):,.0f} ms, of "
          f"which {sum(times[step.end + 1:]):,.0f} ms are updates")
    print("| rule | host, GB/s | peak | step ms | on the host |")
    if row.plan is not None:
        say("Loadline", "", row.peak_bytes, row.step_ns, row.plan.document["host_bytes"])
    card = machine.device_bytes - machine.reserved_bytes
    window = parse_budget(given.window, 0)
    for name, streamed in (("state", False), ("all", True)):
        # Without a limit for gradients that leave: they take what the last column has more.
        in_flight = 2 * max(step.bytes([one]) for one in step.gradients)
        sequence, peak = step.plan(card - in_flight - (window if streamed else 0), streamed,
                                   given.time_limit)
        on_host = (found.optimizer_bytes + step.bytes(step.gradients)
                   + (step.bytes(step.parameters) if streamed else 0))
        for rate in map(float, given.host_bandwidth.split(",")):
            step_ns, more = rule(step, sequence, rate,
                                 Streams(step, sequence, window) if streamed else None)
            say(name, f"{rate / 1e9:.0f}", peak + more, step_ns, on_host)
    print(f"{time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()
