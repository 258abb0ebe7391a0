"""Measured times: taken once, kept on disk, and what the planner is told."""
import json
import os
import tempfile
import unittest
from unittest import mock

import torch

from loadline import LoadlineWarning
from loadline import torch as lt
from loadline.torch.problem import measure
from loadline.torch.problem.joint import Operation
from models import MODELS
from steps import eager_step, same_bits


class Measure(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patch = mock.patch.dict(os.environ, {"LOADLINE_CACHE": folder.name})
        patch.start()
        self.addCleanup(patch.stop)

    def step(self, name):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, batch = MODELS[name](), MODELS[name].batch()
        expected = eager_step(model, batch)
        torch.manual_seed(0)
        model = MODELS[name]()
        call = torch.compile(model, backend=lt.backend, dynamic=False, options={
            "inner": "aot_eager", "budget": "85%", "work_limit": 20_000,
            "measure": True})
        self.assertTrue(same_bits(expected, eager_step(model, batch, call)))
        return lt.planned[-1]

    def test_times_are_taken_once_and_reach_the_plan(self):
        with mock.patch.object(measure, "_time_ns", return_value=12_345) as timed:
            graph = self.step("gpt_dropout")
        count = timed.call_count
        self.assertGreater(count, 10)
        times = [n["time_ns"] for n in graph.problem["nodes"]]
        self.assertLess(count, times.count(12_345))  # equal operators: once
        kept = [n for n, o in zip(graph.problem["nodes"], graph.traced.operations)
                if isinstance(o, Operation) and o.ordered]  # dropout's: not run
        self.assertGreater(len(kept), 0)
        self.assertNotIn(12_345, [n["time_ns"] for n in kept])
        with mock.patch.object(measure, "_time_ns") as timed:
            again = self.step("gpt_dropout")
        timed.assert_not_called()
        self.assertEqual(graph.plan.json, again.plan.json)

    def test_operators_of_every_model_can_be_measured(self):
        for name in ("gpt", "unet"):
            with mock.patch.object(measure, "_time_ns",
                                   wraps=measure._time_ns) as timed:
                graph = self.step(name)
            path, = measure.folder().glob("*.json")
            self.assertGreater(timed.call_count, 0)
            signatures = {measure._signature(o.node)
                          for o in graph.traced.operations
                          if isinstance(o, Operation)
                          and not o.ordered and not o.updates}
            self.assertEqual(signatures - measure._read(path).keys(), set(), name)

    def test_a_cache_that_cannot_be_written_is_a_warning(self):
        with tempfile.NamedTemporaryFile() as file, mock.patch.dict(
                os.environ, {"LOADLINE_CACHE": file.name}), self.assertWarnsRegex(
                    LoadlineWarning, f"could not be kept.*{file.name}"):
            self.step("mlp")

    def test_half_a_file_is_measured_anew(self):
        self.step("mlp")
        path, = measure.folder().glob("*.json")
        whole = path.read_text()
        path.write_text(whole[:len(whole) // 2])
        self.step("mlp")
        self.assertEqual(measure._read(path).keys(), json.loads(whole).keys())


if __name__ == "__main__":
    unittest.main()
