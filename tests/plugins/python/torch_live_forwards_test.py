"""One forward and one backward at a time: what takes more is warned of or refused."""
import unittest
import warnings

import torch
import torch.utils.checkpoint

import loadline
from loadline import torch as lt
from loadline.torch.session.live_forwards import watch
from loadline.torch.session.session import session_of_model
from models import MODELS
from training import COPIES, OPTIONS


class LiveForwards(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.model, self.batch = MODELS["mlp"](), MODELS["mlp"].batch()

    def prepare(self, **options):
        call, _ = lt.prepare(self.model, sample=self.batch, **{
            "budget": "70%", **OPTIONS, **options})
        return call

    def test_two_are_warned_of_once(self):
        call = self.prepare()
        budget = lt.planned[-1].plan.budget_bytes
        with lt.virtual_device() as ledger, self.assertWarnsRegex(
                loadline.LoadlineWarning, "2 forwards.*above the budget.*step_fn"):
            first = call(*self.batch)
            (first + call(*self.batch)).backward()
        self.assertGreater(ledger.peak_bytes, budget)  # so the warning is right
        del first
        self.model.zero_grad()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (call(*self.batch) + call(*self.batch)).backward()
        with self.assertWarnsRegex(loadline.LoadlineWarning, "3 forwards"):
            (call(*self.batch) + call(*self.batch) + call(*self.batch)).backward()

    def test_of_usual_loops_are_none(self):
        call = self.prepare()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(3):
                loss = call(*self.batch)  # the last loss is alive meanwhile
                loss.backward()
                self.model.zero_grad()
            with torch.no_grad():
                kept = [call(*self.batch) for _ in range(3)]
            for _ in range(3):  # a forward that is thrown away has no memory
                call(*self.batch)
            call(*self.batch).backward()
        self.assertEqual(len(kept), 3)

    def test_that_a_step_fn_measured_are_planned(self):
        def step(call):
            (call(*self.batch) + call(*self.batch)).backward()

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call = self.prepare(step_fn=step, budget="4MiB")
            with lt.virtual_device(whole_step=True) as ledger:
                step(call)
        self.assertLessEqual(ledger.peak_bytes, 4 << 20)

    def test_of_several_sizes_in_a_step_fn_have_a_share_of_the_budget_each(self):
        def step(call):
            sum(call(self.batch[0][:size]) for size in (512, 125, 126, 127, 128)).backward()

        call = self.prepare(step_fn=step)
        prepared = session_of_model(self.model).prepared
        whole = sum(graph.keep_everything_bytes for graph in prepared.graphs)
        self.assertEqual(len(prepared.graphs), 5)
        self.assertLessEqual(sum(graph.plan.budget_bytes for graph in prepared.graphs),
                             whole * 7 // 10)
        with warnings.catch_warnings(), lt.virtual_device(whole_step=True) as ledger:
            warnings.simplefilter("error")
            step(call)
        self.assertLessEqual(ledger.peak_bytes, whole * 7 // 10)
        # Beside the others, another size may take more.
        with self.assertWarnsRegex(loadline.LoadlineWarning,
                                   "another size.*had 5 graphs.*above it.*every size"):
            call(self.batch[0][:300]).backward()

    def test_with_copies_are_refused(self):
        call = self.prepare(machine=COPIES, recompute=False)
        with self.assertWarns(loadline.LoadlineWarning):
            both = call(*self.batch) + call(*self.batch)
        with self.assertRaisesRegex(RuntimeError, "second forward.*offload=False"):
            both.backward()

    def test_a_second_backward_of_one_is_refused_by_name(self):
        call = self.prepare()
        for retained in (
                lambda: call(*self.batch).backward(retain_graph=True),
                lambda: torch.autograd.grad(
                    call(*self.batch), self.model.layers[0].weight, create_graph=True)):
            with self.assertRaisesRegex(
                    loadline.LoadlineError, "retain_graph.*one backward"):
                retained()
        call(*self.batch).backward()

    def test_through_hooks_on_saved_tensors_are_warned_of_once(self):
        call = self.prepare()
        budget = lt.planned[-1].plan.budget_bytes

        def step(pack):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
                call(*self.batch).backward()
            self.model.zero_grad()

        with lt.virtual_device(whole_step=True) as ledger, self.assertWarnsRegex(
                loadline.LoadlineWarning, "hooks.*above the budget"):
            step(torch.clone)
        self.assertGreater(ledger.peak_bytes, budget)  # so the warning is right
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step(torch.clone)
            call = self.prepare()  # not of a checkpoint of PyTorch's, which keeps nothing
            with lt.virtual_device(whole_step=True) as ledger:
                torch.utils.checkpoint.checkpoint(
                    call, *self.batch, use_reentrant=False).backward()
        self.assertLessEqual(ledger.peak_bytes, budget)

    def test_a_compile_without_prepare_is_watched_too(self):
        call = torch.compile(self.model, backend=lt.backend, dynamic=False,
                             options={"budget": "70%", **OPTIONS})
        with self.assertWarnsRegex(loadline.LoadlineWarning, "2 forwards"):
            (call(*self.batch) + call(*self.batch)).backward()
        with self.assertRaisesRegex(loadline.LoadlineError, "retain_graph"):
            call(*self.batch).backward(retain_graph=True)


class Trained(unittest.TestCase):
    def test_parameters_that_change_without_another_compile_are_an_error(self):
        """PyTorch before 2.12 calls the same compiled graph."""
        weight, x = torch.nn.Parameter(torch.ones(2)), torch.ones(2)
        call = watch(lambda w, x: (w * x,), lambda: None, 0)
        for _ in range(2):
            call(weight, x)
        weight.requires_grad_(False)
        with torch.no_grad():
            call(weight, x)
        with self.assertRaisesRegex(loadline.LoadlineError, "frozen.*prepare the model again"):
            call(weight, x)
        weight.requires_grad_(True)
        call(weight, x)


if __name__ == "__main__":
    unittest.main()
