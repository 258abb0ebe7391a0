"""Copies of a prepared model compute what copies of the model itself do, within its bytes."""
import copy
import io
import unittest

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from loadline import torch as lt
from models import MODELS
from steps import recorded, same_bits
from training import COPIES, OPTIONS, states, train, wide_mlp

MB = torch.randn(128, 64)


def plain():
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = MODELS["mlp"]()
    return model, torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9), (MB,)


def saved(call):
    file = io.BytesIO()
    torch.save(call, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


class Copies(unittest.TestCase):
    def same(self, program, make=plain, **options):
        """program(call, optimizer, batch) gives tensors, those of PyTorch alone."""
        model, optimizer, batch = make()
        expected = program(model, optimizer, batch)
        model, optimizer, batch = make()
        with recorded() as graphs:
            call, _ = lt.prepare(model, optimizer, sample=batch, **{
                "budget": "80%", **OPTIONS, **options})
            found = program(call, optimizer, batch)
        self.assertTrue(same_bits(expected, found))
        return graphs

    def test_train_and_evaluate_batches_of_several_sizes(self):
        for copied in (copy.deepcopy, saved):
            with self.subTest(copied.__name__):
                def program(call, optimizer, batch):
                    losses = train(call, optimizer, batch, 2)
                    other = copied(call)
                    own = torch.optim.SGD(other.parameters(), lr=0.1)
                    for size in (128, 40):
                        losses += train(other, own, (batch[0][:size],), 2)
                        with torch.no_grad():
                            losses.append(other(batch[0][:size + 1]))
                    losses += train(call, optimizer, batch, 2)
                    return [*losses, *other.parameters(), *call.parameters()]

                first, *_, last = self.same(program)
                self.assertEqual({graph.plan.budget_bytes for graph in (first, last)},
                                 {first.plan.budget_bytes})

    def test_of_copies_too(self):
        def program(call, optimizer, batch):
            other = copy.deepcopy(copy.deepcopy(call))
            return [other(batch[0][:size]).detach() for size in (128, 40, 9)]

        self.same(program)

    def test_have_the_models_own_names(self):
        model, optimizer, batch = plain()
        call, _ = lt.prepare(model, optimizer, sample=batch, budget="80%", **OPTIONS)
        average = AveragedModel(call)
        self.assertEqual([*average.module.state_dict()], [*model.state_dict()])
        model.load_state_dict(average.module.state_dict())

    def test_as_averaged_models(self):
        def program(call, optimizer, batch):
            average, losses = AveragedModel(call), []
            for _ in range(3):
                losses += train(call, optimizer, batch, 1)
                average.update_parameters(call)
                with torch.no_grad():
                    losses += [average(batch[0][:size]) for size in (128, 40)]
            return [*losses, *average.parameters()]

        self.same(program)

    def test_of_a_model_whose_batch_runs_in_parts(self):
        def program(call, optimizer, batch):
            other = copy.deepcopy(call)
            own = torch.optim.SGD(other.parameters(), lr=0.1)
            return [*train(other, own, batch, 2), *other.parameters()]

        class Mean(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(64, 3)

            def forward(self, x):
                return nn.functional.mse_loss(self.body(x), torch.zeros(len(x), 3))

        def make():
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = Mean()
            return model, torch.optim.SGD(model.parameters(), lr=0.1), (MB,)

        model, optimizer, batch = make()
        call, _ = lt.prepare(model, optimizer, sample=batch, micro_batches=4, budget="200%",
                             **OPTIONS)
        expected = [*train(call, optimizer, batch, 2), *model.parameters()]
        model, optimizer, batch = make()
        call, _ = lt.prepare(model, optimizer, sample=batch, micro_batches=4, budget="200%",
                             **OPTIONS)
        self.assertTrue(same_bits(expected, program(call, optimizer, batch)))

    def test_move_no_state_of_the_first_models_optimizer(self):
        """Nor is there less room for state of their own."""
        def make():
            model, batch = wide_mlp()
            return model, torch.optim.AdamW(model.parameters(), lr=1e-2), batch

        def program(call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            other = copy.deepcopy(call)
            if hasattr(call, "_orig_mod"):
                with self.assertRaisesRegex(Exception, "smallest budget met"):
                    other(*batch)
            with torch.no_grad():
                losses.append(other(*batch))
            losses += train(call, optimizer, batch, 2)
            return [*losses, *states(optimizer), *call.parameters()]

        first, = self.same(program, make, machine=COPIES, budget="90%")
        self.assertGreater(len(first.moves.updated), 0)


if __name__ == "__main__":
    unittest.main()
