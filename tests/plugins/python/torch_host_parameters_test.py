"""Parameters on the host between and within steps: bytes, bits, and every wrong use."""
import copy
import functools
import io
import unittest
import warnings
from unittest import mock

import torch
from torch import nn

import loadline
from loadline import torch as lt
from loadline.torch.compat.lanes import IN, MAIN, OUT
from loadline.torch.rewrite.copies import ARRIVE, Slab, slabs, start_arrival
from loadline.torch.rewrite.parameter_moves import ParameterMoves
from loadline.torch.session.session import session_of_model
from loadline.torch.state import host_state
from loadline.torch.state.host_parameters import HostParameters
import host_programs
from fake_lanes import FakeLanes, Race
from host_programs import everything
from steps import same_bits
from training import COPIES, OPTIONS, train


deep_mlp = functools.partial(host_programs.deep_mlp, depth=16)


def bytes_of(model):
    return sum(p.nbytes for p in model.parameters())


def prepare(model, optimizer, batch, **changes):
    call, _ = lt.prepare(model, optimizer, sample=batch, **{
        **OPTIONS, "machine": COPIES, "budget": bytes_of(model), "offload_parameters": True,
        **changes})
    return call


def prepared(**changes):
    model, optimizer, batch = deep_mlp()
    return model, prepare(model, optimizer, batch, **changes), optimizer, batch


def mover_of(model):
    return session_of_model(model).host_parameters


def on_host(model):
    mover = mover_of(model)
    return [name for number, name in enumerate(mover.names) if mover.is_on_host(number)]


