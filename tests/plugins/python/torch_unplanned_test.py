"""What PyTorch would run without a plan is said aloud: calls beyond its limit of
recompiling, errors that it swallows, and what stands between two graphs."""
import os
import unittest
import warnings
from unittest import mock

import torch
from torch import nn

import loadline
from loadline import torch as lt
from loadline.torch.compat import dynamo_internals, torch_internals
from steps import recorded, same_bits

OPTIONS = {"budget": "100%", "inner": "aot_eager", "work_limit": 1000}


def compiled(model):
    torch._dynamo.reset()
    # Of its own, which tell sessions apart.
    return torch.compile(model, backend=lt.backend, dynamic=False, options={**OPTIONS})


class Limit(unittest.TestCase):
    def setUp(self):
        for name, value in (("recompile_limit", 2),
                            ("fail_on_recompile_limit_hit", False)):
            patch = mock.patch.object(torch._dynamo.config, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.call = compiled(nn.Linear(4, 4))

    def step(self, batch):
        self.call(torch.randn(batch, 4)).sum().backward()

    def test_the_last_compile_is_announced_and_no_call_runs_without_a_plan(self):
        with recorded() as graphs:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.step(2)
            with self.assertWarnsRegex(UserWarning,
                                       "last time.*recompile_limit=2.*pad"):
                self.step(3)
            self.step(2)  # known shapes go on
            self.step(3)
            with self.assertRaisesRegex(Exception, "recompile_limit"):
                self.step(5)
        self.assertEqual(len(graphs), 2)

    def test_other_functions_run_uncompiled_beyond_their_limit(self):
        @torch.compile(backend="eager", dynamic=False)
        def other(x):
            return x.sin()

        self.step(2)
        with self.assertWarnsRegex(UserWarning, "last time"):
            self.step(3)
        for batch in (2, 3, 5):
            self.assertFalse(torch._dynamo.config.fail_on_recompile_limit_hit)
            other(torch.randn(batch))
        for _ in range(2):
            with self.assertRaisesRegex(Exception, "recompile_limit"):
                self.step(5)
            self.assertIs(torch._dynamo.config.fail_on_recompile_limit_hit, False)
        other(torch.randn(7))
        with mock.patch.object(torch._dynamo.config, "recompile_limit", 8):
            self.step(5)  # the limit is PyTorch's, and may be raised
            other(torch.randn(9))
        self.assertFalse(torch._dynamo.config.fail_on_recompile_limit_hit)

    def test_a_number_that_another_function_has_since_a_reset_is_its_own(self):
        self.step(2)
        with self.assertWarnsRegex(UserWarning, "last time"):
            self.step(3)
        torch._dynamo.reset()
        other = torch.compile(torch.sin, backend="eager", dynamic=False)
        for batch in (2, 3, 5, 7):
            other(torch.randn(batch))

    def test_a_pytorch_without_the_hook_raises_for_all_functions(self):
        with mock.patch.object(torch_internals, "register_before_compile", None):
            self.step(2)
            with self.assertWarnsRegex(UserWarning, "last time"):
                self.step(3)
            self.assertIs(torch._dynamo.config.fail_on_recompile_limit_hit, True)

    def test_where_pytorch_cannot_stop_the_warning_says_so(self):
        with mock.patch.object(torch._dynamo.config, "suppress_errors", True):
            with self.assertWarnsRegex(UserWarning, "suppress_errors is on"):
                self.step(2)
            with self.assertWarnsRegex(UserWarning, "will run without a plan"):
                self.step(3)
            self.step(5)

    def test_a_pytorch_without_these_names_warns_of_nothing(self):
        with mock.patch.object(torch_internals, "dynamo", None), warnings.catch_warnings():
            warnings.simplefilter("error")
            self.step(2)
            self.step(3)


class Weighted(nn.Module):
    """Numbers that a loop changes: an argument, an attribute and an item of one."""

    def __init__(self):
        super().__init__()
        self.layer, self.count, self.rates = nn.Linear(4, 4), 1, {"a": 1.0}

    def forward(self, x, weight=0.5, wide=False):
        x = self.layer(x) if wide else self.layer(x).sin()
        return weight * self.count * self.rates["a"] * x.sum()


class Numbers(unittest.TestCase):
    def warned(self, change):
        """What is said when the second call is compiled."""
        torch._dynamo.reset()
        model, x = Weighted(), torch.randn(2, 4)
        call = torch.compile(model, backend=lt.backend, dynamic=False,
                             options=dict(OPTIONS))
        call(x).backward()
        arguments = change(model, x)
        with warnings.catch_warnings(record=True) as found, recorded() as graphs:
            warnings.simplefilter("always")
            for _ in range(2):
                call(*arguments).backward()
        self.assertEqual(len(graphs), 1)
        return [str(one.message) for one in found]

    def test_that_change_are_named_once_with_what_to_do(self):
        def argument(model, x):
            return x, 0.25

        def attribute(model, x):
            model.count += 1
            return x,

        def item(model, x):
            model.rates["a"] = 2.0
            return x,

        for change, name in ((argument, "weight, .* was 0.5"), (attribute, "count, .* was 1"),
                             (item, r"rates\['a'\], .* was 1.0")):
            with self.subTest(change.__name__):
                said, = self.warned(change)
                self.assertRegex(said, f"number .*{name}.*8 times.*torch.tensor")

    def test_that_do_not_are_not(self):
        for change in (lambda model, x: (x, 0.5, True), lambda model, x: (x[:1],)):
            self.assertEqual(self.warned(change), [])

    def test_are_named_at_the_last_compile(self):
        with mock.patch.object(torch._dynamo.config, "recompile_limit", 2):
            _, last = self.warned(lambda model, x: (x, 0.25))
        self.assertRegex(last, "last time.*did not hold: .*weight == 0.5")


@torch._dynamo.disable
def not_traced(x):
    return x.sin().sum()


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).relu()


