"""Values that go to the host and come back: peak, bytes and bits."""
import gc
import os
import random
import unittest

import torch

import loadline
from loadline import torch as lt
from loadline.torch.compat import torch_internals
from loadline.torch.problem.make_problem import make_problem
from loadline.torch.rewrite.copies import ARRIVE
from loadline.torch.rewrite.partitioner import copied_device
from loadline.torch.rewrite.program import Copy, Run, peak_bytes, program_of, starts
from loadline.torch.rewrite.split import split
from models import MODELS
from random_programs import counts, random_program
from steps import eager_step, same_bits, trace
from training import COPIES

WORK = 20_000
RANDOM_PLANS = int(os.environ.get("LOADLINE_RANDOM_PLANS", 2))
def makes(item):
    if isinstance(item, Run):
        return item.operation.makes
    return [item.value] if isinstance(item, Copy) and not item.out else []


class Offload(unittest.TestCase):
    def test_program_peak_is_the_plans_without_copies(self):
        for name in ("mlp", "resnet18", "unet"):
            step = trace(name)
            for budget in ("100%", "85%"):
                plan = loadline.plan(step.problem, budget, work_limit=WORK)
                self.assertEqual(peak_bytes(step.problem, plan.document),
                                 plan.peak_bytes)

    def test_every_budget_is_kept_exactly(self):
        for name in MODELS:
            step = trace(name, COPIES)
            copied = 0
            for percent in ("85%", "70%"):
                for recompute in (False, True):
                    with self.subTest(f"{name} {percent} {recompute}"):
                        try:
                            plan = loadline.plan(step.problem, percent,
                                                 recompute=recompute,
                                                 work_limit=WORK)
                        except loadline.Infeasible:
                            continue
                        found = step.run(plan)
                        predicted = plan.document["predicted"]
                        self.assertEqual(
                            found.ledger.peak_bytes,
                            peak_bytes(step.problem, plan.document))
                        self.assertLessEqual(found.ledger.peak_bytes,
                                             plan.budget_bytes)
                        self.assertEqual(found.split.slab.out_bytes,
                                         predicted["d2h_bytes"])
                        self.assertEqual(found.split.slab.in_bytes,
                                         predicted["h2d_bytes"])
                        self.assertTrue(same_bits(step.eager, found.values))
                        copied += predicted["d2h_bytes"]
            self.assertGreater(copied, 0, name)

    def test_any_plan_gives_eagers_bits(self):
        """Orders, reruns and copies out and back, as a random search ends."""
        for name in MODELS:
            step = trace(name, COPIES)
            kept = loadline.keep_everything(step.problem)
            smallest = loadline.plan(step.problem, "smallest",
                                     work_limit=WORK).budget_bytes
            copied = 0
            for seed in range(RANDOM_PLANS):
                with self.subTest(f"{name} {seed}"):
                    rng = random.Random(seed)
                    plan = loadline.plan(
                        step.problem, rng.randint(smallest, kept.peak_bytes),
                        work_limit=rng.choice((300, 3000, WORK)), seed=seed)
                    found = step.run(plan)
                    copied += found.split.slab.out_bytes
                    self.assertEqual(found.ledger.peak_bytes,
                                     peak_bytes(step.problem, plan.document))
                    self.assertTrue(same_bits(step.eager, found.values))
            self.assertGreater(copied, 0, name)

    def test_any_valid_program_gives_eagers_bits(self):
        """And as no search would end: values lost, made again, copied, at random."""
        for name in MODELS:
            step = trace(name, COPIES)
            out, back, runs = 0, 0, 0
            for seed in range(RANDOM_PLANS):
                with self.subTest(f"{name} {seed}"):
                    found = step.run_program(
                        lambda traced, seed=seed: random_program(traced, seed, True))
                    self.assertTrue(same_bits(step.eager, found.values))
                    more = counts(found.program)
                    out, back, runs = out + more[0], back + more[1], runs + more[2]
            self.assertGreater(min(out, back), 0, name)
            self.assertGreater(runs, RANDOM_PLANS * len(step.problem["nodes"]), name)

    def test_copies_out_begin_when_their_source_is_there(self):
        step = trace("gpt", COPIES)
        traced = step.make_problem()
        plan = loadline.plan(traced.document, "75%", recompute=False, work_limit=WORK)
        for program in (program_of(traced, plan.document),
                        *(random_program(traced, seed, True) for seed in range(5))):
            for items in program:
                begun = []
                for at, copies in sorted(starts(items).items()):
                    for copy in copies:
                        # Any earlier, and the source or the lane is not there.
                        before = items[:items.index(copy)]
                        made = max((k for k, item in enumerate(before)
                                    if copy.value in makes(item)), default=-1)
                        self.assertEqual(at, max([made, *(k for k, _ in begun)]))
                        begun.append((at, copy))
                self.assertEqual([copy for _, copy in begun],
                                 [i for i in items if isinstance(i, Copy) and i.out])

    def test_on_a_gpu_the_same_values_are_copied(self):
        """As far as a plan and its modules go: nothing runs."""
        step = trace("gpt", COPIES)
        traced = step.make_problem()
        joint, gpu = traced.joint, torch.device("cuda:0")
        with joint.primals[0].meta["val"].fake_mode:
            for node in joint.graph.nodes:
                if "val" in node.meta:
                    node.meta["val"] = torch_internals.pytree.tree_map_only(
                        torch.Tensor, lambda t: torch.empty_strided(
                            t.size(), t.stride(), dtype=t.dtype, device=gpu),
                        node.meta["val"])
        self.assertEqual(copied_device(joint), gpu)
        self.assertEqual(make_problem(joint, COPIES, copies=gpu).document, traced.document)
        self.assertNotEqual(make_problem(joint, COPIES).document, traced.document)
        plan = loadline.plan(traced.document, "75%", recompute=False, work_limit=WORK)
        parts = split(traced, program_of(traced, plan.document), None, **step.kwargs)
        self.assertEqual(parts.slab.device, gpu)
        arrivals = [node for node in parts.backward.graph.nodes
                    if node.target is ARRIVE]
        self.assertGreater(len(arrivals), 0)
        for node in arrivals:
            with node.meta["val"].fake_mode:
                self.assertEqual(ARRIVE(
                    torch.empty((), dtype=torch.int64), *node.args[1:]).device, gpu)

    def test_compiled_step_and_a_second_forward(self):
        torch.manual_seed(0)
        model, batch = MODELS["gpt_dropout"](), MODELS["gpt_dropout"].batch()
        expected = eager_step(model, batch)
        torch._dynamo.reset()
        call = torch.compile(
            model, backend=lt.backend, dynamic=False,
            options={"inner": "aot_eager", "budget": "75%", "machine": COPIES,
                     "work_limit": WORK, "recompute": False})
        model.zero_grad()
        with lt.virtual_device() as ledger:
            found = eager_step(model, batch, call)
        self.assertTrue(same_bits(expected, found))
        planned = lt.planned[-1]
        self.assertEqual(ledger.peak_bytes, planned.peak_bytes)
        self.assertGreater(planned.slab().out_bytes, 0)
        first = call(*batch)
        call(*batch)
        with self.assertRaisesRegex(RuntimeError, "second forward"):
            first.backward()

    def test_host_memory_goes_with_the_model(self):
        torch._dynamo.reset()
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        call, _ = lt.prepare(model, sample=batch, inner="aot_eager", budget="75%",
                             machine=COPIES, work_limit=WORK, recompute=False)
        call(*batch).backward()
        slab = lt.planned[-1].slab
        self.assertGreater(slab().memory.numel(), 0)
        memory = torch_internals.StorageWeakRef(slab().memory.untyped_storage())
        del model, call
        gc.collect()
        self.assertIsNone(slab().memory)
        self.assertTrue(memory.expired())
        torch._dynamo.reset()  # and with the compiled code, what is left
        gc.collect()
        self.assertIsNone(slab())


if __name__ == "__main__":
    unittest.main()
