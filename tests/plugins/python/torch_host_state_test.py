"""Optimizer state on the host: the plan's share, its bytes, the same bits."""
import copy
import dataclasses
import unittest

import torch

import loadline
from loadline import torch as lt
from loadline.torch.host_state import HostState
from loadline.torch.lanes import Lanes
from loadline.torch.optimizer import buckets_of, foretell
from loadline.torch.partitioner import with_state_resident
from loadline.torch.prepare import attached_to
from models import MODELS
from steps import same_bits
from torch_offload_test import COPIES

OPTIONS = {"inner": "aot_eager", "work_limit": 20_000}


def wide_mlp():
    """More state than activations."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = MODELS["mlp"]()
    return model, (torch.randn(16, 64),)


def train(call, optimizer, batch, steps=3, scheduler=None):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = call(*batch)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.detach().clone())
    return losses


def states(optimizer):
    return [t.clone() for _, s in sorted(optimizer.state_dict()["state"].items())
            for t in s.values() if isinstance(t, torch.Tensor)]


class Prepare(unittest.TestCase):
    def prepare(self, budget, make=torch.optim.AdamW):
        model, batch = wide_mlp()
        optimizer = make(model.parameters())
        call, _ = lt.prepare(model, optimizer, sample=batch, budget=budget,
                             machine=COPIES, **OPTIONS)
        return model, call, optimizer, batch

    def test_the_plan_decides_the_share_and_every_byte_is_counted(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        expected = train(model, optimizer, batch)
        before, hosted = states(optimizer), []
        for budget in ("100%", "85%", "70%", "60%"):
            with self.subTest(budget):
                model, call, optimizer, batch = self.prepare(budget)
                graph = lt.planned[-1]
                moved = sum(graph.options.state[k].bytes for k in graph.hosted)
                hosted.append(moved)
                self.assertEqual(moved + graph.resident_state_bytes,
                                 foretell(optimizer).bytes)
                with lt.virtual_device() as ledger:
                    found = train(call, optimizer, batch)
                self.assertTrue(same_bits(expected, found))
                self.assertTrue(same_bits(before, states(optimizer)))
                self.assertEqual(graph.measured_bytes, graph.peak_bytes)
                self.assertLessEqual(max(graph.peak_bytes, graph.update_peak_bytes),
                                     graph.plan.budget_bytes)
                state = attached_to(optimizer)
                self.assertEqual(state is not None, moved > 0)
                if moved:
                    # From the second step on the state that stays is watched too.
                    self.assertEqual(ledger.peak_bytes, max(
                        graph.peak_bytes, graph.update_peak_bytes))
                    self.assertEqual(state.out_bytes, 3 * moved)
                    self.assertEqual(state.in_bytes, 2 * moved)  # the first makes it
                    self.assertEqual(state.device_bytes, 0)
                    self.assertIn("on the host in", lt.report())
        self.assertEqual(hosted[0], 0)
        self.assertEqual(hosted, sorted(hosted))
        self.assertGreater(hosted[-1], hosted[1])

    def test_state_stays_where_that_is_faster(self):
        # Copies of state hide behind nothing: dear here, beside what else there is.
        slow = dataclasses.replace(COPIES, d2h_bytes_per_s=1e8, h2d_bytes_per_s=1e8)
        hosted = []
        for budget in ("90%", "80%", "70%", "smallest of activations"):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, batch = MODELS["mlp"](), (torch.randn(64, 64),)
            optimizer = torch.optim.AdamW(model.parameters())
            if budget.startswith("smallest"):  # too little with all state there
                budget = lt.planned[-1].keep_everything_bytes // 2
            lt.prepare(model, optimizer, sample=batch, budget=budget, machine=slow,
                       **OPTIONS)
            graph = lt.planned[-1]
            hosted.append(len(graph.hosted))
            resident = with_state_resident(graph.posed).document
            try:
                plan = loadline.plan(resident, graph.plan.budget_bytes,
                                     work_limit=OPTIONS["work_limit"])
            except loadline.Infeasible:
                self.assertGreater(hosted[-1], 0)
                continue
            moved = sum(graph.options.state[k].bytes for k in graph.hosted)
            self.assertLessEqual(
                graph.plan.document["predicted"]["step_ns"] + 2 * moved * 1e9 / 1e8,
                plan.document["predicted"]["step_ns"])
        self.assertEqual(hosted[0], 0)
        self.assertGreater(hosted[-1], 0)

    def test_a_state_dict_goes_on_where_it_was_saved(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        train(model, optimizer, batch)
        halfway = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        expected = train(model, optimizer, batch)
        model, call, optimizer, batch = self.prepare("60%")
        model.load_state_dict(halfway[0])
        optimizer.load_state_dict(halfway[1])
        self.assertTrue(same_bits(expected, train(call, optimizer, batch)))

    def test_of_an_optimizer_that_has_state_already(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        expected = train(model, optimizer, batch, 4)
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        found = train(model, optimizer, batch, 2)
        for _ in range(2):  # prepared twice: the second plan holds
            call, _ = lt.prepare(model, optimizer, sample=batch, budget="60%",
                                 machine=COPIES, **OPTIONS)
        self.assertTrue(same_bits(
            expected, found + train(call, optimizer, batch, 2)))


class InPlace(unittest.TestCase):
    def test_the_plan_of_the_first_step_decides(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        expected = train(model, optimizer, batch)
        before = states(optimizer)
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        lt.compile_in_place(model, "60%", optimizers=[optimizer], host_state=True,
                            machine=COPIES, **OPTIONS)
        self.assertIsNone(attached_to(optimizer))
        with lt.virtual_device() as ledger:
            found = train(model, optimizer, batch)
        graph = lt.planned[-1]
        self.assertTrue(same_bits(expected, found))
        self.assertTrue(same_bits(before, states(optimizer)))
        self.assertEqual(attached_to(optimizer).hosted, {
            p for k in graph.hosted for p in attached_to(optimizer).buckets[k].parameters})
        self.assertGreater(len(graph.hosted), 0)
        self.assertEqual(ledger.peak_bytes,
                         max(graph.peak_bytes, graph.update_peak_bytes))
        optimizer.step(None)  # as some programs write it


class AnyOptimizer(unittest.TestCase):
    def test_in_groups_with_a_schedule_gives_the_same_bits(self):
        for kind, options in ((torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
                              (torch.optim.Adam, {"amsgrad": True}),
                              (torch.optim.AdamW, {"foreach": True}),
                              (torch.optim.AdamW, {"fused": True}),
                              (torch.optim.RMSprop, {}), (torch.optim.NAdam, {})):
            with self.subTest(f"{kind.__name__} {options}"):
                def steps(hosted):
                    model, batch = wide_mlp()
                    parameters = list(model.parameters())
                    optimizer = kind([{"params": parameters[:5]},
                                      {"params": parameters[5:], "weight_decay": 0.1}],
                                     **options)
                    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
                    if hosted:
                        foretold = foretell(optimizer)
                        self.assertTrue(foretold.apart)
                        buckets = buckets_of(optimizer, foretold)
                        self.assertEqual(sum(b.state_bytes for b in buckets),
                                         foretold.bytes)
                        tail = [(action, k) for k in range(1, len(buckets))
                                for action in ("load", "update", "store")]
                        state = HostState(optimizer, buckets, Lanes())
                        state.follow(tail)
                    losses = train(model, optimizer, batch, 4, scheduler)
                    if hosted:
                        self.assertEqual(state.peak_device_bytes, max(
                            b.state_bytes for b in buckets[1:]))
                    return [*losses, *states(optimizer)]

                self.assertTrue(same_bits(steps(False), steps(True)))

    def test_that_keeps_more_than_state_by_parameter_is_left_alone(self):
        model, _ = wide_mlp()

        class Counts(torch.optim.SGD):
            steps = 0

            def step(self, closure=None):
                self.steps += 1
                return super().step(closure)

        self.assertFalse(foretell(Counts(model.parameters(), 0.1)).apart)
        self.assertTrue(foretell(torch.optim.SGD(model.parameters(), 0.1)).apart)

        class Within(torch.optim.SGD):
            def step(self, closure=None):
                return super().step(closure)

        self.assertFalse(foretell(Within(model.parameters(), 0.1)).apart)


class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters, calls):
        super().__init__(parameters, {})
        self.calls = calls

    def step(self, closure=None):
        loss = None
        for _ in range(self.calls if closure else 0):
            loss = closure()
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                if p.grad is not None:
                    moved = self.state[p].setdefault("moved", torch.zeros_like(p))
                    p.sub_(moved.mul_(0.9).add_(p.grad), alpha=0.1)
        return loss


class Closures(unittest.TestCase):
    """Some programs, Lightning among them, compute the loss within the step."""

    def steps(self, hosted, calls=1, keyword=False):
        model, batch = wide_mlp()
        optimizer = Momentum(model.parameters(), calls)
        if hosted:
            about = foretell(optimizer)
            self.assertTrue(about.apart)
            buckets = buckets_of(optimizer, about)
            HostState(optimizer, buckets, Lanes()).follow(
                [(action, k) for k in range(len(buckets) // 2)
                 for action in ("load", "update", "store")])

        def closure():
            optimizer.zero_grad()
            loss = model(*batch)
            loss.backward()
            return loss

        losses = [optimizer.step(**{"closure": closure}) if keyword else
                  optimizer.step(closure) for _ in range(3)]
        return [*losses, *states(optimizer), *model.parameters()]

    def test_state_streams_when_the_gradients_are_there(self):
        for keyword in (False, True):
            self.assertTrue(same_bits(self.steps(False), self.steps(True, keyword=keyword)))

    def test_that_run_twice_or_never_are_refused(self):
        with self.assertRaisesRegex(loadline.LoadlineError, "more than once"):
            self.steps(True, calls=2)
        with self.assertRaisesRegex(loadline.LoadlineError, "has not called"):
            self.steps(True, calls=0)

    def test_a_plan_made_within_the_first_closure_holds_for_its_step(self):
        def steps(planned):
            model, batch = wide_mlp()
            optimizer = torch.optim.AdamW(model.parameters())
            if planned:
                lt.compile_in_place(model, "60%", optimizers=[optimizer],
                                    host_state=True, machine=COPIES, **OPTIONS)

            def closure():
                optimizer.zero_grad()
                loss = model(*batch)
                loss.backward()
                kept[:] = [loss]  # as the plan counts it
                return loss.detach().clone()

            kept = []
            with lt.virtual_device() as ledger:
                losses = [optimizer.step(closure) for _ in range(3)]
            return optimizer, ledger, [*losses, *states(optimizer)]

        _, _, expected = steps(False)
        optimizer, ledger, found = steps(True)
        self.assertTrue(same_bits(expected, found))
        graph, state = lt.planned[-1], attached_to(optimizer)
        self.assertGreater(len(graph.hosted), 0)
        moved = sum(graph.options.state[k].bytes for k in graph.hosted)
        self.assertEqual(state.out_bytes, 3 * moved)
        self.assertEqual(ledger.peak_bytes, max(graph.peak_bytes,
                                                graph.update_peak_bytes))


if __name__ == "__main__":
    unittest.main()
