"""What depends on a state runs again: random operators draw what they drew, the same
bits, every byte counted, and running statistics are updated once."""
import unittest

import torch

import loadline
from loadline import torch as lt
from loadline.torch.pose import Snapshot
from loadline.torch.program import Run, program_of
from models import MODELS
from steps import eager_step, same_bits, trace

WORK = 20_000


def forward_twice(posed):
    """Each run of the forward part that may be made again is, right behind it."""
    forward, backward = program_of(
        posed, loadline.keep_everything(posed.document).document)
    twice = []
    for item in forward:
        twice.append(item)
        if isinstance(item, Run) and item.operation.repeatable and (
                not item.operation.random or Snapshot(item.operation) in twice):
            twice.append(item)
    return twice, backward


class Random(unittest.TestCase):
    def test_a_plan_may_run_them_again(self):
        step = trace("gpt_dropout")
        kept = loadline.keep_everything(step.problem)
        expected = step.run(kept)
        smallest = loadline.plan(step.problem, "smallest", work_limit=WORK)
        random = {n["id"] for n, o in zip(step.problem["nodes"], step.posed.operations)
                  if getattr(o, "random", False)}
        self.assertTrue(any(smallest.sequence.count(n) > 1 for n in random))
        for plan in (kept, smallest):
            found = step.run(plan)
            self.assertEqual(found.ledger.peak_bytes, plan.peak_bytes)
            self.assertTrue(same_bits(expected.values, found.values))

    def test_a_run_whose_result_nobody_reads_moves_the_generator(self):
        step = trace("gpt_dropout")
        self.assertTrue(same_bits(
            step.eager, step.run_program(forward_twice).values))

    def test_compiled_steps_have_eagers_bits_and_leave_the_generator_as_it_does(self):
        torch.manual_seed(0)
        model, batch = MODELS["gpt_dropout"](), MODELS["gpt_dropout"].batch()
        expected = [*eager_step(model, batch), torch.rand(3)]
        torch._dynamo.reset()
        call = torch.compile(model, backend=lt.backend, dynamic=False, options={
            "inner": "aot_eager", "budget": "75%", "work_limit": WORK})
        model.zero_grad()
        with lt.virtual_device() as ledger:
            found = [*eager_step(model, batch, call), torch.rand(3)]
        graph = lt.planned[-1]
        again = {o.name for i, o in enumerate(graph.posed.operations)
                 if getattr(o, "random", False) and graph.plan.sequence.count(i) > 1}
        self.assertGreater(len(again), 0)
        self.assertTrue(same_bits(expected, found))
        self.assertEqual(ledger.peak_bytes, graph.peak_bytes)


class Statistics(unittest.TestCase):
    def test_batch_norm_may_run_again_before_they_are_updated(self):
        step = trace("resnet18")
        self.assertTrue(same_bits(
            step.eager, step.run_program(forward_twice).values))


if __name__ == "__main__":
    unittest.main()
