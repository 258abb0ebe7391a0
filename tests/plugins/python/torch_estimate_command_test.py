"""python -m loadline.torch.estimate: what it makes of wrong configurations and flags."""
import contextlib
import io
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import torch

import loadline
from loadline import torch as lt
from loadline.torch.session import estimate_command
from loadline.torch.session.choose_structure import StructureSearch

# Of transformers.
THEIRS = {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
          "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300}
# Of our own.
GOOD = {"layers": 2, "width": 64, "feed_forward": 128, "heads": 4, "vocabulary": 300}


class BadConfigurations(unittest.TestCase):
    """Each ends in one line that names what and where, before anything is traced."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def ends(self, text, *arguments, name="c.yaml"):
        """Exit code and message."""
        path = pathlib.Path(self.folder.name) / name
        if text is not None:
            path.write_bytes(text if isinstance(text, bytes) else (
                text if isinstance(text, str) else json.dumps(text)).encode())
        err = io.StringIO()
        argv = mock.patch.object(sys, "argv", ["", "--config", str(path), *arguments])
        progress = mock.patch.object(estimate_command, "_show_progress")
        with contextlib.redirect_stderr(err), argv, progress, mock.patch.object(
                StructureSearch, "__init__", side_effect=AssertionError("traced")):
            with self.assertRaises(SystemExit) as ended:
                estimate_command.main()
        lines = err.getvalue().splitlines()
        if "usage:" not in lines[0]:
            self.assertEqual(len(lines), 1, lines)
        return ended.exception.code, lines[-1]

    def test_of_a_model(self):
        cases = [({name: value}, f"c.yaml: model.{name}={value!r}") for name in GOOD
                 for value in (0, -1, 1.5, "4", True, [1], 1 << 50)]
        cases += [
            ({"layers": None}, "no field layers"), ({"layers": 10**9}, "model.layers"),
            ({"heads": 3}, "3 heads cannot share"), ({"head_width": 7}, "even one"),
            ({"key_value_heads": 3}, "cannot share 3 key_value_heads"),
            ({"key_value_heads": -4}, "key_value_heads=-4"), ({"tied": "yes"}, "tied='yes'"),
            ({"attention_bias": 1}, "attention_bias=1"), ({"layer": 3}, "no field layer;"),
            ({"width": 1 << 30}, "parameters, more than")]
        for fields, message in cases:
            with self.subTest(fields):
                code, line = self.ends({"model": {**GOOD, **fields}})
                self.assertEqual(code, 2)
                self.assertIn(message, line)
                self.assertIn("c.yaml: ", line)

    def test_of_other_fields(self):
        for name, values in {
                "sequence": (0, -1, "2k", None, 1 << 45), "batch": (0, "x", True),
                "lora": (0, -1, "a", 1.5, True), "dtype": ("bf15", None, ["bf16"]),
                "targets": ("q_proj", [], [1]), "machine": ("rtx-9999", 5, "", "/"),
                "budgets": ("0", ["-1"], ["abc"], ["1e3GiB"], [], [None], {"a": 1}, 0, [True],
                            [1.01], ["100%", "device"]),
                "micro_batches": (0, "two", True), "split": (0, "x"),
                "offload_gradients": ("yes", 1), "host_memory": ("much", -1, [], "60%"),
                "time_limit": (0, -1, "x", True), "nonsense": (1,)}.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    code, line = self.ends({"model": GOOD, name: value})
                    self.assertEqual(code, 2, line)
                    self.assertIn(name.rstrip("s"), line)
        code, line = self.ends({"model": GOOD, "batch": 1 << 20, "sequence": 1 << 20})
        self.assertEqual((code, line.split(": ")[1]), (2, "batch 1048576 and sequence 1048576"))

    def test_of_files(self):
        for text, name in (
                ("", "c.yaml"), ("- 1", "c.yaml"), ("hello", "c.yaml"), (None, "none.yaml"),
                (b"\x00\x01", "c.yaml"), (bytes(range(128, 256)), "c.yaml"),
                ("a: [1", "c.yaml"), ("!!python/object/apply:os.getpid []", "c.yaml"),
                ("", "c.json"), ("[]", "c.json"), ('{"model": NaN}', "c.json"),
                ("[" * 100_000, "c.json"), ("[" * 5000, "c.yaml"), ("model: 2020-99-01", "c.yaml"),
                ("1: 2\nmodel: {}", "c.yaml"), ("model: {1: 2}", "c.yaml"),
                ({"layers": 2}, "c.yaml"), ({"model": None}, "c.yaml")):
            with self.subTest(text=str(text)[:30], name=name):
                code, line = self.ends(text, name=name)
                self.assertEqual(code, 2, line)
                self.assertIn(f"--config {self.folder.name}/{name}: ", line)

    def test_of_flags(self):
        for arguments in (
                ["--batch", "x"], ["--dtype", "bf15"], ["--budget", "0"], ["--budget=-1"],
                ["--budget", ""], ["--nonsense"], ["--micro-batches", "x"], ["--targets", ""],
                ["--time-limit", "nan"], ["--time-limit=-1"], ["--machine", ""],
                ["--lora", "4", "--targets", "nothing"], ["--targets", "q_proj"],
                ["--html", "/"], ["--html", f"{self.folder.name}/no/a.html"]):
            with self.subTest(arguments=arguments):
                code, line = self.ends({"model": GOOD}, *arguments)
                self.assertEqual(code, 2, line)

    def test_of_transformers(self):
        try:
            import transformers  # noqa: F401
        except ImportError:
            self.skipTest("needs transformers")
        for fields in ({"hidden_size": 0}, {"num_hidden_layers": 0}, {"vocab_size": -3},
                       {"num_attention_heads": 3}, {"hidden_size": "a"},
                       {"intermediate_size": "b"}, {"model_type": "nonsense"},
                       {"model_type": 5}):
            with self.subTest(fields):
                code, line = self.ends({**THEIRS, **fields}, name="config.json")
                self.assertEqual(code, 2, line)
                self.assertIn("config.json: ", line)

    def test_of_a_file_that_cannot_be_read_needs_no_pytorch(self):
        fake = pathlib.Path(self.folder.name) / "torch"
        fake.mkdir()
        (fake / "__init__.py").write_text("raise SystemError('imported')")
        path = os.pathsep.join([self.folder.name, *sys.path])
        for name, text, said in (("nope", None, "No such file"), ("a.json", "{", "a.json: "),
                                 ("torch", None, "torch/config.json: No such file")):
            file = pathlib.Path(self.folder.name) / name
            if text:
                file.write_text(text)
            ended = subprocess.run(
                [sys.executable, "-m", "loadline.torch.estimate", "--config", str(file)],
                env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            line, = ended.stderr.splitlines()
            self.assertRegex(line, f"^loadline.torch.estimate: --config .*{said}")

    def test_ends_with_the_commands_exit_codes(self):
        for error, code in ((loadline.Infeasible("x"), 3), (lt.Unsupported("x"), 4),
                            (loadline.Stopped("x"), 5), (loadline.LoadlineError("x"), 2),
                            (loadline.InternalError("x"), 1), (KeyboardInterrupt(), 130)):
            with mock.patch.object(estimate_command, "run", side_effect=error), \
                    mock.patch.object(estimate_command, "_show_progress"), \
                    contextlib.redirect_stderr(io.StringIO()), \
                    self.assertRaises(SystemExit) as ended:
                estimate_command.main()
            self.assertEqual(ended.exception.code, code)

    def test_progress_is_shown_on_stderr(self):
        from loadline.torch.solve.search_log import log
        err = io.StringIO()
        with mock.patch.multiple(log, handlers=[], propagate=True, level=0), (
                contextlib.redirect_stderr(err)):
            estimate_command._show_progress()
            log.info("planning %s", "100%")
        log.setLevel(logging.NOTSET)
        self.assertEqual(err.getvalue(), "planning 100%\n")

    def test_one_budget_needs_no_list(self):
        path = pathlib.Path(self.folder.name) / "c.yaml"
        path.write_text(json.dumps({"model": GOOD, "sequence": 8, "budgets": "100%"}))
        torch._dynamo.reset()
        with contextlib.redirect_stdout(io.StringIO()), self.assertLogs(
                "loadline.torch", "INFO") as logged:
            found = estimate_command.run(["--config", str(path)])
        self.assertEqual([row.budget for row in found.rows], ["100%"])
        said = [record.getMessage() for record in logged.records]
        self.assertEqual((said[0], said[2]), ("tracing the model", "planning 100%"))
        self.assertRegex(said[1], f"^{len(found.problem['nodes'])} operators, traced in ")


if __name__ == "__main__":
    sys.exit(unittest.main())