class Frozen(nn.Module):
    """A frozen trunk with trained adapters, a tied weight and a returned parameter."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.ModuleList(nn.Linear(64, 64, bias=False) for _ in range(6))
        self.down = nn.ModuleList(nn.Linear(64, 4, bias=False) for _ in range(6))
        self.up = nn.ModuleList(nn.Linear(4, 64, bias=False) for _ in range(6))
        self.tied = nn.Parameter(torch.randn(64, 64) / 8, requires_grad=False)
        self.returned = nn.Parameter(torch.randn(64, 64) / 8)
        self.trunk.requires_grad_(False)

    def forward(self, x):
        x = x @ self.tied
        for trunk, down, up in zip(self.trunk, self.down, self.up):
            x = torch.tanh(trunk(x) + up(down(x)))
        return (x @ self.tied.T @ self.returned).square().mean(), self.returned.view(-1)

    @staticmethod
    def make():
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Frozen()
        return model, torch.optim.AdamW(
            [p for p in model.parameters() if p.requires_grad]), (torch.randn(16, 64),)


class Bytes(unittest.TestCase):
    def test_every_byte_of_a_step_at_several_budgets(self):
        model, optimizer, batch = deep_mlp()
        expected = [*train(model, optimizer, batch, 4), *everything(model, optimizer)]
        resting = []
        for share in (2, 1, "smallest"):
            with self.subTest(share):
                model, optimizer, batch = deep_mlp()
                budget = share if share == "smallest" else int(share * bytes_of(model))
                call = prepare(model, optimizer, batch, budget=budget)
                graph = lt.planned[-1]
                resting.append(len(graph.parameters.resting_on_host))
                self.assertGreater(len(graph.parameters.moved), 0)
                self.assertEqual(graph.measured_bytes, graph.peak_bytes)
                self.assertEqual(len(on_host(model)), resting[-1])
                with lt.virtual_device(whole_step=True) as ledger:
                    found = train(call, optimizer, batch, 4)
                found += everything(model, optimizer)
                self.assertTrue(same_bits(expected, found))
                self.assertEqual(ledger.peak_bytes, graph.step_peak_bytes)
                self.assertLessEqual(ledger.peak_bytes, graph.plan.budget_bytes)
                mover = mover_of(model)
                self.assertGreater(mover.out_bytes, 0)
                self.assertLessEqual(mover.host_bytes, bytes_of(model))
        self.assertLess(graph.plan.budget_bytes, 0.7 * bytes_of(model))
        self.assertEqual(resting, sorted(resting))
        self.assertIn("parameters: ", lt.report())
        estimate = lt.estimate(model, optimizer, sample=batch, machine=COPIES,
                               budgets=["smallest"], offload_parameters=True, **OPTIONS)
        self.assertEqual(estimate.rows[0].plan.json, graph.plan.json)

    def test_frozen_ones_leave_and_a_returned_one_stays(self):
        def losses(call, optimizer, batch):
            found = []
            for _ in range(3):
                optimizer.zero_grad()
                loss, _ = call(*batch)
                loss.backward()
                optimizer.step()
                found.append(loss.detach().clone())
            return found

        model, optimizer, batch = Frozen.make()
        expected = [*losses(model, optimizer, batch), *everything(model, optimizer)]
        model, optimizer, batch = Frozen.make()
        call = prepare(model, optimizer, batch, budget="smallest")
        graph = lt.planned[-1]
        self.assertLess(graph.plan.budget_bytes, bytes_of(model))
        self.assertIn("trunk.0.weight", on_host(model))
        self.assertIn("tied", on_host(model))
        self.assertNotIn("returned", on_host(model))
        with lt.virtual_device() as ledger:
            found = losses(call, optimizer, batch)
        self.assertTrue(same_bits(expected, [*found, *everything(model, optimizer)]))
        self.assertEqual(ledger.peak_bytes, graph.step_peak_bytes)

    def test_frozen_ones_of_an_optimizer_without_state(self):
        def run(offload):
            model, _, batch = deep_mlp()
            for layer in model.layers[:-2]:
                layer.requires_grad_(False)
            optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad],
                                        lr=0.1)
            call = prepare(model, optimizer, batch,
                           budget=bytes_of(model)) if offload else model
            losses = []
            for _ in range(3):  # gradients are as usual
                optimizer.zero_grad(set_to_none=False)
                loss = call(*batch)
                loss.backward()
                losses.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
                optimizer.step()
                losses.append(loss.detach().clone())
            if offload:
                self.assertGreater(len(on_host(model)), 1)
            return [*losses, *(p.detach().clone() for p in model.parameters())]

        self.assertTrue(same_bits(run(False), run(True)))

    def test_through_inductor(self):
        model, optimizer, batch = deep_mlp(depth=4)
        expected = [*train(model, optimizer, batch), *everything(model, optimizer)]
        model, optimizer, batch = deep_mlp(depth=4)
        call = prepare(model, optimizer, batch, inner="inductor",
                       budget="75%")
        self.assertGreater(len(lt.planned[-1].parameters.moved), 0)
        found = [*train(call, optimizer, batch), *everything(model, optimizer)]
        self.assertTrue(all(torch.allclose(one, other, atol=1e-6)
                            for one, other in zip(expected, found, strict=True)))


class Programs(host_programs.SameBits):
    make = staticmethod(prepared)

    def check_start(self, model):
        self.assertGreater(len(on_host(model)), 3)

    def test_checkpoints_and_evaluation_between_steps(self):
        def program(model, call, optimizer, batch):
            found = train(call, optimizer, batch, 2)
            file = io.BytesIO()
            torch.save((model.state_dict(), optimizer.state_dict()), file)
            self.assertLess(len(file.getvalue()), 4 * bytes_of(model))
            kept = copy.deepcopy(model)
            found += train(call, optimizer, batch, 1)
            model.eval()
            with torch.no_grad():
                found += [call(*batch).clone(), model(*batch), kept(*batch)]
            with torch.inference_mode():
                found += [model(*batch).clone()]
            model.train()
            file.seek(0)
            saved = torch.load(file)
            model.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
            return found + train(call, optimizer, batch, 2)

        self.same(program)

    def test_evaluation_between_forward_and_backward_and_before_the_step(self):
        def program(model, call, optimizer, batch):
            found = train(call, optimizer, batch, 1)
            optimizer.zero_grad()
            loss = call(*batch)
            with torch.no_grad():
                found += [call(*batch).clone(), model(*batch).clone()]
            found += [p.detach().clone() for p in model.state_dict().values()]
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                found += [call(*batch).clone(), model(*batch).clone()]
            return found + train(call, optimizer, batch, 1)

        self.same(program)

    def test_batches_of_two_shapes(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", loadline.LoadlineWarning)
            self.same(host_programs.batches_of_two_shapes)

    def test_writes_to_parameters_between_steps(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            weights = [p for p in model.parameters() if p.dim() == 2]
            with torch.no_grad():
                weights[0].clamp_(-0.01, 0.01)
            weights[1].data.mul_(0.5)
            weights[2].data = weights[2].data * 2
            for p in model.parameters():
                p.data.clamp_(-0.5, 0.5)
            nn.utils.vector_to_parameters(
                nn.utils.parameters_to_vector(model.parameters()) * 0.9, model.parameters())
            losses += train(call, optimizer, batch, 2)
            for p in model.parameters():  # no longer views of the vector
                p.data = p.data.clone()
            average = torch.optim.swa_utils.AveragedModel(model)
            losses += train(call, optimizer, batch, 1)
            average.update_parameters(model)
            return [*losses, *(p.detach() for p in average.parameters())]

        with warnings.catch_warnings():
            warnings.simplefilter("error", loadline.LoadlineWarning)
            self.same(program)

    def test_a_closure_and_a_schedule(self):
        def program(model, call, optimizer, batch):
            def closure():
                optimizer.zero_grad()
                loss = call(*batch)
                loss.backward()
                return loss

            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            losses = []
            for _ in range(3):
                losses.append(optimizer.step(closure).detach().clone())
                schedule.step()
            return losses + train(call, optimizer, batch, 1)

        self.same(program)

    def test_an_error_in_the_forward_changes_no_parameter(self):
        class Broken(Exception):
            pass

        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.zero_grad()
            if call is not model:
                mover, calls = mover_of(model), []

                def source(number, whole=mover.source):
                    calls.append(number)
                    if len(calls) == 5:
                        raise Broken
                    return whole(number)

                before = [p.detach().clone() for p in model.parameters()]
                mover.source = source
                with self.assertRaises(Broken):
                    call(*batch).backward()
                del mover.source
                self.assertTrue(same_bits(before, [*model.parameters()]))
                optimizer.zero_grad()
            return losses + train(call, optimizer, batch, 2)

        self.same(program)

    def test_y_prepared_again_in_vain_the_first_plan_holds(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            if call is not model:
                mover = mover_of(model)
                with self.assertRaises(loadline.Infeasible):
                    prepare(model, optimizer, batch, budget="1%")
                self.assertIs(mover_of(model), mover)
            return losses + train(call, optimizer, batch, 2)

        self.same(program)

    def test_z_prepared_again(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            if call is not model:
                old = call
                call = prepare(call, optimizer, batch, budget="smallest")
                self.assertGreater(len(on_host(model)), 5)
                losses += train(call, optimizer, batch, 1)
                with self.assertRaisesRegex(Exception, "prepared again"):
                    old(*batch)
                call, _ = lt.prepare(call, optimizer, sample=batch, budget="100%", **OPTIONS)
                self.assertIsNone(mover_of(model))
            else:
                losses += train(call, optimizer, batch, 1)
            return losses + train(call, optimizer, batch, 2)

        self.same(program)


class ErrorInBackward(unittest.TestCase):
    def test_leaves_each_parameter_old_or_new(self):
        plain, other, batch = deep_mlp()
        train(plain, other, batch, 1)
        model, optimizer, batch = deep_mlp()
        call = prepare(model, optimizer, batch)
        before = [p.detach().clone() for p in model.parameters()]
        loss, done = call(*batch), []

        def run_step(whole, run=host_state.run_step):
            if len(done) == 5:
                raise MemoryError
            done.append(run(whole))

        with mock.patch.object(host_state, "run_step", run_step):
            with self.assertRaises(MemoryError):
                loss.backward()
        changed = 0
        for p, old, new in zip(model.parameters(), before, plain.parameters()):
            self.assertTrue(torch.equal(p, old) or torch.equal(p, new))
            changed += torch.equal(p, new)
        self.assertGreater(changed, 4)
        with self.assertRaisesRegex(loadline.LoadlineError, "every backward is a step"):
            call(*batch).backward()
        optimizer.zero_grad()
        optimizer.step()
        plain.load_state_dict(model.state_dict())
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        self.assertTrue(same_bits([*train(plain, other, batch, 2), *everything(plain, other)],
                                  [*train(call, optimizer, batch, 2),
                                   *everything(model, optimizer)]))


class Lanes(unittest.TestCase):
    """Copies wait for what they read, and readers for the copies."""

    def run_step(self, lanes):
        parameter = nn.Parameter(lanes.compute(lambda: torch.randn(64, 64), []))
        expected = parameter.detach().clone()
        mover = HostParameters([("weight", parameter)], lanes)
        mover.follow(ParameterMoves(0, (0,), frozenset([0]), (0,)))
        lanes.bury()
        self.assertTrue(mover.is_on_host(0))
        slab = Slab({}, torch.device("cpu"))
        slab.__dict__["lanes"] = lanes
        number = slabs.add(slab)
        there = ARRIVE(start_arrival(slab, mover.source(0)), number, [64, 64], [64, 1], 0,
                       torch.float32, torch.device("cpu"))
        lanes.compute(lambda: None, [there])
        mover.keep(0, there)
        del there
        lanes.compute(lambda: parameter.data.mul_(2), [parameter.data])
        mover.start_store(0)
        mover.end_store(0)
        lanes.bury()
        mover.load(0)
        mover.arrive([parameter])
        lanes.compute(lambda: None, [parameter.data])
        self.assertTrue(torch.equal(parameter, expected * 2))

    def test_wait_for_each_other(self):
        self.run_step(FakeLanes())
        for waits in ((MAIN, OUT), (MAIN, IN), (OUT, MAIN)):
            with self.subTest(waits), self.assertRaises(Race):
                self.run_step(FakeLanes([waits]))


class Refused(unittest.TestCase):
    def refuses(self, run, text, kind=loadline.LoadlineError):
        with self.assertRaisesRegex(kind, text):
            run()

    def test_uses_of_gradients(self):
        model, call, optimizer, batch = prepared()
        call(*batch).backward()
        self.refuses(lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0),
                     "update_in_backward=True")
        self.refuses(lambda: call(*batch).backward(), "every backward is a step")
        optimizer.step()
        self.refuses(lambda: optimizer.zero_grad(set_to_none=False), "used up")
        optimizer.zero_grad()
        before = [p.detach().clone() for p in model.parameters()]
        loss = call(*batch)
        with torch.no_grad():
            mover, reread = mover_of(model), lt.planned[-1].parameters.reread
            mover.parameters[[one for one in reread if mover.is_on_host(one)][0]].mul_(2)
        self.refuses(loss.backward, "changed in place")
        loss = call(*batch)
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(2)
        self.refuses(loss.backward, "changed in place|modified by an inplace", RuntimeError)
        for p, one in zip(model.parameters(), before):
            self.assertIn(float((p / one).mean().round()), (2, 4))
        optimizer.zero_grad()
        train(call, optimizer, batch, 1)
        layer = model.layers[0]
        layer.weight = nn.Parameter(layer.weight.detach().clone())
        self.refuses(lambda: call(*batch), "not that of the model|not those of the model")

    def test_a_tensor_that_shared_a_parameters_memory_is_named(self):
        model, optimizer, batch = deep_mlp()
        kept = model.state_dict()
        with self.assertWarnsRegex(loadline.LoadlineWarning, "layers.0.weight.* state_dict"):
            call = prepare(model, optimizer, batch, budget="smallest")
            train(call, optimizer, batch, 1)
        del kept
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            train(call, optimizer, batch, 2)

    def test_where_it_is_not_possible(self):
        model, optimizer, batch = deep_mlp()
        for wrong, kind in (
                ({"micro_batches": 2}, loadline.InvalidArgument),
                ({"accumulate": True}, loadline.InvalidArgument),
                ({"offload": False}, lt.Unsupported), ({"machine": None}, lt.Unsupported)):
            self.refuses(lambda: prepare(model, optimizer, batch, **wrong), "offload_", kind)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        self.refuses(lambda: prepare(model, sgd, batch), "no parameter may leave")
        handle = model.layers[0].weight.register_hook(lambda g: g)
        self.refuses(lambda: prepare(model, optimizer, batch), "layers.0.weight has a hook")
        handle.remove()
        model.layers[2].weight.data = model.layers[4].weight.data
        self.refuses(lambda: prepare(model, optimizer, batch), "layers.2.weight shares")

    def test_a_graph_break(self):
        class Broken(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

            def forward(self, x):
                x = self.layers[0](x)
                torch._dynamo.graph_break()
                return self.layers[2](torch.tanh(self.layers[1](x))).mean()

        torch._dynamo.reset()
        model = Broken()
        before = [p.detach().clone() for p in model.parameters()]
        optimizer = torch.optim.AdamW(model.parameters())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.refuses(lambda: prepare(model, optimizer, (torch.randn(4, 64),),
                                         budget="1MiB"), "graph break", lt.Unsupported)
        self.assertTrue(same_bits(before, [*model.parameters()]))
        optimizer.zero_grad()
        model(torch.randn(4, 64)).backward()
        optimizer.step()


if __name__ == "__main__":
    unittest.main()
