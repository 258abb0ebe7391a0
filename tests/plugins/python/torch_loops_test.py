"""Training loops that change the optimizer after `prepare`, hook its step or keep gradients:
PyTorch's bits, and no byte above the budget without a word."""
import contextlib
import copy
import gc
import unittest
import warnings

import torch
from torch import nn

import loadline
from loadline import torch as lt
from models import MODELS
from steps import same_bits
from training import COPIES, OPTIONS, states, train

# By what may leave the device, with a budget for which it does.
LEAVING = {
    "state": {"budget": "67%"},
    "gradients": {"budget": "45%", "offload_gradients": True},
    "updates": {"budget": "45%", "update_in_backward": True},
    "parameters": {"budget": "40%", "offload_parameters": True},
}


def deep_mlp():
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = MODELS["mlp"](depth=10)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2), (torch.randn(16, 64),)


def prepare(model, optimizer, batch, **options):
    call, _ = lt.prepare(model, optimizer, sample=batch, **{
        **OPTIONS, "machine": COPIES, **options})
    return call


def everything(model, optimizer):
    return [*states(optimizer), *(p.detach().clone() for p in model.parameters())]


@contextlib.contextmanager
def warned():
    """The texts of our warnings."""
    found = []
    with warnings.catch_warnings(record=True) as all_:
        warnings.simplefilter("always")
        yield found
    found += [str(one.message) for one in all_
              if issubclass(one.category, loadline.LoadlineWarning)]


class Loops(unittest.TestCase):
    def same(self, program, ways=LEAVING, make=deep_mlp):
        """program(model, call, optimizer, batch) gives tensors, those of PyTorch alone."""
        model, optimizer, batch = make()
        expected = [*program(model, model, optimizer, batch), *everything(model, optimizer)]
        for way in ways:
            with self.subTest(way):
                model, optimizer, batch = make()
                call = prepare(model, optimizer, batch, **LEAVING[way])
                moves = lt.planned[-1].moves
                self.assertGreater(len(moves.updated | moves.in_backward), 0)
                found = [*program(model, call, optimizer, batch),
                         *everything(model, optimizer)]
                self.assertTrue(same_bits(expected, found))


