"""What depends on a state runs again: random operators draw what they drew, the same
bits, every byte counted, and running statistics are updated once."""
import random
import unittest
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from loadline.torch.problem.joint import draws, is_seeded
from loadline.torch.structure.part_sums import _is_random
from loadline.torch.problem.make_problem import Snapshot
from loadline.torch.rewrite.program import Run, program_of
from models import MODELS
from steps import eager_step, same_bits, trace

WORK = 20_000


def forward_twice(traced):
    """Each run of the forward part that may be made again is, right behind it."""
    forward, backward, tail = program_of(
        traced, loadline.keep_everything(traced.document).document)
    twice = []
    for item in forward:
        twice.append(item)
        if isinstance(item, Run) and item.operation.repeatable and (
                not item.operation.random or Snapshot(item.operation) in twice):
            twice.append(item)
    return twice, backward, tail


class Draws(unittest.TestCase):
    """Attention's operators can drop, and are marked as random whether they do."""

    def test_attention_that_drops_nothing_does_not(self):
        aten = torch.ops.aten
        graph = torch.fx.Graph()
        q, k, v, bias = map(graph.placeholder, ("q", "k", "v", "bias"))

        def drawn(target, *args, **kwargs):
            node = graph.call_function(target, args, kwargs)
            self.assertTrue(is_seeded(node))
            return draws(node)

        flash = aten._scaled_dot_product_flash_attention.default
        self.assertFalse(drawn(flash, q, k, v))
        self.assertFalse(drawn(flash, q, k, v, 0.0, True))
        self.assertFalse(drawn(flash, q, k, v, is_causal=True))
        self.assertTrue(drawn(flash, q, k, v, 0.1, True))
        self.assertTrue(drawn(flash, q, k, v, dropout_p=0.1))
        for efficient in (aten._scaled_dot_product_efficient_attention.default,
                          aten._scaled_dot_product_cudnn_attention.default):
            self.assertFalse(drawn(efficient, q, k, v, bias, True))
            self.assertTrue(drawn(efficient, q, k, v, bias, True, 0.1))
        self.assertTrue(drawn(aten.native_dropout.default, q, 0.0, True))

    def test_so_a_plan_may_run_it_again(self):
        step = trace("llama")
        attention = {i for i, o in enumerate(step.traced.operations)
                     if "attention" in getattr(o, "name", "") and not o.backward}
        self.assertTrue(attention)
        for number in attention:
            operation = step.traced.operations[number]
            self.assertTrue(operation.repeatable)
            self.assertFalse(operation.ordered or operation.random)
        runs = [item.operation for item in forward_twice(step.traced)[0]
                if isinstance(item, Run)]
        for number in attention:
            self.assertEqual(runs.count(step.traced.operations[number]), 2)
        self.assertTrue(same_bits(
            step.eager, step.run_program(forward_twice).values))


class Random(unittest.TestCase):
    def test_a_plan_may_run_them_again(self):
        step = trace("gpt_dropout")
        kept = loadline.keep_everything(step.problem)
        expected = step.run(kept)
        smallest = loadline.plan(step.problem, "smallest", work_limit=WORK)
        random = {n["id"] for n, o in zip(step.problem["nodes"], step.traced.operations)
                  if getattr(o, "random", False)}
        self.assertTrue(any(smallest.sequence.count(n) > 1 for n in random))
        for plan in (kept, smallest):
            found = step.run(plan)
            self.assertEqual(found.ledger.peak_bytes, plan.peak_bytes)
            self.assertTrue(same_bits(expected.values, found.values))

    def test_a_run_whose_result_nobody_reads_moves_the_generator(self):
        step = trace("gpt_dropout")
        self.assertTrue(same_bits(
            step.eager, step.run_program(forward_twice).values))

    def test_compiled_steps_have_eagers_bits_and_leave_the_generator_as_it_does(self):
        torch.manual_seed(0)
        model, batch = MODELS["gpt_dropout"](), MODELS["gpt_dropout"].batch()
        expected = [*eager_step(model, batch), torch.rand(3)]
        torch._dynamo.reset()
        call = torch.compile(model, backend=lt.backend, dynamic=False, options={
            "inner": "aot_eager", "budget": "75%", "work_limit": WORK})
        model.zero_grad()
        with lt.virtual_device() as ledger:
            found = [*eager_step(model, batch, call), torch.rand(3)]
        graph = lt.planned[-1]
        again = {o.name for i, o in enumerate(graph.traced.operations)
                 if getattr(o, "random", False) and graph.plan.sequence.count(i) > 1}
        self.assertGreater(len(again), 0)
        self.assertTrue(same_bits(expected, found))
        self.assertEqual(ledger.peak_bytes, graph.peak_bytes)


@torch.library.custom_op("loadline_test::noisy", mutates_args=())
def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + torch.randn_like(x)


noisy.register_fake(torch.empty_like)
noisy.register_autograd(lambda context, gradient: gradient)


class Noisy(nn.Module):
    """Its operator draws and does not say so."""

    def forward(self, x):
        return noisy(x)


