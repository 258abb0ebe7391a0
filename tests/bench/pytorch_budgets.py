"""Loadline against PyTorch's own solver, on the traced steps of small models.

    PYTHONPATH=plugins/python:tests/plugins/python \\
    LOADLINE_LIBRARY=build/release/plugins/c/libloadline.so \\
        python tests/bench/pytorch_budgets.py [MODEL,... [POINTS [WORK]]]

POINTS budgets of bytes, from keeping everything down to the smallest that
Loadline can keep. At each: of all steps that PyTorch's solver makes at 101
values of its activation_memory_budget, the one with fewest FLOPs whose peak, as
the ledger finds it, is within the budget; and Loadline's plan within it. Every
row is a step that ran: bits are compared. FLOPs are those of the whole step:
PyTorch's own counts of products and convolutions, and one for each element of
any other operator. The last columns are the products alone, as PyTorch counts.

With `--peaks [MODEL,...]` instead: at 0.8, 0.6, 0.4, 0.2 and 0 of the
activation_memory_budget, the step that PyTorch's solver makes, and Loadline's plan within
the peak that the ledger finds for it, as lines of a Markdown table. First the time that each
computes again, by the prices of the plugin's default machine, in percent of computing
everything once. Then the FLOPs of products that each computes again, where Loadline plans
by a price for FLOPs alone: at the default prices, kernels of such small models cost their
launch, so a small product costs no more than an element-wise operator.
"""
import sys

import loadline
from loadline import Machine
from hard_models import HARD_MODELS
from loadline.torch.problem.cost_model import node_flops, product_flops
from models import MODELS
from steps import same_bits, trace

# The models are so small that a launch would cost more than what it computes.
# Here FLOPs cost, and bytes break ties.
BY_FLOPS = Machine("by FLOPs", matmul_flop_per_s={"f32": 1e9},
                   memory_bytes_per_s=1e12)


def flops_of(count, *modules):
    return sum(count(node) for module in modules
               for node in module.graph.nodes if node.op == "call_function")


def pytorchs(step, reference):
    """Of each different step that its solver makes: peak, FLOPs, products."""
    found = {}
    for point in range(101):
        try:
            theirs = step.run_pytorch(point / 100)
        except Exception as error:  # of their solver: say so, go on
            print(f"PyTorch at {point / 100:.2f}: {type(error).__name__}: {error}")
            continue
        if not same_bits(theirs.values, reference.values):
            print(f"PyTorch at {point / 100:.2f}: other bits")
        found[theirs.ledger.peak_bytes, flops_of(node_flops, *theirs.split),
              flops_of(product_flops, *theirs.split)] = point / 100
    return found


def compare(name, points, work):
    step = trace(name, BY_FLOPS)
    kept = loadline.keep_everything(step.problem)
    reference = step.run(kept)
    once = flops_of(node_flops, step.module)
    products = flops_of(product_flops, step.module)
    theirs = pytorchs(step, reference)
    print(f"{name}: {len(step.problem['nodes'])} operations, keeping everything "
          f"{kept.peak_bytes} bytes, {once} FLOPs ({products} in products); "
          f"PyTorch makes {len(theirs)} different steps\n"
          f"{'budget':>9} | {'PyTorch':>9} {'again':>9} | {'Loadline':>9} "
          f"{'again':>9} {'':6} | products {'':10}")
    counts = {word: 0 for word in ("fewer", "same", "MORE", "alone")}
    in_products = dict(counts)
    low = loadline.plan(step.problem, "smallest", work_limit=work).budget_bytes
    high, last = kept.peak_bytes, 0

    def word(mine, other):
        return "fewer" if mine < other else "same" if mine == other else "MORE"

    for point in range(points):
        budget = high - (high - low) * point // (points - 1)
        plan = loadline.plan(step.problem, budget, work_limit=work)
        ours = step.run(plan)
        assert ours.ledger.peak_bytes == plan.peak_bytes <= budget
        assert same_bits(ours.values, reference.values)
        modules = ours.split.forward, ours.split.backward
        mine = flops_of(node_flops, *modules) - once
        my_products = flops_of(product_flops, *modules) - products
        within = [key for key in theirs if key[0] <= budget]
        left, right, by_all, by_products = "none", "", "alone", "alone"
        if within:
            peak, flops, _ = min(within, key=lambda key: (key[1], key[0]))
            their_products = min(key[2] for key in within) - products
            left = f"{peak:>9} {flops - once:>9}"
            right = f"{their_products:>9} {my_products:>9}"
            by_all = word(mine, flops - once)
            by_products = word(my_products, their_products)
        counts[by_all] += 1
        in_products[by_products] += 1
        faster = "" if plan.step_ns >= last else "FASTER"
        last = plan.step_ns
        print(f"{budget:9} | {left:>19} | {plan.peak_bytes:9} {mine:9} {by_all:6} | "
              f"{right:19} {by_products} {faster}", flush=True)
    print(f"{name}: {counts}, products alone {in_products}", flush=True)


