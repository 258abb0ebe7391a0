"""The command `loadline`, as the wheel carries it."""
from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "_lib" / "loadline"
    if not program.exists():
        sys.exit(f"loadline: {program} is missing: install the wheel, or run "
                 "tools/loadline of a checkout")
    os.execv(program, ["loadline", *sys.argv[1:]])
