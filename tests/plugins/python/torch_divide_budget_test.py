"""The graphs of a step share a budget: none goes short while another has more than it uses."""
import unittest
import warnings
from fractions import Fraction

import torch

import loadline
from loadline import torch as lt
from loadline.torch.session.divide_budget import GraphBytes, shares_above_smallest
from loadline.torch.session.session import session_of_model
from training import OPTIONS


def bytes_of(shares, available):
    return [available * share for _, share in shares]


class SharesAboveSmallest(unittest.TestCase):
    GRAPHS = [GraphBytes(2, 100, 30), GraphBytes(5, 10, 9)]

    def test_give_each_its_smallest_and_divide_the_rest_by_what_each_can_use(self):
        shares = shares_above_smallest(self.GRAPHS, 39 + 71)
        self.assertEqual([number for number, _ in shares], [2, 5])
        self.assertEqual(bytes_of(shares, 110), [100, 10])
        shares = shares_above_smallest(self.GRAPHS, 60)
        self.assertEqual(bytes_of(shares, 60),
                         [30 + Fraction(21 * 70, 71), 9 + Fraction(21, 71)])

    def test_that_do_not_suffice_are_in_proportion_to_the_smallest(self):
        for available in (-5, 0, 38, 39):
            shares = shares_above_smallest(self.GRAPHS, available)
            self.assertEqual(bytes_of(shares, 39), [30, 9])

    def test_of_graphs_that_can_use_no_more_are_in_proportion_to_all(self):
        shares = shares_above_smallest([GraphBytes(0, 30, 30), GraphBytes(1, 10, 10)], 80)
        self.assertEqual(bytes_of(shares, 80), [60, 20])


class Broken(torch.nn.Module):
    """Activations in front of a graph break, and behind it a layer that keeps everything
    it has under every plan."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(
            layer for _ in range(6) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU())))
        self.head = torch.nn.Linear(64, 8)

    def forward(self, x):
        x = self.layers(x)
        torch._dynamo.graph_break()
        return self.head(x).mean()


class Divided(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.model, self.batch = Broken(), (torch.randn(512, 64),)

    def prepare(self, budget, optimizer=None, **options):
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", loadline.LoadlineWarning)  # of the graph break
            call, _ = lt.prepare(self.model, optimizer, sample=self.batch, budget=budget,
                                 **{**OPTIONS, **options})
        return call, session_of_model(self.model).prepared

    def check(self, call, budget_bytes):
        expected = self.model(*self.batch)
        expected.backward()
        gradients = [one.grad for one in self.model.parameters()]
        self.model.zero_grad()
        with lt.virtual_device(whole_step=True) as ledger:
            loss = call(*self.batch)
            loss.backward()
        self.assertLessEqual(ledger.peak_bytes, budget_bytes)
        self.assertTrue(torch.equal(loss, expected))
        for one, gradient in zip(self.model.parameters(), gradients):
            self.assertTrue(torch.equal(one.grad, gradient))
        self.model.zero_grad()

    def test_a_graph_that_needs_all_it_has_gets_it_from_another(self):
        _, prepared = self.prepare("100%")
        whole = sum(graph.keep_everything_bytes for graph in prepared.graphs)
        for share in (80, 60):
            with self.subTest(share):
                call, prepared = self.prepare(f"{share}%")
                large, small = prepared.graphs
                self.assertGreater(small.plan.budget_bytes,
                                   0.9 * small.keep_everything_bytes)
                self.assertEqual(prepared.budget, f"{share}%")
                self.check(call, whole * share // 100)
                # All of it is divided.
                self.assertAlmostEqual(sum(graph.plan.budget_bytes for graph in
                                           prepared.graphs), whole * share / 100, delta=3)

    def test_the_smallest_budget_is_the_sum_of_the_smallest(self):
        call, prepared = self.prepare("smallest")
        smallest = sum(graph.plan.budget_bytes for graph in prepared.graphs)
        whole = sum(graph.keep_everything_bytes for graph in prepared.graphs)
        self.assertLess(smallest, 0.6 * whole)
        budget = smallest + prepared.corrected_bytes
        self.assertIn(f"{budget} bytes", prepared.budget)
        self.check(call, budget)

    def test_an_error_names_a_budget_that_is_met(self):
        for optimizer in (None, torch.optim.AdamW(self.model.parameters(), foreach=True)):
            with self.subTest(optimizer):
                with self.assertRaises(loadline.Infeasible) as caught:
                    self.prepare("20%", optimizer)
                least = caught.exception.smallest_met_bytes
                self.assertLess(caught.exception.budget_bytes, least)
                self.assertLessEqual(caught.exception.proven_bound_bytes, least)
                call, prepared = self.prepare(least, optimizer)
                self.check(call, least - prepared.optimizer_bytes)
                with self.assertRaises(loadline.Infeasible):
                    self.prepare(least - 1, optimizer)

    def test_another_batch_size_has_the_same_bytes(self):
        call, prepared = self.prepare("60%")
        budgets = [graph.plan.budget_bytes for graph in prepared.graphs]
        call(self.batch[0][:384]).backward()
        self.model.zero_grad()
        self.assertEqual([graph.plan.budget_bytes for graph in
                          session_of_model(self.model).graphs], 2 * budgets)


if __name__ == "__main__":
    unittest.main()
