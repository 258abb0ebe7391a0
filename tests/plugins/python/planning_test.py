"""loadline.plan, verify, Machine and budgets: the package without torch."""
import copy
import json
import pathlib
import tempfile
import threading
import unittest
from unittest import mock

import loadline
from chain import chain_problem

WORK = 20_000


class Planning(unittest.TestCase):
    def test_plans_within_the_budget_and_verifies(self):
        problem = chain_problem()
        kept = loadline.keep_everything(problem)
        self.assertEqual(kept.peak_bytes, 410)
        plan = loadline.plan(problem, 409, work_limit=WORK)
        self.assertLessEqual(plan.peak_bytes, 409)
        self.assertEqual(plan.recompute_ns, 10)
        self.assertEqual(plan.sequence.count(0), 2)
        loadline.verify(problem, plan)
        loadline.verify(json.dumps(problem), plan.json)
        again = loadline.plan(problem, 409, work_limit=WORK)
        self.assertEqual(plan.json, again.json)

    def test_a_share_is_of_what_keeping_everything_takes(self):
        plan = loadline.plan(chain_problem(), "80%", work_limit=WORK)
        self.assertEqual(plan.budget_bytes, 328)

    def test_the_smallest_budget_can_be_asked_for(self):
        plan = loadline.plan(chain_problem(), "smallest", work_limit=WORK)
        self.assertEqual(plan.budget_bytes, 310)

    def test_too_small_a_budget_says_which_would_do(self):
        with self.assertRaises(loadline.Infeasible) as caught:
            loadline.plan(chain_problem(), 150, work_limit=WORK)
        self.assertEqual(caught.exception.smallest_met_bytes, 310)
        self.assertGreater(caught.exception.proven_bound_bytes, 150)
        self.assertIn("310 bytes", str(caught.exception))

    def test_what_is_forbidden_is_not_done(self):
        with self.assertRaises(loadline.Infeasible):
            loadline.plan(chain_problem(), 409, recompute=False, work_limit=WORK)

    def test_a_value_is_stored_compressed_where_that_costs_least(self):
        problem = chain_problem()
        problem["values"][1]["stash"] = [
            {"codec": "half", "bytes": 10, "encode_ns": 1, "decode_ns": 2,
             "lossless": True},
            {"codec": "rough", "bytes": 10, "encode_ns": 0, "decode_ns": 1,
             "lossless": False, "error": 0.5}]
        plan = loadline.plan(problem, 409, work_limit=WORK)
        self.assertEqual((plan.compressed, plan.step_ns), ({1: ["half"]}, 73))
        loadline.verify(problem, plan)
        rough = loadline.plan(problem, 409, lossy=True, work_limit=WORK)
        self.assertEqual((rough.compressed, rough.step_ns), ({1: ["rough"]}, 71))
        without = loadline.plan(problem, 409, codecs=False, work_limit=WORK)
        self.assertEqual((without.compressed, without.recompute_ns), ({}, 10))
        with self.assertRaisesRegex(loadline.InvalidArgument, "forbid_codecs"):
            loadline.plan(problem, 409, codecs=False, lossy=True)
        document = copy.deepcopy(plan.document)
        for step in document["steps"]:
            if "decode" in step:
                step["decode"] = "rough"
        with self.assertRaisesRegex(loadline.NotValid, "not encoded with 'rough'"):
            loadline.verify(problem, document)

    def test_a_changed_plan_is_not_valid(self):
        problem = chain_problem()
        document = copy.deepcopy(loadline.keep_everything(problem).document)
        document["predicted"]["peak_bytes"] += 100
        with self.assertRaisesRegex(loadline.NotValid, "peak_bytes"):
            loadline.verify(problem, document)

    def test_errors_name_the_field(self):
        problem = chain_problem()
        problem["values"][3]["bytes"] = -1
        with self.assertRaisesRegex(loadline.InvalidArgument, "bytes"):
            loadline.plan(problem, 409)
        with self.assertRaisesRegex(loadline.InvalidArgument, "problem"):
            loadline.plan({"format": object()}, 409)

    def test_numbers_that_cannot_be_are_refused_by_name(self):
        for name, value in (("work_limit", 1 << 63), ("work_limit", "many"),
                            ("work_limit", -1), ("seed", -1), ("seed", 1 << 64),
                            ("threads", -1), ("threads", 1.5), ("threads", 1 << 31),
                            ("time_limit_s", 0), ("time_limit_s", float("inf")),
                            ("time_limit_s", "5"), ("recompute", "no"), ("lossy", None)):
            with self.subTest(f"{name} {value}"):
                with self.assertRaisesRegex(loadline.InvalidArgument, name):
                    loadline.plan(chain_problem(), 310, **{name: value})

    def test_progress_is_told_and_its_error_comes_out(self):
        seen = []
        loadline.plan(chain_problem(), 409, work_limit=WORK, progress=seen.append)
        self.assertTrue(seen)
        self.assertLessEqual(seen[-1].peak_bytes, 409)

        def fail(progress):
            raise KeyError("of the caller")

        with self.assertRaises(KeyError):
            loadline.plan(chain_problem(), 409, work_limit=WORK, progress=fail)

    def test_an_interrupt_stops_the_search(self):
        join, calls = threading.Thread.join, []

        def interrupted(thread, timeout=None):
            calls.append(timeout)
            if len(calls) == 1:
                raise KeyboardInterrupt
            join(thread, timeout)

        with mock.patch.object(threading.Thread, "join", interrupted):
            with self.assertRaises(KeyboardInterrupt):
                loadline.plan(chain_problem(), 150, work_limit=10**12)
        self.assertEqual(threading.active_count(), 1)


