"""estimate(micro_batches=..., split=...): the structures that prepare takes."""
import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import torch
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from loadline.torch.problem.cost_model import NOMINAL
from models import MODELS
from torch_estimate_test import ADAMW, CONFIG, MACHINE, on_meta
from torch_micro_batches_test import classifier
from training import OPTIONS


class Structures(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def test_have_the_peaks_and_times_of_prepare(self):
        batch = MODELS["gpt"].batch()
        for structure in ({"micro_batches": 3}, {"split": 3},
                          {"micro_batches": 4, "split": 2}):
            for budget in ("80%", "smallest"):
                with self.subTest(structure, budget=budget):
                    found = lt.estimate(on_meta(MODELS["gpt"]), torch.optim.AdamW,
                                        sample=batch, budgets=[budget], machine=MACHINE,
                                        **structure, **OPTIONS)
                    model = MODELS["gpt"]()
                    lt.prepare(model, ADAMW(model.parameters()), sample=batch,
                               budget=budget, machine=found.machine, **structure,
                               **OPTIONS)
                    graph = lt.planned[-1]
                    row, = found.rows
                    self.assertEqual(row.problem, graph.problem)
                    self.assertEqual(row.plan.json, graph.plan.json)
                    self.assertEqual(
                        row.peak_bytes, graph.plan.peak_bytes
                        + graph.options.reserve_bytes)
                    self.assertLessEqual(row.peak_bytes, row.budget_bytes)

    def test_are_chosen_for_each_budget(self):
        batch = tuple(torch.randint(64, (32, 32)) for _ in range(2))
        budgets = ["100%", 900_000]
        arguments = {"sample": batch, "budgets": budgets, "machine": NOMINAL, **OPTIONS}
        found = lt.estimate(MODELS["gpt"](), micro_batches="auto", **arguments)
        self.assertEqual(found.rows[0].structure.parts, 1)
        self.assertGreater(found.rows[1].structure.parts, 1)
        self.assertLessEqual(found.rows[1].peak_bytes, 900_000)
        self.assertIn("micro-batches of", str(found).splitlines()[-1])
        self.assertNotIn("micro-batches", str(found).splitlines()[-2])
        plain = lt.estimate(MODELS["gpt"](), **arguments)
        self.assertIsNone(plain.rows[1].plan)
        self.assertEqual(found.rows[0].step_ns, plain.rows[0].step_ns)

    def test_take_a_loss_with_its_target(self):
        model, batch = classifier(rows=16)
        found = lt.estimate(model, torch.optim.SGD, F.cross_entropy, sample=batch,
                            budgets=["1MiB"], micro_batches=4, split=2, machine=NOMINAL,
                            **OPTIONS)
        self.assertEqual(str(found.rows[0].structure),
                         "4 micro-batches of 4 examples, the head in 2 segments")
        with self.assertRaisesRegex(loadline.InvalidArgument, "micro_batches=0"):
            lt.estimate(model, sample=batch, micro_batches=0)

    def test_are_flags_of_the_command(self):
        try:
            import transformers  # noqa: F401
        except ImportError:
            self.skipTest("the package transformers is not installed")
        from loadline.torch.session.estimate_command import run
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "config.json"
            config.write_text(json.dumps(CONFIG))
            with contextlib.redirect_stdout(io.StringIO()) as out:
                found = run(["--config", str(config), "--sequence", "32", "--batch", "4",
                             "--budget", "80GiB", "--micro-batches", "2", "--split", "4"])
        self.assertEqual((found.rows[0].structure.parts, found.rows[0].structure.split),
                         (2, 4))
        self.assertIn("2 micro-batches of 2 examples, the head in 4 segments",
                      out.getvalue())


if __name__ == "__main__":
    unittest.main()
