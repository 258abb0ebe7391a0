"""The file that `python -m loadline.torch.estimate --config` reads, without PyTorch.

Importing PyTorch takes seconds, and a wrong path needs none. Tested by
tests/plugins/python/torch_estimate_command_test.py.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from loadline.errors import InvalidArgument


def one_line(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def read_config(path: str) -> dict[str, Any]:
    """A JSON or YAML file with an object."""
    file = pathlib.Path(path)
    if file.is_dir():
        file = file / "config.json"
    try:
        read = _parsed(file)
    except OSError as error:
        raise InvalidArgument(f"--config {file}: {one_line(error)}") from error
    except RecursionError as error:
        raise InvalidArgument(f"--config {file}: nested too deeply") from error
    except ValueError as error:
        raise InvalidArgument(f"--config {file}: {one_line(error)}") from error
    if not isinstance(read, dict):
        raise InvalidArgument(f"--config {file}: want an object with fields, not "
                              + ("an empty file" if read is None else repr(read)[:60]))
    return read


def _parsed(file: pathlib.Path) -> Any:
    text = file.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError as error:
        if file.suffix == ".json":
            raise
        no_json = str(error)
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise InvalidArgument(f"no JSON ({no_json}), and YAML needs pyyaml: pip install "
                              "pyyaml") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidArgument(one_line(error)) from error


def refuse_early(arguments: list[str]) -> None:
    """Ends the process, as the command would later, if --config names no file with fields."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--config")
    try:
        given, _ = parser.parse_known_args(arguments)
        if given.config is not None and not {"-h", "--help"} & {*arguments}:
            read_config(given.config)
    except argparse.ArgumentError:
        pass  # which the whole parser explains
    except InvalidArgument as error:
        print(f"loadline.torch.estimate: {error}", file=sys.stderr)
        sys.exit(2)