class Budgets(unittest.TestCase):
    def test_are_read_exactly(self):
        for text, bytes_ in (("1B", 1), ("3GiB", 3 << 30), ("1.5 MB", 1_500_000),
                             (" 2 KiB ", 2048), ("3G", 3 << 30), ("7K", 7 << 10),
                             ("3Gi", 3 << 30), ("3gib", 3 << 30), ("+.5KiB", 512),
                             ("2.KiB", 2048),
                             ("9007199254740993B", 2**53 + 1)):
            self.assertEqual(loadline.parse_budget(text), bytes_)
        self.assertEqual(loadline.parse_budget(7), 7)
        self.assertEqual(loadline.parse_budget("33.3%", 10), 4)
        self.assertEqual(loadline.parse_budget("60 %", 10), 6)

    def test_in_percent_may_be_above_the_whole_as_for_the_command(self):
        self.assertEqual(loadline.parse_budget("101%", 1000), 1010)
        self.assertEqual(loadline.parse_budget(1.0, 1000), 1000)
        # Such a float may be meant as GiB or bytes.
        for share in (1.01, 22.0, 22e9, float("inf"), float("nan"), 0.0, -0.5):
            with self.subTest(share), self.assertRaisesRegex(
                    loadline.InvalidArgument, 'at most 1;.*larger share as "110%"'):
                loadline.parse_budget(share, 1000)
        kept = loadline.plan(chain_problem(), "100%", work_limit=WORK)
        more = loadline.plan(chain_problem(), "101%", work_limit=WORK)
        self.assertEqual(more.step_ns, kept.step_ns)
        self.assertEqual(loadline.plan(chain_problem(), " smallest ", work_limit=WORK).document,
                         loadline.plan(chain_problem(), "smallest", work_limit=WORK).document)

    def test_are_refused_with_a_hint(self):
        for text in ("", "22", "22 GiBi", "-1GiB", "0B", "1e9B", "50%", 0, -5,
                     True, None, 2.5, "0.0001B", 1 << 63, "9999999TiB", b"3GiB", ".GiB",
                     "GiB", "9" * 5000 + "GiB", "1." + "1" * 5000 + "GiB"):
            with self.subTest(text):
                with self.assertRaisesRegex(loadline.InvalidArgument, "budget"):
                    loadline.parse_budget(text)


