"""The command `loadline`, as its wheel carries it."""
from __future__ import annotations

import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).parent / "_bin" / "loadline"


def main() -> None:
    os.execv(PROGRAM, ["loadline", *sys.argv[1:]])
