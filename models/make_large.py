#!/usr/bin/env python3
"""Writes weights and data of the models in models/zoo/large: GPT-2 124M with
1,024 tokens a sequence, and ResNet-50 with images of 224 x 224.

Their graphs, exported by PyTorch, are committed. Their weights (600 MB) are made
as in make_weights.py, and their data are random: SHAKE-128 of the file's name.
Only benchmarks on a GPU train them (tests/bench/gpu_budgets.py). Uses the
standard library only. Existing files are kept.

Usage: make_large.py [--only NAME] [FOLDER]   (default: zoo/large next to this script)

Tested by tests/gpu/make_large_test.
"""

import argparse
import array
import hashlib
import math
import pathlib
import sys
import zipfile

import make_weights

# Model: its data arrays as name, NumPy type, shape and upper bound of the
# integers (None: floats in [0, 1)).
DATA = {
    "gpt2-124m": (("tokens", "<i8", (32, 1024), 50257),
                  ("target", "<i8", (32, 1024), 50257)),
    "resnet50": (("image", "<f4", (128, 3, 224, 224), None),
                 ("target", "<i8", (128,), 1000)),
}


def numbers(key, dtype, count, below):
    """`count` random numbers as bytes: integers in [0, below), or one of 256
    floats in [0, 1)."""
    if dtype == "<f4":
        levels = [byte / 256 for byte in range(256)]
        random_bytes = hashlib.shake_128(key.encode()).digest(count)
        values = array.array("f", map(levels.__getitem__, random_bytes))
    else:
        words = array.array("I")
        words.frombytes(hashlib.shake_128(key.encode()).digest(4 * count))
        if sys.byteorder == "big":
            words.byteswap()
        values = array.array("q", (word % below for word in words))
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def npy(dtype, shape, data):
    """An array in NumPy's file format 1.0."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
            + header.encode() + data)


def write_data(folder, name):
    """Writes one model's data; returns the path, or None if it exists."""
    target = folder / f"{name}-data.npz"
    if target.exists():
        return None
    with (make_weights.replacing(target) as temporary,
          zipfile.ZipFile(temporary, "w") as archive):
        for key, dtype, shape, below in DATA[name]:
            data = numbers(f"{name} {key}", dtype, math.prod(shape), below)
            # A fixed date, so that the bytes are always the same.
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"),
                             npy(dtype, shape, data))
    return target


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path,
                        default=here / "zoo" / "large")
    parser.add_argument("--only", choices=sorted(DATA))
    args = parser.parse_args()
    for name in [args.only] if args.only else sorted(DATA):
        recipe = args.folder / f"{name}.weights.json"
        for written in (make_weights.write_weights(args.folder, recipe),
                        write_data(args.folder, name)):
            if written:
                print(f"wrote {written}", file=sys.stderr)


if __name__ == "__main__":
    main()