class Harder(unittest.TestCase):
    def test_reaches_the_search(self):
        for harder in (True, False):
            with mock.patch("loadline._library.solve", return_value="{}") as solve:
                loadline.plan(chain_problem(), 310, harder=harder)
            self.assertEqual(solve.call_args[0][1]["forbid_harder"], not harder)


class Machines(unittest.TestCase):
    def test_a_profile_round_trips_and_the_planner_reads_it(self):
        machine = loadline.Machine(
            "made for tests", device_bytes=1 << 30, d2h_bytes_per_s=1e9,
            h2d_bytes_per_s=2e9, host_bytes=1 << 30,
            matmul_flop_per_s={"f32": 1e11}, memory_bytes_per_s=1e10,
            copies_exclude_compute=True, copy_overhead_ns=2000,
            h2d_latency_ns=7, d2h_h2d_factor=0.75, disk_bytes=5,
            write_bytes_per_s=3e9, read_bytes_per_s=4e9, write_read_factor=0.5)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "machine.json"
            path.write_text(json.dumps(machine.document()))
            self.assertEqual(loadline.Machine.load(path), machine)
            # What is for others there does not get in the way.
            path.write_text(json.dumps({
                **machine.document(), "ops": {"Add(f32[1])->(f32[1])": 7},
                "algorithms": {"Conv": "eng1"}, "extra": {"switch_ns": 3}}))
            self.assertEqual(loadline.Machine.load(path), machine)
            path.write_text(json.dumps({
                **machine.document(), "d2h": {"bytes_per_s": 1e9, "delay": 1}}))
            with self.assertRaisesRegex(loadline.InvalidArgument, "d2h.delay"):
                loadline.Machine.load(path)
            path.write_text("{}")
            with self.assertRaisesRegex(loadline.InvalidArgument, "machine.json"):
                loadline.Machine.load(path)
        problem = chain_problem()
        problem["machine"] = machine.document()
        plan = loadline.plan(problem, 310, recompute=False, work_limit=WORK)
        self.assertGreater(plan.document["predicted"]["d2h_bytes"], 0)

    def test_a_profile_of_version_1_is_read(self):
        machine = loadline.Machine.from_document({
            "format": "loadline.machine/1", "name": "old", "device_bytes": 7,
            "reserved_bytes": 1, "d2h_bytes_per_s": 1e9, "h2d_bytes_per_s": 2e9,
            "copy_latency_ns": 300, "bidirectional": 0.8, "host_bytes": 9,
            "ops": {"Add": 1}, "extra": {
                "switch_ns": 700, "copies_stop_compute": True, "nominal": True,
                "algorithms": {"Conv": "eng1"}, "rack": 7}})
        self.assertEqual(machine, loadline.Machine(
            "old", device_bytes=7, reserved_bytes=1, d2h_bytes_per_s=1e9,
            h2d_bytes_per_s=2e9, d2h_latency_ns=300, h2d_latency_ns=300,
            d2h_h2d_factor=0.8, host_bytes=9, copy_overhead_ns=700,
            copies_exclude_compute=True, nominal=True))
        with self.assertRaisesRegex(loadline.InvalidArgument, "format"):
            loadline.Machine.from_document({"format": "loadline.machine/3"})

    def test_a_known_gpu_goes_by_its_name(self):
        machine = loadline.Machine.load("h100-sxm")
        self.assertEqual(machine, loadline.Machine.known("NVIDIA H100 80GB HBM3"))
        self.assertTrue(machine.nominal)
        self.assertGreater(machine.copy_overhead_ns, 0)
        with self.assertRaisesRegex(loadline.InvalidArgument, "h300.*h200-sxm"):
            loadline.Machine.load("h300")
        with self.assertRaises(FileNotFoundError):
            loadline.Machine.load("h300.json")


if __name__ == "__main__":
    unittest.main()
