"""Steps that write to what they read: buffers, parameters and the batch."""
import copy
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from steps import eager_step, same_bits
from training import OPTIONS


class PowerIteration(nn.Module):
    """The old spectral norm: a buffer is read, and then written in the forward."""

    def __init__(self):
        super().__init__()
        norm = nn.utils.spectral_norm
        self.layers = nn.Sequential(
            norm(nn.Conv2d(3, 8, 3, padding=1)), nn.LeakyReLU(0.1), nn.Flatten(),
            norm(nn.Linear(512, 4)))

    def forward(self, x):
        return self.layers(x).square().mean()

    @staticmethod
    def batch():
        return (torch.randn(4, 3, 8, 8),)


class Queue(nn.Module):
    """Features of earlier batches in a buffer, which is read before and after its update."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(24, 48), nn.Linear(48, 48)
        self.register_buffer("mean", torch.zeros(48))
        self.register_buffer("queue", torch.randn(64, 48))

    def forward(self, x):
        hidden = (self.first(x) - self.mean).relu()
        with torch.no_grad():
            self.mean.mul_(0.9).add_(0.1 * hidden.mean(0))
        hidden = torch.tanh(self.second(hidden) - self.mean)
        scores = hidden @ self.queue.clone().T
        with torch.no_grad():
            self.queue[16:] = self.queue[:-16].clone()
            self.queue[:16] = hidden[:16]
        mixed = scores.softmax(-1) @ self.queue.clone()
        return mixed.square().mean() + scores.logsumexp(-1).mean()

    @staticmethod
    def batch():
        return (torch.randn(16, 24),)


class Teacher(nn.Module):
    """Averaged weights, written by the forward; both networks see two views, so that each
    batch norm runs twice."""

    def __init__(self):
        super().__init__()

        def network():
            return nn.Sequential(
                nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(),
                nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
                nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 16))

        self.student, self.teacher = network(), network().requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            for old, new in zip(self.teacher.parameters(), self.student.parameters()):
                old.mul_(0.9).add_(new, alpha=0.1)
        loss = 0
        for one, other in ((x, x.flip(-1)), (x.flip(-1), x)):
            with torch.no_grad():
                target = F.normalize(self.teacher(other), dim=-1)
            loss = loss - (F.normalize(self.student(one), dim=-1) * target).sum(-1).mean()
        return loss

    @staticmethod
    def batch():
        return (torch.randn(16, 3, 8, 8),)


class Clipped(nn.Module):
    """Trained weights that the forward clips."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 24), nn.Linear(24, 24)

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        with torch.no_grad():
            self.second.weight.clamp_(-0.1, 0.1)
        return torch.tanh(self.second(hidden)).mean() + hidden.square().mean()

    @staticmethod
    def batch():
        return (torch.randn(64, 12),)


class Renormalized(nn.Module):
    """An embedding whose rows the forward shortens."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(30, 16, max_norm=1.0)
        self.head = nn.Linear(16, 4)

    def forward(self, ids):
        return self.head(torch.tanh(self.rows(ids).mean(1))).square().mean()

    @staticmethod
    def batch():
        return (torch.randint(30, (16, 4)),)


class WritesBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 24), nn.Linear(24, 12)

    def forward(self, x, out):
        hidden = torch.tanh(self.first(x.clone()))
        x.mul_(0.5)
        y = self.second(hidden)
        out.copy_(y.detach())
        return (y - x).square().mean() + out.mean() * y.mean()

    @staticmethod
    def batch():
        return torch.randn(8, 12), torch.randn(8, 12)


class Halves(nn.Module):
    """A graph break whose graph returns three views of one storage."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        a, b, c = self.first(torch.tanh(x)).chunk(3, 1)
        torch._dynamo.graph_break()
        return self.second(torch.tanh(a * b) + c).square().mean()

    @staticmethod
    def batch():
        return (torch.randn(32, 12),)


KINDS = (PowerIteration, Queue, Teacher, Clipped, Renormalized, WritesBatch, Halves)


