"""Gradients on the host between backward and update: bytes, bits, and every wrong use."""
import copy
import unittest

import torch

import loadline
from loadline import torch as lt
from loadline.torch.compat.lanes import IN, MAIN, OUT
from loadline.torch.rewrite.copies import OFFLOAD, WAIT, Slab, slabs
from loadline.torch.rewrite.state_moves import GradientMove, StateMoves
from loadline.torch.state.host_gradients import HostGradients
from loadline.torch.state.host_state import host_state_of
from loadline.torch.state.predict_state import Bucket
import host_programs
from fake_lanes import FakeLanes, Race
from host_programs import deep_mlp, on_host
from steps import same_bits
from training import COPIES, OPTIONS, states, train


def persistent_bytes(model):
    """Parameters, gradients and state."""
    return 4 * sum(p.nbytes for p in model.parameters())


# An 8B model in bf16 with its gradients and AdamW's state has 59.8 GiB; a card of 24 GiB
# has 23.46 GiB for PyTorch.
SHARE = 23.46 / 59.8


def prepared(dtype=torch.float32, **changes):
    model, optimizer, batch = deep_mlp(dtype=dtype)
    call, _ = lt.prepare(model, optimizer, sample=batch, machine=COPIES, **{
        **OPTIONS, "budget": int(SHARE * persistent_bytes(model)),
        "offload_gradients": True, **changes})
    return model, call, optimizer, batch


class Bytes(unittest.TestCase):
    def test_a_step_of_8b_on_24_gib_in_small(self):
        model, optimizer, batch = deep_mlp(dtype=torch.bfloat16)
        expected = [*train(model, optimizer, batch), *states(optimizer),
                    *(p.detach() for p in model.parameters())]
        model, call, optimizer, batch = prepared(torch.bfloat16)
        self.assertTrue(all(p.grad is None for p in model.parameters()))
        graph = lt.planned[-1]
        self.assertLess(graph.plan.budget_bytes,  # parameters and gradients alone
                        persistent_bytes(model) / 2)
        self.assertEqual(graph.measured_bytes, graph.peak_bytes)
        with lt.virtual_device() as ledger:
            found = train(call, optimizer, batch)
        found += [*states(optimizer), *(p.detach() for p in model.parameters())]
        self.assertTrue(same_bits(expected, found))
        self.assertEqual(ledger.peak_bytes,
                         max(graph.peak_bytes, graph.update_peak_bytes))
        self.assertLessEqual(ledger.peak_bytes, graph.plan.budget_bytes)
        self.assertTrue(any(move.left for move in graph.moves.gradients))
        self.assertIn("gradients: ", lt.report())
        estimate = lt.estimate(model, optimizer, sample=batch, machine=COPIES,
                               budgets=[int(SHARE * persistent_bytes(model))],
                               offload_gradients=True, **OPTIONS)
        self.assertEqual(estimate.rows[0].plan.json, graph.plan.json)

    def test_every_byte_of_a_whole_step_at_several_budgets(self):
        model, optimizer, batch = deep_mlp()
        expected = [*train(model, optimizer, batch), *states(optimizer)]
        for options, share, left, early in (
                ({}, 1.1, 0, 0), ({}, 0.36, 10, 0),
                ({"update_in_backward": True}, 0.32, 0, 20)):
            with self.subTest(share, **options):
                model, call, optimizer, batch = prepared(
                    budget=int(share * persistent_bytes(model)), **options)
                graph = lt.planned[-1]
                if share < 1:  # there the updates of a whole step are the peak
                    self.assertEqual(graph.measured_bytes, graph.step_peak_bytes)
                self.assertGreaterEqual(
                    sum(move.left for move in graph.moves.gradients), left)
                self.assertEqual(len(graph.moves.in_backward), early)
                with lt.virtual_device(whole_step=True) as ledger:
                    found = train(call, optimizer, batch)
                self.assertTrue(same_bits(expected, [*found, *states(optimizer)]))
                self.assertEqual(ledger.peak_bytes, graph.step_peak_bytes)
                self.assertLessEqual(ledger.peak_bytes, graph.plan.budget_bytes)

    def test_through_inductor(self):
        expected = train(*deep_mlp(3))
        model, optimizer, batch = deep_mlp(3)
        call, _ = lt.prepare(model, optimizer, sample=batch, machine=COPIES,
                             inner="inductor", work_limit=20_000, offload_gradients=True,
                             budget=int(0.7 * persistent_bytes(model)))
        self.assertTrue(any(move.left for move in lt.planned[-1].moves.gradients))
        found = train(call, optimizer, batch)
        self.assertTrue(all(map(torch.allclose, expected, found)))
        optimizer.zero_grad()
        call(*batch).backward()
        self.assertGreater(len(on_host(model)), 0)
        model, optimizer, batch = deep_mlp(3)
        call, _ = lt.prepare(model, optimizer, sample=batch, machine=COPIES,
                             inner="inductor", work_limit=20_000, update_in_backward=True,
                             budget=int(0.75 * persistent_bytes(model)))
        self.assertGreater(len(lt.planned[-1].moves.in_backward), 0)
        found = train(call, optimizer, batch)
        self.assertTrue(all(map(torch.allclose, expected, found)))