class OfFunctions(unittest.TestCase):
    """In the graph of a loss that micro-batches take apart, before PyTorch traces operators."""

    def test_others_operators_draw_there_as_in_the_joint_graph(self):
        graph = torch.fx.Graph(torch.nn.Module())
        x = graph.placeholder("x")
        for target, expected in (
                (torch.ops.loadline_test.noisy.default, True),
                (torch.ops.loadline_test.noisy, True),
                (torch.ops.aten.bernoulli.default, True), (torch.ops.aten.bernoulli, True),
                (torch.ops.aten.sin.default, False), (torch.ops.aten.sin, False),
                (F.dropout, True), (F.rrelu, True), (F.gumbel_softmax, True),
                (F.normalize, False), (F.layer_norm, False), (torch.sin, False)):
            with self.subTest(target=str(target)):
                self.assertEqual(_is_random(graph.call_function(target, (x,))), expected)
        for method, expected in (("uniform_", True), ("normal_", True), ("sin", False)):
            self.assertEqual(_is_random(graph.call_method(method, (x,))), expected)

    def test_a_branch_that_draws_makes_its_operator_draw(self):
        def branch(function):
            inner = torch.fx.Graph()
            inner.output(inner.call_function(function, (inner.placeholder("y"),)))
            return torch.fx.GraphModule(nn.Module(), inner)

        for function, expected in ((F.dropout, True), (torch.sin, False)):
            owner = nn.Module()
            owner.branch = branch(function)
            graph = torch.fx.Graph(owner)
            node = graph.call_function(torch.ops.higher_order.cond, (
                graph.placeholder("x"), graph.get_attr("branch")))
            graph.output(node)
            module = torch.fx.GraphModule(owner, graph)
            self.assertEqual([_is_random(one) for one in module.graph.nodes
                              if one.op == "call_function"], [expected])


class Branches(nn.Module):
    """Both functions of its operator draw."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: F.dropout(y, 0.3),
                          lambda y: F.dropout(y, 0.5), (x,))


class Hidden(unittest.TestCase):
    """Random numbers that the operator of the graph does not show."""

    def check(self, kind):
        torch.manual_seed(0)
        model = nn.Sequential(*[layer for _ in range(5) for layer in (
            nn.Linear(32, 32), kind(), nn.GELU())])
        batch = torch.randn(256, 32)

        def step(call):
            model.zero_grad()
            torch.manual_seed(1)
            loss = call(batch).square().mean()
            loss.backward()
            return [loss.detach(), *(p.grad.clone() for p in model.parameters()),
                    torch.rand(3)]

        torch._dynamo.reset()
        expected = step(torch.compile(model, backend="aot_eager", dynamic=False))
        for budget in ("smallest", "75%"):
            torch._dynamo.reset()
            call = torch.compile(model, backend=lt.backend, dynamic=False, options={
                "inner": "aot_eager", "budget": budget, "work_limit": WORK})
            with lt.virtual_device() as ledger:
                found = step(call)
            graph = lt.planned[-1]
            again = [o.name for i, o in enumerate(graph.traced.operations)
                     if getattr(o, "random", False) and graph.plan.sequence.count(i) > 1]
            self.assertTrue(same_bits(expected, found), budget)
            self.assertTrue(again or budget != "smallest")
            self.assertLessEqual(ledger.peak_bytes, graph.peak_bytes)

    def test_of_an_operator_that_does_not_say_that_it_draws(self):
        self.check(Noisy)

    def test_in_a_function_that_an_operator_calls(self):
        self.check(Branches)


class Statistics(unittest.TestCase):
    def test_batch_norm_may_run_again_before_they_are_updated(self):
        step = trace("resnet18")
        self.assertTrue(same_bits(
            step.eager, step.run_program(forward_twice).values))


class Sources(nn.Module):
    """Draws from every kind of generator that a program may have."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.own = torch.Generator().manual_seed(1)
        self.others = {"python": random.Random(2), "numpy": numpy.random.default_rng(3)}
        self.old = [numpy.random.RandomState(4)]

    def forward(self, x):
        return self.linear(x + self.drawn()).square().mean()

    @torch._dynamo.disable
    def drawn(self):
        return torch.rand(8, generator=self.own) + torch.rand(8) + torch.tensor([
            random.random(), numpy.random.rand(), self.others["python"].random(),
            self.others["numpy"].random(), self.old[0].rand()]).sum()


class Programs(unittest.TestCase):
    def test_generators_draw_after_prepare_what_they_draw_without(self):
        def drawn(wrap):
            for seed in (random.seed, numpy.random.seed, torch.manual_seed):
                seed(0)
            torch._dynamo.reset()
            model, x = Sources(), torch.randn(4, 8)
            call = wrap(model, x)
            return [call(x).detach() for _ in range(3)]

        def prepared(model, x, **options):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", loadline.LoadlineWarning)  # of the graph break
                return lt.prepare(model, sample=(x,), budget="100%", inner="aot_eager",
                                  work_limit=WORK, **options)[0]

        expected = drawn(lambda model, x: model)
        self.assertFalse(torch.equal(expected[0], expected[1]))
        for options in ({}, {"loss_fn": lambda loss: loss * random.random()},
                        {"step_fn": lambda call: (call(torch.randn(4, 8))
                                                  * numpy.random.rand()).backward()}):
            self.assertTrue(same_bits(expected, drawn(
                lambda model, x: prepared(model, x, **options))))


if __name__ == "__main__":
    unittest.main()