def steps(model, call, batch):
    """Everything that three steps change."""
    torch.manual_seed(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _ in range(3):
        given = [one.clone() for one in batch]
        optimizer.zero_grad()
        loss = call(*given)
        loss.backward()
        found += [loss.detach().clone(), *given, *(
            p.grad.clone() for p in model.parameters() if p.grad is not None)]
        optimizer.step()
    return found + [one.clone() for one in model.state_dict().values()]


def made(kind):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = kind()
    return model, kind.batch()


def prepare(model, batch, budget):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*graph break", loadline.LoadlineWarning)
        return lt.prepare(model, sample=batch, budget=budget, **OPTIONS)[0]


class Steps(unittest.TestCase):
    def test_that_write_to_what_they_read_have_pytorchs_bits_at_every_budget(self):
        for kind in KINDS:
            model, batch = made(kind)
            expected = steps(model, model, batch)
            met = 0
            for budget in ("100%", "90%", "80%", "70%", "60%", "smallest"):
                with self.subTest(kind.__name__, budget=budget):
                    model, batch = made(kind)
                    try:
                        call = prepare(model, batch, budget)
                    except loadline.Infeasible as error:
                        self.assertGreater(error.smallest_met_bytes, error.budget_bytes)
                        continue
                    met += 1
                    self.assertTrue(same_bits(expected, steps(model, call, batch)))
            self.assertGreater(met, 1)


class Sample(unittest.TestCase):
    def test_step_leaves_no_trace_in_parameters_and_the_batch(self):
        for kind in KINDS:
            with self.subTest(kind.__name__):
                model, batch = made(kind)
                before = copy.deepcopy([*model.state_dict().values(), *batch])
                prepare(model, batch, "100%")
                self.assertTrue(same_bits(before, [*model.state_dict().values(), *batch]))

    def test_step_that_cannot_be_undone_is_said_aloud(self):
        class Apart(Clipped):
            @torch._dynamo.disable
            def clip(self):
                with torch.no_grad():
                    self.second.weight.clamp_(-0.1, 0.1)

            def forward(self, x):
                self.clip()
                return torch.tanh(self.second(self.first(x))).mean()

        model, batch = made(Apart)
        with self.assertWarnsRegex(loadline.LoadlineWarning, "writes to second.weight"):
            prepare(model, batch, "100%")


@torch.library.custom_op("written_inputs::count", mutates_args={"calls"})
def count(calls: torch.Tensor, rows: torch.Tensor) -> None:
    calls.add_(len(rows))


class Counting(nn.Module):
    """Writes to a buffer by an operator of the user's, and has a branch of torch.cond: both
    are operators of a higher order in the trace."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 32)
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x):
        count(self.calls, x)
        x = self.first(x)
        x = torch.cond(self.calls.sum() > 1000, torch.cos, torch.sin, (x,))
        return self.second(x * self.calls.mean()).square().mean()


class HigherOrder(unittest.TestCase):
    def test_operators_run_where_the_whole_step_is_recorded(self):
        def trained(wrap):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, x, values = Counting(), torch.randn(128, 32), []
            call = wrap(model, x)
            with lt.virtual_device(whole_step=True):
                for _ in range(3):  # the third one takes the other branch
                    values += eager_step(model, (x,), call)
            return values

        expected = trained(lambda model, x: torch.compile(
            model, backend="aot_eager", dynamic=False))
        for budget in ("100%", "90%"):
            self.assertTrue(same_bits(expected, trained(
                lambda model, x: prepare(model, (x,), budget))))


class Recurrent(nn.Module):
    """Each call begins with the state in which the last one ended."""

    def __init__(self):
        super().__init__()
        self.cell, self.state, self.calls = nn.Linear(32, 16), None, 0
        self.outputs = {"all": []}
        self.register_buffer("mean", torch.zeros(16))

    def forward(self, x):
        state = torch.zeros_like(x) if self.state is None else self.state
        state = torch.tanh(self.cell(torch.cat([x, state], 1)))
        self.state, self.calls = state.detach(), self.calls + 1
        self.mean = 0.9 * self.mean + 0.1 * state.detach().mean(0)
        self.outputs["all"].append(state.square().mean())
        return (state - x).square().mean()


class Attributes(unittest.TestCase):
    def test_are_those_from_before_the_sample_step(self):
        def trained(wrap):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, x = Recurrent(), torch.randn(8, 16)
            call = wrap(model, x)
            mean = model.mean
            losses = []
            for _ in range(3):
                model.zero_grad()
                model.outputs["all"].clear()
                losses.append(call(x))
                losses[-1].backward()
            self.assertIsNot(model.mean, mean)
            return [*(one.detach() for one in losses), model.state, model.mean,
                    torch.tensor([model.calls, len(model.outputs["all"])])]

        expected = trained(lambda model, x: torch.compile(
            model, backend="aot_eager", dynamic=False))
        for options in ({}, {"loss_fn": lambda loss: loss * 1}):
            self.assertTrue(same_bits(expected, trained(lambda model, x: lt.prepare(
                model, sample=(x,), budget="100KiB", **OPTIONS, **options)[0])))

    def test_that_the_sample_step_made_are_gone(self):
        model, x = Recurrent(), torch.randn(8, 16)
        buffer, outputs = model.mean, model.outputs["all"]
        torch._dynamo.reset()
        lt.prepare(model, sample=(x,), budget="100%", **OPTIONS)
        self.assertIsNone(model.state)
        self.assertIs(model.mean, buffer)
        self.assertIs(model.outputs["all"], outputs)
        self.assertEqual((model.calls, outputs), (0, []))


class Gradients(unittest.TestCase):
    def test_that_are_sparse_are_refused_by_name(self):
        class Sparse(nn.Module):
            def __init__(self):
                super().__init__()
                self.rows = nn.Embedding(30, 16, sparse=True)

            def forward(self, ids):
                return torch.tanh(self.rows(ids)).square().mean()

        torch._dynamo.reset()
        with self.assertRaisesRegex(lt.Unsupported, "sparse_coo.*sparse=False"):
            prepare(Sparse(), Renormalized.batch(), "100%")


if __name__ == "__main__":
    unittest.main()
