"""Updates on the host: bytes on the device, PyTorch's bits, and every wrong use."""
import dataclasses
import unittest
from unittest import mock

import torch

import loadline
from loadline import torch as lt
from loadline.torch.compat.lanes import IN, MAIN, OUT
from loadline.torch.rewrite.state_moves import StateMoves
from loadline.torch.state import host_updates
from loadline.torch.state.host_gradients import HostGradients
from loadline.torch.state.host_updates import HostUpdates, settings_on_host
from loadline.torch.state.predict_state import Bucket, predict_state
import host_programs
from fake_lanes import FakeLanes, Race
from host_programs import deep_mlp, everything, on_host
from steps import same_bits
from torch_host_gradients_test import persistent_bytes
from training import COPIES, OPTIONS, states, train


def prepared(share, dtype=torch.float32, make=torch.optim.AdamW, **changes):
    """share: of parameters, gradients and AdamW's state."""
    model, _, batch = deep_mlp(dtype=dtype)
    optimizer = make(model.parameters())
    call, _ = lt.prepare(model, optimizer, sample=batch, **{
        **OPTIONS, "budget": int(share * persistent_bytes(model)), "host_updates": True,
        "machine": COPIES, **changes})
    return model, call, optimizer, batch


class Bytes(unittest.TestCase):
    def test_state_takes_none_on_the_device(self):
        for share, dtype, left in ((0.7, torch.float32, False), (0.34, torch.float32, True),
                                   (0.34, torch.bfloat16, True)):
            with self.subTest(share, dtype=dtype):
                model, optimizer, batch = deep_mlp(dtype=dtype)
                expected = [*train(model, optimizer, batch), *everything(model, optimizer)]
                model, call, optimizer, batch = prepared(share, dtype)
                graph = lt.planned[-1]
                self.assertTrue(graph.moves.on_host)
                self.assertEqual(any(move.left for move in graph.moves.gradients), left)
                self.assertEqual(graph.resident_state_bytes, 0)
                with lt.virtual_device(whole_step=True) as ledger:
                    found = train(call, optimizer, batch)
                found += everything(model, optimizer)
                self.assertTrue(same_bits(expected, found))
                self.assertLessEqual(ledger.peak_bytes, graph.step_peak_bytes)
                self.assertLessEqual(graph.step_peak_bytes, graph.plan.budget_bytes)
                self.assertGreater(ledger.peak_bytes, 0.5 * graph.step_peak_bytes)
                self.assertIn("updated there", lt.report())

    def test_through_inductor(self):
        expected = train(*deep_mlp(3))
        model, optimizer, batch = deep_mlp(3)
        call, _ = lt.prepare(model, optimizer, sample=batch, machine=COPIES,
                             inner="inductor", work_limit=20_000, host_updates=True,
                             budget=int(0.45 * persistent_bytes(model)))
        self.assertTrue(any(move.left for move in lt.planned[-1].moves.gradients))
        self.assertTrue(all(map(torch.allclose, expected, train(call, optimizer, batch))))

    def test_an_estimate_has_the_same_plan(self):
        model, _, _, batch = prepared(0.34)
        graph = lt.planned[-1]
        found = lt.estimate(model, torch.optim.AdamW, sample=batch, machine=COPIES,
                            budgets=[int(0.34 * persistent_bytes(model))],
                            host_updates=True, **OPTIONS)
        self.assertEqual(found.rows[0].plan.json, graph.plan.json)

    def test_the_host_has_room_for_the_state(self):
        model, optimizer, batch = deep_mlp()
        bytes_ = predict_state(optimizer).bytes
        small = dataclasses.replace(COPIES, host_bytes=bytes_)
        with self.assertRaisesRegex(loadline.Infeasible, "host_updates: .* on the host"):
            lt.prepare(model, optimizer, sample=batch, machine=small, budget="100%",
                       host_updates=True, **OPTIONS)