class Programs(host_programs.Programs):
    make = staticmethod(prepared)


class Lanes(unittest.TestCase):
    """Copies wait for what they read, and readers for the copies."""

    def run_step(self, lanes, left):
        parameter = torch.nn.Parameter(torch.randn(8, 8))
        slab = Slab({0: parameter.nbytes}, torch.device("cpu"))
        slab.__dict__["lanes"] = lanes
        number = slabs.add(slab)
        layout = (8, 8), (8, 1), 0
        moves = StateMoves(0, gradients=(GradientMove((0, 0), 0, left, *layout),),
                           slab=number)
        mover = HostGradients([Bucket(0, (parameter,), 0, 0)], lanes, False)
        for _ in range(2):
            parameter.grad = None
            mover.begin_backward(moves)
            made = lanes.compute(lambda: torch.randn(8, 8), [])
            expected = made * 0.5
            if left:
                mover.measure_gradient(0, made)
                token = OFFLOAD(made, number, 0, *map(list, layout[:2]), 0)
                WAIT(made, token, number, 0)
                mover.leave_gradients(moves)
            else:
                parameter.grad = made
                mover.start_store(moves, 0)
                mover.end_store(moves, 0)
            del made
            lanes.bury()
            parameter.grad.mul_(0.5)
            mover.load(moves, 0)
            mover.bring_back([parameter])
            lanes.compute(lambda: None, [parameter.grad])
            self.assertTrue(torch.equal(parameter.grad, expected))
            mover.use_up(moves, [parameter])
            lanes.bury()

    def test_wait_for_each_other(self):
        for left in (True, False):
            self.run_step(FakeLanes(), left)
            for waits in ((MAIN, OUT), (MAIN, IN), (OUT, MAIN)):
                with self.subTest(waits), self.assertRaises(Race):
                    self.run_step(FakeLanes([waits]), left)