def with_batch(name):
    """A model of hard_models.py as steps.py takes it. Batch norm with momentum=None reads a
    counter, which breaks the graph."""
    kind, make = HARD_MODELS[name]

    class Model(kind):
        batch = staticmethod(make)

        def __init__(self):
            super().__init__()
            for module in self.modules():
                if getattr(module, "momentum", 0) is None:
                    module.momentum = 0.1

    return Model


AT = (0.8, 0.6, 0.4, 0.2, 0.0)
WIDE = ("mlp", "gpt", "vit", "resnet18", "unet", "llama", "vae", "convnext")


def at_peaks(name):
    """Prints the lines of one model; how many times Loadline is behind in each column."""
    step = trace(name)
    nodes = step.problem["nodes"]
    times = {node["name"]: node["time_ns"] for node in nodes}
    once_ns = sum(times.values())
    products = flops_of(product_flops, step.module)
    kept = loadline.keep_everything(step.problem)
    reference = step.run(kept)
    step.machine = BY_FLOPS
    flops_problem = step.make_problem().document
    behind = [0, 0]
    for at in AT:
        theirs = step.run_pytorch(at)
        peak = theirs.ledger.peak_bytes
        their_ns = sum(times.get(node.name, 0) for module in theirs.split
                       for node in module.graph.nodes) - once_ns
        their_products = flops_of(product_flops, *theirs.split) - products
        plan = loadline.plan(step.problem, peak, effort="moderate")
        ours = step.run(plan)
        assert ours.ledger.peak_bytes == plan.peak_bytes <= peak
        assert same_bits(ours.values, reference.values)
        my_ns = plan.document["predicted"]["recompute_ns"]
        by_flops = step.run(loadline.plan(flops_problem, peak, effort="moderate"))
        assert by_flops.ledger.peak_bytes <= peak
        assert same_bits(by_flops.values, reference.values)
        my_products = flops_of(
            product_flops, by_flops.split.forward, by_flops.split.backward) - products
        behind[0] += my_ns > their_ns
        behind[1] += my_products > their_products
        print(f"| {name} | {at} | {100 * peak / kept.peak_bytes:.1f} % | "
              f"{100 * their_ns / once_ns:.1f} % | {100 * my_ns / once_ns:.1f} % | "
              f"{their_products:,} | {my_products:,} |", flush=True)
    return behind


def compare_at_peaks(names):
    MODELS.update(vae=with_batch("Vae"), convnext=with_batch("ConvNext"))
    print("| model | `activation_memory_budget` | peak | PyTorch, time | Loadline, time | "
          "PyTorch, products | Loadline, products |\n|---|--:|--:|--:|--:|--:|--:|")
    slower, more = map(sum, zip(*map(at_peaks, names)))
    print(f"more time at {slower}, more products at {more} of {len(names) * len(AT)}")


def main():
    if sys.argv[1:2] == ["--peaks"]:
        compare_at_peaks(sys.argv[2].split(",") if len(sys.argv) > 2 else WIDE)
        return
    names = sys.argv[1].split(",") if len(sys.argv) > 1 else list(MODELS)
    points = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    work = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    for name in names:
        compare(name, points, work)


if __name__ == "__main__":
    main()
