"""The examples run to their end, and train as they do without a budget."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from training import COPIES

EXAMPLES = pathlib.Path(__file__).parents[3] / "plugins" / "python" / "examples"


def needs(name):
    return unittest.skipUnless(importlib.util.find_spec(name),
                               f"no {name}; tools/dev/setup/torch installs it")


class Examples(unittest.TestCase):
    def trains_the_same(self, name, budget, *launcher, machine=()):
        """What it printed."""
        out = []
        for arguments in ([], [budget, *machine]):
            done = subprocess.run(
                [sys.executable, *launcher, str(EXAMPLES / name), *arguments],
                capture_output=True, text=True,
                env={**os.environ, "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_VERBOSE": "1"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("LoadlineWarning", done.stderr)
            out.append(done.stdout)
        alone, planned = ("\n".join(line for line in text.splitlines() if line.split(
            " ")[0] in ("losses", "weights")) for text in out)
        self.assertIn("losses [", alone)
        self.assertEqual(alone, planned)
        self.assertRegex(out[1], r"graph 0, \d+ operations\n  peak ")
        if not machine:
            self.assertRegex(out[1], r"% of the step computed again")
        self.assertEqual(len(re.findall("^graph", out[1], re.MULTILINE)), 1)
        return out[1]

    @needs("transformers")
    @needs("accelerate")
    def test_trainer(self):
        self.trains_the_same("trainer_budget.py", "85%")

    @needs("lightning")
    def test_lightning(self):
        self.trains_the_same("lightning_budget.py", "80%")

    @needs("lightning")
    def test_lightning_with_optimizer_state_on_the_host(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder) / "machine.json"
            profile.write_text(json.dumps(COPIES.document()))
            out = self.trains_the_same("lightning_budget.py", "54%",
                                       machine=[str(profile)])
        self.assertRegex(out, r"optimizer state: .* on the host for a part of the step, in [1-9]")

    def test_memory_policy_and_fsdp(self):
        self.trains_the_same("memory_policy.py", "80%", "-m", "torch.distributed.run",
                             "--standalone", "--nproc-per-node", "2")


if __name__ == "__main__":
    unittest.main()
