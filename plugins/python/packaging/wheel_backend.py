"""Builds the wheel: what pip calls (PEP 517), without packages of its own.

    pip install plugins/python                               # builds all first
    pip wheel plugins/python --config-settings=build-dir=build/release  # what is there

The wheel is the package's Python files and, in loadline/_lib, libloadline.so,
the command and the libraries they stand on. A build backend from the package
index would want the network and a build tree of its own for what the
repository's CMake has built already. Tested by tests/plugins/python/wheel_test.py.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sysconfig
import zipfile

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
# Every Linux with this libc has them; the rest comes along.
SYSTEM = re.compile(
    r"(ld-linux|linux-vdso|lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so)")


def read_project():
    """pyproject.toml without tomllib, which Python 3.10 lacks: ours is flat."""
    sections, name = {}, None
    for line in (HERE / "pyproject.toml").read_text().splitlines():
        if match := re.fullmatch(r"\[(.+)\]", line):
            name = match[1]
            sections[name] = {}
        elif match := re.fullmatch(r'([\w-]+) = "(.*)"', line):
            sections[name][match[1]] = match[2]
    return sections


def built(settings):
    """The build folder, with command and library in it."""
    folder = (settings or {}).get("build-dir")
    if folder is None:
        subprocess.run([ROOT / "tools" / "loadline", "--version"], check=True,
                       stdout=subprocess.DEVNULL)
        folder = ROOT / "build" / "release"
        subprocess.run(["ninja", "-C", folder, "loadline_c"], check=True)
    folder = pathlib.Path(folder).resolve()
    files = {"loadline": folder / "tools" / "loadline",
             "libloadline.so": folder / "plugins" / "c" / "libloadline.so"}
    for file in files.values():
        if not file.exists():
            raise SystemExit(f"{file} is missing: build loadline and loadline_c")
    return files


def libraries_of(file):
    """What the loader would load for it: soname to path."""
    found = {}
    listing = subprocess.run(["ldd", file], check=True, capture_output=True,
                             text=True).stdout
    for line in listing.splitlines():
        if SYSTEM.match(line.strip().rsplit("/", 1)[-1].split(" ")[0]):
            continue
        name, _, path = line.strip().partition(" => ")
        path = path.rsplit(" (", 1)[0]
        if not pathlib.Path(path).is_absolute():
            raise SystemExit(f"{file} needs {name}, which is not here")
        found[name] = pathlib.Path(path)
    return found


def wheel_files(settings):
    """Path in the wheel to its bytes and whether it is a program."""
    files = {}
    for path in sorted((HERE / "loadline").rglob("*")):
        if path.is_file() and path.suffix in {".py", ".typed"} or (
                path.name == "py.typed"):
            files[path.relative_to(HERE).as_posix()] = (path.read_bytes(), False)
    native = built(settings)
    libraries = {}
    for file in native.values():
        libraries.update(libraries_of(file))
    for name, path in sorted({**libraries, **native}.items()):
        files[f"loadline/_lib/{name}"] = (path.read_bytes(), name in native)
    files["loadline/_lib/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), False)
    return files


def metadata_files(project, tag):
    about = project["project"]
    entries = "".join(
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in table.items())
        for group, table in (
            ("console_scripts", project["project.scripts"]),
            *((name.removeprefix("project.entry-points."), table)
              for name, table in project.items()
              if name.startswith("project.entry-points."))))
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: {about['name']}\n"
                    f"Version: {about['version']}\n"
                    f"Summary: {about['description']}\n"
                    f"License: {about['license']}\n"
                    f"Requires-Python: {about['requires-python']}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: loadline\n"
                 f"Root-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": entries,
    }


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = read_project()
    about = project["project"]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}"
    info = f"{about['name']}-{about['version']}.dist-info"
    files = wheel_files(config_settings)
    for name, text in metadata_files(project, tag).items():
        files[f"{info}/{name}"] = (text.encode(), False)
    record = []
    name = f"{about['name']}-{about['version']}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w",
                         zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
        def add(path, data, program):
            entry = zipfile.ZipInfo(path)  # its date is 1980: same files, same bytes
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        for path, (data, program) in files.items():
            add(path, data, program)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            record.append(f"{path},sha256={digest.decode().rstrip('=')},{len(data)}")
        add(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]), False)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("the package is built from a checkout of the repository")
