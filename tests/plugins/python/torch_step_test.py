"""A whole step under plans: the ledger shows what was planned, bit for bit the
same results."""
import os
import unittest

import torch

import loadline
from loadline import torch as lt
from models import MODELS
from random_programs import counts, random_program
from steps import eager_step, same_bits, trace

WORK = 20_000
RANDOM_PLANS = int(os.environ.get("LOADLINE_RANDOM_PLANS", 2))
BUDGETS = int(os.environ.get("LOADLINE_BUDGETS", 4))


def compiled(model, **options):
    torch._dynamo.reset()
    return torch.compile(model, backend=lt.backend, dynamic=False,
                         options={"inner": "aot_eager", "work_limit": WORK,
                                  **options})


class EveryModel(unittest.TestCase):
    """Of each kind: through torch.compile, then many plans of the traced step."""

    def test_compiled_steps_keep_their_budget_and_their_bits(self):
        for name in MODELS:
            torch.manual_seed(0)
            model, batch = MODELS[name](), MODELS[name].batch()
            state = {k: v.clone() for k, v in model.state_dict().items()}
            expected = eager_step(model, batch)
            for budget in ("100%", "85%"):
                with self.subTest(f"{name} {budget}"):
                    model.load_state_dict(state)
                    call = compiled(model, budget=budget)
                    model.zero_grad()
                    with lt.virtual_device() as ledger:
                        found = eager_step(model, batch, call)
                    planned = lt.planned[-1]
                    self.assertTrue(same_bits(expected, found))
                    self.assertEqual(ledger.surprises, {})
                    self.assertEqual(ledger.peak_bytes, planned.plan.peak_bytes)
                    self.assertLessEqual(ledger.peak_bytes,
                                         planned.plan.budget_bytes)

    def test_every_budget_is_kept_exactly(self):
        for name in MODELS:
            step = trace(name)
            kept = loadline.keep_everything(step.problem)
            expected = step.run(kept)
            self.assertEqual(expected.ledger.peak_bytes, kept.peak_bytes, name)
            smallest = loadline.plan(step.problem, "smallest", work_limit=WORK)
            low, high = smallest.budget_bytes, kept.peak_bytes
            last_ns = 0
            for part in range(BUDGETS):
                budget = high - (high - low) * part // (BUDGETS - 1)
                with self.subTest(f"{name} {budget} of {high}"):
                    plan = loadline.plan(step.problem, budget, work_limit=WORK)
                    found = step.run(plan)
                    self.assertEqual(found.ledger.peak_bytes, plan.peak_bytes)
                    self.assertLessEqual(found.ledger.peak_bytes, budget)
                    self.assertGreaterEqual(plan.step_ns, last_ns)
                    last_ns = plan.step_ns
                    self.assertTrue(same_bits(expected.values, found.values))

    def test_any_valid_program_gives_eagers_bits(self):
        for name in MODELS:
            step = trace(name)
            longest = 0
            for seed in range(RANDOM_PLANS):
                with self.subTest(f"{name} {seed}"):
                    found = step.run_program(
                        lambda traced, seed=seed: random_program(traced, seed))
                    longest = max(longest, counts(found.program)[2])
                    self.assertTrue(same_bits(step.eager, found.values))
            self.assertGreater(longest, len(step.problem["nodes"]), name)


if __name__ == "__main__":
    unittest.main()
