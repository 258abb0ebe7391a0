"""Estimates in which parameters may rest on the host."""
import dataclasses
import unittest

import torch
from torch import nn

import loadline
from loadline import torch as lt
from loadline.torch.session.llama_shaped import LlamaShaped, Shape

MACHINE = loadline.Machine.known("rtx-4090")
OPTIONS = {"inner": "aot_eager", "work_limit": 20_000, "machine": MACHINE}
SHAPE = Shape(2, 128, 512, 4, 256)
TOKENS = dict.fromkeys(("input_ids", "labels"), torch.zeros(1, 16, dtype=torch.long))


def on_meta(make):
    with torch.device("meta"):
        return make()


def estimate(model, sample, **options):
    torch._dynamo.reset()
    return lt.estimate(model, torch.optim.AdamW, sample=sample, **{**OPTIONS, **options})


def least(model, sample, **options):
    row, = estimate(model, sample, budgets=["smallest"], **options).rows
    return row


def leaving(found):
    """Names of parameters that may leave."""
    return {value["name"] for value in found.problem["values"]
            if value.get("persistent") and value.get("offload", True)
            and not value["name"].startswith("state.")}


class OffloadParameters(unittest.TestCase):
    def setUp(self):
        self.model = on_meta(lambda: LlamaShaped(SHAPE))
        self.bytes = sum(p.numel() * 4 for p in self.model.parameters())

    def test_go_below_the_bytes_of_all_parameters(self):
        stay = least(self.model, TOKENS, update_in_backward=True)
        leave = least(self.model, TOKENS, offload_parameters=True)
        self.assertGreaterEqual(stay.peak_bytes, self.bytes)
        self.assertLess(leave.peak_bytes, 0.7 * self.bytes)

    def test_take_one_place_each_on_the_host(self):
        # Parameters and two states of each, and gradients that leave.
        machine = dataclasses.replace(MACHINE, host_bytes=int(3.02 * self.bytes))
        row = least(self.model, TOKENS, offload_parameters=True, machine=machine)
        self.assertLess(row.peak_bytes, 0.7 * self.bytes)
        self.assertLessEqual(row.plan.document["host_bytes"], machine.host_bytes)

    def test_are_no_slower_than_where_they_stay(self):
        budgets = [f"{share}%" for share in (90, 60, 45)]
        stay = estimate(self.model, TOKENS, budgets=budgets, update_in_backward=True).rows
        leave = estimate(self.model, TOKENS, budgets=budgets, offload_parameters=True).rows
        for one, other in zip(leave, stay):
            self.assertLessEqual(one.step_ns, other.step_ns)
            self.assertLessEqual(one.peak_bytes, one.budget_bytes)

    def test_may_be_frozen(self):
        self.assertLess(least(self.model, TOKENS, lora=2, offload_parameters=True).peak_bytes,
                        0.7 * self.bytes)
        self.assertGreater(least(self.model, TOKENS, lora=2).peak_bytes, self.bytes)

    def test_stay_if_the_caller_has_them_or_nothing_says_when_they_are_updated(self):
        class Returned(nn.Module):
            def __init__(self):
                super().__init__()
                self.returned, self.updated, self.frozen = (
                    nn.Parameter(torch.empty(64, 64)) for _ in range(3))
                self.frozen.requires_grad = False

            def forward(self, x):
                y = x @ self.returned @ self.updated @ self.frozen
                return y.sum(), self.returned.view(-1)

        x = torch.zeros(8, 64)
        names = leaving(estimate(on_meta(Returned), x, budgets=["100%"],
                                 offload_parameters=True))
        self.assertEqual(len(names), 2)
        names = leaving(estimate(on_meta(Returned), x, budgets=["100%"],
                                 update_in_backward=True))
        self.assertFalse(names)
        torch._dynamo.reset()
        found = lt.estimate(on_meta(Returned), torch.optim.SGD, sample=x, budgets=["100%"],
                            offload_parameters=True, **OPTIONS)
        self.assertEqual(len(leaving(found)), 1)  # no state, so no update in the plan


if __name__ == "__main__":
    unittest.main()
