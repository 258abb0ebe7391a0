"""Outputs beside the loss have no gradient, and a backward through one is refused."""
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from loadline.torch.session.session import session_of_model
from steps import same_bits
from training import OPTIONS

WORDS, ROWS = 2000, 256
LOGITS_BYTES = WORDS * ROWS * 4


class Words(nn.Module):
    """Classifies rows. what: the outputs, by name, in their order; the loss alone if one."""

    def __init__(self, *what):
        super().__init__()
        self.what = what
        self.layers = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, WORDS)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x, target):
        hidden = self.layers(x)
        logits = self.head(hidden)
        found = {"loss": F.cross_entropy(logits, target) if "loss" in self.what else None,
                 "logits": logits, "hidden": hidden, "scale": self.scale.exp(),
                 "view": logits.view(-1, 1, WORDS), "count": target.sum(), "input": x}
        return tuple(found[one] for one in self.what) if len(self.what) > 1 else (
            found[self.what[0]])


class NextWord(Words):
    def forward(self, x, target):
        return dict(zip(self.what, super().forward(x, target)))


def trained(call, model, batch, loss_of, steps=2):
    """Losses, then gradients of the last step, then weights."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(call(*batch))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(p.grad.clone() for p in model.parameters() if p.grad is not None),
            *(p.detach().clone() for p in model.parameters())]


class DetachOutputs(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.batch = torch.randn(ROWS, 32), torch.randint(WORDS, (ROWS,))

    def made(self, *what, of=Words):
        torch._dynamo.reset()
        torch.manual_seed(1)
        return of(*what)

    def prepared(self, model, budget="100%", **options):
        call, _ = lt.prepare(model, None, sample=self.batch, budget=budget,
                             **{**OPTIONS, **options})
        return call, session_of_model(model).prepared

    def check_bits(self, what, loss_of, of=Words, budget="smallest", **options):
        """Against PyTorch's own compiler, and the ledger against the plan."""
        expected = self.made(*what, of=of)
        own = trained(torch.compile(expected, backend="aot_eager"), expected, self.batch,
                      loss_of)
        model = self.made(*what, of=of)
        call, prepared = self.prepared(model, budget, **options)
        if "step_fn" not in options:
            self.assertEqual(prepared.measured_bytes, prepared.graphs[0].peak_bytes)
        self.assertTrue(same_bits(own, trained(call, model, self.batch, loss_of)), what)

    def check_gradient(self, call, model, parameter, loss_of=lambda loss: loss):
        """Of one parameter, against the model that runs eagerly."""
        found = []
        for run in (call, model):
            model.zero_grad()
            loss_of(run(*self.batch)).backward()
            found.append(parameter.grad.clone())
        torch.testing.assert_close(*found)

    def test_logits_beside_a_loss_take_their_bytes_once(self):
        peaks = {}
        for what in (("loss",), ("loss", "logits")):
            _, prepared = self.prepared(self.made(*what))
            peaks[what] = prepared.graphs[0].peak_bytes
            self.assertEqual(prepared.measured_bytes, peaks[what])
            self.assertEqual(what == ("loss", "logits"),
                             "outputs beside the loss that have no backward: 1" in lt.report())
        _, prepared = self.prepared(self.made("loss", "logits"), detach_outputs=False)
        self.assertNotIn("no backward", lt.report())
        more = peaks["loss", "logits"] - peaks["loss",]
        self.assertLessEqual(more, LOGITS_BYTES)
        self.assertGreaterEqual(
            prepared.graphs[0].peak_bytes - peaks["loss",], more + LOGITS_BYTES)

    def test_training_has_the_bits_of_pytorch(self):
        first, second = lambda output: output[0], lambda output: output[1]
        for what, loss_of in ((("loss", "logits"), first), (("logits", "loss"), second),
                              (("hidden", "loss", "view", "count", "input"), second)):
            with self.subTest(what):
                self.check_bits(what, loss_of)
        self.check_bits(("loss", "logits", "hidden"), lambda output: output["loss"], NextWord,
                        "100%")

    def test_outputs_have_their_values_and_can_be_written_to(self):
        model = self.made("loss", "logits")
        call, _ = self.prepared(model)
        _, logits = call(*self.batch)
        self.assertTrue(torch.equal(logits, model(*self.batch)[1]))
        self.assertTrue(torch.equal(logits.clamp_(0).detach(),
                                    model(*self.batch)[1].detach().clamp(0)))

    def test_a_backward_through_a_detached_output_is_refused(self):
        call, _ = self.prepared(self.made("loss", "logits"))
        loss, logits = call(*self.batch)
        with self.assertRaisesRegex(
                loadline.LoadlineError, r"output of shape \(256, 2000\), which is detached .*"
                "pass prepare that loss as loss_fn .* detach_outputs=False"):
            (loss + logits.square().mean()).backward()

    def test_so_is_one_to_some_parameters(self):
        model = self.made("loss", "logits")
        call, _ = self.prepared(model)
        loss, logits = call(*self.batch)
        with self.assertRaisesRegex(loadline.LoadlineError, "which is detached"):
            torch.autograd.grad(loss + logits.square().mean(), [model.layers[0].weight])

    def test_a_gradient_of_zeros_needs_no_backward(self):
        model = self.made("loss", "logits")
        call, _ = self.prepared(model)
        loss, logits = call(*self.batch)
        (loss + 0 * logits.sum()).backward()
        found = [p.grad.clone() for p in model.layers.parameters()]
        model.zero_grad()
        model(*self.batch)[0].backward()
        self.assertTrue(same_bits(found, [p.grad for p in model.layers.parameters()]))

    def test_switched_off_every_output_has_its_gradient(self):
        def both(output):
            return output[0] + output[1].square().mean()

        self.check_bits(("loss", "logits"), both,
                        step_fn=lambda call: both(call(*self.batch)).backward())
        model = self.made("loss", "logits")
        call, _ = self.prepared(model, detach_outputs=False)
        for parameter in model.head.parameters():
            self.check_gradient(call, model, parameter, both)

    def test_an_output_that_the_scalar_does_not_cover_keeps_its_gradient(self):
        """As of a contrastive model, whose loss is its caller's."""
        model = self.made("logits", "scale")
        call, _ = self.prepared(model)
        logits, scale = call(*self.batch)
        (logits * scale).mean().backward()
        self.assertIsNotNone(model.head.weight.grad)

    def test_a_part_of_a_model_keeps_the_gradients_of_its_outputs(self):
        class Broken(Words):
            def forward(self, x, target):
                loss, logits = super().forward(x, target)
                torch._dynamo.graph_break()
                return loss + logits.square().mean()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", loadline.LoadlineWarning)  # of the graph break
            model = self.made("loss", "logits", of=Broken)
            call, _ = self.prepared(model)
            self.check_gradient(call, model, model.head.weight)

    def test_what_follows_a_graph_break_keeps_the_gradients_of_its_outputs(self):
        """As of a Trainer's head that returns losses and what each word adds to them."""
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(8, 8)

            def forward(self, x, target):
                torch._dynamo.graph_break()
                rows = self.linear(x).square()
                return rows.mean(), rows

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.head = nn.Linear(32, 8), Head()

            def forward(self, x, target):
                mean, rows = self.head(self.linear(x), target)
                return mean + rows.sigmoid().mean()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", loadline.LoadlineWarning)  # of the graph break
            model = self.made(of=Model)
            call, _ = self.prepared(model)
            self.check_gradient(call, model, model.linear.weight)

    def test_the_whole_batch_in_parts_is_trained(self):
        model = self.made("loss", "logits", of=NextWord)
        call, _ = self.prepared(model, micro_batches=2)
        self.check_gradient(call, model, model.head.weight, lambda output: output["loss"])

    def test_an_evaluation_returns_plain_outputs(self):
        model = self.made("loss", "logits")
        call, _ = self.prepared(model)
        with torch.no_grad():
            _, logits = call(*self.batch)
        self.assertFalse(logits.requires_grad)

    def test_compile_in_place_detaches_only_if_asked(self):
        for detaches in (False, True):
            model = self.made("loss", "logits")
            lt.compile_in_place(model, "100%", detach_outputs=detaches, **OPTIONS)
            _, logits = model(*self.batch)
            if detaches:
                with self.assertRaisesRegex(loadline.LoadlineError, "which is detached"):
                    logits.mean().backward()
            else:
                logits.mean().backward()
                self.assertIsNotNone(model.head.weight.grad)

    def test_an_estimate_is_what_prepare_plans(self):
        estimate = lt.estimate(self.made("loss", "logits"), sample=self.batch,
                               machine="rtx-4090", budgets=["100%", "smallest"], **OPTIONS)
        for row, budget in zip(estimate.rows, ("100%", "smallest")):
            _, prepared = self.prepared(self.made("loss", "logits"), budget,
                                        machine="rtx-4090")
            self.assertEqual(row.plan.peak_bytes, prepared.graphs[0].peak_bytes)

    def test_a_language_model_of_transformers(self):
        import transformers
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2))  # returns a cache too
        tokens = torch.randint(WORDS, (2, 64))
        batch = transformers.BatchEncoding({"input_ids": tokens, "labels": tokens})
        call, _ = lt.prepare(model, None, sample=batch, budget="95%", **OPTIONS)
        output = call(**batch)
        output.loss.backward()
        found = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        for one, parameter in zip(found, model.parameters()):
            torch.testing.assert_close(one, parameter.grad)
        with self.assertRaisesRegex(loadline.LoadlineError, r"\(2, 64, 2000\), which is det"):
            call(input_ids=tokens, labels=tokens).logits.sum().backward()


if __name__ == "__main__":
    unittest.main()
