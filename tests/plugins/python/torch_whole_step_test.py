"""The whole training step stays within the budget: forward, loss, backward and optimizer."""
import copy
import unittest
import warnings

import torch
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.session.session import session_of_model
from models import MODELS
from training import COPIES, OPTIONS


def made(name="mlp", **optimizer):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = MODELS[name]()
    return model, torch.optim.AdamW(model.parameters(), **optimizer), MODELS[name].batch()


def measured_steps(call, optimizer, batch, loss_fn=lambda loss: loss, steps=3):
    """The ledger of everything that a training loop computes, and the losses."""
    losses = []
    with lt.virtual_device(whole_step=True) as ledger:
        for _ in range(steps):
            optimizer.zero_grad()
            output = call(*batch)
            loss = loss_fn(output)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().clone())
    return ledger, losses


def smallest(*arguments, **options):
    """The smallest budget that prepare's error names."""
    try:
        lt.prepare(*arguments, budget=1, **options)
    except loadline.Infeasible as error:
        return error.smallest_met_bytes
    raise AssertionError("one byte is enough")


class Optimizer(unittest.TestCase):
    def test_what_its_step_allocates_is_in_the_plan(self):
        """Few activations, so that foreach's temporaries are the peak."""
        for options in ({"foreach": True}, {"foreach": True, "amsgrad": True}, {}):
            with self.subTest(str(options)):
                model, optimizer, _ = made(**options)
                batch = (torch.randn(16, 64),)
                least = smallest(model, optimizer, sample=batch, **OPTIONS)
                model, optimizer, _ = made(**options)
                call, _ = lt.prepare(model, optimizer, sample=batch, budget=least,
                                     **OPTIONS)
                ledger, _ = measured_steps(call, optimizer, batch)
                self.assertLessEqual(ledger.peak_bytes, least)
                if options:  # nothing is left over where the step is the peak
                    self.assertGreater(ledger.peak_bytes, 0.97 * least)
                self.assertIn("the optimizer's step takes", lt.report())

    def test_updates_by_bucket_where_that_takes_less(self):
        model, optimizer, _ = made(foreach=True)
        batch = (torch.randn(16, 64),)
        _, expected = measured_steps(model, optimizer, batch)
        model, optimizer, _ = made(foreach=True)
        at_once = smallest(model, optimizer, sample=batch, **OPTIONS)
        found = {}
        for share in (1.5, 0.95):
            model, optimizer, _ = made(foreach=True)
            budget = int(share * at_once)
            call, _ = lt.prepare(model, optimizer, sample=batch, budget=budget,
                                 machine=COPIES, **OPTIONS)
            ledger, losses = measured_steps(call, optimizer, batch)
            self.assertTrue(all(map(torch.equal, expected, losses)))
            self.assertLessEqual(ledger.peak_bytes, budget)
            found[share] = bool(lt.planned[-1].moves.updated)
        self.assertEqual(found, {1.5: False, 0.95: True})