OPTIMIZERS = {
    "AdamW": torch.optim.AdamW,
    "AdamW with amsgrad, a decay and a learning rate in a tensor": lambda p: torch.optim.AdamW(
        p, lr=torch.tensor(1e-2), amsgrad=True, weight_decay=0.1),
    "fused Adam": lambda p: torch.optim.Adam(p, fused=True),
    "foreach NAdam": lambda p: torch.optim.NAdam(p, foreach=True),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "RMSprop": lambda p: torch.optim.RMSprop(p, centered=True),
    "Adagrad": torch.optim.Adagrad,
    "Adafactor": torch.optim.Adafactor,
    "two groups": lambda p: (lambda parameters: torch.optim.AdamW(
        [{"params": parameters[::2], "lr": 1e-2},
         {"params": parameters[1::2], "weight_decay": 0.0}]))([*p]),
}


class Optimizers(unittest.TestCase):
    def test_have_pytorchs_bits(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(name):
                model, _, batch = deep_mlp()
                optimizer = make(model.parameters())
                expected = [*train(model, optimizer, batch), *states(optimizer)]
                model, call, optimizer, batch = prepared(0.5, make=make)
                found = [*train(call, optimizer, batch), *states(optimizer)]
                self.assertTrue(lt.planned[-1].moves.on_host)
                self.assertTrue(same_bits(expected, found))

    def test_settings_of_a_group_on_a_gpu(self):
        device = torch.device("cuda")
        group = {"params": [], "lr": torch.tensor(0.5), "betas": (0.9, 0.99), "fused": None,
                 "foreach": None, "capturable": True, "differentiable": False}
        found = settings_on_host(group, device)
        self.assertEqual(found, {
            "lr": torch.tensor(0.5), "betas": (0.9, 0.99), "fused": True, "foreach": None,
            "capturable": False, "differentiable": False})
        self.assertFalse(settings_on_host({**group, "fused": False}, device)["fused"])
        self.assertFalse(settings_on_host({**group, "foreach": True}, device)["fused"])
        self.assertIsNone(settings_on_host(group, torch.device("cpu"))["fused"])


class Programs(host_programs.Programs):
    make = staticmethod(lambda: prepared(0.34))

    def test_parameters_that_the_program_changes_between_steps(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            weight = next(model.parameters())
            weight.data.mul_(0.5)
            with torch.no_grad():
                weight[0] = 1.0
            losses += train(call, optimizer, batch, 2)
            weight.data = weight.data.clone() + 0.25
            return losses + train(call, optimizer, batch, 2)

        self.same(program)

    def test_a_gradient_in_another_layout(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.zero_grad()
            call(*batch).backward()
            weights = [p for p in model.parameters() if p.dim() == 2]
            weights[0].grad = None
            weights[1].grad = torch.ones_like(weights[1])
            weights[2].grad = torch.ones_like(weights[2]).t().contiguous().t()
            optimizer.step()
            return losses + train(call, optimizer, batch, 2)

        self.same(program)

    def test_a_group_that_changes_and_a_parameter_that_is_taken_out(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 1)
            group, = optimizer.param_groups
            taken = group["params"].pop(3)
            group["lr"] = 0.5
            losses += train(call, optimizer, batch, 2)
            taken.grad = None
            group["params"].insert(3, taken)
            group["lr"] = 1e-3
            return losses + train(call, optimizer, batch, 1)

        self.same(program)

    def test_a_schedule(self):
        def program(model, call, optimizer, batch):
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            return train(call, optimizer, batch, 3, schedule)

        self.same(program)

    def test_an_update_that_fails_and_the_next_step(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.zero_grad()
            call(*batch).backward()
            group, = optimizer.param_groups
            group["betas"] = None
            with self.assertRaises(TypeError):
                optimizer.step()
            group["betas"] = (0.9, 0.999)
            return losses + train(call, optimizer, batch, 1)

        self.same(program)


class Lanes(unittest.TestCase):
    """Copies wait for what they read, and readers for the copies."""

    def run_steps(self, lanes):
        parameters = [torch.nn.Parameter(torch.randn(8, 8)) for _ in range(6)]
        optimizer = torch.optim.AdamW(parameters)
        mover = HostUpdates(optimizer, lanes, HostGradients([], lanes, False))
        buckets = [(Bucket(0, (one,), 0, 0), [{**optimizer.param_groups[0],
                                               "params": [one]}]) for one in parameters]
        plain = [torch.nn.Parameter(one.detach().clone()) for one in parameters]
        expected = torch.optim.AdamW(plain)
        for _ in range(3):
            for one, other in zip(parameters, plain):
                one.grad = lanes.compute(lambda one=one: one.detach() * 2, [one])
                other.grad = one.grad.clone()
            with lanes.host_watched():
                mover.run(StateMoves(0), buckets)
            for one in parameters:
                one.grad = None
            expected.step()
        lanes.compute(lambda: None, parameters)
        self.assertTrue(same_bits(parameters, plain))

    def test_wait_for_each_other(self):
        self.run_steps(FakeLanes())
        for waits in ((MAIN, IN), (OUT, MAIN), (OUT, IN), ("host", OUT)):
            with self.subTest(waits), self.assertRaises(Race):
                self.run_steps(FakeLanes([waits]))


class Refused(unittest.TestCase):
    def test_what_cannot_be_with_it(self):
        for wrong, kind, text in (
                ({"update_in_backward": True}, loadline.InvalidArgument, "host_updates"),
                ({"offload_parameters": True}, loadline.InvalidArgument, "host_updates"),
                ({"micro_batches": 2}, loadline.InvalidArgument, "host_updates"),
                ({"accumulate": True}, loadline.InvalidArgument, "host_updates"),
                ({"offload": False}, lt.Unsupported, "host_updates"),
                ({"machine": None}, lt.Unsupported, "host_updates"),
                ({"make": lambda p: torch.optim.SGD(p, lr=0.1)}, lt.Unsupported,
                 "an optimizer with state")):
            with self.subTest(str(wrong)), self.assertRaisesRegex(kind, text):
                prepared(1.0, **wrong)
        with self.assertRaisesRegex(loadline.InvalidArgument, "prepare and estimate"):
            lt.compile_in_place(deep_mlp()[0], "1GiB", host_updates=True)

    def test_a_step_that_cannot_run_there(self):
        class Card(torch.optim.AdamW):
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for one in group["params"]:
                        if one.device.type == "cpu" and one.dtype == torch.bfloat16:
                            raise RuntimeError("no kernel on the CPU")
                        state = self.state[one]
                        state.setdefault("sum", torch.zeros_like(one)).add_(one.grad)
                        one.sub_(state["sum"])

        bucket = Bucket(0, (torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16)),), 6, 18)
        with self.assertRaisesRegex(lt.Unsupported, "Card cannot run on the host: no kernel"):
            host_updates.check_step_on_host(Card(bucket.parameters), [bucket])

    def test_a_second_step_after_one_that_failed_in_the_middle(self):
        model, call, optimizer, batch = prepared(0.34)
        train(call, optimizer, batch, 1)
        optimizer.zero_grad()
        call(*batch).backward()
        before, calls = [p.detach().clone() for p in model.parameters()], []

        def fail(clone, whole=host_updates.run_step):
            calls.append(clone)
            if len(calls) == 3:
                raise RuntimeError("in the middle")
            whole(clone)

        with mock.patch.object(host_updates, "run_step", fail), self.assertRaisesRegex(
                RuntimeError, "in the middle"):
            optimizer.step()
        after = [p.detach().clone() for p in model.parameters()]
        changed = [not torch.equal(one, other) for one, other in zip(before, after)]
        self.assertIn(True, changed)
        self.assertIn(False, changed)
        with self.assertRaisesRegex(loadline.LoadlineError, "used up"):
            optimizer.step()
        self.assertTrue(same_bits(after, [p.detach() for p in model.parameters()]))

    def test_a_used_gradient(self):
        model, call, optimizer, batch = prepared(0.34)
        train(call, optimizer, batch, 1)
        with self.assertRaisesRegex(loadline.LoadlineError, "zero_grad"):
            call(*batch).backward()
        with self.assertRaisesRegex(loadline.LoadlineError, "used up"):
            optimizer.step()
        self.assertGreater(len(on_host(model)), 0)


if __name__ == "__main__":
    unittest.main()