class Refused(unittest.TestCase):
    """Nothing reads a gradient that is not there."""

    @classmethod
    def setUpClass(cls):
        cls.prepared = prepared()

    @classmethod
    def tearDownClass(cls):
        del cls.prepared

    def setUp(self):
        self.model, self.call, self.optimizer, self.batch = self.prepared
        self.optimizer.zero_grad()
        self.call(*self.batch).backward()
        self.gradient = on_host(self.model)[0].grad

    def refuses(self, run, text):
        with self.assertRaisesRegex(loadline.LoadlineError, text):
            run()

    def test_reading_and_writing_it(self):
        gradient = self.gradient
        for run in (gradient.sum, gradient.clone, lambda: gradient + 1, lambda: 1 - gradient,
                    lambda: gradient.add_(1), lambda: gradient.mul_(gradient.detach()),
                    lambda: copy.deepcopy(gradient), lambda: torch.save(gradient, "/dev/null"),
                    lambda: gradient.norm(1), lambda: gradient.norm(dim=0),
                    lambda: gradient.double().norm(), lambda: gradient.isnan().any(),
                    lambda: torch.linalg.vector_norm(gradient, float("inf")),
                    lambda: torch._foreach_norm([gradient]),
                    lambda: torch.nn.utils.clip_grad_value_(self.model.parameters(), 1),
                    lambda: self.optimizer.zero_grad(set_to_none=False),
                    lambda: torch.zeros_like(gradient).copy_(gradient)):
            self.refuses(run, "is on the host: .*clip_grad_norm_")
        self.assertIn("on the host", repr(gradient))

    def test_a_norm_after_clipping(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1e-4)
        self.refuses(self.gradient.norm, "is on the host")

    def test_what_an_update_has_used(self):
        self.optimizer.step()
        used = on_host(self.model)[0].grad
        self.refuses(used.norm, "used up")
        self.refuses(self.optimizer.step, "used up")
        self.refuses(lambda: self.call(*self.batch).backward(), "zero_grad")

    def test_a_second_backward(self):
        self.refuses(lambda: self.call(*self.batch).backward(), "several batches")

    def test_gradients_that_backward_does_not_hand_over(self):
        self.optimizer.zero_grad()
        self.refuses(lambda: torch.autograd.grad(
            self.call(*self.batch), [*self.model.parameters()], allow_unused=True),
            "torch.autograd.grad")
        self.refuses(lambda: self.call(*self.batch).backward(
            inputs=[*self.model.parameters()][:1]), "leaves out")

    def test_hooks(self):
        parameter = on_host(self.model)[0]
        self.optimizer.zero_grad()
        for add in (lambda: parameter.register_hook(lambda g: g * 2),
                    lambda: parameter.register_post_accumulate_grad_hook(lambda p: None)):
            handle = add()
            self.refuses(lambda: self.call(*self.batch).backward(), "hook")
            handle.remove()
        self.optimizer.zero_grad()
        self.call(*self.batch).backward()

    def test_a_loss_scaler(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        scaler.scale(torch.ones(()))
        self.refuses(lambda: scaler.unscale_(self.optimizer), "is on the host")
        self.refuses(lambda: scaler.step(self.optimizer), "is on the host")

    def test_one_that_a_later_backward_has_overwritten(self):
        parameter = on_host(self.model)[0]
        kept = parameter.grad
        self.optimizer.zero_grad()
        self.call(*self.batch).backward()
        parameter.grad = kept
        self.refuses(self.optimizer.step, "overwritten")

    def test_a_parameter_that_is_no_longer_the_optimizers(self):
        layer = self.model.layers[0]
        before, layer.weight = layer.weight, torch.nn.Parameter(layer.weight.detach().clone())
        self.refuses(lambda: self.call(*self.batch), "not those of the model")
        layer.weight = before

    def test_a_gradient_that_is_added_outside_of_the_graph(self):
        parameter = on_host(self.model)[0]
        self.optimizer.zero_grad()
        loss = self.call(*self.batch) + parameter.square().sum()
        self.refuses(loss.backward, "is on the host")

    def test_where_it_is_not_possible(self):
        model, optimizer, batch = deep_mlp()
        for wrong, kind in (
                ({"micro_batches": 2}, loadline.InvalidArgument),
                ({"accumulate": True}, loadline.InvalidArgument),
                ({"offload": False}, lt.Unsupported),
                ({"machine": None}, lt.Unsupported)):
            with self.assertRaisesRegex(kind, "offload_gradients"):
                lt.prepare(model, optimizer, sample=batch, budget="100%", **{
                    **OPTIONS, "machine": COPIES, "offload_gradients": True, **wrong})
        with self.assertRaisesRegex(loadline.InvalidArgument, "prepare and estimate"):
            lt.compile_in_place(model, "1GiB", offload_gradients=True)


class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Sequential(
            torch.nn.Linear(32, 64), torch.nn.BatchNorm1d(64), torch.nn.GELU(),
            torch.nn.Linear(64, 32)) for _ in range(2))
        self.head = torch.nn.Linear(32, 5)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def reads_after_updates(problem, plan):
    """The steps that read an old version of a value after its update."""
    nodes = {node["id"]: node for node in problem["nodes"]}
    persistent = {value["id"] for value in problem["values"] if value.get("persistent")}
    held = {buffer["id"]: buffer["value"] for buffer in plan["buffers"]}
    updated, found = set(), []
    for step in plan["steps"]:
        read = step["in"] if "node" in step else [step["from"]]
        found += [step["id"] for one in read if held[one] in updated]
        if "node" in step:
            updated |= {old for old, _ in nodes[step["node"]].get("inplace", ())
                        if old in persistent}
    return found


