"""Optimizer state on the host, compiled in place, for several optimizers and closures."""
import unittest

import torch

import loadline
from loadline import torch as lt
from loadline.torch.compat.lanes import Lanes
from loadline.torch.state.host_state import HostState, host_state_of, movable_buckets
from loadline.torch.state.predict_state import buckets_of, predict_state
from steps import same_bits
from training import (COPIES, OPTIONS, at_the_end, copied_bytes, planned_bytes, states,
                      train, wide_mlp)


class InPlace(unittest.TestCase):
    def test_the_plan_of_the_first_step_decides(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        expected = train(model, optimizer, batch)
        before = states(optimizer)
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        lt.compile_in_place(model, "67%", optimizers=[optimizer], host_state=True,
                            machine=COPIES, **OPTIONS)
        self.assertIsNone(host_state_of(optimizer))
        with lt.virtual_device() as ledger:
            found = train(model, optimizer, batch)
        graph = lt.planned[-1]
        self.assertTrue(same_bits(expected, found))
        self.assertTrue(same_bits(before, states(optimizer)))
        self.assertIs(host_state_of(optimizer).moves, graph.moves)
        self.assertGreater(len(graph.moves.moved), 0)
        self.assertEqual(ledger.peak_bytes,
                         max(graph.peak_bytes, graph.update_peak_bytes))
        optimizer.step(None)  # as some programs write it

    def test_once_more_leaves_the_first_no_say(self):
        def steps(planned):
            model, batch = wide_mlp()
            optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
            losses = []
            for _ in range(2):
                if planned:
                    lt.compile_in_place(model, "85%", optimizers=iter([optimizer]),
                                        host_state=True, machine=COPIES, **OPTIONS)
                losses += train(model, optimizer, batch, 3)
            self.assertEqual(len(optimizer.param_groups[0]["params"]), 12)
            return [*losses, *states(optimizer)]

        expected = steps(False)
        self.assertTrue(same_bits(expected, steps(True)))
        self.assertTrue(lt.planned[-1].moves.moved)


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
                        predicted = predict_state(optimizer)
                        self.assertTrue(predicted.separable)
                        buckets = buckets_of(optimizer, predicted)
                        self.assertEqual(sum(b.state_bytes for b in buckets),
                                         predicted.bytes)
                        HostState(optimizer, buckets, Lanes()).follow(
                            at_the_end(buckets, range(1, len(buckets))))
                    losses = train(model, optimizer, batch, 4, scheduler)
                    return [*losses, *states(optimizer)]

                self.assertTrue(same_bits(steps(False), steps(True)))

    def test_that_keeps_more_than_state_by_parameter_is_left_alone(self):
        model, _ = wide_mlp()

        class Counts(torch.optim.SGD):
            steps = 0

            def step(self, closure=None):
                self.steps += 1
                return super().step(closure)

        self.assertFalse(predict_state(Counts(model.parameters(), 0.1)).separable)
        self.assertTrue(predict_state(torch.optim.SGD(model.parameters(), 0.1)).separable)

        class Within(torch.optim.SGD):
            def step(self, closure=None):
                return super().step(closure)

        self.assertFalse(predict_state(Within(model.parameters(), 0.1)).separable)


class Coupled(torch.optim.Optimizer):
    """A step that does something for all parameters at once. Its state does not show it."""

    def __init__(self, parameters, way):
        super().__init__(parameters, {})
        self.way = way

    @torch.no_grad()
    def step(self, closure=None):
        trained = [p for group in self.param_groups for p in group["params"]
                   if p.grad is not None]
        factor, noise = 1, 0
        if self.way == "norm":
            factor = 1 / torch.stack([p.grad.norm() for p in trained]).norm()
        elif self.way == "foreach norm":
            factor = 1 / torch.stack(torch._foreach_norm([p.grad for p in trained])).norm()
        elif self.way == "number":
            factor = 1 / (1 + sum(float(p.grad.abs().sum()) for p in trained))
        for p in trained:
            if self.way == "noise":
                noise = torch.randn(p.shape)
            moved = self.state[p].setdefault("moved", torch.zeros_like(p))
            p.sub_(moved.mul_(0.9).add_(p.grad * factor + noise), alpha=0.1)


class CoupledParameters(unittest.TestCase):
    def test_are_updated_together(self):
        device = torch.device("cpu")
        before = torch.get_rng_state()
        for way in ("norm", "foreach norm", "number", "noise", "none"):
            with self.subTest(way):
                optimizer = Coupled(wide_mlp()[0].parameters(), way)
                torch.set_rng_state(before)
                predicted = predict_state(optimizer)
                self.assertEqual(bool(movable_buckets(optimizer, predicted, device)),
                                 way == "none")
                self.assertTrue(torch.equal(before, torch.get_rng_state()))

    def test_have_the_same_bits_where_state_might_move(self):
        def steps(budget):
            model, batch = wide_mlp()
            optimizer = Coupled(model.parameters(), "norm")
            if budget:
                model, optimizer = lt.prepare(model, optimizer, sample=batch, budget=budget,
                                              machine=COPIES, **OPTIONS)
            return [*train(model, optimizer, batch), *states(optimizer)]

        self.assertTrue(same_bits(steps(None), steps("smallest")))


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
            about = predict_state(optimizer)
            self.assertTrue(about.separable)
            buckets = buckets_of(optimizer, about)
            HostState(optimizer, buckets, Lanes()).follow(
                at_the_end(buckets, range(len(buckets) // 2)))

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
                lt.compile_in_place(model, "67%", optimizers=[optimizer],
                                    host_state=True, machine=COPIES, **OPTIONS)

            def closure():
                kept.clear()
                optimizer.zero_grad()
                loss = model(*batch)
                loss.backward()
                kept[:] = [loss]  # as the plan counts it
                return loss.detach().clone()

            kept = []
            with lt.virtual_device() as ledger:
                losses = [optimizer.step(closure) for _ in range(2)]
                before = copied_bytes(host_state_of(optimizer))
                losses += [optimizer.step(closure)]
            after = copied_bytes(host_state_of(optimizer))
            return ledger, tuple(a - b for a, b in zip(after, before)), [
                *losses, *states(optimizer)]

        _, _, expected = steps(False)
        ledger, copied, found = steps(True)
        self.assertTrue(same_bits(expected, found))
        graph = lt.planned[-1]
        self.assertGreater(len(graph.moves.moved), 0)
        self.assertEqual(copied, planned_bytes(graph))
        self.assertEqual(ledger.peak_bytes, max(graph.peak_bytes,
                                                graph.update_peak_bytes))


if __name__ == "__main__":
    unittest.main()
