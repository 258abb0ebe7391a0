"""prepare(split=...): the head of a traced model in segments of rows."""
import importlib.util
import os
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from loadline.torch.structure.linear_cross_entropy import linear_cross_entropy
from loadline.torch.structure.split_head import split_head
from models import MODELS
from steps import eager_step
from training import OPTIONS


def largest_error(expected, found):
    return max(float((e - f).norm() / (e.norm() + 1e-30))
               for e, f in zip(expected, found))


def large_head(words=4000, tied=False, dtype=torch.float32):
    """A causal language model whose logits are most of its activations."""
    import transformers
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=words, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, use_cache=False,
        tie_word_embeddings=tied)).to(dtype)
    tokens = torch.randint(words, (8, 64), generator=torch.Generator().manual_seed(1))
    labels = tokens.clone()
    labels[:, :5] = -100
    return model, torch.optim.AdamW(model.parameters()), {
        "input_ids": tokens, "labels": labels}


def trained(model, optimizer, batch, steps=3, autocast=False):
    """Losses, then weights."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, [p.detach().clone() for p in model.parameters()]


LOGITS = torch.zeros(6, 12)


class Wrapped(nn.Module):
    """A linear layer, something, and a loss."""

    def __init__(self, loss, bias=True, words=12):
        super().__init__()
        self.head = nn.Linear(8, words, bias=bias)
        self.loss = loss

    def forward(self, hidden, target):
        return self.loss(self.head(hidden), target)


def traced(loss, hidden=(6, 8), target=(6,), **arguments):
    """The rewritten graph of a model with this loss, its model and its batch."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Wrapped(loss, **arguments)
    batch = torch.randn(*hidden), torch.randint(12, target)
    found = []

    def keep(gm, inputs):
        found.append(split_head(gm, 2))
        found.append(gm)
        return gm.forward

    call = torch.compile(model, backend=keep, fullgraph=True, dynamic=False)
    return call, model, batch, found


class Graph(unittest.TestCase):
    def check(self, loss, heads=1, **arguments):
        call, model, batch, found = traced(loss, **arguments)
        step = eager_step(model, batch, call)
        self.assertEqual(found[0], heads)
        targets = [node.target for node in found[1].graph.nodes]
        self.assertEqual(targets.count(linear_cross_entropy), heads)
        self.assertEqual(F.cross_entropy in targets, False)
        self.assertLess(largest_error(eager_step(model, batch), step), 1e-6)

    def test_finds_the_head_behind_what_keeps_rows(self):
        tokens = {"hidden": (3, 4, 8), "target": (3, 4)}

        def shifted(logits, target):
            logits = logits[..., :-1, :].contiguous()
            return F.cross_entropy(logits.view(-1, 12), target[..., 1:].reshape(-1))

        self.check(F.cross_entropy)
        self.check(F.cross_entropy, bias=False)
        self.check(shifted, **tokens)
        self.check(lambda y, t: F.cross_entropy(y.float().flatten(0, 1), t.flatten()),
                   **tokens)
        self.check(lambda y, t: F.cross_entropy(y.transpose(1, 2), t), **tokens)
        self.check(lambda y, t: F.cross_entropy(y[:, -1], t), hidden=(6, 3, 8))
        self.check(lambda y, t: F.cross_entropy(
            y, t, ignore_index=3, reduction="sum", label_smoothing=0.1))
        self.check(nn.CrossEntropyLoss(torch.arange(1.0, 13.0), label_smoothing=0.2))
        self.check(lambda y, t: 2 * F.cross_entropy(y, t) + 1)

    def test_refuses_what_it_cannot_be_certain_of(self):
        tokens = {"hidden": (3, 4, 8), "target": (3, 4)}
        for reason, loss, shapes in (
                ("tanh", lambda y, t: F.cross_entropy(y.tanh(), t), {}),
                ("mul", lambda y, t: F.cross_entropy(y * 0.5, t), {}),
                ("getitem", lambda y, t: F.cross_entropy(y[:, :8], t % 8), {}),
                ("getitem", lambda y, t: F.cross_entropy(y[t], t), {}),
                ("to ", lambda y, t: F.cross_entropy(y.to(torch.bfloat16), t), {}),
                ("reduction='none'",
                 lambda y, t: F.cross_entropy(y, t, reduction="none").mean(), {}),
                ("needs the logits", lambda y, t: F.cross_entropy(y, t) + y.mean(), {}),
                ("needs the logits", lambda y, t: F.cross_entropy(y, t)
                 + F.cross_entropy(y, (t + 1) % 12), {}),
                ("probabilities", lambda y, t: F.cross_entropy(
                    y, F.one_hot(t, 12).float()), {}),
                ("not the last dimension", lambda y, t: F.cross_entropy(
                    y.reshape(3, 12, 4), t), tokens),
                ("linear layer is outside",
                 lambda y, t: F.cross_entropy(LOGITS, t) + y.mean(), {})):
            with self.subTest(reason):
                call, _, batch, _ = traced(loss, **shapes)
                with self.assertRaisesRegex(Exception, reason) as caught:
                    call(*batch)
                cause = getattr(caught.exception, "inner_exception", caught.exception)
                self.assertIsInstance(cause, lt.Unsupported)

    def test_leaves_a_graph_without_a_cross_entropy(self):
        self.check(lambda y, t: F.mse_loss(y, F.one_hot(t, 12).float()), heads=0)


