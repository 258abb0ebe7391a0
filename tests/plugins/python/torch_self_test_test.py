"""The self-test at first use: it passes here, once, and sees what it must."""
import copy
import unittest
from unittest import mock

import torch

from loadline import torch as lt
from loadline.torch import private, self_test
from models import MODELS


def step():
    torch._dynamo.reset()
    model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
    torch.compile(model, backend=lt.backend, dynamic=False, options={
        "inner": "aot_eager", "budget": "90%", "work_limit": 1000})(*batch).backward()


class SelfTest(unittest.TestCase):
    def setUp(self):
        self_test._outcome.clear()
        self.addCleanup(self_test._outcome.clear)

    def refuses(self, word):
        with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as caught:
            step()
        self.assertIsInstance(caught.exception.inner_exception, lt.Unsupported)
        self.assertRegex(str(caught.exception.inner_exception), word)

    def test_passes_once_and_leaves_no_trace(self):
        count = len(lt.planned)
        step()
        self.assertEqual(self_test._outcome, [""])
        self.assertEqual(len(lt.planned), count + 1)
        with mock.patch.object(self_test, "_differences") as again:
            step()
        again.assert_not_called()

    def test_sees_a_partitioner_that_does_not_obey(self):
        from loadline.torch.compiler import Partitioner

        def own(self, module, inputs, **options):
            untagged = copy.deepcopy(module)
            Partitioner.partition(self, module, inputs, **options)
            return private.pytorch_partition(untagged, inputs, 1.0, **options)

        with mock.patch.object(Partitioner, "__call__", own):
            self.refuses("were planned")

    def test_sees_a_compiler_that_does_not_run_the_modules(self):
        with mock.patch.object(self_test, "run_eagerly", lambda module, _: (
                private.boxed_compiler(lambda a: module(*a)))):
            self.refuses("bytes where")

    def test_names_what_broke(self):
        with mock.patch.object(private, "partition_by_tags",
                               side_effect=TypeError("no such argument")):
            self.refuses("no such argument")


if __name__ == "__main__":
    unittest.main()
