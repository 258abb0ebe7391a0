"""Models whose batch and output are objects that PyTorch's pytree does not look into."""
import dataclasses
import types
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from loadline.torch.compat.nested_values import map_leaves, tensors_in
from loadline.torch.session.session import session_of_model
from steps import same_bits
from training import OPTIONS


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    target: torch.Tensor
    name: str = "batch"


@dataclasses.dataclass(frozen=True)
class Output:
    loss: torch.Tensor
    rest: dict


class Slots:
    __slots__ = ("value", "missing")

    def __init__(self, value):
        self.value = value


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(32, 32) for _ in range(4)])

    def forward(self, batch):
        y = torch.tanh(self.layers(torch.tanh(batch.x)))
        return Output(F.mse_loss(y, batch.target), {"y": y})


def made():
    torch._dynamo.reset()
    torch.manual_seed(0)
    return Model(), Batch(torch.randn(64, 32), torch.randn(64, 32))


def step(model, loss, batch, call):
    model.zero_grad()
    value = loss(call(batch))
    value.backward()
    return [value.detach().clone(), *(p.grad.clone() for p in model.parameters())]


class Values(unittest.TestCase):
    def test_are_found_and_replaced_in_objects(self):
        one, two = torch.ones(2), torch.ones(3)
        value = [Batch(one, two), {"a": Slots((one, 3))}, types.SimpleNamespace(b=[two]), "c"]
        self.assertEqual([id(t) for t in tensors_in(value)], [*map(id, (one, two, one, two))])
        twice = map_leaves(lambda v: 2 * v if isinstance(v, torch.Tensor) else v, value)
        self.assertTrue(all(float(t[0]) == 2 for t in tensors_in(twice)))
        self.assertEqual((twice[0].name, twice[1]["a"].value[1], twice[3]), ("batch", 3, "c"))
        self.assertIs(value[0].x, one)

    def test_may_hold_themselves(self):
        ring = types.SimpleNamespace(x=torch.ones(1))
        ring.own = ring
        self.assertEqual(len(tensors_in(ring)), 1)


class Steps(unittest.TestCase):
    def test_with_objects_have_pytorchs_bits_within_the_budget(self):
        def outside(output):
            return output.rest["y"].square().sum()

        for name, loss, options in (
                ("of the model", lambda output: output.loss, {}),
                ("of the caller", outside, {"loss_fn": outside})):
            with self.subTest(name):
                model, batch = made()
                expected = step(model, loss, batch, model)
                model, batch = made()
                call, _ = lt.prepare(model, sample=(batch,), budget="smallest",
                                     **OPTIONS, **options)
                prepared = session_of_model(model).prepared
                with lt.virtual_device(whole_step=True) as ledger:
                    found = step(model, loss, batch, call)
                self.assertTrue(same_bits(expected, found))
                graph, = prepared.graphs
                self.assertLessEqual(
                    ledger.peak_bytes, graph.plan.budget_bytes + prepared.corrected_bytes)

    def test_of_a_sample_leave_no_gradient(self):
        model, batch = made()
        batch.x.requires_grad_()
        lt.prepare(model, sample=(batch,), budget="100%", **OPTIONS)
        self.assertIsNone(batch.x.grad)

    def test_run_in_parts(self):
        class Loss(Model):
            def forward(self, batch):
                return super().forward(batch).loss

        torch.manual_seed(0)
        model, (_, batch) = Loss(), made()
        expected = step(model, lambda loss: loss, batch, model)
        call, _ = lt.prepare(model, sample=(batch,), budget="1MiB", micro_batches=3, **OPTIONS)
        for a, b in zip(expected, step(model, lambda loss: loss, batch, call)):
            torch.testing.assert_close(a, b)

    def test_without_a_gradient_name_what_the_model_returns(self):
        class Nothing(Model):
            def forward(self, batch):
                super().forward(batch)
                return "nothing"

        model, batch = Nothing(), made()[1]
        with self.assertRaisesRegex(loadline.LoadlineError, "it returns str"):
            lt.prepare(model, sample=(batch,), budget="100%", **OPTIONS)


if __name__ == "__main__":
    unittest.main()
