"""The planner decides how long it searches and whether copies pay; Python only asks."""
import dataclasses
import time
import unittest
from fractions import Fraction
from unittest import mock

import torch

import loadline
from loadline import torch as lt
from loadline.torch.compat import tiers
from loadline.torch.problem.cost_model import COPY_CALL_NS, with_copy_calls
from loadline.torch.rewrite import partitioner
from loadline.torch.session import compiler
from loadline.torch.session.divide_budget import shares_by_whole
from loadline.torch.session.session import share_of
from loadline.torch.solve import search_log
from loadline.torch.solve.make_plan import asked_bytes
from loadline.torch.solve.options import Options
from models import MODELS
from steps import recorded, trace
from training import COPIES

CPU, GPU = torch.device("cpu"), torch.device("cuda")
OPTIONS = {"inner": "aot_eager", "budget": "80%"}


def graph_of(name, **options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, batch = MODELS[name](), MODELS[name].batch()
    call = torch.compile(model, backend=lt.backend, dynamic=False,
                         options={**OPTIONS, **options})
    with recorded() as graphs:
        call(*batch).backward()
    graph, = graphs
    return graph


def copies_in(plan):
    return sum("from" in step for step in plan.document["steps"])


class Shares(unittest.TestCase):
    def test_of_all_graphs_are_the_whole_to_the_byte(self):
        @dataclasses.dataclass
        class Graph:
            keep_everything_bytes: int
            number: int

        for first, second in ((9, 5), (15, 7), (7, 18), (10**12 + 3, 10**11 + 1)):
            shares = shares_by_whole([Graph(first, 0), Graph(second, 3)])
            for (_, share), bytes_ in zip(shares, (first, second)):
                asked = asked_bytes(Options(budget="100%", shares=shares, share=share),
                                    bytes_)
                self.assertEqual(asked, first + second)
                self.assertEqual(int(asked * share), bytes_)

    def test_are_those_of_the_place_and_number_at_which_they_were_given(self):
        # Graph 0, as one that needs no gradient, has no share; graph 2 has two sizes.
        shares = (1, Fraction(1, 8)), (2, Fraction(1, 2)), (2, Fraction(3, 8))
        for place, number, eighths in ((0, 1, 1), (1, 2, 4), (2, 2, 3), (3, 1, 1),
                                       (3, 2, 4), (0, 2, 4), (3, 5, 3)):
            self.assertEqual(share_of(shares, place, number), Fraction(eighths, 8))
        self.assertEqual(share_of((), 3, 1), 1)


class OneDecider(unittest.TestCase):
    def check(self, graph, **options):
        self.assertEqual(
            graph.plan.json,
            loadline.plan(graph.problem, graph.plan.budget_bytes, **options).json)

    def test_a_graph_has_the_plan_that_the_planner_makes_of_its_problem(self):
        compiler.current_tier()  # its test plans too
        for name, options in (("gpt", {}), ("unet", {"seed": 7}),
                              ("mlp", {"machine": COPIES})):
            with self.subTest(name):
                given = {name: value for name, value in options.items()
                         if name != "machine"}
                for work in (0, 20_000):
                    self.check(graph_of(name, work_limit=work, **options),
                               effort="moderate", work_limit=work, **given)
        self.check(graph_of("mlp", machine=COPIES, offload=False, work_limit=20_000),
                   effort="moderate", work_limit=20_000, offload=False)

    def test_segments_are_searched_once_each_and_quickly(self):
        with mock.patch.object(compiler, "current_tier", return_value=tiers.PUBLIC):
            graph = graph_of("mlp", budget="90%")
        self.check(graph, effort="quick")

    def test_one_call_of_the_planner_makes_a_plan(self):
        compiler.current_tier()
        asked = []
        plan = loadline.planning.plan

        def count(*arguments, **options):
            asked.append(options)
            return plan(*arguments, **options)

        with mock.patch.object(loadline.planning, "plan", count):
            graph_of("mlp", machine=COPIES, work_limit=20_000)
        self.assertEqual(len(asked), 1)


class LongSearch(unittest.TestCase):
    def test_says_how_it_stands(self):
        with mock.patch.object(search_log, "EVERY_S", 0.02), mock.patch.object(
                search_log, "LONG_S", 0.05), self.assertLogs("loadline.torch", "INFO") as logs:
            with search_log.logged_search(3 << 20, None) as progress:
                time.sleep(0.2)
                progress(loadline.Progress(1.0, 100, 2_000_000, 1_500_000))
                time.sleep(0.2)
        first, last = logs.output[0], logs.output[-1]
        self.assertRegex(first, "INFO.*within 3 MiB, 0 s so far: no plan yet")
        self.assertIn("the best plan takes 2.0 ms, proven are 1.5 ms", last)
        self.assertEqual(sum("WARNING" in line for line in logs.output), 1)

    def test_stops_at_its_limit(self):
        """A budget that no plan meets and that no bound refuses."""
        torch._dynamo.reset()
        start = time.monotonic()
        problem = graph_of("gpt", budget="100%", work_limit=1000).problem
        low = loadline.plan(problem, "smallest", work_limit=1000)
        bound = low.document["bounds"]["peak_bytes"]
        self.assertLess(bound, low.budget_bytes)
        model, batch = MODELS["gpt"](), MODELS["gpt"].batch()
        call = torch.compile(model, backend=lt.backend, dynamic=False, options={
            **OPTIONS, "budget": bound, "time_limit_s": 0.5, "work_limit": 10**12})
        with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as caught:
            start = time.monotonic()
            call(*batch)
        self.assertIsInstance(caught.exception.inner_exception,
                              (loadline.Stopped, loadline.Infeasible))
        self.assertLess(time.monotonic() - start, 60)

    def test_has_a_limit_in_seconds(self):
        for wrong in (0, -1, "1", True):
            with self.assertRaisesRegex(loadline.InvalidArgument, "time_limit_s"):
                Options.read({**OPTIONS, "time_limit_s": wrong}, CPU)

    def test_has_a_number_of_threads(self):
        self.assertEqual(Options.read({**OPTIONS, "threads": 2}, CPU).threads, 2)
        for wrong in (-1, 1 << 31, "1", True):
            with self.assertRaisesRegex(loadline.InvalidArgument, "threads"):
                Options.read({**OPTIONS, "threads": wrong}, CPU)


class CopyCalls(unittest.TestCase):
    def test_are_priced_for_a_gpu_only(self):
        machine = dataclasses.replace(COPIES, copy_overhead_ns=2000)
        self.assertEqual(with_copy_calls(machine, GPU).copy_overhead_ns,
                         2000 + COPY_CALL_NS)
        self.assertEqual(with_copy_calls(machine, CPU), machine)
        self.assertEqual(with_copy_calls(machine, None), machine)

    def test_are_in_the_problem_that_is_planned(self):
        for device, overhead_ns in ((CPU, 0), (GPU, COPY_CALL_NS)):
            with mock.patch.object(partitioner, "copied_device", return_value=device):
                graph = graph_of("mlp", machine=COPIES, work_limit=1000)
            self.assertEqual(graph.problem["machine"]["copy_overhead_ns"], overhead_ns)

    def test_decide_between_copies_and_none(self):
        cheap = dataclasses.replace(COPIES, d2h_bytes_per_s=1e13, h2d_bytes_per_s=1e13)
        problem = trace("gpt", cheap).problem
        found = {call_ns: loadline.plan(
            {**problem, "machine": {**problem["machine"], "copy_overhead_ns": call_ns}},
            "70%", effort="moderate", work_limit=100_000)
            for call_ns in (0, COPY_CALL_NS)}
        self.assertGreater(copies_in(found[0]), 0)
        self.assertEqual(copies_in(found[COPY_CALL_NS]), 0)
        self.assertLess(found[0].step_ns, found[COPY_CALL_NS].step_ns)


if __name__ == "__main__":
    unittest.main()
