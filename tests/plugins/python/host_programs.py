"""Training loops of programs that have gradients, updates or parameters on the host.

A test module makes a subclass, and imports this one as a module: its tests run there only.
"""
import copy
import unittest

import torch

from loadline import torch as lt
from loadline.torch.state.host_gradients import HostGradient
from loadline.torch.state.host_state import host_state_of
from models import MODELS
from steps import same_bits
from training import OPTIONS, states, train


def deep_mlp(depth=20, dtype=torch.float32):
    """Parameters, gradients and state of AdamW as 1 : 1 : 2, and few activations."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = MODELS["mlp"](depth=depth).to(dtype)
    return model, torch.optim.AdamW(model.parameters()), (torch.randn(16, 64).to(dtype),)


def everything(model, optimizer):
    """State and parameters."""
    return [*states(optimizer), *(p.detach().clone() for p in model.parameters())]


def on_host(model):
    """Parameters whose gradients are there."""
    return [p for p in model.parameters() if isinstance(p.grad, HostGradient)]


class SameBits(unittest.TestCase):
    """Programs with the bits of PyTorch alone."""

    @staticmethod
    def make():
        """Model, what prepare returned, optimizer and batch."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.prepared = cls.make()
        model, _, optimizer, _ = cls.prepared
        cls.saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))

    @classmethod
    def tearDownClass(cls):
        del cls.prepared

    def same(self, program):
        model, call, optimizer, batch = self.prepared
        model.load_state_dict(self.saved[0])
        optimizer.load_state_dict(self.saved[1])
        optimizer.zero_grad()
        self.check_start(model)
        plain = copy.deepcopy(model)
        other = torch.optim.AdamW(plain.parameters())
        expected = [*program(plain, plain, other, batch), *everything(plain, other)]
        found = [*program(model, call, optimizer, batch), *everything(model, optimizer)]
        self.assertTrue(same_bits(expected, found))

    def check_start(self, model):
        """Of a program."""


def batches_of_two_shapes(model, call, optimizer, batch):
    small = batch[0][:8].contiguous(),
    losses = []
    for one in (batch, small, batch, small):
        losses += train(call, optimizer, one, 1)
    optimizer.zero_grad()
    loss, _ = call(*batch), call(*small)  # the last plan is not that of the loss
    loss.backward()
    optimizer.step()
    return [*losses, loss.detach(), *train(call, optimizer, small, 1)]


class Programs(SameBits):
    """What programs do between backward and step."""

    def test_clipping_by_the_norm_of_all(self):
        for limit in (1e-4, 1e4):
            def program(model, call, optimizer, batch):
                losses = []
                for _ in range(3):
                    losses.append(call(*batch))
                    losses[-1].backward()
                    losses.append(torch.nn.utils.clip_grad_norm_(model.parameters(), limit))
                    optimizer.step()
                    optimizer.zero_grad()
                return [*map(torch.clone, losses), *model.parameters()]

            self.same(program)

    def test_a_step_that_is_left_out_changes_nothing(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.zero_grad()
            call(*batch).backward()  # as a scaler does whose gradients are infinite
            return losses + train(call, optimizer, batch, 2)

        self.same(program)

    def test_gradients_that_are_dropped_or_replaced_before_the_step(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.zero_grad()
            call(*batch).backward()
            weights = [p for p in model.parameters() if p.dim() == 2]
            weights[0].grad = None
            weights[1].grad = torch.ones_like(weights[1])
            optimizer.step()
            return losses + train(call, optimizer, batch, 2)

        self.same(program)

    def test_a_closure(self):
        def program(model, call, optimizer, batch):
            def closure():
                optimizer.zero_grad()
                loss = call(*batch)
                loss.backward()
                return loss

            return [optimizer.step(closure).detach().clone() for _ in range(3)]

        self.same(program)

    def test_batches_of_two_shapes(self):
        self.same(batches_of_two_shapes)

    def test_states_are_saved_and_evaluated_between_backward_and_step(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.zero_grad()
            call(*batch).backward()
            saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
            other = copy.deepcopy(model)
            with torch.no_grad():
                losses += [call(*batch).clone(), other(*batch)]
            optimizer.step()
            losses += [*saved[0].values(), *train(call, optimizer, batch, 1)]
            model.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
            return losses + train(call, optimizer, batch, 1)

        self.same(program)

    def test_z_prepared_again_while_a_gradient_waits(self):
        def program(model, call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.zero_grad()
            call(*batch).backward()
            if host_state_of(optimizer) is not None:
                self.assertGreater(len(on_host(model)), 0)
                call, _ = lt.prepare(call, optimizer, sample=batch, budget="100%",
                                     **OPTIONS)
                self.assertEqual(on_host(model), [])
            optimizer.step()
            return losses + train(call, optimizer, batch, 1)

        self.same(program)