class Groups(Loops):
    """The optimizer's groups are the program's, at every step."""

    def test_a_parameter_that_is_taken_out_is_not_updated(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            group, = optimizer.param_groups
            parameters, group["params"] = group["params"], group["params"][7:]
            for _ in range(2):
                model.zero_grad()
                losses.append(call(*batch))
                losses[-1].backward()
                optimizer.step()
            group["params"] = parameters
            return [loss.detach() for loss in losses]

        self.same(program)

    def test_a_parameter_in_another_group_has_that_groups_settings(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            group, = optimizer.param_groups
            parameters, group["params"] = group["params"], group["params"][7:]
            optimizer.add_param_group({"params": parameters[:7], "lr": 0.5})
            losses += train(call, optimizer, batch, 2)
            optimizer.param_groups.reverse()
            return losses + train(call, optimizer, batch, 2)

        self.same(program)

    def test_a_new_group_is_updated_too(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            extra = nn.Parameter(torch.ones(8))
            optimizer.add_param_group({"params": [extra], "lr": 0.5})

            def more(*batch):
                return call(*batch) + extra.square().sum()

            return [*losses, *train(more, optimizer, batch, 2), extra.detach()]

        self.same(program)


class StepHooks(Loops):
    """Hooks of the program on the optimizer's step, registered before or after `prepare`."""

    @staticmethod
    def clip(optimizer, args, kwargs):
        nn.utils.clip_grad_norm_(
            [p for group in optimizer.param_groups for p in group["params"]], 1e-3)

    @staticmethod
    def clamp(optimizer, args, kwargs):
        with torch.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.clamp_(-0.05, 0.05)

    def test_before_the_step_sees_all_gradients(self):
        def make():
            model, optimizer, batch = deep_mlp()
            optimizer.register_step_pre_hook(self.clip)
            return model, optimizer, batch

        def program(model, call, optimizer, batch):
            return train(call, optimizer, batch)

        def program_with_hook(model, call, optimizer, batch):
            handle = optimizer.register_step_pre_hook(self.clip)
            losses = train(call, optimizer, batch)
            handle.remove()
            return losses

        self.same(program, ("state", "gradients"), make)
        self.same(program_with_hook, ("state", "gradients"))

    def test_after_the_step_sees_all_parameters(self):
        def make():
            model, optimizer, batch = deep_mlp()
            optimizer.register_step_post_hook(self.clamp)
            return model, optimizer, batch

        def program(model, call, optimizer, batch):
            return train(call, optimizer, batch)

        self.same(program, make=make)

    def test_that_comes_between_forward_and_step_is_refused(self):
        model, optimizer, batch = deep_mlp()
        call = prepare(model, optimizer, batch, **LEAVING["state"])
        call(*batch).backward()
        before = everything(model, optimizer)
        handle = optimizer.register_step_pre_hook(self.clip)
        with self.assertRaisesRegex(loadline.LoadlineError, "before the forward"):
            optimizer.step()
        self.assertTrue(same_bits(before, everything(model, optimizer)))
        handle.remove()
        train(call, optimizer, batch, 1)

    def test_that_fails_leaves_the_groups_whole(self):
        class Failed(Exception):
            pass

        def fail(*_):
            raise Failed

        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            handle = optimizer.register_step_post_hook(fail)
            with self.assertRaises(Failed):
                train(call, optimizer, batch, 1)
            handle.remove()
            saved = copy.deepcopy(optimizer.state_dict())
            self.assertEqual(len(saved["param_groups"][0]["params"]),
                             len([*model.parameters()]))
            optimizer.zero_grad()
            self.assertTrue(all(p.grad is None for p in model.parameters()))
            return losses + train(call, optimizer, batch, 2)

        self.same(program)


class GradientHooks(unittest.TestCase):
    def test_from_before_prepare_are_named_where_gradients_leave(self):
        for way in ("gradients", "updates", "parameters"):
            model, optimizer, batch = deep_mlp()
            model.layers[2].weight.register_hook(lambda gradient: 3 * gradient)
            with self.assertRaisesRegex(lt.Unsupported, "layers.2.weight has a hook"):
                prepare(model, optimizer, batch, **LEAVING[way])


class ModuleHooks(unittest.TestCase):
    """Compiled code leaves them out in silence, unless its guards see them."""

    def losses(self, register, **options):
        """Of 2 steps before, 2 with and 2 after the hook, and how often it was called."""
        model, optimizer, batch = deep_mlp()
        call = prepare(model, optimizer, batch, **options) if options else model
        calls, losses = [], []
        for steps in range(3):
            handle = register(model.layers[2], calls) if steps == 1 else None
            for _ in range(2):
                optimizer.zero_grad()
                loss = call(*batch)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            if handle is not None:
                handle.remove()
        return losses, len(calls)

    def same(self, register):
        losses, calls = self.losses(register)
        self.assertEqual(calls, 2)
        for options in ({"budget": "100%", "machine": None}, LEAVING["state"]):
            found, times = self.losses(register, **options)
            self.assertTrue(same_bits(losses, found))
            self.assertEqual(times, 2)
            self.assertIs(torch._dynamo.config.skip_nnmodule_hook_guards, True)

    def test_on_forwards_that_come_later_change_what_follows(self):
        def register(module, calls):
            def double(module, args, output):
                calls.append(1)
                return 2 * output
            return module.register_forward_hook(double)
        self.same(register)

    def test_before_forwards_that_come_later_change_what_follows(self):
        def register(module, calls):
            def double(module, args):
                calls.append(1)
                return tuple(2 * one for one in args)
            return module.register_forward_pre_hook(double)
        self.same(register)

    def test_on_backwards_that_come_later_change_gradients(self):
        def register(module, calls):
            def double(module, inputs, outputs):
                calls.append(1)
                return tuple(None if one is None else 2 * one for one in inputs)
            return module.register_full_backward_hook(double)
        self.same(register)


class OldGradients(unittest.TestCase):
    def losses(self, zero_grad, **options):
        model, optimizer, batch = deep_mlp()
        call = prepare(model, optimizer, batch, budget="100%", machine=None, **options)
        with warned() as texts:
            for _ in range(3):
                loss = call(*batch)
                zero_grad(optimizer)
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    call(*batch)
                call(*batch)  # without a backward, as a GAN's generator for its critic
            call(batch[0][:4]).backward()
        return texts

    def test_during_a_forward_are_warned_of_once(self):
        for zero_grad in (lambda optimizer: optimizer.zero_grad(),
                          lambda optimizer: optimizer.zero_grad(set_to_none=False),
                          lambda optimizer: None):
            text, = self.losses(zero_grad)
            self.assertIn("gradients of an earlier backward", text)

    def test_that_a_plan_counts_are_not(self):
        self.assertEqual(self.losses(lambda optimizer: None, accumulate=True), [])

    def test_that_are_gone_are_not(self):
        model, optimizer, batch = deep_mlp()
        call = prepare(model, optimizer, batch, budget="100%", machine=None)
        with warned() as texts:
            train(call, optimizer, batch)
        self.assertEqual(texts, [])
        for way in ("updates", "parameters"):  # used up, they take no memory
            model, optimizer, batch = deep_mlp()
            call = prepare(model, optimizer, batch, **LEAVING[way])
            with warned() as texts:
                for _ in range(2):
                    loss = call(*batch)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            self.assertEqual(texts, [])


class Halves(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.layers = MODELS["mlp"]().layers
        self.last = last

    def forward(self, x):
        x = self.layers(x)
        return x.square().mean() if self.last else x


class SharedOptimizer(unittest.TestCase):
    def test_of_two_models_that_moves_for_one_is_refused_by_the_other(self):
        for way in LEAVING:
            with self.subTest(way):
                torch._dynamo.reset()
                first, second, x = Halves(False), Halves(True), torch.randn(16, 64)
                optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()])
                options = {**OPTIONS, "machine": COPIES, **LEAVING[way], "budget": "60%"}
                encode, _ = lt.prepare(first, optimizer, sample=x, **options)
                decode, _ = lt.prepare(second, optimizer, sample=x, **options)
                before = [p.detach().clone() for p in first.parameters()]
                with self.assertRaisesRegex(loadline.LoadlineError, "one torch.nn.Module"):
                    decode(encode(x)).backward()
                self.assertTrue(same_bits(before, [*first.parameters()]))
                optimizer.zero_grad()
                decode(x).backward()
                optimizer.step()

    def test_that_is_gone_takes_no_gradient_along(self):
        for way in ("gradients", "updates"):
            model, optimizer, batch = deep_mlp()
            call = prepare(model, optimizer, batch, **LEAVING[way])
            train(call, optimizer, batch, 1)
            del optimizer
            gc.collect()
            with self.assertRaisesRegex(loadline.LoadlineError, "gone"):
                call(*batch).backward()


class Thawed(unittest.TestCase):
    def test_parameters_have_their_state_in_the_plan(self):
        def make():
            model, optimizer, batch = deep_mlp()
            model.layers[:10].requires_grad_(False)
            return model, optimizer, batch

        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            model.requires_grad_(True)
            return losses + train(call, optimizer, batch, 3)

        model, optimizer, batch = make()
        expected = [*program(model, model, optimizer, batch), *everything(model, optimizer)]
        everything_bytes = 4 * sum(p.nbytes for p in model.parameters())
        for machine in (None, COPIES):
            model, optimizer, batch = make()
            call = prepare(model, optimizer, batch, budget=2 * everything_bytes,
                           machine=machine)
            with lt.virtual_device(whole_step=True) as ledger:
                found = program(model, call, optimizer, batch)
            self.assertTrue(same_bits(expected, [*found, *everything(model, optimizer)]))
            graph = lt.planned[-1]
            state = sum(s[name].nbytes for s in optimizer.state.values()
                        for name in ("exp_avg", "exp_avg_sq"))
            self.assertLessEqual(graph.plan.budget_bytes, 2 * everything_bytes - state
                                 + sum(graph.moves.bytes))
            self.assertLessEqual(ledger.peak_bytes, 2 * everything_bytes)

    def test_parameters_that_no_longer_fit_are_an_error(self):
        model, optimizer, batch = deep_mlp()
        model.layers[:10].requires_grad_(False)
        call = prepare(model, optimizer, batch, budget="100%", machine=None)
        train(call, optimizer, batch, 1)
        model.requires_grad_(True)
        with self.assertRaisesRegex(Exception, "the smallest budget met is"):
            call(*batch)


if __name__ == "__main__":
    unittest.main()
