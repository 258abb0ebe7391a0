"""What Inductor fuses has no memory: by rule, by bits, and by what it allocates."""
import copy
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import loadline
from loadline import torch as lt
from loadline.torch.problem.fuse import fuse
from loadline.torch.problem.joint import read_joint
from loadline.torch.problem.make_problem import make_problem, step_order
from models import MODELS
from random_programs import random_program
from steps import TracedStep, same_bits


class FusedStep(TracedStep):
    def make_problem(self):
        joint = read_joint(copy.deepcopy(self.module),
                           self.kwargs["num_fwd_outputs"])
        self.alone = [o.node for o in joint.operations]
        self.forward = {o.node for o in step_order(joint)[0]}
        fuse(joint)
        return make_problem(joint, self.machine)


def allocated_bytes(call, batch, model):
    """The most that a step has allocated at once, beside what was there."""
    for _ in range(2):  # compiles, and warms up
        call(*batch).backward()
        model.zero_grad()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        call(*batch).backward()
    model.zero_grad()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        seen.export_chrome_trace(str(path))
        events = [e for e in json.loads(path.read_text())["traceEvents"]
                  if e.get("name") == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    totals = [event["args"]["Total Allocated"] for event in events]
    return max(totals) - (totals[0] - events[0]["args"]["Bytes"])


class Codebook(nn.Module):
    """Reads a buffer, then updates it: the backward may not read it again."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)
        self.register_buffer("scale", torch.linspace(-1, 1, 32))
        self.register_buffer("code", torch.linspace(-1, 1, 320).view(10, 32))

    def forward(self, x, ids):
        h = self.linear(x * self.scale.sigmoid())
        loss = (torch.nn.functional.embedding(ids, self.code) - h).square().mean()
        with torch.no_grad():
            self.scale.mul_(0.5).add_(h.detach().mean(0))
            self.code.mul_(0.9).add_(0.1)
        return loss

    @staticmethod
    def batch():
        return torch.randn(16, 32), torch.randint(10, (16,))


class Adapter(nn.Module):
    """Frozen products do not read their operands again: what they read is in memory
    and in kernels of the backward."""

    def __init__(self):
        super().__init__()
        self.a, self.c, self.frozen = (nn.Linear(32, 32) for _ in range(3))
        self.frozen.requires_grad_(False)

    def forward(self, x):
        o = torch.nn.functional.silu(self.a(x))
        n = self.frozen(o)
        m = o * self.c(x)
        z = self.frozen(o.tanh()) * self.c(x)
        return (n + m + z).square().mean()

    @staticmethod
    def batch():
        return (torch.randn(16, 32),)


# With more to go wrong than the models that people have.
HARD = {"codebook": Codebook, "adapter": Adapter}


class Fuse(unittest.TestCase):
    def test_any_valid_program_of_kernels_has_the_bits_of_eager(self):
        for name in (*HARD, "gpt_dropout", "llama"):
            with self.subTest(name), mock.patch.dict(MODELS, HARD):
                step = FusedStep(name)
                for seed in range(12):
                    found = step.run_program(
                        lambda traced, seed=seed: random_program(traced, seed, True))
                    self.assertTrue(same_bits(found.values, step.eager), seed)

    def test_gradients_through_inductor(self):
        for name, make in HARD.items():
            with self.subTest(name):
                torch.manual_seed(0)
                model, batch = make(), make.batch()
                state = copy.deepcopy(model.state_dict())
                trained = [p for p in model.parameters() if p.requires_grad]
                expected = torch.autograd.grad(model(*batch), trained)
                model.load_state_dict(state)
                torch._dynamo.reset()
                call = torch.compile(model, backend=lt.backend, dynamic=False,
                                     options={"budget": "100%"})
                call(*batch).backward()
                for a, b in zip(expected, trained, strict=True):
                    torch.testing.assert_close(b.grad, a, rtol=0, atol=1e-6)

    def test_what_is_written_in_place_is_read_at_its_place(self):
        step = FusedStep("gpt")
        pairs = 0
        for node, operation in zip(step.problem["nodes"], step.traced.operations):
            for old, _ in node.get("inplace", ()):
                if operation.updates is not None:
                    continue
                pairs += 1
                made = operation.node.meta["val"]
                for argument in operation.node.all_input_nodes:
                    if step.traced.joint.root.get(argument) is step.traced.values[old]:
                        read = argument.meta["val"]
                        self.assertTrue(read.is_contiguous() and made.is_contiguous()
                                        or read.stride() == made.stride())
        self.assertGreater(pairs, 0)

    def test_nobody_reads_what_is_never_in_memory(self):
        for name in MODELS:
            with self.subTest(name):
                step = FusedStep(name)
                joint = step.traced.joint
                there = {*joint.primals, *joint.tangents, *joint.constants}
                ran = set()
                for operation in joint.operations:
                    there.update(operation.makes)
                    ran.update(operation.nodes)
                    if operation.node in step.forward:
                        self.assertLessEqual({*operation.nodes}, step.forward)
                self.assertEqual(ran, set(step.alone))
                for operation in joint.operations:
                    self.assertLessEqual(set(operation.reads), there)
                    own = set()
                    for inner in (*operation.inner, operation):
                        self.assertLessEqual(
                            set(inner.reads) - {*operation.reads}, own)
                        own.update(inner.makes)
                self.assertLessEqual(
                    {*joint.forward_outputs, *joint.backward_outputs}, there)
                # In a vision transformer only Inductor's decompositions are.
                (self.assertEqual if name == "vit" else self.assertLess)(
                    len(joint.operations), len(step.alone))

    def test_a_plan_of_kernels_has_the_bits_of_eager(self):
        for name in ("gpt_dropout", "resnet18", "llama"):
            with self.subTest(name):
                step = FusedStep(name)
                for budget in ("100%", "80%"):
                    plan = loadline.plan(step.problem, budget, work_limit=20_000)
                    self.assertTrue(same_bits(step.run(plan).values, step.eager))
                self.assertGreater(plan.recompute_ns, 0)

    def test_the_peak_is_what_inductor_allocates(self):
        for name in ("gpt", "vit"):
            with self.subTest(name):
                model, batch = MODELS[name](), MODELS[name].batch()
                torch._dynamo.reset()
                call = torch.compile(model, backend=lt.backend, dynamic=False,
                                     options={"budget": "100%"})
                found = allocated_bytes(call, batch, model)
                graph = lt.planned[-1]
                inputs = sum(value["bytes"] for value in graph.problem["values"]
                             if value.get("persistent"))
                self.assertAlmostEqual(found / (graph.peak_bytes - inputs), 1,
                                       delta=0.08)


if __name__ == "__main__":
    unittest.main()
