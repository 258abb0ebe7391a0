"""What Inductor fuses has no memory: by rule, by bits, and by what it allocates."""
import copy
import json
import pathlib
import tempfile
import unittest

import torch
from torch.profiler import ProfilerActivity, profile

import loadline
from loadline import torch as lt
from loadline.torch.fuse import fuse
from loadline.torch.joint import read_joint
from loadline.torch.pose import pose, step_order
from models import MODELS
from steps import TracedStep, same_bits


class FusedStep(TracedStep):
    def pose(self):
        joint = read_joint(copy.deepcopy(self.module),
                           self.kwargs["num_fwd_outputs"])
        self.alone = [o.node for o in joint.operations]
        self.forward = {o.node for o in step_order(joint)[0]}
        fuse(joint)
        return pose(joint, self.machine)


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


class Fuse(unittest.TestCase):
    def test_nobody_reads_what_is_never_in_memory(self):
        for name in MODELS:
            with self.subTest(name):
                step = FusedStep(name)
                joint = step.posed.joint
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
