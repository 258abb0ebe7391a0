"""The full tier's self-test at first use: it passes here, once, and sees what it
must."""
import copy
import unittest
from unittest import mock

import torch

from loadline import torch as lt
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.fallback import self_test
from models import MODELS
from steps import recorded


def step():
    torch._dynamo.reset()
    model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
    torch.compile(model, backend=lt.backend, dynamic=False, options={
        "inner": "aot_eager", "budget": "90%", "work_limit": 1000})(*batch).backward()


class SelfTest(unittest.TestCase):
    def setUp(self):
        tiers._chosen.clear()
        self.addCleanup(tiers._chosen.clear)

    def refuses(self, word):
        with mock.patch.object(tiers, "_chosen", []):
            with self.assertWarnsRegex(UserWarning, f"full: .*{word}"):
                step()
            self.assertNotEqual(tiers._chosen, ["full"])

    def test_passes_once_and_leaves_no_trace(self):
        with recorded() as graphs:
            step()
        self.assertEqual(tiers._chosen, ["full"])
        self.assertEqual(len(graphs), 1)
        with mock.patch.object(self_test, "check_full") as again:
            step()
        again.assert_not_called()

    def test_sees_a_partitioner_that_does_not_obey(self):
        from loadline.torch.rewrite.partitioner import Partitioner

        def own(self, module, inputs, **options):
            untagged = copy.deepcopy(module)
            Partitioner.partition(self, module, inputs, **options)
            return torch_internals.pytorch_partition(untagged, inputs, 1.0, **options)

        with mock.patch.object(Partitioner, "__call__", own):
            self.refuses("were planned")

    def test_sees_a_compiler_that_does_not_run_the_modules(self):
        with mock.patch.object(self_test, "run_eagerly", lambda module, _: (
                torch_internals.boxed_compiler(lambda a: module(*a)))):
            self.refuses("bytes where")

    def test_names_what_broke(self):
        with mock.patch.object(torch_internals, "partition_by_tags",
                               side_effect=TypeError("no such argument")):
            self.refuses("no such argument")


if __name__ == "__main__":
    unittest.main()
