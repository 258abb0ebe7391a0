#!/usr/bin/env python3
"""The speed of a run on data of four times its memory limit, against one that fits.

    tests/bench/stored_data.py [--loadline PROGRAM] [--models mlp,resnet18]
        [--limit-mib 512] [--rounds 5] [--folder FOLDER] [--result FILE]

Both runs of a round may have as many bytes of their own as --limit-mib (RLIMIT_DATA). One
has data that fits, and reads it into memory. The data of the other has four times the limit
and stays in its files, which are in --folder, on a disk. Before each run the kernel drops
these files from its page cache, and a run is less than one epoch: so every example that it
reads comes from the disk. Runs alternate, since the speed of a machine changes more within
a minute than the two differ. *Step* is the median step and the wait for its batch.

Prints Markdown; --result writes the same for tools/dev/write_tables. Exits with 1 if the
median of a model's ratios is above 1.05.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import resource
import statistics
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "models" / "zoo"
MIB = 1 << 20
MOST_RATIO = 1.05
TIMES_THE_LIMIT = 4
PART_OF_THE_LIMIT = 8  # of the data that fits
BLOCK_EXAMPLES = 4096  # written again and again
LEARNING_RATE = "1e-6"  # random targets: a run must not diverge
# Arrays of one kind of data: name, NumPy type, shape of an example, numbers below.
IMAGES = (("image", "<f4", (1, 8, 8), 1), ("target", "|u1", (), 10))
TOKENS = (("tokens", "|u1", (64,), 96), ("target", "|u1", (64,), 96))
MODELS = {  # name: data, batch, steps of some seconds
    "mlp": (IMAGES, 256, 4000),
    "gpt": (TOKENS, 32, 100),
    "unet": (IMAGES, 64, 400),
    "resnet18": (IMAGES, 32, 15),
}
COLUMNS = ["model", "batch", "limit, MiB", "data, MiB", "step of data in memory, ms",
           "step of data on the disk, ms", "of that, wait, ms", "ratio", "lowest and highest"]


def example_bytes(array):
    _, dtype, shape, _ = array
    count = 1
    for size in shape:
        count *= size
    return count * int(dtype[2:])


def block(array, seed):
    """Contents of BLOCK_EXAMPLES examples."""
    _, dtype, _, below = array
    count = BLOCK_EXAMPLES * example_bytes(array) // int(dtype[2:])
    numbers = random.Random(seed)
    if dtype == "<f4":
        return struct.pack(f"<{count}f", *(numbers.random() * below for _ in range(count)))
    return bytes(numbers.randrange(below) for _ in range(count))


def write_array(path, array, examples):
    _, dtype, shape, _ = array
    header = (f"{{'descr': '{dtype}', 'fortran_order': False, "
              f"'shape': {(examples, *shape)}, }}")
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    contents = block(array, path.name)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for _ in range(examples // BLOCK_EXAMPLES):
            file.write(contents)
        file.flush()
        os.fsync(file.fileno())


def write_data(folder, arrays, total_bytes):
    folder.mkdir(parents=True)
    one = sum(example_bytes(array) for array in arrays)
    examples = -(-total_bytes // one // BLOCK_EXAMPLES) * BLOCK_EXAMPLES
    for array in arrays:
        write_array(folder / f"{array[0]}.npy", array, examples)
    return examples


def forget(folder):
    """The files' pages leave the kernel's cache."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(args, model, folder, limit_bytes, in_memory, cache, measures_first=False):
    """The run's document. Measuring the machine and the operators takes more bytes."""
    _, batch, steps = MODELS[model]
    command = [args.loadline, "run", str(ZOO / f"{model}.onnx"), "--data", str(folder),
               "--batch", str(batch), "--steps", str(steps), "--lr", LEARNING_RATE,
               "--data-memory", f"{limit_bytes}B" if in_memory else "0B", "--json"]
    def limit():
        if measures_first:
            return
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))

    result = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=limit,
        env=dict(os.environ, LOADLINE_CACHE=str(cache)))
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    return json.loads(result.stdout)


def step_ms(document):
    return (document["step_ns"] + document["data_wait_ns"]) / 1e6


def measure(args, model, folders, limit_bytes, cache):
    run(args, model, folders["fits"], limit_bytes, True, cache, measures_first=True)
    pairs = []
    for _ in range(args.rounds):
        fits = run(args, model, folders["fits"], limit_bytes, True, cache)
        forget(folders["stored"])
        pairs.append((fits, run(args, model, folders["stored"], limit_bytes, False, cache)))
    ratios = [step_ms(stored) / step_ms(fits) for fits, stored in pairs]
    return {
        "fits_ms": statistics.median(step_ms(fits) for fits, _ in pairs),
        "stored_ms": statistics.median(step_ms(stored) for _, stored in pairs),
        "wait_ms": statistics.median(stored["data_wait_ns"] / 1e6 for _, stored in pairs),
        "ratios": ratios, "ratio": statistics.median(ratios)}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loadline", default=str(ROOT / "build/release/tools/loadline"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--limit-mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--result")
    args = parser.parse_args()

    limit_bytes = args.limit_mib * MIB
    rows, slow = [], []
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    with tempfile.TemporaryDirectory(dir=args.folder) as top:
        top = pathlib.Path(top)
        data = {}
        for model in args.models.split(","):
            arrays, batch, _ = MODELS[model]
            if arrays not in data:
                place = top / arrays[0][0]
                data[arrays] = {"fits": place / "fits", "stored": place / "stored"}
                write_data(data[arrays]["fits"], arrays, limit_bytes // PART_OF_THE_LIMIT)
                write_data(data[arrays]["stored"], arrays, limit_bytes * TIMES_THE_LIMIT)
            found = measure(args, model, data[arrays], limit_bytes, top / "cache")
            rows.append([model, batch, args.limit_mib, args.limit_mib * TIMES_THE_LIMIT,
                         f"{found['fits_ms']:.3g}", f"{found['stored_ms']:.3g}",
                         f"{found['wait_ms']:.2g}", f"{found['ratio']:.3f}",
                         f"{min(found['ratios']):.3f}, {max(found['ratios']):.3f}"])
            print("| " + " | ".join(str(cell) for cell in rows[-1]) + " |", flush=True)
            if found["ratio"] > MOST_RATIO:
                slow.append(model)
    if args.result:
        command = "tests/bench/stored_data.py " + " ".join(
            sys.argv[1:sys.argv.index("--result")])
        pathlib.Path(args.result).write_text(json.dumps({
            "command": command.strip(), "date": datetime.date.today().isoformat(),
            "machine": f"{processor()}, {os.cpu_count()} cores",
            "columns": COLUMNS, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    if slow:
        sys.exit(f"slower than data in memory by more than 5 %: {', '.join(slow)}")


if __name__ == "__main__":
    main()