class Headless(torch.nn.Module):
    """Returns logits, as most models do."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 512))

    def forward(self, x):
        return {"logits": self.layers(x)}


class Loss(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.model, self.x = Headless(), torch.randn(256, 16)
        self.targets = torch.randint(512, (256,))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def loss(self, output):
        return F.cross_entropy(output["logits"].float() * 2, self.targets)

    def prepare(self, **options):
        least = smallest(self.model, self.optimizer, sample=self.x, **options, **OPTIONS)
        torch._dynamo.reset()
        call, _ = lt.prepare(self.model, self.optimizer, sample=self.x, budget=least,
                             **options, **OPTIONS)
        ledger, losses = measured_steps(call, self.optimizer, (self.x,), self.loss)
        return least, ledger, losses

    def test_outside_of_the_model_is_in_the_plan(self):
        without, ledger, expected = self.prepare()
        self.assertGreater(ledger.peak_bytes, without)
        self.setUp()
        least, ledger, losses = self.prepare(loss_fn=self.loss)
        self.assertTrue(all(map(torch.equal, expected, losses)))
        self.assertLessEqual(ledger.peak_bytes, least)
        self.assertGreater(ledger.peak_bytes, 0.97 * least)
        self.assertGreater(session_of_model(self.model).prepared.loss_bytes,
                           2 * 256 * 512 * 4)

    def test_may_write_to_the_output(self):
        def loss(output):
            return F.cross_entropy(output["logits"].mul_(2), self.targets)

        torch.manual_seed(1)
        model = copy.deepcopy(self.model)
        _, expected = measured_steps(
            model, torch.optim.SGD(model.parameters(), lr=0.1), (self.x,), loss)
        self.loss = loss
        least, ledger, losses = self.prepare(loss_fn=loss)
        self.assertTrue(all(map(torch.equal, expected, losses)))
        self.assertLessEqual(ledger.peak_bytes, least)

    def test_holds_parameters_and_gradients_of_its_own(self):
        """Such as the weights of classes in a metric loss, or a penalty on weights."""
        class Classes(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Linear(512, 1000)

            def forward(self, output):
                logits = self.weight(output["logits"])
                return F.cross_entropy(logits, torch.arange(len(logits)))

        def penalized(output):
            return output["logits"].square().mean() + sum(
                one.square().sum() for one in model.parameters())

        for name, loss in (("classes", Classes()), ("penalty", penalized)):
            with self.subTest(name):
                torch._dynamo.reset()
                torch.manual_seed(0)
                model, x = Headless(), torch.randn(16, 16)
                trained = [*model.parameters(), *getattr(loss, "parameters", list)()]
                optimizer = torch.optim.SGD(trained, lr=0.1)
                call, _ = lt.prepare(model, optimizer, sample=x, loss_fn=loss,
                                     budget="100%", **OPTIONS)
                graph, = session_of_model(model).graphs
                ledger, _ = measured_steps(call, optimizer, (x,), loss)
                counted = graph.plan.budget_bytes + graph.options.reserve_bytes
                self.assertLessEqual(ledger.peak_bytes, counted)
                self.assertGreater(ledger.peak_bytes, 0.95 * counted)
                found = lt.estimate(model, optimizer, loss, sample=x, machine=NOMINAL,
                                    budgets=["100%"], **OPTIONS)
                self.assertEqual(found.rows[0].budget_bytes, counted)

    def test_in_a_step_of_the_callers_own(self):
        def step(call):
            self.loss(call(self.x)).backward()

        least = smallest(self.model, self.optimizer, sample=self.x, **OPTIONS)
        for _ in range(3):
            torch._dynamo.reset()
            try:
                call, _ = lt.prepare(self.model, self.optimizer, sample=self.x,
                                     budget=least, step_fn=step, **OPTIONS)
                break
            except loadline.Infeasible as error:  # with what was measured
                self.assertGreater(error.smallest_met_bytes, least)
                least = error.smallest_met_bytes
        with lt.virtual_device(whole_step=True) as ledger:
            for _ in range(3):
                self.optimizer.zero_grad()
                step(call)
                self.optimizer.step()
        self.assertLessEqual(ledger.peak_bytes, least)

    def test_mistakes_are_named(self):
        for options, words in (
                ({"loss_fn": lambda output: 3.0}, "scalar tensor"),
                ({"loss_fn": lambda output: output["logits"]}, "scalar tensor"),
                ({"loss_fn": self.loss, "step_fn": self.loss}, "loss_fn or step_fn")):
            with self.assertRaisesRegex(loadline.InvalidArgument, words):
                lt.prepare(self.model, self.optimizer, sample=self.x, budget="100%",
                           **options, **OPTIONS)


class Gru(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = torch.nn.GRUCell(32, 64), torch.nn.Linear(64, 8)

    def forward(self, x):
        state = torch.zeros(x.shape[1], 64)
        for time in range(x.shape[0]):
            state = self.cell(x[time], state)
        return self.head(state).square().mean()


class Autocast(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[
            layer for _ in range(4) for layer in (
                torch.nn.Linear(64, 64), torch.nn.LayerNorm(64), torch.nn.GELU())])

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.layers(x)
        return y.float().square().mean()


class Recommender(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = torch.nn.Embedding(200, 32), torch.nn.EmbeddingBag(
            300, 32, mode="mean")
        self.towers = torch.nn.ModuleList(torch.nn.Sequential(
            torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32))
            for _ in range(2))

    def forward(self, users, items):
        a, b = (F.normalize(tower(x), dim=-1) for tower, x in zip(
            self.towers, (self.users(users), self.items(items))))
        return F.cross_entropy(a @ b.T / 0.1, torch.arange(len(users)))


class Peaks(unittest.TestCase):
    """No measured peak is above the budget, and the smallest one that is named is met."""

    MODELS = {
        "gru": (Gru, lambda: (torch.randn(12, 16, 32),)),
        "autocast": (Autocast, lambda: (torch.randn(256, 64),)),
        "recommender": (Recommender, lambda: (
            torch.randint(200, (64,)), torch.randint(300, (64, 5))))}

    def prepare(self, kind, batch, budget):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = kind()
        optimizer = torch.optim.AdamW(model.parameters())
        call, _ = lt.prepare(model, optimizer, sample=batch, budget=budget, **OPTIONS)
        return model, call, optimizer

    def test_are_within_every_budget(self):
        for name, (kind, make) in self.MODELS.items():
            batch = make()
            with self.assertRaises(loadline.Infeasible) as caught:
                self.prepare(kind, batch, 1)
            least = caught.exception.smallest_met_bytes
            model, _, _ = self.prepare(kind, batch, "100%")
            prepared = session_of_model(model).prepared
            whole = prepared.graphs[0].keep_everything_bytes + prepared.optimizer_bytes
            middle = f"{50 * (least + whole) / whole:.2f}%"
            for budget in ("100%", middle, least):
                with self.subTest(name, budget=budget), warnings.catch_warnings():
                    warnings.simplefilter("error", loadline.LoadlineWarning)
                    model, call, optimizer = self.prepare(kind, batch, budget)
                    prepared = session_of_model(model).prepared
                    graph, = prepared.graphs
                    if isinstance(budget, str):
                        # 100 % is the step's peak with everything kept, as it was traced.
                        granted = loadline.parse_budget(budget, graph.keep_everything_bytes
                                                        + prepared.optimizer_bytes)
                    else:
                        granted = budget
                    self.assertLessEqual(
                        prepared.measured_bytes + prepared.optimizer_bytes, granted)
                    ledger, _ = measured_steps(call, optimizer, batch)
                    self.assertLessEqual(ledger.peak_bytes, granted)


if __name__ == "__main__":
    unittest.main()
