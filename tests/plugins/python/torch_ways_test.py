"""The ways people write a step: each trains as without Loadline, and its forward and
backward, its loss and its optimizer's step together stay inside the budget."""
import unittest

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import loadline
from loadline import torch as lt
from loadline.torch.solve.make_plan import asked_bytes
from models import MODELS
from steps import recorded, same_bits


class Logits(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[
            layer for _ in range(5)
            for layer in (nn.Linear(64, 64), nn.GELU())])
        self.head = nn.Linear(64, 100)

    def forward(self, x):
        return self.head(self.body(x))


class Parts(Logits):
    def forward(self, x):
        hidden = self.body(x)
        return {"logits": self.head(hidden), "hidden": hidden, "three": 3,
                "view": hidden.view(-1)}


class Checkpointed(Logits):
    def forward(self, x):
        for i in range(0, 10, 2):
            x = checkpoint(self.body[i:i + 2], x, use_reentrant=False)
        return self.head(x)


class InPlace(Logits):
    def forward(self, x):
        x = self.head(self.body(x))
        x += 1
        x[:, :3] = 0
        return x


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(64, 192)

    def forward(self, x):
        q, k, v = self.qkv(x).view(4, -1, 3, 4, 16).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)


class Ways(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(256, 64)
        self.y = torch.randint(100, (256,))

    def loss(self, call):
        return F.cross_entropy(call(self.x), self.y)

    def trains_as_without(self, model, loss=None, budget="85%", sample=None):
        loss = loss or self.loss

        def step(call):
            model.zero_grad()
            torch.manual_seed(1)
            value = loss(call)
            value.backward()
            return [value.detach().clone(), *(
                p.grad.clone() for p in model.parameters() if p.grad is not None)]

        torch._dynamo.reset()
        expected = step(model)
        call = torch.compile(
            model, backend=lt.backend, dynamic=False,
            options={"inner": "aot_eager", "budget": budget, "work_limit": 20_000})
        model.zero_grad()
        with recorded() as graphs, lt.virtual_device() as ledger:
            found = step(call)
        graph, = graphs
        self.assertTrue(same_bits(expected, found))
        # Less where autograd lets go of what the plan holds to the end.
        self.assertLessEqual(ledger.peak_bytes, graph.peak_bytes)
        self.assertLess(graph.plan.budget_bytes, graph.keep_everything_bytes)
        self.whole_steps_stay_inside(model, loss, sample, budget)

    def whole_steps_stay_inside(self, model, loss, sample, budget):
        optimizer = torch.optim.AdamW(model.parameters())

        def step(call):
            loss(call).backward()

        for _ in range(3):
            torch._dynamo.reset()
            try:
                call, _ = lt.prepare(
                    model, optimizer, sample=self.x if sample is None else sample,
                    step_fn=step, budget=budget, inner="aot_eager", work_limit=20_000)
                break
            except loadline.Infeasible as error:  # with what was measured
                budget = error.smallest_met_bytes
        graph = lt.planned[-1]
        granted_bytes = asked_bytes(graph.options, graph.keep_everything_bytes,
                                    graph.plan)
        with lt.virtual_device(whole_step=True) as ledger:
            for _ in range(2):
                optimizer.zero_grad()
                self.x.grad = None
                step(call)
                optimizer.step()
        state_bytes = 2 * sum(p.nbytes for p in model.parameters() if p.requires_grad)
        self.assertGreater(ledger.peak_bytes, state_bytes)
        self.assertLessEqual(ledger.peak_bytes, granted_bytes)

    def test_a_loss_outside_the_model(self):
        self.trains_as_without(Logits())

    def test_parameters_that_are_not_trained(self):
        model = Logits()
        model.body[:4].requires_grad_(False)
        self.trains_as_without(model)

    def test_a_gradient_of_the_input(self):
        self.x.requires_grad_(True)
        self.trains_as_without(Logits())

    def test_outputs_of_several_kinds_and_views_of_each_other(self):
        def loss(call):
            out = call(self.x)
            return (F.cross_entropy(out["logits"], self.y) + out["hidden"].sum()
                    + out["view"][:out["three"]].sum())

        self.trains_as_without(Parts(), loss)

    def test_autocast(self):
        def loss(call):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.loss(call)

        self.trains_as_without(Logits(), loss)

    def test_checkpoints_of_the_users_own(self):
        self.trains_as_without(Checkpointed())

    def test_writes_in_place(self):
        self.trains_as_without(InPlace())

    def test_fused_attention_with_dropout(self):
        self.trains_as_without(
            Attention(), lambda call: call(self.x).square().sum(), "97%")

    def test_random_numbers_of_functions_that_name_a_device(self):
        class Noisy(Logits):
            def forward(self, x):
                order = torch.randperm(len(x), device=x.device)
                return super().forward(x + torch.rand(x.shape, device=x.device)
                                       + torch.randn_like(x) + 0.01 * order[:, None])

        self.trains_as_without(Noisy(), budget="80%")

    def test_programs_of_torch_export_and_torch_fx(self):
        self.trains_as_without(torch.export.export(Logits(), (self.x,)).module())
        self.trains_as_without(torch.fx.symbolic_trace(Logits()))

    def test_batch_norm_that_does_not_train(self):
        model, batch = MODELS["resnet18"]().eval(), MODELS["resnet18"].batch()
        self.trains_as_without(model, lambda call: call(*batch), sample=batch)

    def test_steps_that_accumulate_gradients(self):
        def loss(call):
            self.loss(call).backward()
            return self.loss(call)

        model = Logits()
        gradients = sum(p.nbytes for p in model.parameters())
        torch._dynamo.reset()
        call, _ = lt.prepare(model, sample=(self.x,), budget="1000KiB",
                             accumulate=True, inner="aot_eager",
                             work_limit=20_000)
        with lt.virtual_device() as ledger:
            loss(call).backward()
        self.assertEqual(lt.planned[-1].plan.budget_bytes, 1024_000 - gradients)
        self.assertLessEqual(ledger.peak_bytes, 1024_000)


if __name__ == "__main__":
    unittest.main()
