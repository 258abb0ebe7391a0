"""What Python decides in the planner's place: more work, and copies or none."""
import json
import unittest
from unittest import mock

import loadline
import torch
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.solve import effort
from loadline.torch.solve.make_plan import make_plan
from loadline.torch.solve.options import Options


def found_plan(step_ns, stall_ns=0):
    return loadline.Plan(json.dumps(
        {"predicted": {"step_ns": step_ns, "stall_ns": stall_ns}}))


class Retries(unittest.TestCase):
    def works(self, bound_bytes, results):
        """The work limits of the searches that come to so much; None: to nothing."""
        limits, results = [], iter(results)

        def plan(problem, bytes_, work_limit, **_):
            limits.append(work_limit)
            if (result := next(results)) is None:
                raise loadline.Infeasible("none", bytes_, 2 * bytes_, bound_bytes)
            return result

        with mock.patch("loadline.planning.plan", plan):
            try:
                found = effort.plan_with_effort(
                    lambda work_factor, copies: make_plan(
                        {}, 100, Options(budget=50, work_limit=10), 0, work_factor,
                        copies))
            except loadline.Infeasible:
                found = None
        return limits, found

    def test_what_is_not_proven_impossible_is_searched_again(self):
        plan = found_plan(100)
        self.assertEqual(self.works(40, [None, plan]), ([10, 40], plan))
        self.assertEqual(self.works(0, [None] * 3), ([10, 40, 160], None))
        self.assertEqual(self.works(51, [None]), ([10], None))

    def test_what_waits_long_for_copies_is_searched_once_more(self):
        short, long_, better, worse = (
            found_plan(100, 5), found_plan(100, 6), found_plan(99, 99), found_plan(101))
        for results, works, found in (
                ([short], [10], short),
                ([long_, better], [10, 80], better),
                ([long_, worse], [10, 80], long_),
                ([long_, None], [10, 80], long_),
                ([None, long_, better], [10, 40, 80], better),
                ([None, None, long_], [10, 40, 160], long_)):
            self.assertEqual(self.works(0, results), (works, found))


class WithoutCopies(unittest.TestCase):
    def test_is_taken_unless_copies_gain_more_than_their_calls_take(self):
        def plan(step_ns, copies):
            return loadline.Plan(json.dumps(
                {"predicted": {"step_ns": step_ns, "stall_ns": 0},
                 "steps": [{"id": 0}, *({"id": 1, "from": 0, "to": 1},) * copies]}))

        alone, near, far = plan(100, 0), plan(80, 2), plan(79, 2)
        for without, copying, found in (
                (alone, near, alone), (alone, far, far), (None, near, near),
                (alone, None, alone)):
            asked = []

            def search(harder, copies, without=without, copying=copying, asked=asked):
                asked.append((harder, copies))
                if (one := copying if copies else without) is None:
                    raise loadline.Infeasible("none", 1, 2, 0)
                return one

            self.assertIs(effort.plan_with_effort(search, 10), found)
            self.assertEqual(asked, [(1, False), (1, True)])
            # What waits long is searched longer here too.
            if copying is not None and without is not None:
                waiting = loadline.Plan(json.dumps({**copying.document, "predicted": {
                    "step_ns": 150, "stall_ns": 150}}))

                def harder_search(harder, copies, without=without, copying=copying,
                                  waiting=waiting):
                    if not copies:
                        return without
                    return waiting if harder == 1 else copying

                self.assertIs(effort.plan_with_effort(harder_search, 10), found)
            if copying is not None:  # on a CPU a copy's calls are a part of it
                self.assertIs(effort.plan_with_effort(search, 0), copying)


class CopyCalls(unittest.TestCase):
    def test_cost_host_time_beside_a_gpu_only(self):
        gpu, cpu = torch.device("cuda"), torch.device("cpu")
        machine = loadline.Machine.known("h100-sxm")
        for offload, on, device, expected in (
                (True, machine, gpu, effort.COPY_HOST_CALL_NS), (True, machine, cpu, 0),
                (True, machine, None, 0), (True, NOMINAL, gpu, 0),
                (False, machine, gpu, 0)):
            self.assertEqual(effort.copy_call_ns(offload, on, device), expected)


class Segments(unittest.TestCase):
    def test_the_fastest_width_is_taken_after_one_search_each(self):
        plans = {3: found_plan(20), 5: found_plan(10), 7: found_plan(10)}
        self.assertEqual(effort.fastest(plans), 5)
        search = mock.Mock(side_effect=loadline.Infeasible("none", 1, 2, 0))
        with self.assertRaises(loadline.Infeasible):
            effort.plan_once(search)
        search.assert_called_once_with(1, True)


if __name__ == "__main__":
    unittest.main()
