"""The machine of a plan where nobody names one: a GPU's own."""
import dataclasses
import importlib
import json
import os
import pathlib
import tempfile
import unittest
import warnings
from unittest import mock

import torch

import loadline
from loadline import torch as lt
from loadline.torch.problem import default_machine
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.session import in_place
from loadline.torch.solve import options
from models import MODELS
from steps import eager_step

prepare_module = importlib.import_module("loadline.torch.session.prepare")
GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
HOST_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
H100 = "NVIDIA H100 80GB HBM3"


class OwnMachine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.kept = pathlib.Path(folder.name) / "machine-cuda.json"
        patch = mock.patch.dict(os.environ, {"LOADLINE_CACHE": folder.name})
        patch.start()
        self.addCleanup(patch.stop)

    def of(self, name):
        with mock.patch("torch.cuda.get_device_name", return_value=name), (
                warnings.catch_warnings(record=True)) as warned:
            warnings.simplefilter("always")
            machine = default_machine.default_machine(GPU)
        return machine, [str(one.message) for one in warned]

    def test_a_cpu_has_no_copies(self):
        self.assertEqual(default_machine.default_machine(torch.device("cpu")), NOMINAL)
        self.assertEqual(NOMINAL.d2h_bytes_per_s, 0)

    def test_a_known_gpu_has_those_of_its_data_sheet(self):
        machine, warned = self.of(H100)
        self.assertEqual(warned, [])
        self.assertEqual((machine.name, machine.nominal), ("h100-sxm", True))
        self.assertGreater(machine.d2h_bytes_per_s, 4e10)
        # What is pinned is this host's.
        self.assertEqual(machine.host_bytes, HOST_BYTES)

    def test_what_doctor_kept_of_it_wins(self):
        measured = dataclasses.replace(
            loadline.Machine.known("h100-sxm"), name=H100, nominal=False,
            d2h_bytes_per_s=4.2e10)
        self.kept.write_text(json.dumps(measured.document()))
        self.assertEqual(self.of(H100), (measured, []))
        machine, _ = self.of("NVIDIA L4")  # that is not another's
        self.assertEqual(machine.name, "l4")
        edited = dataclasses.replace(measured, name="h100-sxm")
        self.kept.write_text(json.dumps(edited.document()))
        self.assertEqual(self.of(H100), (edited, []))

    def test_a_broken_profile_is_named_and_counts_for_nothing(self):
        self.kept.write_text("{")
        machine, (warned,) = self.of(H100)
        self.assertEqual(machine.name, "h100-sxm")
        self.assertIn("machine-cuda.json", warned)

    def test_an_unknown_gpu_says_what_to_do(self):
        machine, (warned,) = self.of("NVIDIA Unheard Of")
        self.assertEqual(dataclasses.replace(machine, reserved_bytes=0), NOMINAL)
        self.assertEqual(machine.reserved_bytes, 550 << 20)
        self.assertIn("NVIDIA Unheard Of", warned)
        self.assertIn("loadline doctor --device cuda", warned)

    def test_the_plan_is_for_the_machine_that_the_graph_is_on(self):
        self.assertEqual(default_machine.first_device([7, torch.ones(1)]).type, "cpu")
        on_gpu = mock.Mock(spec=torch.Tensor, device=GPU)
        self.assertEqual(default_machine.first_device([torch.ones(1), on_gpu]), GPU)
        like_an_h100 = loadline.Machine.known("h100-sxm")
        torch._dynamo.reset()
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        with mock.patch.object(options, "default_machine", return_value=like_an_h100) as own:
            call = torch.compile(model, backend=lt.backend, dynamic=False, options={
                "inner": "aot_eager", "budget": "90%", "work_limit": 20_000})
            eager_step(model, batch, call)
        own.assert_called_once_with(torch.device("cpu"))
        self.assertEqual(lt.planned[-1].problem["machine"]["name"], "h100-sxm")

    def test_prepare_looks_for_it_once(self):
        found = [loadline.Machine.known("h100-sxm"), loadline.Machine.known("l4")]
        with mock.patch.object(options, "default_machine", side_effect=found):
            call = lt.prepare(
                MODELS["mlp"](), sample=MODELS["mlp"].batch(), budget="90%",
                inner="aot_eager", work_limit=20_000)
        self.assertEqual(lt.planned[-1].problem["machine"]["name"], "h100-sxm")
        self.assertIn("operator times: of h100-sxm (from its data sheet)", lt.report())

    def test_a_model_compiled_in_place_may_move_before_its_first_step(self):
        torch._dynamo.reset()
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        asked = lt.compile_in_place(model, "90%", inner="aot_eager", work_limit=20_000)
        self.assertEqual(asked.machine, NOMINAL)
        moved_to = loadline.Machine.known("l4")
        with mock.patch.object(options, "default_machine", return_value=moved_to):
            eager_step(model, batch)
        self.assertEqual(lt.planned[-1].problem["machine"]["name"], "l4")
        in_place.check_planned(model)

    def test_a_process_may_pin_its_part_of_the_host(self):
        with mock.patch.dict(os.environ, {"LOCAL_WORLD_SIZE": "2"}):
            machine, _ = self.of(H100)
            named = options.Options.read({"budget": 1, "machine": "h100-sxm"}, CPU)
        self.assertEqual(machine.host_bytes, HOST_BYTES // 2)
        self.assertEqual(named.machine, machine)
        mine = dataclasses.replace(loadline.Machine.known("l4"), host_bytes=8 << 30)
        read = options.Options.read({"budget": 1, "machine": mine}, CPU)
        self.assertEqual(read.machine, mine)

    def test_a_machine_that_is_named_is_taken_by_its_name(self):
        torch._dynamo.reset()
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        call = torch.compile(model, backend=lt.backend, dynamic=False, options={
            "inner": "aot_eager", "budget": "90%", "machine": "l4",
            "work_limit": 20_000})
        eager_step(model, batch, call)
        self.assertEqual(lt.planned[-1].problem["machine"]["name"], "l4")


class OutsideOfTheAllocator(unittest.TestCase):
    def read(self, budget, device=GPU, **more):
        with mock.patch("torch.cuda.get_device_name", return_value=H100):
            return options.Options.read({"budget": budget, **more}, device)

    def test_is_device_memoryf_bytes_of_a_gpu_and_nowhere_else(self):
        reserved = loadline.Machine.known("h100-sxm").reserved_bytes
        self.assertGreater(reserved, 100 << 20)
        self.assertEqual(self.read("22GiB").outside_bytes, reserved)
        self.assertEqual(self.read(22 << 30).outside_bytes, reserved)
        self.assertEqual(self.read("60%").outside_bytes, 0)
        self.assertEqual(self.read("22GiB", outside_bytes=7).outside_bytes, 7)
        self.assertEqual(self.read("60%", outside_bytes=7).outside_bytes, 0)
        self.assertEqual(self.read("22GiB", CPU).outside_bytes, 0)
        self.assertEqual(self.read("22GiB", CPU, machine="h100-sxm").outside_bytes, 0)

    def test_leaves_the_rest_to_the_plan(self):
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        call, _ = lt.prepare(model, sample=batch, budget="1MiB", inner="aot_eager",
                             outside_bytes=100_000, work_limit=20_000)
        graph = lt.planned[-1]
        self.assertEqual(graph.plan.budget_bytes, (1 << 20) - 100_000)
        self.assertIn("outside PyTorch's allocator: 97.7 KiB", lt.report())

    def test_is_counted_in_what_would_be_enough(self):
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()

        def least(budget, **more):
            torch._dynamo.reset()
            with self.assertRaises(loadline.Infeasible) as caught:
                lt.prepare(model, sample=batch, budget=budget, inner="aot_eager",
                           work_limit=20_000, **more)
            return caught.exception.smallest_met_bytes

        alone = least(1)
        self.assertGreater(alone, 100_000)
        for budget in (1, 70_000, 70_001):  # less than that, as much, hardly more
            self.assertEqual(least(budget, outside_bytes=70_000), alone + 70_000)

    def test_reaches_the_plan_from_prepare(self):
        read = options.Options.read
        first = [70_000]

        def on_a_gpu(given, device):
            found = read(given, device)
            return dataclasses.replace(
                found, outside_bytes=first.pop()) if first else found

        with mock.patch.object(options.Options, "read", on_a_gpu):
            call = lt.prepare(
                MODELS["mlp"](), sample=MODELS["mlp"].batch(), budget="1MiB",
                inner="aot_eager", work_limit=20_000)
        self.assertEqual(lt.planned[-1].plan.budget_bytes, (1 << 20) - 70_000)

    def test_is_told_beside_what_the_allocator_holds(self):
        self.assertEqual(prepare_module._device_memory(CPU), (None, None))
        with mock.patch("torch.cuda.mem_get_info", return_value=(300, 1000)), (
                mock.patch("torch.cuda.memory_reserved", return_value=500)):
            self.assertEqual(prepare_module._device_memory(GPU), (500, 200))


if __name__ == "__main__":
    unittest.main()
