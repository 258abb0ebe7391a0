"""estimate is what prepare plans and measures with weights; adapters; configurations."""
import contextlib
import importlib.util
import io
import json
import pathlib
import tempfile
import unittest

import torch

import loadline
from loadline import torch as lt
from loadline.torch.session.estimate_command import read_config, run
from loadline.torch.session.llama_shaped import LlamaShaped, Shape
from loadline.torch.session.lora import Lora, add_lora
from models import MODELS
from torch_estimate_test import ADAMW

MACHINE = loadline.Machine.known("rtx-4090")
OPTIONS = {"inner": "aot_eager", "work_limit": 20_000, "machine": MACHINE}
SMALL = {"layers": 2, "width": 64, "feed_forward": 128, "heads": 4, "key_value_heads": 2,
         "vocabulary": 300}
TOKENS = dict.fromkeys(("input_ids", "labels"), torch.zeros(2, 32, dtype=torch.long))


def on_meta(make):
    with torch.device("meta"):
        return make()


class AgainstPrepare(unittest.TestCase):
    def check(self, there, real, sample, budget, **options):
        """The estimate is within 1 % of a measured step with weights."""
        torch._dynamo.reset()
        found = lt.estimate(there, torch.optim.AdamW, sample=sample, budgets=[budget],
                            **OPTIONS, **options)
        torch._dynamo.reset()
        optimizer = ADAMW(p for p in real.parameters() if p.requires_grad)
        call, _ = lt.prepare(real, optimizer, sample=sample, budget=budget,
                             **{**OPTIONS, "machine": found.machine})
        graph = lt.planned[-1]
        row, = found.rows
        self.assertAlmostEqual(row.peak_bytes, graph.measured_bytes + (
            graph.options.reserve_bytes), delta=row.peak_bytes // 100)
        self.assertAlmostEqual(row.step_ns, graph.plan.step_ns,
                               delta=graph.plan.step_ns // 100)
        del call

    def test_of_models_of_several_kinds(self):
        for name in ("mlp", "gpt", "unet"):
            for budget in ("100%", "80%"):
                with self.subTest(model=name, budget=budget):
                    self.check(on_meta(MODELS[name]), MODELS[name](),
                               MODELS[name].batch(), budget)

    def test_of_a_model_with_adapters(self):
        shape = Shape.read(SMALL)
        real = LlamaShaped(shape)
        add_lora(real, Lora(4))
        for budget in ("100%", "75%"):
            self.check(on_meta(lambda: LlamaShaped(shape)), real, TOKENS, budget, lora=4)


class Adapters(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def test_are_of_the_estimate_only(self):
        model = LlamaShaped(Shape.read(SMALL))
        before = [*model.state_dict()]
        found = lt.estimate(model, torch.optim.AdamW, sample=TOKENS, budgets=["100%"],
                            lora={"rank": 2, "targets": ["q_proj"]}, **OPTIONS)
        self.assertEqual([*model.state_dict()], before)
        self.assertTrue(all(p.requires_grad for p in model.parameters()))
        # Two layers, each with 64 x 2 and 2 x 64 numbers in f32.
        self.assertEqual(found.trained_bytes, 2 * 2 * 2 * 64 * 4)
        self.assertEqual(found.optimizer_bytes, 2 * found.trained_bytes)

    def test_that_cannot_be_are_refused_by_name(self):
        model = LlamaShaped(Shape.read(SMALL))
        for lora, message in ((0, "rank"), (-1, "rank"), ({"targets": ["q_proj"]}, "rank"),
                              ({"rank": 2, "targets": "q_proj"}, "list of targets"),
                              ({"rank": 2, "targets": ["none"]}, "named none"),
                              ({"rank": 2, "alpha": 1}, "want rank")):
            with self.subTest(lora=lora), self.assertRaisesRegex(
                    loadline.InvalidArgument, message):
                lt.estimate(model, torch.optim.AdamW, sample=TOKENS, lora=lora, **OPTIONS)
        with self.assertRaisesRegex(loadline.InvalidArgument, "function"):
            lt.estimate(model, torch.optim.AdamW(model.parameters()), sample=TOKENS,
                        lora=4, **OPTIONS)


class Configurations(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, name, text, *flags):
        (self.folder / name).write_text(text)
        with contextlib.redirect_stdout(io.StringIO()):
            return run(["--config", str(self.folder / name), *flags])

    def test_of_our_own_need_no_code(self):
        text = json.dumps({"model": SMALL, "lora": 4, "sequence": 32, "batch": 2,
                           "budgets": ["100%"], "machine": "l4", "dtype": "f32"})
        found = self.run_it("one.json", text)
        torch._dynamo.reset()
        expected = lt.estimate(on_meta(lambda: LlamaShaped(Shape.read(SMALL))),
                               torch.optim.AdamW, sample=TOKENS, budgets=["100%"], lora=4,
                               machine="l4")
        self.assertEqual(found.problem, expected.problem)
        self.assertEqual(found.machine.name, expected.machine.name)
        torch._dynamo.reset()
        flag = self.run_it("one.json", text, "--machine", "rtx-4090", "--lora", "8")
        self.assertEqual(flag.machine.name, "rtx-4090")
        self.assertEqual(flag.trained_bytes, 2 * found.trained_bytes)

    @unittest.skipUnless(importlib.util.find_spec("yaml"), "no pyyaml")
    def test_may_be_yaml(self):
        path = self.folder / "one.yaml"
        path.write_text("model: {layers: 2, width: 64}\nlora: 4\nbudgets: [card, 50%]\n")
        self.assertEqual(read_config(str(path)), {
            "model": {"layers": 2, "width": 64}, "lora": 4, "budgets": ["card", "50%"]})

    def test_of_transformers_have_the_same_parameters_without_the_package(self):
        config = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                  "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
                  "model_type": "qwen2", "tie_word_embeddings": True}
        shape = Shape.read(config)
        self.assertTrue(shape.attention_bias and shape.tied)
        ours = on_meta(lambda: LlamaShaped(shape))
        try:
            import transformers
        except ImportError:
            self.skipTest("the package transformers is not installed")
        theirs = on_meta(lambda: transformers.AutoModelForCausalLM.from_config(
            transformers.Qwen2Config(**{k: v for k, v in config.items()
                                        if k != "model_type"})))
        self.assertEqual(sorted(tuple(p.shape) for p in ours.parameters()),
                         sorted(tuple(p.shape) for p in theirs.parameters()))

    def test_with_mistakes_are_refused_by_name(self):
        for text, message in (
                ("{", "Expecting|expected"), ("[1]", "object"),
                (json.dumps({"model": {**SMALL, "layers": -1}}), "layers"),
                (json.dumps({"model": {**SMALL, "heads": 3}}), "heads"),
                (json.dumps({"model": {"layers": 2}}), "no field feed_forward"),
                (json.dumps({"model": 3}), "model"),
                (json.dumps({"model": SMALL, "sequense": 3}), "sequense"),
                (json.dumps({"model": SMALL, "sequence": "many"}), "sequence"),
                (json.dumps({"model": SMALL, "dtype": "f8"}), "dtype"),
                (json.dumps({"model": SMALL, "machine": "none-such"}), "none-such")):
            with self.subTest(text=text), self.assertRaisesRegex(
                    loadline.InvalidArgument, message):
                self.run_it("bad.json", text)


if __name__ == "__main__":
    unittest.main()
