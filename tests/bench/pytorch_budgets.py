"""Loadline against PyTorch's own solver, on the traced steps of small models.

    PYTHONPATH=plugins/python:tests/plugins/python \\
    LOADLINE_LIBRARY=build/release/plugins/c/libloadline.so \\
        python tests/bench/pytorch_budgets.py [MODEL,... [POINTS [WORK]]]

At each of POINTS activation_memory_budgets: the peak that the ledger finds, and
the FLOPs computed again; then the same of Loadline's plan within that peak. Then
Loadline alone, from keeping everything down to its smallest budget. Every row is
a step that ran: bits are compared.
"""
import sys

import loadline
from loadline import Machine
from loadline.torch.compiler import recomputed_flops
from loadline.torch.price import node_flops
from models import MODELS
from steps import same_bits, trace

# The models are so small that a launch would cost more than what it computes.
# Here FLOPs cost, and bytes break ties.
BY_FLOPS = Machine("by FLOPs", matmul_flop_per_s={"f32": 1e9},
                   memory_bytes_per_s=1e12)


def flops_of(*modules):
    return sum(node_flops(node) for module in modules
               for node in module.graph.nodes if node.op == "call_function")


def compare(name, points, work):
    step = trace(name, BY_FLOPS)
    kept = loadline.keep_everything(step.problem)
    reference = step.run(kept.sequence)
    once = flops_of(step.module)
    print(f"{name}: {len(step.problem['nodes'])} operations, keeping everything "
          f"{kept.peak_bytes} bytes, {once} FLOPs\n"
          f"{'PyTorch':>8} {'peak':>9} {'again':>10} {'bits':>5} | "
          f"{'Loadline':>9} {'again':>10} {'bits':>5}  {'':6}")
    counts = {"fewer": 0, "same": 0, "MORE": 0}
    for point in range(points, 0, -1):
        try:
            theirs = step.run_pytorch(point / points)
        except Exception as error:  # of their solver: say so, go on
            print(f"{point / points:8.2f} {type(error).__name__}: {error}")
            continue
        peak = theirs.ledger.peak_bytes
        again = flops_of(*theirs.split) - once
        plan = loadline.plan(step.problem, peak, work_limit=work)
        ours = step.run(plan.sequence)
        assert ours.ledger.peak_bytes == plan.peak_bytes <= peak
        mine = recomputed_flops(step.posed, plan.sequence)
        word = "fewer" if mine < again else "same" if mine == again else "MORE"
        counts[word] += 1
        print(f"{point / points:8.2f} {peak:9} {again:10} "
              f"{same_bits(theirs.values, reference.values)!s:>5} | "
              f"{plan.peak_bytes:9} {mine:10} "
              f"{same_bits(ours.values, reference.values)!s:>5}  {word}",
              flush=True)
    print(f"{name}: {counts}")
    smallest = loadline.plan(step.problem, "smallest", work_limit=work)
    low, high, last = smallest.budget_bytes, kept.peak_bytes, 0
    for point in range(points):
        budget = high - (high - low) * point // (points - 1)
        plan = loadline.plan(step.problem, budget, work_limit=work)
        ours = step.run(plan.sequence)
        assert ours.ledger.peak_bytes == plan.peak_bytes <= budget
        assert same_bits(ours.values, reference.values)
        print(f"{100 * budget / high:7.1f} % {budget:9} -> {plan.peak_bytes:9} "
              f"step {plan.step_ns:10} ns {'' if plan.step_ns >= last else 'FASTER'}"
              f" again {recomputed_flops(step.posed, plan.sequence):10}", flush=True)
        last = plan.step_ns


def main():
    names = sys.argv[1].split(",") if len(sys.argv) > 1 else list(MODELS)
    points = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    work = int(sys.argv[3]) if len(sys.argv) > 3 else 300_000
    for name in names:
        compare(name, points, work)


if __name__ == "__main__":
    main()