class Frozen(unittest.TestCase):
    def test_while_training_leaves_no_read_of_a_parameter_behind_its_update(self):
        def steps(planned):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, x, y = Residual(), torch.randn(256, 32), torch.randint(5, (256,))
            optimizer, call = torch.optim.AdamW(model.parameters(), lr=1e-2), model

            def loss(output):
                return torch.nn.functional.cross_entropy(output, y)

            if planned:
                call, _ = lt.prepare(
                    model, optimizer, sample=x, loss_fn=loss, **{
                        **OPTIONS, "budget": "smallest", "machine": "rtx-4090",
                        "update_in_backward": True})
            found = []
            for frozen in (False, True):
                model.blocks[0].requires_grad_(not frozen)
                loss(call(x)).backward()
                optimizer.step()
                optimizer.zero_grad()
                found += [p.detach().clone() for p in model.parameters()]
            if planned:
                self.assertTrue(lt.planned[-1].moves.in_backward)
            return found

        self.assertTrue(same_bits(steps(False), steps(True)))

    def test_is_estimated_as_it_is_planned(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, x, y = Residual(), torch.randn(256, 32), torch.randint(5, (256,))
        model.blocks[0].requires_grad_(False)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

        def loss(output):
            return torch.nn.functional.cross_entropy(output, y)

        options = {**OPTIONS, "machine": "rtx-4090", "update_in_backward": True}
        for row in lt.estimate(model, optimizer, loss, sample=x,
                               budgets=["smallest", "100%"], **options).rows:
            self.assertEqual(reads_after_updates(row.problem, row.plan.document), [])
        torch._dynamo.reset()
        lt.prepare(model, optimizer, loss_fn=loss, sample=x, budget="smallest", **options)
        planned = lt.planned[-1]
        self.assertEqual(reads_after_updates(planned.problem, planned.plan.document), [])
        self.assertTrue(planned.moves.in_backward)


class InBackward(unittest.TestCase):
    """Updates that run in the backward."""

    @classmethod
    def setUpClass(cls):
        cls.prepared = prepared(update_in_backward=True)

    @classmethod
    def tearDownClass(cls):
        del cls.prepared

    def setUp(self):
        self.model, self.call, self.optimizer, self.batch = self.prepared
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.call(*self.batch).backward()

    def tearDown(self):
        host_state_of(self.optimizer)._in_backward.clear()
        self.optimizer.zero_grad()

    def refuses(self, run, text):
        with self.assertRaisesRegex(loadline.LoadlineError, text):
            run()

    def test_other_programs_have_the_same_bits(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        plain = copy.deepcopy(self.model)
        other = torch.optim.AdamW(plain.parameters())
        other.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))

        def program(model, call, optimizer):
            batch, losses = self.batch, train(call, optimizer, self.batch, 1)
            small = batch[0][:8].contiguous(),
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            losses += train(call, optimizer, batch, 3, schedule)
            losses += train(call, optimizer, small, 1) + train(call, optimizer, batch, 1)

            def closure():
                optimizer.zero_grad()
                loss = call(*batch)
                loss.backward()
                return loss

            losses.append(optimizer.step(closure).detach().clone())
            optimizer.zero_grad()
            return [*losses, *states(optimizer), *(p.detach() for p in model.parameters())]

        self.assertTrue(same_bits(program(plain, plain, other),
                                  program(self.model, self.call, self.optimizer)))

    def test_gradients_of_the_model_that_is_not_compiled(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        plain = copy.deepcopy(self.model)
        other = torch.optim.AdamW(plain.parameters())
        other.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
        for model, call, optimizer in ((plain, plain, other),
                                       (self.model, self.call, self.optimizer)):
            train(model, optimizer, self.batch, 2)
            optimizer.zero_grad()
            train(call, optimizer, self.batch, 1)
        self.assertTrue(same_bits([*plain.parameters()], [*self.model.parameters()]))
        self.assertTrue(same_bits(states(other), states(self.optimizer)))

    def test_a_backward_behind_the_forward_of_another_shape(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        loss, _ = self.call(*self.batch), self.call(self.batch[0][:8].contiguous())
        loss.backward()
        self.assertEqual(len(on_host(self.model)), 40)
        self.optimizer.step()

    def test_clipping_scaling_and_reading(self):
        parameters = [*self.model.parameters()]
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        scaler.scale(torch.ones(()))
        for run in (lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0),
                    lambda: scaler.step(self.optimizer), parameters[0].grad.norm,
                    lambda: parameters[1].grad.sum()):
            self.refuses(run, "update_in_backward=True")

    def test_settings_that_change_before_the_step(self):
        group = self.optimizer.param_groups[0]
        before, group["lr"] = group["lr"], 0.5
        self.refuses(self.optimizer.step, "learning rate")
        group["lr"] = before
        parameter = next(self.model.parameters())
        parameter.grad = torch.ones_like(parameter)
        self.refuses(self.optimizer.step, "was replaced")

    def test_a_step_that_is_left_out(self):
        self.optimizer.zero_grad()
        self.refuses(lambda: self.call(*self.batch).backward(), "has not followed")

    def test_a_second_step(self):
        self.optimizer.step()
        self.refuses(self.optimizer.step, "used up")

    def test_gradients_from_elsewhere(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        parameter = next(self.model.parameters())
        loss = self.call(*self.batch) + parameter.square().sum()
        self.refuses(loss.backward, "update_in_backward=True")


if __name__ == "__main__":
    unittest.main()
