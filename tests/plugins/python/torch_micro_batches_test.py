"""prepare(micro_batches=...): the batch in parts, and the same step."""
import contextlib
import importlib.util
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from loadline.torch.session import choose_structure as choose
from loadline.torch.solve.options import Options
from models import MODELS
from steps import eager_step
from torch_split_test import large_head, largest_error, trained
from training import COPIES, OPTIONS, states, train, wide_mlp


class Classifier(nn.Module):
    """Returns logits; the loss is the caller's."""

    def __init__(self, *layers, width=16, classes=12):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.GELU(), *layers)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.layers(x))


def classifier(*layers, rows=10):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Classifier(*layers)
    target = torch.randint(12, (rows,))
    target[:4] = -100  # so parts have different numbers of targets
    return model, (torch.randn(rows, 8), target)


def step_of(call, model, batch, factor=1.0):
    """Loss and gradients."""
    model.zero_grad()
    loss = call(*batch)
    (loss * factor).backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


def prepared(model, batch, parts, budget="1MiB", **options):
    return lt.prepare(model, sample=batch, budget=budget, micro_batches=parts,
                      **{**OPTIONS, **options})[0]


class Loss(unittest.TestCase):
    def check(self, loss_fn, parts=3, factor=1.0, **options):
        model, batch = classifier()
        expected = step_of(lambda x, y: loss_fn(model(x), y), model, batch, factor)
        call = prepared(model, batch, parts, loss_fn=loss_fn, **options)
        self.assertLess(largest_error(
            expected, step_of(call, model, batch, factor)), 1e-6)

    def test_is_that_of_the_whole_batch_at_every_number_of_parts(self):
        for parts in range(1, 8):
            with self.subTest(parts):
                self.check(F.cross_entropy, parts)

    def test_is_divided_as_pytorch_divides_it(self):
        weights = torch.rand(12)
        for number, loss_fn in enumerate((
                nn.CrossEntropyLoss(weights, label_smoothing=0.1),
                lambda y, t: F.cross_entropy(y, t, ignore_index=3 - 103, reduction="sum"),
                lambda y, t: F.mse_loss(y, t[:, None].float() * torch.ones(12)),
                lambda y, t: y.square().mean(),
                lambda y, t: y.square().sum())):
            with self.subTest(number):
                self.check(loss_fn, factor=3.0)

    def test_adds_up_several_terms_with_constant_factors(self):
        def in_place(y, t):
            loss = F.mse_loss(y, torch.ones_like(y))
            loss += 0.1 * y.abs().mean()
            return loss

        for name, loss_fn in (
                ("mean of a number", lambda y, t: F.cross_entropy(y, t).mean()),
                ("factor", lambda y, t: 0.5 * F.cross_entropy(y, t)),
                ("means", lambda y, t: F.mse_loss(y, torch.ones_like(y)) - 0.05 * torch.mean(
                    1 + y - y.pow(2) - y.exp())),
                ("means of unlike size", lambda y, t: (
                    y.abs().mean() / 3 + y.sum(1).square().mean()) * 2 + 1.5),
                ("sums", lambda y, t: F.cross_entropy(
                    y, t, reduction="sum") / 7 - y.square().sum()),
                ("in place", in_place)):
            with self.subTest(name):
                self.check(loss_fn)

    def test_divides_each_term_as_the_whole_batch_does(self):
        weights = torch.rand(12)
        for name, loss_fn in (
                ("ignored targets", lambda y, t: y.square().mean() + 0.1 * F.cross_entropy(y, t)),
                ("two cross entropies", lambda y, t: F.cross_entropy(y, t) - 0.5 *
                 F.cross_entropy(-y, t.clamp_min(0), ignore_index=7)),
                ("weights of classes", lambda y, t: F.cross_entropy(y, t, weights) * 2
                 + y.abs().mean() + 0.25),
                ("ignored from a mask", lambda y, t: F.cross_entropy(y, torch.where(
                    t > 0, t.clamp_min(0), -100)) + y.abs().mean()),
                ("a sum", lambda y, t: F.cross_entropy(y, t) + 0.01 * y.square().sum())):
            with self.subTest(name):
                self.check(loss_fn, 3 if "ignored" in name else 4, factor=2.0)

    def test_divides_terms_that_evaluation_does_not_have(self):
        class Auxiliary(Classifier):
            def forward(self, x, t):
                y = super().forward(x)
                loss = F.cross_entropy(y, t)
                return loss + y.square().mean() if self.training else loss

        _, batch = classifier()
        model = Auxiliary()
        expected = step_of(model, model, batch)
        call = prepared(model, batch, 3)
        self.assertLess(largest_error(expected, step_of(call, model, batch)), 1e-6)

    def test_divides_terms_beside_a_head_in_segments(self):
        class Regular(Classifier):
            def forward(self, x, t):
                hidden = self.layers(x)
                return F.cross_entropy(self.head(hidden), t) + hidden.square().mean()

        _, batch = classifier()
        model = Regular()
        expected = step_of(model, model, batch)
        call = prepared(model, batch, 3, split=2)
        self.assertLess(largest_error(expected, step_of(call, model, batch)), 1e-6)

    def test_divides_terms_beside_a_penalty_on_weights(self):
        model, batch = classifier()

        def loss_fn(y, t):
            return F.cross_entropy(y, t) + y.abs().mean() + 0.01 * sum(
                p.square().sum() for p in model.parameters())

        expected = step_of(lambda x, y: loss_fn(model(x), y), model, batch)
        call = prepared(model, batch, 3, loss_fn=loss_fn)
        self.assertLess(largest_error(expected, step_of(call, model, batch)), 1e-6)

    def test_counts_targets_of_other_batches_anew(self):
        def loss_fn(y, t):
            return y.square().mean() + F.cross_entropy(y, t)

        model, (x, target) = classifier()
        call = prepared(model, (x, target), 3, loss_fn=loss_fn)
        for rows in (10, 7, 4):
            for other in (target[:rows], target[:rows].clamp_min(0),
                          torch.full_like(target[:rows], -100)):
                batch = x[:rows], other
                expected = step_of(lambda x, y: loss_fn(model(x), y), model, batch)
                found = step_of(call, model, batch)
                if other.max() < 0:  # the mean of nothing
                    self.assertTrue(expected[0].isnan() and found[0].isnan())
                    expected, found = expected[1:], found[1:]
                self.assertLess(largest_error(expected, found), 1e-6)

    def test_counts_once_what_the_forward_does(self):
        """Targets are counted before the parts run."""
        class Counted(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.last = classifier()[0], None
                self.drop = nn.Dropout(0.5)
                self.register_buffer("steps", torch.zeros(()))

            def forward(self, x, t):
                self.steps += 1
                y = self.drop(self.body(x))
                self.last = y.detach()
                return {"loss": F.cross_entropy(y, t) + y.square().mean(), "logits": y}

        model, batch = Counted(), classifier()[1]
        call = prepared(model, batch, 2)

        def in_parts(x, t):
            torch.manual_seed(3)
            model.steps += 2
            outputs = [model.drop(model.body(x[at:at + 5])) for at in (0, 5)]
            y = torch.cat(outputs)
            return F.cross_entropy(y, t) + y.square().mean()

        expected = step_of(in_parts, model, batch)
        torch.manual_seed(3)
        found = step_of(lambda *b: call(*b)["loss"], model, batch)
        self.assertLess(largest_error(expected, found), 1e-6)
        self.assertEqual(int(model.steps), 4)
        self.assertEqual(model.last.shape, (5, 12))

    def test_refuses_ignored_targets_that_cannot_be_counted_before_the_parts(self):
        class Teacher(Classifier):
            """Targets come out of the model."""

            def forward(self, x, sure):
                y = super().forward(x)
                target = torch.where(sure, y.detach().argmax(-1), -100)
                return F.cross_entropy(y, target) + y.square().mean()

        torch.manual_seed(0)
        model, x = Teacher(), torch.randn(10, 8)
        sure = torch.ones(10, dtype=torch.bool)
        with self.assertWarnsRegex(loadline.LoadlineWarning, "linear"):
            call = prepared(model, (x, sure), 3)
        expected = step_of(model, model, (x, sure))
        self.assertLess(largest_error(expected, step_of(call, model, (x, sure))), 1e-6)
        model.zero_grad()
        sure[:4] = False
        with self.assertRaisesRegex(loadline.InvalidArgument, "4 targets of this batch"):
            call(x, sure)
        self.assertTrue(all(p.grad is None for p in model.parameters()))

    def test_counts_a_penalty_on_weights_once(self):
        for mean in (F.cross_entropy, lambda y, t: y.square().mean()):
            model, batch = classifier()

            def loss_fn(y, t, model=model, mean=mean):
                return mean(y, t) + 0.01 * sum(
                    p.square().sum() for p in model.parameters())

            expected = step_of(lambda x, y: loss_fn(model(x), y), model, batch)
            call = prepared(model, batch, 3, loss_fn=loss_fn)
            self.assertLess(largest_error(expected, step_of(call, model, batch)), 1e-6)

    def test_comes_from_a_head_in_segments_too(self):
        self.check(nn.CrossEntropyLoss(torch.rand(12)), split=2)
        self.check(F.cross_entropy, parts=1, split=3)

    def test_without_any_target_has_no_gradient(self):
        model, (x, target) = classifier()
        batch = x, torch.full_like(target, -100)
        call = prepared(model, (x, target), 3, loss_fn=F.cross_entropy)
        found = step_of(call, model, batch)
        self.assertTrue(found[0].isnan())
        self.assertEqual(max(float(g.abs().max()) for g in found[1:]), 0)

    def test_refuses_losses_that_it_cannot_add_up(self):
        for reason, loss_fn, error in (
                ("result of var", lambda y, t: y.square().mean() + y.var(), lt.Unsupported),
                ("weights of classes", lambda y, t: F.cross_entropy(
                    y, t, torch.rand(12)) + y.abs().mean(), lt.Unsupported),
                ("depend on each other", lambda y, t: F.cross_entropy(
                    y, t, reduction="sum") / y.shape[0], loadline.InvalidArgument),
                ("depend on each other", lambda y, t: y.square().mean() + torch.stack(
                    [y.mean(), y.max()]).mean(), loadline.InvalidArgument),
                # As a mixture of experts balances its load.
                ("depend on each other", lambda y, t: (
                    y.square().sum(1) + 0.002 * y.softmax(-1).mean(0).square().sum()).mean(),
                 loadline.InvalidArgument),
                ("depend on each other", lambda y, t: (y @ y.T).mean(),
                 loadline.InvalidArgument),
                ("depend on each other", lambda y, t: (y - y.mean(0)).square().mean(),
                 loadline.InvalidArgument)):
            with self.subTest(reason), self.assertRaisesRegex(error, reason):
                model, batch = classifier()
                prepared(model, batch, 2, loss_fn=loss_fn)


class Step(unittest.TestCase):
    def test_stays_inside_the_budget_as_a_whole(self):
        for name, parts, budget in (("gpt", 3, "100%"), ("gpt", 4, "50%"),
                                    ("unet", 2, "smallest")):
            with self.subTest(name, budget=budget):
                torch._dynamo.reset()
                torch.manual_seed(0)
                model, batch = MODELS[name](), MODELS[name].batch()
                expected = eager_step(model, batch)
                call = prepared(model, batch, parts, budget)
                graph = lt.planned[-1]
                with lt.virtual_device(whole_step=True) as ledger:
                    found = eager_step(model, batch, call)
                # Convolutions of parts add up in another order, which depends on
                # the processor: 1.02e-6 for the unet with AVX2.
                self.assertLess(largest_error(expected, found), 2e-6)
                self.assertEqual(ledger.surprises, {})
                self.assertLessEqual(ledger.peak_bytes, graph.plan.budget_bytes
                                     + graph.options.reserve_bytes)
                self.assertLessEqual(graph.measured_bytes, graph.peak_bytes)
                self.assertIn("micro-batches of", lt.report())

    def test_adds_to_gradients_that_exist(self):
        model, batch = classifier()
        step = step_of(lambda x, y: F.cross_entropy(model(x), y), model, batch)
        call = prepared(model, batch, 2, loss_fn=F.cross_entropy, accumulate=True)
        model.zero_grad()
        for _ in range(2):
            call(*batch).backward()
        self.assertLess(largest_error([2 * g for g in step[1:]],
                                      [p.grad for p in model.parameters()]), 1e-6)

    def test_draws_random_numbers_part_by_part(self):
        model, batch = classifier(nn.Dropout(0.5))
        call = prepared(model, batch, 2, loss_fn=F.cross_entropy)

        def in_parts(x, target):
            losses = [F.cross_entropy(model(x[at:at + 5]), target[at:at + 5],
                                      reduction="sum") for at in (0, 5)]
            return sum(losses) / (target != -100).sum()

        found = []
        for one in (in_parts, call):
            torch.manual_seed(7)
            found.append(step_of(one, model, batch))
        self.assertLess(largest_error(*found), 1e-6)

    def test_takes_batches_of_other_sizes(self):
        model, batch = classifier()
        call = prepared(model, batch, 2, loss_fn=F.cross_entropy)
        for rows in (10, 7, 5, 3):
            other = batch[0][-rows:], batch[1][-rows:]
            expected = step_of(lambda x, y: F.cross_entropy(model(x), y), model, other)
            self.assertLess(largest_error(expected, step_of(call, model, other)), 1e-6)

    def test_is_the_model_for_its_caller(self):
        model, batch = classifier()
        call = prepared(model, batch, 2, loss_fn=F.cross_entropy)
        self.assertEqual([*call.state_dict()], [*model.state_dict()])
        call.load_state_dict(model.state_dict())
        self.assertIs(call.head, model.head)
        call.eval()
        self.assertFalse(model.training)
        with torch.no_grad():
            torch.testing.assert_close(call(*batch),
                                       F.cross_entropy(model(batch[0]), batch[1]))

    def test_refuses_batch_statistics_unless_allowed(self):
        model, batch = classifier(nn.BatchNorm1d(16))
        with self.assertRaisesRegex(lt.Unsupported, "batch norm in training mode"):
            prepared(model, batch, 2, loss_fn=F.cross_entropy)
        torch._dynamo.reset()
        call = prepared(model, batch, 2, loss_fn=F.cross_entropy,
                        allow_micro_batch_statistics=True)
        call(*batch).backward()
        model, batch = classifier(nn.BatchNorm1d(16))
        prepared(model.eval(), batch, 2, loss_fn=F.cross_entropy)

    def test_names_what_it_cannot_do(self):
        model, (x, target) = classifier()
        for reason, change in (
                ("micro_batches=0", {"parts": 0}), ("micro_batches=True", {"parts": True}),
                ("has 10 examples", {"parts": 11}),
                ("rows", {"batch": (x, target[:5])}),
                ("requires a gradient", {"batch": (x.clone().requires_grad_(), target)}),
                ("give sample=", {"batch": {"x": x}}),
                ("must return its loss", {"loss_fn": None, "batch": ({"x": x}, target)})):
            with self.subTest(reason), self.assertRaises(Exception) as caught:
                prepared(model, change.pop("batch", (x, target)), change.pop("parts", 2),
                         **{"loss_fn": F.cross_entropy, **change})
            if reason != "must return its loss":
                self.assertIsInstance(caught.exception, loadline.InvalidArgument)
                self.assertRegex(str(caught.exception), reason)
        with self.assertRaisesRegex(loadline.InvalidArgument, "step_fn"):
            prepared(model, (x, target), 2, step_fn=lambda call: None)
        with self.assertRaisesRegex(lt.Unsupported, "float16"), torch.autocast(
                "cpu", torch.float16):
            prepared(model, (x, target), 2, loss_fn=F.cross_entropy)

    def test_refuses_what_would_see_gradients_of_parts(self):
        model, batch = classifier()
        call = prepared(model, batch, 2, loss_fn=F.cross_entropy)
        loss = call(*batch)
        loss.backward(retain_graph=True)
        with self.assertRaisesRegex(loadline.LoadlineError, "second backward"):
            loss.backward()
        with self.assertRaisesRegex(loadline.LoadlineError, "create_graph"):
            call(*batch).backward(create_graph=True)
        model.head.weight.register_hook(lambda gradient: gradient)
        with self.assertRaisesRegex(lt.Unsupported, "hook"):
            call(*batch)


    def test_moves_optimizer_state_to_the_host_as_one_piece_does(self):
        def made():
            model, batch = wide_mlp()
            return model, torch.optim.AdamW(model.parameters()), batch

        model, optimizer, batch = made()
        expected = train(model, optimizer, batch)
        state = states(optimizer)
        model, optimizer, batch = made()
        call, optimizer = lt.prepare(model, optimizer, sample=batch, budget="smallest",
                                     micro_batches=4, machine=COPIES, **OPTIONS)
        graph = lt.planned[-1]
        self.assertTrue(graph.moves.moved)
        with lt.virtual_device(whole_step=True) as ledger:
            found = train(call, optimizer, batch)
        self.assertLess(largest_error(expected, found), 1e-6)
        self.assertLess(largest_error(state, states(optimizer)), 1e-5)
        self.assertLessEqual(ledger.peak_bytes, graph.plan.budget_bytes
                             + graph.options.reserve_bytes)

    def test_runs_through_inductor(self):
        model, batch = classifier()
        expected = step_of(lambda x, y: F.cross_entropy(model(x), y), model, batch)
        call, _ = lt.prepare(model, sample=batch, budget="1MiB", micro_batches=3, split=2,
                             loss_fn=F.cross_entropy, work_limit=20_000)
        self.assertLess(largest_error(expected, step_of(call, model, batch)), 2e-6)

    def test_leaves_no_trace_of_its_preparation(self):
        model, batch = classifier(nn.BatchNorm1d(16), nn.Dropout(0.5))
        before = [tensor.clone() for tensor in model.state_dict().values()]
        generator = torch.get_rng_state()
        prepared(model, batch, "auto", loss_fn=F.cross_entropy,
                 allow_micro_batch_statistics=True)
        self.assertTrue(torch.equal(generator, torch.get_rng_state()))
        self.assertTrue(all(map(torch.equal, before, model.state_dict().values())))
        self.assertTrue(all(module.training for module in model.modules()))
        self.assertTrue(all(p.grad is None for p in model.parameters()))

    def test_refuses_trained_tensors_outside_of_the_model(self):
        scale = torch.ones(12, requires_grad=True)
        model, batch = classifier()
        with self.assertRaisesRegex(lt.Unsupported, r"tensor \(12,\)"):
            prepared(model, batch, 2, loss_fn=lambda y, t: F.cross_entropy(y * scale, t))(
                *batch)

    def test_refuses_a_graph_break(self):
        def broken(output, target):
            torch._dynamo.graph_break()
            return F.cross_entropy(output, target)

        model, batch = classifier()
        with self.assertRaisesRegex(lt.Unsupported, "as one graph"):
            prepared(model, batch, 2, loss_fn=broken)


class Auto(unittest.TestCase):
    def test_takes_the_fastest_that_fits(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, batch = MODELS["gpt"](), MODELS["gpt"].batch()
        options = Options.read(OPTIONS | {"budget": "100%"}, torch.device("cpu"))
        search = choose.StructureSearch(
            model, batch, options, sum(p.numel() * 4 for p in model.parameters()))
        for budget in (920_000, 560_000, 460_000):
            chosen, plan = search.choose("auto", budget)
            times = []
            for parts in (1, 2, 4):
                structure = search.structure(parts, 1)
                with contextlib.suppress(loadline.Infeasible):
                    times.append(search.step_ns(structure, search.plan(structure, budget)))
            self.assertEqual(search.step_ns(chosen, plan), min(times))

    def test_fits_where_one_piece_does_not(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, batch = MODELS["gpt"](), tuple(
            torch.randint(64, (32, 32)) for _ in range(2))
        expected = eager_step(model, batch)
        with self.assertRaises(loadline.Infeasible):
            prepared(model, batch, 1, 900_000)
        call = prepared(model, batch, "auto", 900_000)
        with lt.virtual_device(whole_step=True) as ledger:
            found = eager_step(model, batch, call)
        self.assertLess(largest_error(expected, found), 2e-6)
        self.assertLessEqual(ledger.peak_bytes, 900_000)
        self.assertIn("micro-batches", lt.report())


@unittest.skipUnless(importlib.util.find_spec("transformers"),
                     "no transformers; tools/dev/setup/torch installs it")
class CausalLanguageModel(unittest.TestCase):
    def test_trains_the_same_with_both_structures(self):
        for tied, budget in ((False, "50%"), (True, "smallest")):
            expected, weights = trained(*large_head(tied=tied))
            model, optimizer, batch = large_head(tied=tied)
            call, optimizer = lt.prepare(
                model, optimizer, sample=batch, budget=budget, micro_batches=3, split=4,
                **OPTIONS)
            graph = lt.planned[-1]
            whole = (graph.plan.budget_bytes if budget == "smallest" else int(
                graph.options.budget) - graph.options.reserve_bytes
                     ) + graph.options.reserve_bytes
            with lt.virtual_device(whole_step=True) as ledger:
                losses, found = trained(call, optimizer, batch)
            self.assertLess(largest_error(expected, losses), 1e-6)
            self.assertLess(largest_error(weights, found), 1e-4)
            self.assertLessEqual(ledger.peak_bytes, whole)

    def test_trains_under_autocast(self):
        expected, _ = trained(*large_head(), autocast=True)
        model, optimizer, batch = large_head()
        with torch.autocast("cpu", torch.bfloat16):
            call, optimizer = lt.prepare(model, optimizer, sample=batch, budget="60%",
                                         micro_batches=4, split=2, **OPTIONS)
        losses, _ = trained(call, optimizer, batch, autocast=True)
        self.assertLess(largest_error(expected, losses), 1e-3)


if __name__ == "__main__":
    unittest.main()