class Autocast(unittest.TestCase):
    def train(self, under_autocast_before, under_autocast_then):
        torch._dynamo.reset()
        model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))
        x = torch.randn(8, 16)
        with torch.autocast("cpu", torch.bfloat16, enabled=under_autocast_before):
            call, _ = lt.prepare(model, sample=x, **OPTIONS | {"budget": "200%"})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for rows in (8, 8, 4):
                with torch.autocast("cpu", torch.bfloat16, enabled=under_autocast_then):
                    loss = call(x[:rows]).float().sum()
                loss.backward()
                model.zero_grad()
        return [str(one.message) for one in caught], lt.report()

    def test_that_prepare_was_not_under_is_said_once_and_reported(self):
        (said,), report = self.train(False, True)
        self.assertRegex(said, r'outside of torch.autocast\("cpu", torch.bfloat16\), and '
                               "trains under it")
        self.assertRegex(report, r"(?s)planned since.*graph 1, .*graph 2, ")
        (said,), _ = self.train(True, False)
        self.assertRegex(said, "under .* and trains outside of it")

    def test_that_prepare_was_under_is_not(self):
        self.assertEqual(self.train(True, True)[0], [])
        self.assertEqual(self.train(False, False)[0], [])


class Break(unittest.TestCase):
    def test_is_said_aloud_where_only_one_graph_is_left_too(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return not_traced(self.layer(x))

        with recorded() as graphs, self.assertWarnsRegex(
                UserWarning, "graph break.*no plan.*fullgraph"):
            compiled(Model())(torch.randn(2, 4)).backward()
        self.assertEqual(len(graphs), 1)

    def test_is_said_where_nothing_is_traced_before_it(self):
        """PyTorch traces no nn.LSTM; what follows it is the only graph."""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.cells, self.head = nn.LSTM(4, 4), nn.Linear(4, 4)

            def forward(self, x):
                return self.head(self.cells(x)[0])

        with recorded() as graphs, self.assertWarnsRegex(
                UserWarning, "graph break.*no plan.*fullgraph"):
            compiled(Model())(torch.randn(3, 2, 4)).sum().backward()
        self.assertEqual(len(graphs), 1)

    def test_is_explained(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.cells = nn.Linear(4, 4), nn.LSTM(4, 4)

            def forward(self, x):
                return self.cells(self.first(x))[0]

        with self.assertWarnsRegex(
                UserWarning, r"graph break \(.*torch_unplanned_test.py:\d+\. .*LSTM"):
            compiled(Model())(torch.randn(3, 2, 4)).sum().backward()

    def test_in_prepare_is_said_once_for_each_graph(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 4)

            def forward(self, x):
                hidden = self.first(x).relu()
                torch._dynamo.graph_break()
                return self.second(hidden)

        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call, _ = lt.prepare(Model(), sample=torch.randn(8, 16), **OPTIONS)
        said = [str(one.message) for one in caught]
        self.assertEqual(len(said), 2, said)
        for number, text in enumerate(said, 1):
            self.assertRegex(text, f"its graph {number}. Each graph .* share of the budget")
        self.assertRegex(lt.report(), "not measured: not alone")

    def test_or_one_object_of_options_for_several_models_is_said(self):
        torch._dynamo.reset()
        options = dict(OPTIONS)
        for model in (Part(), Weighted()):
            call = torch.compile(model, backend=lt.backend, dynamic=False, options=options)
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                call(torch.randn(2, 4)).sum().backward()
        self.assertIn("several models were compiled with the same object `options`",
                      str(found[0].message))

    def test_is_not_said_of_a_model_that_is_compiled_anew(self):
        model = Part()
        call = compiled(model)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(torch.randn(2, 4)).sum().backward()
            for forget in (lambda: dynamo_internals.forget_compiled(model),
                           torch._dynamo.reset):
                forget()
                call(torch.randn(2, 4)).sum().backward()

    def test_is_said_where_only_the_parts_of_a_model_are_compiled(self):
        class Other(Part):
            def forward(self, x):
                return self.layer(x).tanh()

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleList([Part(), Other()])

            def forward(self, x):
                for part in self.parts:  # Dynamo skips a frame with this inside
                    x = part(x)
                    torch._dynamo.graph_break()
                return x

        with self.assertWarnsRegex(UserWarning, "graph break.*no plan.*fullgraph"):
            compiled(Model())(torch.randn(2, 4)).sum().backward()

    def test_of_a_branch_that_the_sample_step_did_not_run_is_said_to_have_no_share(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.one, self.other = (nn.Linear(4, 4) for _ in range(3))

            def forward(self, x):
                hidden = self.first(x).sin()
                if x.sum() > 0:
                    return self.one(hidden).sum()
                return self.other(hidden).cos().sum()

        torch._dynamo.reset()
        model, x = Model(), torch.ones(2, 4)
        with self.assertWarnsRegex(UserWarning, "within a share of the budget"):
            call, _ = lt.prepare(model, sample=x, **{**OPTIONS, "budget": "150%"})
        with self.assertWarnsRegex(UserWarning, "had 2 graphs.*go above it.*step_fn"):
            call(-x).backward()

        def step(call):
            for sign in (1, -1):
                call(sign * x).backward()

        torch._dynamo.reset()
        model = Model()
        with self.assertWarnsRegex(UserWarning, "within a share of the budget"):
            call, _ = lt.prepare(model, sample=x, step_fn=step, **{
                **OPTIONS, "budget": "150%"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step(call)

    def test_what_it_takes_outside_of_plans_is_named_where_that_does_not_fit(self):
        class Lstm(nn.Module):
            """PyTorch does not trace nn.LSTM."""

            def __init__(self):
                super().__init__()
                self.lstm, self.head = nn.LSTM(64, 64), nn.Linear(64, 4)

            def forward(self, x):
                return self.head(torch.tanh(self.lstm(x)[0])).square().mean()

        torch._dynamo.reset()
        with warnings.catch_warnings(), self.assertRaisesRegex(
                loadline.Infeasible, r"context, and [0-9.]+ KiB for what a measured step"):
            warnings.simplefilter("ignore")
            lt.prepare(Lstm(), sample=(torch.randn(3, 2, 64),), **OPTIONS)

    def test_a_model_of_which_nothing_is_traced_is_refused(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(4))

            @torch._dynamo.disable
            def forward(self, x):
                return (x * self.weight).sum()

        with self.assertRaisesRegex(loadline.LoadlineError, "nothing was planned"):
            lt.prepare(Model(), sample=(torch.randn(2, 4),), **OPTIONS)


class InsideAnother(unittest.TestCase):
    """A prepared model that is a part of a function which PyTorch compiles as well."""

    def test_keeps_its_plan(self):
        def steps(planned):
            torch._dynamo.reset()
            torch.manual_seed(0)
            inner = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.GELU())
                                    for _ in range(4)])
            head, x = nn.Linear(16, 4), torch.randn(64, 16)
            part = lt.prepare(inner, sample=x, **OPTIONS)[0] if planned else inner
            outer = torch.compile(nn.Sequential(part, head), backend="aot_eager",
                                  dynamic=False)
            for _ in range(2):
                inner.zero_grad()
                with lt.virtual_device() as ledger:
                    outer(x).square().sum().backward()
                # The function around it holds the output.
                self.assertEqual(ledger.peak_bytes > 0, planned)
                self.assertLessEqual(ledger.peak_bytes,
                                     lt.planned[-1].peak_bytes if planned else 0)
            return [p.grad for p in (*inner.parameters(), *head.parameters())]

        self.assertTrue(same_bits(steps(False), steps(True)))


class Call(unittest.TestCase):
    """A call of a prepared model of which PyTorch compiles nothing."""

    def check(self, compile_):
        model = nn.Sequential(*[nn.Linear(16, 16) for _ in range(4)])
        x = torch.randn(8, 16)
        torch._dynamo.reset()
        call = compile_(model, x)

        def step():
            model.zero_grad()
            with lt.virtual_device() as ledger:
                call(x).square().sum().backward()
            return ledger.peak_bytes

        planned_bytes = step()
        self.assertGreater(planned_bytes, 0)
        handle = model[1].register_full_backward_hook(lambda *_: None)
        with self.assertWarnsRegex(loadline.LoadlineWarning,
                                   "without a plan.*backwards hooks"):
            self.assertEqual(step(), 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", loadline.LoadlineWarning)
            step()  # said once
        handle.remove()
        call = compile_(model, x)
        self.assertEqual(step(), planned_bytes)

    def test_is_said_aloud_and_the_model_may_be_prepared_again(self):
        self.check(lambda model, x: lt.prepare(model, sample=x, **OPTIONS)[0])

    def test_that_fails_in_prepare_leaves_the_next_one_whole(self):
        model, x = nn.Sequential(nn.Linear(16, 16), nn.GELU()), torch.randn(8, 16)
        torch._dynamo.reset()
        handle = model[0].register_full_backward_hook(lambda *_: None)
        for _ in range(2):
            with self.assertRaisesRegex(loadline.LoadlineError, "backwards hooks"):
                lt.prepare(model, sample=x, **OPTIONS)
        handle.remove()
        call, _ = lt.prepare(model, sample=x, **OPTIONS)
        with lt.virtual_device() as ledger:
            call(x).sum().backward()
        self.assertGreater(ledger.peak_bytes, 0)

    def test_is_said_inside_of_vmap(self):
        model, x = nn.Sequential(nn.Linear(16, 16), nn.GELU()), torch.randn(4, 8, 16)
        torch._dynamo.reset()
        call, _ = lt.prepare(model, sample=x[0], **OPTIONS)
        with self.assertWarnsRegex(loadline.LoadlineWarning, "without a plan.*torch.func"):
            torch.func.vmap(call)(x).sum().backward()

    def test_is_said_of_a_model_that_was_compiled_in_place(self):
        def compile_(model, x):
            lt.compile_in_place(model, **OPTIONS)
            return model

        self.check(compile_)


class Off(unittest.TestCase):
    """The program has switched PyTorch's compiler off."""

    def ways(self):
        class Mode(torch_internals.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        return (
            (lambda: mock.patch.object(torch._dynamo.config, "disable", True),
             "TORCH_COMPILE_DISABLE"),
            (lambda: mock.patch.dict(os.environ, TORCHDYNAMO_DISABLE="1"),
             "TORCHDYNAMO_DISABLE"),
            (lambda: torch.compiler.set_stance("force_eager"), "set_stance.*force_eager"),
            (Mode, "Mode.*TorchDispatchMode"))

    def test_is_named_where_nothing_can_be_planned(self):
        for way, name in self.ways():
            model, x = nn.Sequential(nn.Linear(16, 16), nn.GELU()), torch.randn(8, 16)
            optimizer = torch.optim.SGD(model.parameters())
            torch._dynamo.reset()
            with self.subTest(name), way():
                with self.assertRaisesRegex(loadline.LoadlineError, f"switched off.*{name}"):
                    lt.prepare(model, optimizer, sample=x, **OPTIONS)
                with self.assertRaisesRegex(loadline.LoadlineError, f"switched off.*{name}"):
                    lt.estimate(model, optimizer, sample=x, machine="rtx-4090",
                                inner="aot_eager")

    def test_is_named_at_a_call_that_runs_without_a_plan(self):
        for way, name in self.ways()[2:]:  # PyTorch reads the others when it compiles
            model, x = nn.Sequential(nn.Linear(16, 16), nn.GELU()), torch.randn(8, 16)
            torch._dynamo.reset()
            call, _ = lt.prepare(model, sample=x, **OPTIONS)
            with self.subTest(name), way(), self.assertWarnsRegex(
                    loadline.LoadlineWarning, f"without a plan.*switched off.*{name}"):
                call(x).sum().backward()


if __name__ == "__main__":
    unittest.main()
