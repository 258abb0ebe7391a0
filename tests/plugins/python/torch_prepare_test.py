"""prepare, its accounts and report, and what goes wrong."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest
from unittest import mock

import torch

import loadline
from loadline import torch as lt
from loadline.torch.session.session import session_of_model
from loadline.torch.solve.options import Options
from loadline.torch.state.predict_state import PredictedState, buckets_of, predict_state
from models import MODELS
from steps import recorded, same_bits

OPTIONS = {"inner": "aot_eager", "work_limit": 20_000}


def train(model, optimizer, batch, steps=3):
    losses = []
    torch.manual_seed(5)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    return losses


def made(name="gpt_dropout"):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = MODELS[name]()
    return model, torch.optim.AdamW(model.parameters()), MODELS[name].batch()


class Buckets(unittest.TestCase):
    def test_are_of_128_mib_where_64_are_enough(self):
        for parameters, bytes_, count in (
                (40, 1 << 20, 20), (160, 8 << 20, 16), (32, 1 << 27, 32),
                (1000, 1 << 27, 67)):
            one = [torch.nn.Parameter(torch.empty(1, device="meta"))
                   for _ in range(parameters)]
            found = buckets_of(torch.optim.AdamW(one), PredictedState(
                [(p, bytes_) for p in one], True))
            self.assertEqual(len(found), count)
            self.assertEqual(sum(b.state_bytes for b in found), parameters * bytes_)


class Prepare(unittest.TestCase):
    def test_trains_as_without_inside_the_budget(self):
        for name, budget in (("gpt_dropout", "90%"), ("resnet18", "95%")):
            with self.subTest(name):
                model, optimizer, batch = made(name)
                expected = train(model, optimizer, batch)
                final = [t.clone() for t in model.state_dict().values()]
                model, optimizer, batch = made(name)
                planned, optimizer = lt.prepare(
                    model, optimizer, sample=batch, budget=budget, **OPTIONS)
                with lt.virtual_device() as ledger:
                    found = train(planned, optimizer, batch)
                self.assertTrue(same_bits(expected, found))
                self.assertTrue(same_bits(
                    final, list(model.state_dict().values())))
                graph = lt.planned[-1]
                self.assertEqual(ledger.peak_bytes, graph.peak_bytes)
                self.assertEqual(graph.measured_bytes, graph.peak_bytes)
                # The budget is of the graph and the optimizer's state together.
                whole = graph.keep_everything_bytes + predict_state(optimizer).bytes
                self.assertEqual(
                    graph.plan.budget_bytes + predict_state(optimizer).bytes,
                    loadline.parse_budget(budget, whole))

    def test_reports_text_and_page(self):
        model, optimizer, batch = made("mlp")
        lt.prepare(model, optimizer, sample=batch, budget="80%", **OPTIONS)
        text = lt.report()
        self.assertIn("budget 80%", text)
        self.assertIn("optimizer state", text)
        self.assertIn("+0 bytes against the plan", text)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "report.html"
            if "LOADLINE_COMMAND" in os.environ:
                lt.report(html=page)
                self.assertIn("<html", page.read_text()[:2000])

    def test_reports_the_measured_step_beside_the_planned_step(self):
        """AdamW's own memory makes the peak, and the measured step has it."""
        torch._dynamo.reset()
        model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        lt.prepare(model, optimizer, sample=torch.randn(4, 64), budget="100%", **OPTIONS)
        graph = lt.planned[-1]
        self.assertGreater(graph.measured_bytes, graph.peak_bytes)
        # The plan also has what autograd may hold to the end: the tangent.
        self.assertRegex(lt.report(), r"measured .*, (\+0|-[0-9]{1,4}) bytes against the plan")

    def test_too_small_a_budget_says_which_would_do(self):
        model, optimizer, batch = made("mlp")
        with self.assertRaises(loadline.Infeasible) as caught:
            lt.prepare(model, optimizer, sample=batch, budget="500KiB", **OPTIONS)
        smallest = caught.exception.smallest_met_bytes
        self.assertIn(f"the smallest budget met is {smallest} bytes",
                      str(caught.exception))
        lt.prepare(model, optimizer, sample=batch, budget=smallest, **OPTIONS)
        # The optimizer's state is in it.
        self.assertEqual(lt.planned[-1].plan.budget_bytes,
                         smallest - predict_state(optimizer).bytes)
        with self.assertRaisesRegex(loadline.Infeasible, "reserved"):
            lt.prepare(model, optimizer, sample=batch, budget="1KiB", **OPTIONS)

    def test_the_smallest_budget_is_the_one_that_errors_name(self):
        model, optimizer, batch = made("mlp")
        with self.assertRaises(loadline.Infeasible) as caught:
            lt.prepare(model, optimizer, sample=batch, budget="500KiB", **OPTIONS)
        call, optimizer = lt.prepare(model, optimizer, sample=batch, budget="smallest",
                                     **OPTIONS)
        graph = lt.planned[-1]
        self.assertLessEqual(graph.plan.budget_bytes + predict_state(optimizer).bytes,
                             caught.exception.smallest_met_bytes)
        self.assertLessEqual(graph.measured_bytes, graph.plan.budget_bytes
                             + predict_state(optimizer).bytes)
        self.assertRegex(lt.report(), r"budget smallest, [0-9]+ bytes")
        train(call, optimizer, batch)
        # Another batch size has the same bytes, not its own smallest.
        before = graph.plan.budget_bytes
        call(batch[0][:100]).backward()
        self.assertEqual(lt.planned[-1].plan.budget_bytes, before)

    def test_a_float_is_a_share(self):
        model, optimizer, batch = made("mlp")
        lt.prepare(model, optimizer, sample=batch, budget=0.8, **OPTIONS)
        share = lt.planned[-1].plan.json
        model, optimizer, batch = made("mlp")
        lt.prepare(model, optimizer, sample=batch, budget="80%", **OPTIONS)
        self.assertEqual(lt.planned[-1].plan.json, share)

    def test_the_device_is_what_is_free_there_and_what_the_process_holds(self):
        with mock.patch("torch.cuda.mem_get_info", return_value=(5 << 30, 8 << 30)), (
                mock.patch("torch.cuda.memory_reserved", return_value=1 << 30)):
            read = Options.read({"budget": "device", "machine": "l4"},
                                torch.device("cuda"))
        self.assertEqual((read.budget, read.outside_bytes), (6 << 30, 0))

    def test_says_what_is_what(self):
        model, optimizer, batch = made("mlp")
        with self.assertRaisesRegex(loadline.InvalidArgument, "in this order"):
            lt.prepare(optimizer, model, sample=batch, budget="1GiB", **OPTIONS)

    def test_leaves_no_trace(self):
        model, optimizer, batch = made("resnet18")
        before = [t.clone() for t in model.state_dict().values()]
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        torch.manual_seed(9)
        expected = torch.rand(3)
        torch.manual_seed(9)
        lt.prepare(model, optimizer, sample=batch, budget="100%", **OPTIONS)
        self.assertTrue(torch.equal(torch.rand(3), expected))
        self.assertTrue(same_bits(before, list(model.state_dict().values())))
        for parameter in model.parameters():
            self.assertTrue(bool((parameter.grad == 1).all()))

    def test_a_share_is_resolved_once(self):
        """Later batches train in the bytes that the first one was granted."""
        model, optimizer, (x,) = made("mlp")
        call, _ = lt.prepare(model, optimizer, sample=(x,), budget="75%", **OPTIONS)
        granted = lt.planned[-1].plan.budget_bytes
        small, large = x[:len(x) // 4].clone(), torch.cat([x] * 8)
        call(small).backward()
        self.assertEqual(lt.planned[-1].plan.budget_bytes, granted)
        self.assertLess(lt.planned[-1].keep_everything_bytes, granted)
        self.assertIn("budget 75%", lt.report())
        with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as caught:
            call(large)
        self.assertIsInstance(caught.exception.inner_exception, loadline.Infeasible)
        # In place the first batch decides.
        torch._dynamo.reset()
        model, _, _ = made("mlp")
        lt.compile_in_place(model, "75%", **OPTIONS)
        model(x).backward()
        granted = lt.planned[-1].plan.budget_bytes
        model(small).backward()
        self.assertEqual(lt.planned[-1].plan.budget_bytes, granted)

    def test_leaves_no_gradient_in_a_sample(self):
        model, _, _ = made("mlp")
        before = torch.nn.Linear(8, 64)
        leaf, kept = torch.randn(4, 8), torch.randn(16, 64)
        for sample in (torch.randn(16, 64), kept, before(leaf)):
            sample.requires_grad_()
            kept.grad = torch.ones_like(kept)
            for call in ((sample,), {"x": sample}):
                lt.prepare(model, sample=call, budget="100%", **OPTIONS)
            if sample is not kept and sample.is_leaf:
                self.assertIsNone(sample.grad)
            self.assertTrue(bool((kept.grad == 1).all()))
            self.assertIsNone(before.weight.grad)
        sample.sum().backward()  # its graph is still there

    def test_on_the_device_meta_is_refused(self):
        for name in ("mlp", "gpt"):
            model, optimizer, batch = made(name)
            far = [tensor.to("meta") for tensor in batch]
            with self.assertRaisesRegex(lt.Unsupported, "meta"):
                lt.prepare(model, optimizer, sample=far, budget="80%", **OPTIONS)
            model.to("meta")
            with self.assertRaisesRegex(lt.Unsupported, "meta"):
                lt.prepare(model, optimizer, sample=far, budget="80%", **OPTIONS)
            call = torch.compile(model, backend=lt.backend, dynamic=False,
                                 options={"budget": "80%", **OPTIONS})
            with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as caught:
                call(*far)
            self.assertIsInstance(caught.exception.inner_exception, lt.Unsupported)

    def test_helpers_are_attributes_of_the_package(self):
        for name in ("trainer", "lightning"):
            code = ("import loadline; "
                    f"print(loadline.torch.{name}.BudgetCallback('1GiB').budget)")
            if importlib.util.find_spec({"trainer": "transformers"}.get(name, name)):
                out = subprocess.run([sys.executable, "-c", code], capture_output=True,
                                     text=True)
                self.assertEqual(out.stdout.strip(), "1GiB", out.stderr)
        with self.assertRaises(AttributeError):
            lt.nothing


@torch.library.custom_op("loadline_test::wide", mutates_args=())
def wide(x: torch.Tensor) -> torch.Tensor:
    """Twice x, in a storage of twice the bytes: no tracing can know."""
    return torch.empty(2 * x.numel())[:x.numel()].view(x.shape).copy_(2 * x)


wide.register_fake(lambda x: torch.empty_like(x))
wide.register_autograd(lambda ctx, gradient: 2 * gradient)


class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = wide(layer(x))
        return x.square().mean()


class Corrections(unittest.TestCase):
    def test_what_a_kernel_takes_beyond_the_trace_is_corrected_and_named(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, batch = Wide(), (torch.randn(512, 64),)
        budget = 2_000_000
        with recorded() as graphs:
            lt.prepare(model, sample=batch, budget=budget, **OPTIONS)
        first, *_, last = graphs
        self.assertGreater(first.measured_bytes, budget)
        self.assertLessEqual(last.measured_bytes, budget)
        self.assertEqual(last.measured_bytes, last.peak_bytes)
        self.assertIn("largest surprise: wide", lt.report())

    def test_the_smallest_budget_is_found_again_with_what_was_measured(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, batch = Wide(), (torch.randn(512, 64),)
        with recorded() as graphs:
            lt.prepare(model, sample=batch, budget="smallest", **OPTIONS)
        first, *_, last = graphs
        self.assertGreater(first.measured_bytes, first.plan.budget_bytes)
        self.assertLessEqual(last.measured_bytes, last.plan.budget_bytes)
        self.assertGreater(last.plan.budget_bytes, first.plan.budget_bytes)

    def test_what_cannot_be_corrected_is_an_error(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, batch = Wide(), (torch.randn(512, 64),)
        with mock.patch("loadline.torch.session.plan_passes.CORRECTIONS", 0):
            with self.assertRaisesRegex(loadline.Infeasible, "a measured step takes .* more"
                                        ".*wide.* made"):
                lt.prepare(model, sample=batch, budget=2_000_000, **OPTIONS)


class OptimizerState(unittest.TestCase):
    def test_is_foretold_by_the_optimizers_own_step(self):
        for kind, options in ((torch.optim.SGD, {"lr": 0.1}),
                              (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
                              (torch.optim.Adam, {}),
                              (torch.optim.AdamW, {"amsgrad": True}),
                              (torch.optim.RMSprop, {}),
                              (torch.optim.Adagrad, {})):
            with self.subTest(f"{kind.__name__} {options}"):
                model = torch.nn.Linear(8, 16)
                optimizer = kind(model.parameters(), **options)
                predicted = predict_state(optimizer).bytes
                model(torch.randn(2, 8)).sum().backward()
                optimizer.step()
                self.assertEqual(predicted, predict_state(optimizer).bytes)

    def test_of_a_step_that_reads_values_too(self):
        for kind, options in ((torch.optim.Adafactor, {}), (torch.optim.ASGD, {}),
                              (torch.optim.Adafactor, {"foreach": True})):
            model = torch.nn.Linear(8, 16)
            optimizer = kind(model.parameters(), **options)
            parameters = [p.detach().clone() for p in model.parameters()]
            predicted = predict_state(optimizer)
            self.assertEqual(len(optimizer.state), 0)
            self.assertTrue(same_bits(parameters, [*model.parameters()]))
            # ASGD updates in place.
            self.assertEqual(predicted.step_bytes > 0, kind is torch.optim.Adafactor)
            model(torch.randn(2, 8)).sum().backward()
            optimizer.step()
            self.assertEqual(predicted.bytes, predict_state(optimizer).bytes)

    def test_of_lbfgs_holds_while_its_history_grows(self):
        for options in ({}, {"line_search_fn": "strong_wolfe"}):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, batch = torch.nn.Linear(64, 64), torch.randn(8, 64)
            optimizer = torch.optim.LBFGS(model.parameters(), history_size=5, **options)
            budget = predict_state(optimizer).bytes + 200_000
            call, _ = lt.prepare(model, optimizer, sample=batch, budget=budget,
                                 loss_fn=lambda y: (y ** 4).mean(), **OPTIONS)

            def closure():
                optimizer.zero_grad()
                loss = (call(batch) ** 4).mean()
                loss.backward()
                return loss

            with lt.virtual_device(whole_step=True) as ledger:
                for _ in range(3):
                    optimizer.step(closure)
            state, = optimizer.state.values()
            self.assertEqual(len(state["old_dirs"]), 5)
            self.assertLessEqual(ledger.peak_bytes, budget)

    def test_of_a_step_that_cannot_run_on_zeros_asks_for_one(self):
        class Picky(torch.optim.SGD):
            def step(self, closure=None):
                if not any(p.abs().sum() > 0 for p in self.param_groups[0]["params"]):
                    raise RuntimeError("all zero")

        optimizer = Picky(torch.nn.Linear(8, 16).parameters(), 0.1)
        with self.assertRaisesRegex(loadline.InvalidArgument, "all zero.*one optimizer"):
            predict_state(optimizer)


class Mistakes(unittest.TestCase):
    def compile(self, model, batch, **options):
        torch._dynamo.reset()
        with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as caught:
            torch.compile(model, backend=lt.backend, options=options)(*batch)
        return caught.exception.inner_exception

    def test_options_of_a_model_that_is_compiled_in_place_are_named_at_once(self):
        model, optimizer, _ = made("mlp")
        for options, word in (({"reserve_bytes": "1GiB"}, "reserve_bytes"),
                              ({"reserve_bytes": -1, "optimizers": [optimizer]},
                               "reserve_bytes"),
                              ({"reserve_bytes": 2.5}, "reserve_bytes"),
                              ({"optimizers": optimizer}, "list of optimizers")):
            with self.assertRaisesRegex(loadline.InvalidArgument, word):
                lt.compile_in_place(model, "1GiB", inner="aot_eager", **options)

    def test_options_are_named(self):
        model, _, batch = made("mlp")
        for options, word in (({}, "budget"), ({"budget": "22"}, "budget"),
                              ({"budget": "1GiB", "inner": "tvm"}, "inner"),
                              ({"budget": "1GiB", "bugdet": 1}, "bugdet"),
                              ({"budget": "least"}, "budget"),
                              ({"budget": 1.5}, "a share"),
                              ({"budget": 0.0}, "a share"),
                              ({"budget": "device"}, "give bytes"),
                              ({"budget": 1 << 63}, "budget"),
                              ({"budget": "1GiB", "machine": 3}, "machine"),
                              ({"budget": "1GiB", "seed": -1}, "seed"),
                              ({"budget": "1GiB", "work_limit": "1"}, "work_limit"),
                              ({"budget": "1GiB", "reserve_bytes": "1GiB"},
                               "reserve_bytes")):
            error = self.compile(model, batch, **options)
            self.assertIsInstance(error, loadline.InvalidArgument)
            self.assertIn(word, str(error))

    def test_options_of_others_are_named_and_the_plugins_own_are_not(self):
        model, _, _ = made("mlp")
        with self.assertRaisesRegex(loadline.InvalidArgument,
                                    "micro_batches is an argument of .*prepare"):
            lt.compile_in_place(model, "1GiB", micro_batches=2)
        with self.assertRaises(loadline.InvalidArgument) as caught:
            lt.compile_in_place(model, "1GiB", bugdet=2)
        named = str(caught.exception).rpartition("the options are ")[2].split(", ")
        self.assertIn("work_limit", named)
        documented = (pathlib.Path(__file__).parents[3] / "docs/pytorch.md").read_text()
        for name in named:
            self.assertIn(f"`{name}`", documented)

    def test_a_loss_fn_with_other_arguments_is_refused_before_anything_runs(self):
        model, _, batch = made("mlp")
        for make in (lt.prepare, lt.estimate):
            options = {"budget": "100%"} if make is lt.prepare else {}
            with self.assertRaisesRegex(loadline.InvalidArgument,
                                        "loss_fn .*missing.*only the output"):
                make(model, None, loss_fn=lambda output, target: output, sample=batch,
                     **options, **OPTIONS)
            with self.assertRaisesRegex(loadline.InvalidArgument,
                                        "loss_fn .*too many.*output and the target"):
                make(model, None, loss_fn=lambda output: output, micro_batches=2,
                     sample=(batch[0], batch[0]), **options, **OPTIONS)

    def test_too_small_a_budget_is_no_plan_in_torch_compile_either(self):
        model, _, batch = made("mlp")
        error = self.compile(model, batch, **{**OPTIONS, "budget": "500KiB"})
        self.assertIsInstance(error, loadline.Infeasible)
        self.assertGreater(error.smallest_met_bytes, 500 << 10)
        self.assertIn("smallest budget met", str(error))

    def test_changing_sizes_are_refused(self):
        model, _, _ = made("mlp")
        torch._dynamo.reset()
        call = torch.compile(model, backend=lt.backend, dynamic=True,
                             options={"budget": "90%", **OPTIONS})
        with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as caught:
            call(torch.randn(16, 64))
        self.assertIn("dynamic=False", str(caught.exception.inner_exception))

    def test_a_graph_break_is_said_aloud(self):
        model, _, _ = made("mlp")

        class Broken(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = model.layers

            def forward(self, x):
                x = self.layers[:4](x)
                torch._dynamo.graph_break()
                return self.layers[4:](x).sum()

        call = torch.compile(Broken(), backend=lt.backend, dynamic=False,
                             options={"budget": "100%", **OPTIONS})
        with self.assertWarnsRegex(UserWarning, "graph break"):
            call(torch.randn(16, 64))
        # prepare shares the budget out, so that both together are within it.
        broken, x = Broken(), torch.randn(512, 64)
        torch._dynamo.reset()
        expected = broken(x).detach()
        with self.assertWarnsRegex(UserWarning, "a share of the budget"):
            call, _ = lt.prepare(broken, sample=(x,), budget="90%", **OPTIONS)
        graphs = session_of_model(broken).prepared.graphs
        with lt.virtual_device() as ledger:
            loss = call(x)
            loss.backward()
        self.assertTrue(torch.equal(loss, expected))
        self.assertEqual(len(graphs), 2)
        budget = sum(g.plan.budget_bytes for g in graphs)
        self.assertAlmostEqual(
            budget, 0.9 * sum(g.keep_everything_bytes for g in graphs), delta=3)
        self.assertLessEqual(ledger.peak_bytes, budget)
        self.assertIn("in all", lt.report())

    def test_graphs_share_a_budget_that_none_of_them_has_alone(self):
        """The first needs no gradient. The optimizer's step is larger than the second."""
        model, _, _ = made("mlp")

        class Broken(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = model.layers

            def forward(self, x):
                x = x.sin()
                torch._dynamo.graph_break()
                x = self.layers[:4](x)
                torch._dynamo.graph_break()
                return self.layers[4:](x).sum()

        broken, x = Broken(), torch.randn(64, 64)
        optimizer = torch.optim.AdamW(broken.parameters(), foreach=True)
        torch._dynamo.reset()
        with self.assertWarnsRegex(UserWarning, "a share of the budget"):
            lt.prepare(broken, optimizer, sample=x, budget="96%", **OPTIONS)
        small, large = session_of_model(broken).prepared.graphs
        self.assertEqual((small.number, large.number), (1, 2))
        for graph in (small, large):
            self.assertLess(graph.plan.budget_bytes, graph.keep_everything_bytes)
        reserved = small.options.reserve_bytes
        self.assertAlmostEqual(
            small.plan.budget_bytes + large.plan.budget_bytes, 0.96 * (
                small.keep_everything_bytes + large.keep_everything_bytes + reserved)
            - reserved, delta=3)

    def test_what_needs_no_gradient_is_no_plan(self):
        model, optimizer, batch = made("mlp")
        model.requires_grad_(False)
        with self.assertRaisesRegex(loadline.LoadlineError, "requires a gradient"):
            lt.prepare(model, sample=batch, budget="90%", **OPTIONS)


class ByName(unittest.TestCase):
    def test_the_packages_entry_point_makes_loadline_a_backend(self):
        project = pathlib.Path(__file__).parents[3] / "pyproject.toml"
        (name, target), = tomllib.loads(project.read_text())["project"]["entry-points"][
            "torch_dynamo_backends"].items()
        files = {"METADATA": "Metadata-Version: 2.1\nName: loadline\nVersion: 0\n",
                 "entry_points.txt": f"[torch_dynamo_backends]\n{name} = {target}\n"}
        with tempfile.TemporaryDirectory() as folder:
            info = pathlib.Path(folder) / "loadline-0.dist-info"
            info.mkdir()
            for name, text in files.items():
                (info / name).write_text(text)
            code = (
                "import torch; from models import Mlp\n"
                "model, batch = Mlp(), Mlp.batch()\n"
                "model = torch.compile(model, backend='loadline', options={"
                "'budget': '80%', 'inner': 'aot_eager', 'work_limit': 20000})\n"
                "model(*batch).backward()\n"
                "import loadline; print(loadline.torch.report())")
            out = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(
                    [folder, os.environ["PYTHONPATH"],
                     os.path.dirname(os.path.abspath(__file__))])})
        self.assertIn("graph 0", out.stdout, out.stderr)


if __name__ == "__main__":
    unittest.main()