class Prepare(unittest.TestCase):
    def test_plans_the_bytes_of_segments_exactly(self):
        for name, split in (("gpt_dropout", 3), ("llama", 7), ("vit", "auto")):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, batch = MODELS[name](), MODELS[name].batch()
            expected = eager_step(model, batch)
            between = ["70%"] if "LOADLINE_BUDGETS" in os.environ else []
            for budget in ("100%", *between, "smallest"):
                with self.subTest(name, budget=budget):
                    call, _ = lt.prepare(model, sample=batch, budget=budget, split=split,
                                         **OPTIONS)
                    graph = lt.planned[-1]
                    with lt.virtual_device() as ledger:
                        found = eager_step(model, batch, call)
                    self.assertLess(largest_error(expected, found), 1e-6)
                    self.assertEqual(ledger.peak_bytes, graph.peak_bytes)
                    self.assertEqual(ledger.surprises, {})
                    self.assertLessEqual(graph.peak_bytes, graph.plan.budget_bytes)

    def test_runs_through_inductor(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, batch = MODELS["gpt"](), MODELS["gpt"].batch()
        expected = eager_step(model, batch)
        call, _ = lt.prepare(model, sample=batch, budget="80%", split=3, work_limit=20_000)
        self.assertLess(largest_error(expected, eager_step(model, batch, call)), 2e-6)

    def test_refuses_a_model_without_a_head(self):
        torch._dynamo.reset()
        with self.assertRaisesRegex(lt.Unsupported, "no cross entropy"):
            lt.prepare(MODELS["mlp"](), sample=MODELS["mlp"].batch(), budget="80%",
                       split=2, **OPTIONS)

    def test_a_call_without_target_is_refused_and_training_goes_on(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 40))
        batch = torch.randn(12, 8), torch.randint(40, (12,))
        expected = F.cross_entropy(model(batch[0]), batch[1])
        call, _ = lt.prepare(model, sample=batch, budget="100%", split=3,
                             loss_fn=F.cross_entropy, **OPTIONS)
        with self.assertRaisesRegex(loadline.InvalidArgument, "your own model"):
            call(batch[0])
        with torch.no_grad(), self.assertRaises(loadline.InvalidArgument):
            call(batch[0])
        loss = call(*batch)
        loss.backward()
        torch.testing.assert_close(loss, expected)

    def test_names_a_wrong_number(self):
        for split in (0, -1, True, 1.5, "many"):
            with self.assertRaisesRegex(loadline.InvalidArgument, "split="):
                lt.prepare(MODELS["mlp"](), sample=MODELS["mlp"].batch(), budget="80%",
                           split=split, **OPTIONS)


@unittest.skipUnless(importlib.util.find_spec("transformers"),
                     "no transformers; tools/dev/setup/torch installs it")
class CausalLanguageModel(unittest.TestCase):
    def test_trains_the_same_where_whole_logits_do_not_fit(self):
        for tied in (False, True):
            expected, weights = trained(*large_head(tied=tied))
            model, optimizer, batch = large_head(tied=tied)
            with self.assertRaises(loadline.Infeasible) as caught:
                lt.prepare(model, optimizer, sample=batch, budget="10KiB", **OPTIONS)
            least = caught.exception.smallest_met_bytes
            budget = int(0.6 * least)
            with self.assertRaises(loadline.Infeasible):
                lt.prepare(model, optimizer, sample=batch, budget=budget, **OPTIONS)
            model, optimizer, batch = large_head(tied=tied)
            call, optimizer = lt.prepare(model, optimizer, sample=batch, budget=budget,
                                         split=8, **OPTIONS)
            graph = lt.planned[-1]
            with lt.virtual_device(whole_step=True) as ledger:
                losses, found = trained(call, optimizer, batch)
            self.assertLess(largest_error(expected, losses), 1e-6)
            self.assertLess(largest_error(weights, found), 1e-4)
            self.assertLessEqual(ledger.peak_bytes, budget)
            self.assertEqual(graph.measured_bytes, graph.peak_bytes)

    def test_trains_under_autocast(self):
        expected, _ = trained(*large_head(), autocast=True)
        model, optimizer, batch = large_head()
        with torch.autocast("cpu", torch.bfloat16):
            call, optimizer = lt.prepare(model, optimizer, sample=batch, budget="100%",
                                         split=4, **OPTIONS)
        with lt.virtual_device() as ledger:
            losses, _ = trained(call, optimizer, batch, steps=1, autocast=True)
        self.assertLess(largest_error(expected[:1], losses), 1e-3)
        self.assertEqual(ledger.peak_bytes, lt.planned[-1].peak_bytes)

    def test_returns_logits_in_an_evaluation_only(self):
        model, optimizer, batch = large_head(words=64)
        batch = {name: value % 64 if name == "input_ids" else value.clamp_max(63)
                 for name, value in batch.items()}
        call, _ = lt.prepare(model, optimizer, sample=batch, budget="100%", split=4,
                             **OPTIONS)
        self.assertIsNone(call(**batch).logits)
        with torch.no_grad():
            self.assertEqual(call(**batch).logits.shape, (8, 64, 64))

    def test_refuses_heads_that_change_the_logits(self):
        import transformers
        torch._dynamo.reset()
        model = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
            vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
            num_attention_heads=4, num_key_value_heads=2, head_dim=8, use_cache=False,
            attn_implementation="eager"))
        tokens = torch.randint(64, (2, 8))
        with self.assertRaisesRegex(lt.Unsupported, "cross entropy is mul"):
            lt.prepare(model, sample={"input_ids": tokens, "labels": tokens},
                       budget="100%", split=2, **OPTIONS)


class Compile(unittest.TestCase):
    def test_warns_of_a_graph_without_a_head(self):
        torch._dynamo.reset()
        call = torch.compile(MODELS["mlp"](), backend=lt.backend, dynamic=False,
                             options={"budget": "90%", "split": 2, **OPTIONS})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(*MODELS["mlp"].batch())
        self.assertTrue(any("no cross entropy" in str(w.message) for w in caught))


if __name__ == "__main__":
    unittest.main()
