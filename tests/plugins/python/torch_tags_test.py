"""What the user's own checkpoints say stands, and what PyTorch's partitioner says
where it does not obey."""
import functools
import unittest
from unittest import mock

import torch
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from loadline import torch as lt
from loadline.torch.compat import torch_internals
from loadline.torch.problem.joint import Operation
from steps import same_bits


class Blocks(nn.Module):
    """Each within a checkpoint; `policy`: by operator, or None: a plain one."""

    def __init__(self, policy=None, dropout=0.0, wrap=True):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(
            nn.Linear(64, 64), nn.GELU(), nn.Dropout(dropout), nn.Linear(64, 64))
            for _ in range(4))
        self.options = {} if policy is None else {"context_fn": functools.partial(
            create_selective_checkpoint_contexts,
            lambda context, operator, *args, **kwargs: policy.get(
                operator, CheckpointPolicy.PREFER_SAVE))}
        self.wrap = wrap

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, **self.options) if (
                self.wrap) else block(x)
        return x.square().mean()


def step(model, budget="100%", **options):
    """Values and gradients eagerly and planned, the plan, the ledger."""
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(2))

    def run(call):
        model.zero_grad()
        torch.manual_seed(1)
        loss = call(x)
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in model.parameters())]

    expected = run(model)
    torch._dynamo.reset()
    call = torch.compile(model, backend=lt.backend, dynamic=False, options={
        "inner": "aot_eager", "budget": budget, "work_limit": 20_000, **options})
    model.zero_grad()
    with lt.virtual_device() as ledger:
        found = run(call)
    return expected, found, lt.planned[-1], ledger


def runs(graph, target):
    """How often each operation of a kind runs, in their order."""
    count = {}
    for number in graph.plan.sequence:
        operation = graph.traced.operations[number]
        if isinstance(operation, Operation) and operation.node.target is target:
            count[operation.name] = count.get(operation.name, 0) + 1
    return list(count.values())


aten = torch.ops.aten


class Tags(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def trains_as_eager(self, model, budget="100%"):
        expected, found, graph, ledger = step(model, budget)
        self.assertTrue(same_bits(expected, found))
        self.assertEqual(ledger.peak_bytes, graph.peak_bytes)
        self.assertEqual(graph.not_obeyed, [])
        return graph

    def test_a_checkpoint_is_computed_again_though_there_is_room(self):
        free = self.trains_as_eager(Blocks(wrap=False))
        self.assertEqual(runs(free, aten.gelu.default), [1] * 4)
        graph = self.trains_as_eager(Blocks())
        self.assertEqual(runs(graph, aten.gelu.default), [2] * 4)
        # What leaves one checkpoint and enters the next is the plan's to decide.
        self.assertEqual(runs(graph, aten.addmm.default), [2, 1] * 4)
        self.assertLess(graph.peak_bytes, free.peak_bytes)

    def test_a_tighter_plan_goes_on_from_there(self):
        loose = self.trains_as_eager(Blocks())
        graph = self.trains_as_eager(Blocks(), "95%")
        self.assertLess(graph.peak_bytes, loose.peak_bytes)
        self.assertEqual(min(runs(graph, aten.gelu.default)), 2)

    def test_a_selective_policy(self):
        save, again = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.MUST_RECOMPUTE
        graph = self.trains_as_eager(Blocks({aten.gelu.default: again}))
        self.assertEqual(runs(graph, aten.gelu.default), [2] * 4)
        self.assertEqual(runs(graph, aten.addmm.default), [1] * 8)
        graph = self.trains_as_eager(
            Blocks({aten.addmm.default: save, aten.gelu.default: again}), "99%")
        self.assertEqual(runs(graph, aten.addmm.default), [1] * 8)

    def test_dropout_within_a_checkpoint_draws_the_same(self):
        model = Blocks(dropout=0.3)
        graph = self.trains_as_eager(model)
        self.assertEqual(runs(graph, aten.native_dropout.default), [2] * 4)


def saving(choose, insists=True):
    """PyTorch's partitioner, that saves what `choose` picks of what it was to
    compute again; insists: and says so, and does not merely cut there."""
    def partition(module, inputs, **options):
        again = [node for node in module.graph.nodes
                 if torch_internals.must_recompute(node)
                 and node.target is aten.gelu.default]
        chosen = {node.name for node in choose(again)}
        for node in again:
            if node.name in chosen:
                node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        frames = original(module, inputs, **options)
        for frame in (module, *frames) if not insists else ():
            for node in frame.graph.nodes:
                if node.name in chosen:
                    node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
        return frames

    original = torch_internals.partition_by_tags
    return mock.patch.object(torch_internals, "partition_by_tags", partition)


class OneMore(unittest.TestCase):
    """A partitioner that insists on saving a value that the plan computes again."""

    def setUp(self):
        torch.manual_seed(0)
        self.plain = step(Blocks(wrap=False), "75%")[2]  # and the self-test is done
        torch.manual_seed(0)

    def test_the_plan_is_made_once_more_around_it(self):
        self.assertEqual(max(runs(self.plain, aten.gelu.default)), 2)
        name = None

        def always_the_same(again):
            nonlocal name
            name = name or again[0].name
            return [node for node in again if node.name == name]

        with saving(always_the_same):
            expected, found, graph, ledger = step(Blocks(wrap=False), "75%")
        self.assertTrue(same_bits(expected, found))
        self.assertEqual(graph.not_obeyed, [])
        self.assertEqual(ledger.peak_bytes, graph.peak_bytes)
        self.assertLessEqual(graph.peak_bytes, graph.plan.budget_bytes)
        self.assertNotEqual(graph.plan.json, self.plain.plan.json)

    def test_where_pytorch_would_rather_cut_binds_nobody(self):
        calls = []

        def other(again):
            calls.append(1)
            return again[:1]

        with saving(other, insists=False):
            expected, found, graph, ledger = step(Blocks(wrap=False), "75%")
        self.assertEqual(calls, [1])
        self.assertTrue(same_bits(expected, found))
        self.assertEqual(graph.not_obeyed, [])
        self.assertEqual(ledger.peak_bytes, graph.peak_bytes)
        self.assertEqual(graph.plan.json, self.plain.plan.json)

    def test_a_second_time_is_said_aloud_and_pytorch_splits(self):
        calls = []

        def other(again):
            calls.append(1)
            return again[:1]

        with saving(other), self.assertWarnsRegex(UserWarning, "for the second time"):
            expected, found, graph, ledger = step(Blocks(wrap=False), "60%")
        self.assertEqual(len(calls), 2)
        self.assertTrue(same_bits(expected, found))
        self.assertEqual(len(graph.not_obeyed), 1)
        self.assertIn("not run as planned", lt.report())


if __name__ == "__main__":
    unittest.main()
