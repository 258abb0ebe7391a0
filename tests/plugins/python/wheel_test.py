"""The plugin's wheel and the command's, made of what is built, in an environment that has
nothing else: no compiler, no PyTorch.

    wheel_test.py REPOSITORY BUILD_FOLDER

Needs scikit-build-core and auditwheel, which tools/dev/setup/torch installs (exit status
77 without). A release is made by tools/dev/make_wheels, for an older libc than this
system's; here auditwheel says which it became.
"""
import email
import importlib.util
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

REPOSITORY, BUILD = (pathlib.Path(argument) for argument in sys.argv[1:3])
MOST_BYTES = 6 << 20


def run(*command, path="/usr/bin:/bin", **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          env={"PATH": path}, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def make_wheel(source, folder):
    """Of what BUILD has, by the backend that pyproject.toml names."""
    run(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps",
        "--no-build-isolation", "--no-cache-dir", "-w", folder,
        f"--config-settings=cmake.define.LOADLINE_BUILT={BUILD}", source)
    wheel, = folder.glob("*.whl")
    repaired = folder / "portable"
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "-w", repaired, wheel],
        capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    wheel, = repaired.glob("*.whl")
    return wheel


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        root = pathlib.Path(cls.folder.name)
        cls.wheel = make_wheel(REPOSITORY, root / "plugin")
        run(sys.executable, "-m", "venv", root / "venv")
        cls.python = root / "venv" / "bin" / "python"
        # Any user may do this: it compiles nothing and touches no system file.
        run(cls.python, "-m", "pip", "install", "--no-index", cls.wheel, path="")

    def test_serves_every_python_on_systems_as_old_as_this(self):
        self.assertRegex(self.wheel.name,
                         r"^loadline-[\d.]+-py3-none-manylinux_2_\d+_x86_64")

    def test_is_small(self):
        self.assertLess(self.wheel.stat().st_size, MOST_BYTES)

    def test_brings_every_module_and_no_command(self):
        package = REPOSITORY / "plugins" / "python"
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
        self.assertEqual({name for name in names if name.endswith(".py")}, {
            path.relative_to(package).as_posix()
            for path in (package / "loadline").rglob("*.py")})
        self.assertIn("loadline/torch/compat/torch_internals.py", names)
        self.assertIn("loadline/py.typed", names)
        self.assertFalse([name for name in names if name.endswith("/loadline")])

    def test_brings_licences_and_metadata(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            info, = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
            metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
            licences = [wheel.read(f"{info}/licenses/{name}").decode()
                        for name in metadata.get_all("License-File")]
            entries = wheel.read(f"{info}/entry_points.txt").decode()
        self.assertEqual(metadata["License-Expression"], "Apache-2.0")
        self.assertIn("# Loadline for Python and PyTorch", metadata.get_payload())
        for name in ("Apache License", "HiGHS", "Abseil", "JSON for Modern C++", "OpenSSL"):
            self.assertIn(name, "".join(licences))
        self.assertIn("loadline = loadline.torch:backend", entries)

    def test_brings_all_but_the_systems_own_libraries(self):
        package = run(self.python, "-c",
                      "import loadline; print(loadline.__path__[0])").strip()
        for line in run("ldd", pathlib.Path(package) / "_lib" / "libloadline.so"
                        ).splitlines():
            name, _, path = line.strip().partition(" => ")
            if path and package not in path and "loadline.libs" not in path:
                self.assertRegex(name, r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so")

    def test_imports_quickly_without_torch(self):
        # The parts that a machine's load does not change: no torch, few modules.
        found = run(self.python, "-X", "importtime", "-c",
                    "import sys, loadline; print('torch' in sys.modules,"
                    " 'numpy' in sys.modules)")
        self.assertEqual(found.strip(), "False False")
        # Best of five: 0.3 s are many times what it takes.
        best = min(float(run(
            self.python, "-c",
            "import time; start = time.perf_counter(); import loadline;"
            "loadline.__version__; print(time.perf_counter() - start)"))
            for _ in range(5))
        self.assertLess(best, 0.3)

    def test_plans(self):
        out = run(self.python, "-c",
                  "import chain, loadline\n"
                  "print(loadline.plan(chain.chain_problem(), 310,"
                  " work_limit=20000).peak_bytes)",
                  cwd=REPOSITORY / "tests" / "plugins" / "python")
        self.assertEqual(out.strip(), "310")

    def test_says_what_to_do_where_torch_is_missing(self):
        out = run(self.python, "-c",
                  "import loadline\n"
                  "try:\n  loadline.torch\n"
                  "except ImportError as error:\n  print(error)")
        self.assertIn("pip install torch", out)


class Source(unittest.TestCase):
    def test_distribution_has_what_the_library_is_built_of(self):
        with tempfile.TemporaryDirectory() as folder:
            run(sys.executable, "-c",
                "from scikit_build_core.build import build_sdist; import sys;"
                "build_sdist(sys.argv[1])", folder, cwd=REPOSITORY)
            archive, = pathlib.Path(folder).glob("loadline-*.tar.gz")
            root = archive.name.removesuffix(".tar.gz")
            with tarfile.open(archive) as source:
                names = {name.removeprefix(root + "/") for name in source.getnames()}
        for part in ("planner", "plugins", "cmake"):
            wanted = subprocess.run(
                ["git", "ls-files", part], cwd=REPOSITORY, capture_output=True, text=True)
            self.assertLessEqual({
                name for name in wanted.stdout.split()
                if name.endswith((".cc", ".h", ".py", ".txt", ".cmake", ".map"))}, names)
        self.assertLessEqual({"CMakeLists.txt", "LICENSE", "pyproject.toml"}, names)
        self.assertFalse([name for name in names if name.startswith(
            ("executor", "tests", "build", "models", "tools", "passes", "shared"))])


class Command(unittest.TestCase):
    def test_is_a_package_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            wheel = make_wheel(REPOSITORY / "tools" / "wheel", root / "command")
            self.assertRegex(wheel.name, r"^loadline_command-[\d.]+-py3-none-manylinux_")
            run(sys.executable, "-m", "venv", root / "venv")
            run(root / "venv/bin/python", "-m", "pip", "install", "--no-index", wheel)
            command = root / "venv" / "bin" / "loadline"
            self.assertRegex(run(command, "--version"), r"^\d+\.\d+\.\d+$")
            self.assertIn("arena", run(
                command, "plan", REPOSITORY / "tests/tools/chain_problem.json"))


if __name__ == "__main__":
    missing = [name for name in ("scikit_build_core", "auditwheel")
               if not importlib.util.find_spec(name)]
    if missing:
        print(f"skipped: no {' and no '.join(missing)}; tools/dev/setup/torch installs them")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
