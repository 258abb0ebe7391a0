"""estimate: the plans of prepare, without weights, and what goes wrong."""
import contextlib
import functools
import io
import json
import logging
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import torch
from torch import nn

import loadline
from loadline import torch as lt
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.session.choose_structure import StructureSearch
from loadline.torch.session.estimate import Row, no_slower_with_more, with_memory
from models import MODELS

MACHINE = loadline.Machine.known("rtx-4090")
OPTIONS = {"inner": "aot_eager", "work_limit": 20_000, "machine": MACHINE}

# PyTorch's choice on a GPU: one update of all parameters. On a CPU, where prepare runs here,
# it would update one after the other.
ADAMW = functools.partial(torch.optim.AdamW, foreach=True)

MODEL_LOG = logging.getLogger("a model")


class Tied(nn.Module):
    """Two names of one parameter, a buffer, and a loss outside."""

    def __init__(self, width=64, depth=3):
        super().__init__()
        self.embedding = nn.Embedding(200, width)
        self.layers = nn.ModuleList(nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth))
        self.head = nn.Linear(width, 200, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(width))

    def forward(self, tokens):
        x = self.embedding(tokens) * self.scale
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def loss_of(output):
    return nn.functional.cross_entropy(
        output.flatten(0, 1), torch.zeros(output[..., 0].numel(), dtype=torch.long))


def on_meta(make):
    with torch.device("meta"):
        return make()


