#!/usr/bin/env python3
"""Writes the initial weights of the models in models/zoo whose graphs are
committed without them.

ResNet-18 has 11 million parameters, 45 MB of meaningless numbers. Its graph,
exported by PyTorch, is committed; its weights are ONNX external data that this
script generates from each parameter's name: SHAKE-128(name) gives one byte per
element, which selects one of 256 evenly spaced values, scaled as Kaiming's
uniform initialisation (He et al. 2015). Uses the standard library only, so that
a fresh machine can run it first. export_models.py loads the same numbers into
PyTorch before it computes reference losses. NAME.weights.json, in the folder of
NAME.onnx, has the shapes.

Usage: make_weights.py [FOLDER]   (default: models/zoo)
"""

import array
import contextlib
import hashlib
import json
import math
import os
import pathlib
import sys


def initial_values(name, shape, kind):
    """The initial contents of one tensor as an array of 32-bit floats.

    kind: "zeros", "ones", "i64_zeros" (one 64-bit integer), or "uniform:B" for
    values in [-B, B].
    """
    count = math.prod(shape)
    if kind == "i64_zeros":
        return array.array("q", bytes(8 * count))
    if kind == "zeros":
        return array.array("f", bytes(4 * count))
    if kind == "ones":
        return array.array("f", [1.0]) * count
    bound = float(kind.split(":")[1])
    levels = [bound * (2 * byte - 255) / 255 for byte in range(256)]
    random_bytes = hashlib.shake_128(name.encode()).digest(count)
    return array.array("f", map(levels.__getitem__, random_bytes))


@contextlib.contextmanager
def replacing(target):
    """A temporary path that replaces `target` if the block succeeds."""
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    yield temporary
    os.replace(temporary, target)


def write_weights(folder, recipe_path):
    """Writes the external data file of one model; returns its path."""
    recipe = json.loads(recipe_path.read_text())
    target = folder / recipe["location"]
    if (target.exists() and target.stat().st_size == recipe["bytes"]
            and target.stat().st_mtime >= recipe_path.stat().st_mtime):
        return None
    with replacing(target) as temporary, open(temporary, "wb") as file:
        for tensor in recipe["tensors"]:
            if file.tell() != tensor["offset"]:
                raise SystemExit(f"{recipe_path}: {tensor['name']}: wrong offset")
            values = initial_values(tensor["name"], tensor["shape"], tensor["kind"])
            if sys.byteorder == "big":
                values.byteswap()
            values.tofile(file)
    return target


def main():
    here = pathlib.Path(__file__).resolve().parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "zoo"
    for recipe_path in sorted(folder.glob("*.weights.json")):
        written = write_weights(folder, recipe_path)
        if written:
            print(f"wrote {written}", file=sys.stderr)


if __name__ == "__main__":
    main()
