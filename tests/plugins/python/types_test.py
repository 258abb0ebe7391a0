"""mypy finds nothing in the package (its settings: pyproject.toml)."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[3]


class Types(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("mypy"),
                         "no mypy; tools/dev/setup/torch installs it")
    def test_are_clean(self):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--cache-dir",
             os.environ.get("LOADLINE_MYPY_CACHE", os.devnull)],
            cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