class Estimate(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def test_has_the_peaks_and_times_of_prepare(self):
        tokens = torch.zeros(8, 32, dtype=torch.long)
        for budget in ("100%", "70%"):
            with self.subTest(budget=budget):
                found = lt.estimate(on_meta(Tied), torch.optim.AdamW, loss_of,
                                    sample=tokens, budgets=[budget], **OPTIONS)
                model = Tied()
                lt.prepare(model, ADAMW(model.parameters()), sample=tokens,
                           loss_fn=loss_of, budget=budget, **{
                               **OPTIONS, "machine": found.machine})
                graph = lt.planned[-1]
                row, = found.rows
                self.assertEqual(row.step_ns, graph.plan.step_ns)
                self.assertEqual(found.problem, graph.problem)
                self.assertLessEqual(row.peak_bytes, row.budget_bytes)
                # The measured peak of a real step.
                self.assertAlmostEqual(
                    row.peak_bytes, graph.measured_bytes, delta=row.peak_bytes // 100)

    def test_counts_what_the_optimizers_step_allocates_on_a_gpu(self):
        def bytes_of(optimizer, **options):
            torch._dynamo.reset()
            row, = lt.estimate(on_meta(MODELS["mlp"]), optimizer, sample=torch.zeros(8, 64),
                               budgets=["100%"], **{**OPTIONS, **options}).rows
            return row.budget_bytes

        here = bytes_of(torch.optim.AdamW, machine=NOMINAL)
        there = bytes_of(torch.optim.AdamW)
        self.assertEqual(there, bytes_of(ADAMW))
        self.assertEqual(here, bytes_of(functools.partial(torch.optim.AdamW, foreach=False)))
        self.assertGreater(there - here, 50_000)  # of 99,840 bytes of parameters

    def test_of_models_without_data_is_that_of_models_with_data(self):
        for name in ("mlp", "gpt_dropout", "unet"):
            with self.subTest(model=name):
                batch = MODELS[name].batch()
                real = MODELS[name]()
                torch._dynamo.reset()
                there = lt.estimate(real, torch.optim.AdamW(real.parameters()),
                                    sample=batch, budgets=["100%"], **OPTIONS)
                torch._dynamo.reset()
                meta = lt.estimate(
                    on_meta(MODELS[name]), torch.optim.AdamW,
                    sample=tuple(x.to("meta") for x in batch), budgets=["100%"],
                    **OPTIONS)
                self.assertEqual(meta.problem, there.problem)
                self.assertEqual(str(meta).splitlines()[3:], str(there).splitlines()[3:])

    def test_leaves_the_model_as_it_was(self):
        model = Tied()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        lt.estimate(model, sample=torch.zeros(2, 8, dtype=torch.long), budgets=["100%"],
                    **OPTIONS)
        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)
        meta = on_meta(Tied)
        lt.estimate(meta, sample=torch.zeros(2, 8, dtype=torch.long), budgets=["100%"],
                    **OPTIONS)
        self.assertEqual({p.device.type for p in meta.parameters()}, {"meta"})

    def test_keeps_tied_parameters_tied(self):
        made = with_memory(on_meta(Tied))
        self.assertIs(made.head.weight, made.embedding.weight)
        self.assertEqual(len(list(made.parameters())), len(list(Tied().parameters())))

    def test_takes_no_memory_for_parameters(self):
        def large():
            return nn.Sequential(*[nn.Linear(8192, 8192) for _ in range(40)])  # 10 GiB

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = lt.estimate(on_meta(large), torch.optim.AdamW,
                            sample=torch.zeros(4, 8192), budgets=["100%", "card"],
                            **OPTIONS)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 1 << 20, "KiB")
        self.assertEqual(found.optimizer_bytes, 2 * found.parameter_bytes)
        self.assertFalse(found.rows[0].peak_bytes <= MACHINE.device_bytes)

    def test_says_what_fits_the_card(self):
        tokens = torch.zeros(8, 32, dtype=torch.long)
        whole = lt.estimate(on_meta(Tied), torch.optim.AdamW, loss_of, sample=tokens,
                            budgets=["100%"], **OPTIONS)
        self.assertTrue(whole.fits)
        small = loadline.Machine(**{
            **MACHINE.__dict__, "reserved_bytes": 1 << 20,
            "device_bytes": whole.rows[0].peak_bytes})
        found = lt.estimate(on_meta(Tied), torch.optim.AdamW, loss_of, sample=tokens,
                            **{**OPTIONS, "machine": small})
        everything, card, smallest = found.rows
        self.assertEqual([row.budget for row in found.rows], ["100%", "card", "smallest"])
        self.assertGreater(everything.peak_bytes + (1 << 20), small.device_bytes)
        self.assertLessEqual(card.peak_bytes + (1 << 20), small.device_bytes)
        self.assertLessEqual(smallest.peak_bytes, card.peak_bytes)
        self.assertGreaterEqual(smallest.slower, card.slower)
        self.assertTrue(found.fits)
        self.assertIn("no", str(found).splitlines()[3])
        tiny = loadline.Machine(**{**small.__dict__, "device_bytes": 1 << 21})
        found = lt.estimate(on_meta(Tied), torch.optim.AdamW, loss_of, sample=tokens,
                            budgets=["card"], **{**OPTIONS, "machine": tiny})
        self.assertFalse(found.fits)
        self.assertIn("no plan", str(found))
        with self.assertRaisesRegex(loadline.LoadlineError, "there is no plan at budget"):
            found.report("/tmp/never.html", row=0)

    def test_of_more_memory_is_never_slower(self):
        def row(budget, budget_bytes, peak_bytes, step_ns):
            return Row(budget, budget_bytes, object() if step_ns else None, peak_bytes,
                       step_ns)

        outside, rows = 100, [
            row("smallest", 450, 350, 90), row("60%", 600, 590, 70), row("80%", 800, 790, 75),
            row(700, 700, 600, 80), row(689, 689, 589, 95), row(690, 690, 0, 0)]
        found = no_slower_with_more(rows, outside)
        self.assertEqual([(one.budget, one.budget_bytes, one.peak_bytes, one.step_ns)
                          for one in found], [
            ("smallest", 450, 350, 90), ("60%", 600, 590, 70), ("80%", 800, 590, 70),
            (700, 700, 590, 70), (689, 689, 350, 90), (690, 690, 590, 70)])

    def test_has_the_rows_that_were_found_in_time(self):
        choose = StructureSearch.choose

        def late(search, micro_batches, budget):
            if budget in stopped:
                raise loadline.Stopped("stopped")
            return choose(search, micro_batches, budget)

        def rows():
            torch._dynamo.reset()
            return lt.estimate(MODELS["mlp"](), sample=MODELS["mlp"].batch(), time_limit_s=60,
                               budgets=["smallest", "1GiB", 2 << 30], **OPTIONS).rows

        with mock.patch.object(StructureSearch, "choose", late):
            stopped = {"smallest", 2 << 30}
            smallest, found, large = rows()
            self.assertIsNone(smallest.plan)
            self.assertIn("stopped before", smallest.error)
            # What is found for less is the plan of more.
            self.assertEqual((large.budget, large.plan), (2 << 30, found.plan))
            stopped.add("1GiB")
            with self.assertRaisesRegex(loadline.Stopped, "within 60 s no plan"):
                rows()

    def test_of_a_model_that_logs_is_of_one_graph(self):
        class Logs(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)

            def forward(self, x):
                hidden = torch.tanh(self.first(x))
                MODEL_LOG.warning("a loss of %s", "its own")
                return self.second(hidden).square().mean()

        class Silent(Logs):
            def forward(self, x):
                return self.second(torch.tanh(self.first(x))).square().mean()

        with self.assertNoLogs("a model"):
            found = lt.estimate(on_meta(Logs), torch.optim.AdamW, sample=torch.zeros(8, 16),
                                budgets=["100%"], **OPTIONS)
        torch._dynamo.reset()
        expected = lt.estimate(on_meta(Silent), torch.optim.AdamW,
                               sample=torch.zeros(8, 16), budgets=["100%"], **OPTIONS)
        self.assertEqual(found.problem, expected.problem)
        self.assertFalse(torch._dynamo.config.ignore_logger_methods)

    def test_of_a_plain_configuration_of_gpt2(self):
        """Its loss logs that it takes the default."""
        try:
            import transformers
        except ImportError:
            self.skipTest("needs transformers")
        config = transformers.GPT2Config(vocab_size=60, n_positions=16, n_embd=16, n_layer=1,
                                         n_head=2, bos_token_id=0, eos_token_id=0)
        tokens = torch.zeros(2, 16, dtype=torch.long)
        found = lt.estimate(
            on_meta(lambda: transformers.AutoModelForCausalLM.from_config(config)),
            torch.optim.AdamW, sample={"input_ids": tokens, "labels": tokens},
            budgets=["100%"], **OPTIONS)
        self.assertGreater(found.rows[0].peak_bytes, 4 * found.parameter_bytes)

    def test_of_one_budget_changes_nothing_for_the_next(self):
        seen = []
        choose = StructureSearch.choose

        def choosing(search, *arguments):
            seen.append(first_search[0].options.outside_bytes)
            return choose(search, *arguments)

        first_search = []
        begin = StructureSearch.__init__

        def beginning(search, *arguments):
            begin(search, *arguments)
            first_search.append(search)

        with mock.patch.object(StructureSearch, "choose", choosing), mock.patch.object(
                StructureSearch, "__init__", beginning):
            lt.estimate(on_meta(Tied), sample=torch.zeros(2, 8, dtype=torch.long),
                        loss_fn=loss_of, budgets=["100%", "card", "90%"], **OPTIONS)
        self.assertEqual(seen, [MACHINE.reserved_bytes] * 3)

    def test_names_what_it_cannot_estimate(self):
        class Breaks(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                x = self.layer(x)
                return x * 2 if x.sum() > 0 else x

        with self.assertRaisesRegex(lt.Unsupported, "traced as one graph"):
            lt.estimate(on_meta(Breaks), sample=torch.zeros(2, 4), **OPTIONS)
        with self.assertRaisesRegex(loadline.InvalidArgument, "torch.nn.Module"):
            lt.estimate(3, sample=torch.zeros(2, 4))
        frozen = on_meta(Tied).requires_grad_(False)
        with self.assertRaisesRegex(loadline.LoadlineError, "gradient"):
            lt.estimate(frozen, sample=torch.zeros(2, 4, dtype=torch.long), **OPTIONS)
        with self.assertRaisesRegex(loadline.InvalidArgument, "no-such-gpu"):
            lt.estimate(on_meta(Tied), sample=torch.zeros(2, 4, dtype=torch.long),
                        machine="no-such-gpu")
        with self.assertRaisesRegex(loadline.InvalidArgument, "budget 'much'"):
            lt.estimate(on_meta(Tied), sample=torch.zeros(2, 4, dtype=torch.long),
                        budgets=["much"], **OPTIONS)


CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
          "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300}


class CommandLine(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        try:
            import transformers  # noqa: F401
        except ImportError:
            self.skipTest("the package transformers is not installed")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.config = pathlib.Path(self.folder.name) / "config.json"
        self.config.write_text(json.dumps(CONFIG))

    def run_it(self, *arguments):
        from loadline.torch.session.estimate_command import run
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            found = run(["--config", str(self.config), "--sequence", "32", *arguments])
        self.assertEqual(out.getvalue(), f"{found}\n")
        return found

    def test_estimates_a_language_model_from_its_configuration(self):
        page = os.path.join(self.folder.name, "page.html")
        full = self.run_it("--budget", "100%", "--html", page)
        self.assertIn("loadline", pathlib.Path(page).read_text())
        self.assertEqual(full.trained_bytes, full.parameter_bytes)
        self.assertEqual(full.optimizer_bytes, 2 * full.parameter_bytes)
        torch._dynamo.reset()
        lora = self.run_it("--budget", "100%", "--lora", "4", "--update-in-backward",
                           "--host-memory", "1GiB")
        self.assertEqual(lora.machine.host_bytes, 1 << 30)
        self.assertLess(lora.trained_bytes, full.trained_bytes // 10)
        self.assertEqual(lora.optimizer_bytes, 2 * lora.trained_bytes)
        self.assertLess(lora.rows[0].peak_bytes, full.rows[0].peak_bytes)

    def test_is_a_program_and_no_module_in_the_place_of_the_function(self):
        import loadline.torch.estimate
        self.assertIs(loadline.torch.estimate, lt.estimate)
        self.assertTrue(callable(lt.estimate))
        done = subprocess.run(
            [sys.executable, "-m", "loadline.torch.estimate", "--config",
             str(self.config), "--sequence", "32", "--machine", "l4", "--budget",
             "100%"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("100%", done.stdout)
        done = subprocess.run(
            [sys.executable, "-m", "loadline.torch.estimate", "--config", "/none"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.splitlines()[-1], "loadline.torch.estimate: --config "
                         "/none: No such file or directory")
        self.assertNotIn("Traceback", done.stderr)

    def test_names_bad_arguments(self):
        for arguments in (["--lora", "4", "--targets", "nothing"], ["--batch", "0"],
                          ["--lora", "-1"], ["--budget", "much"],
                          ["--host-memory", "much"]):
            with self.subTest(arguments=arguments), self.assertRaises(
                    loadline.InvalidArgument):
                self.run_it(*arguments)
        self.config.write_text("{}")
        with self.assertRaisesRegex(loadline.InvalidArgument, "config.json"):
            self.run_it()


if __name__ == "__main__":
    sys.exit(unittest.main())
