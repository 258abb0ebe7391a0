"""Comparisons of what `loadline run` trained with what PyTorch computed."""
import pickle

import numpy as np
import onnx
from onnx import numpy_helper

# One step of SGD makes p' = p - rate g. With a large power of two, rounding of p'
# is rounding of g: (p - p') / rate has g's own precision.
GRADIENT_RATE = 2**20
LOSS_LIMIT = 1e-5
GRADIENT_LIMIT = 1e-4
STEPS_LIMIT = 1e-3
BF16_LIMIT = 1.5  # times the largest error of PyTorch's draws


def reference_file(path, part):
    return path.with_suffix(f".{part}.reference")


def save_reference(path, part, expected):
    reference_file(path, part).write_bytes(pickle.dumps(expected))


def load_reference(path, part):
    """Of a file that this program wrote; None if there is none."""
    file = reference_file(path, part)
    return pickle.loads(file.read_bytes()) if file.exists() else None


def weights(path):
    return {tensor.name: numpy_helper.to_array(tensor)
            for tensor in onnx.load(path).graph.initializer}


def relative(value, expected):
    return abs(value - expected) / max(abs(expected), 1e-12)


def distance(a, b):
    return float(np.linalg.norm(np.asarray(a - b, np.float64)))


def gradients(before, after, expected):
    """The largest error of a gradient, norm-wise. Where rounding moves PyTorch's own
    by more than a tenth of the limit, the error counts in units of that."""
    exact = expected["gradients"]
    worst, name_of_worst, missing = 0.0, "", []
    total = np.sqrt(sum(np.linalg.norm(g) ** 2 for g in exact.values()))
    trained = set()
    for name, gradient in exact.items():
        norm = float(np.linalg.norm(gradient))
        in_file = [n for n in expected["names"][name] if n in before]
        if not in_file:
            if norm > 0:
                missing.append(name)
            continue
        trained.update(in_file)
        found = moved_by(before, after, in_file)
        # Such as the bias before a normalization: a sum that is zero but for rounding.
        size = norm if norm > 1e-12 * total else max(total, 1e-30)
        error = distance(found, gradient) / size
        rounding = expected["rounding"][name] / size
        error /= max(1.0, rounding / (GRADIENT_LIMIT / 10))
        if not error <= worst:
            worst, name_of_worst = error, name
    moved = [name for name in before
             if name in after and name not in trained and is_buffer(name)
             and not np.array_equal(before[name], after[name])]
    return {"gradient": worst, "worst gradient": name_of_worst, "missing": missing,
            "moved": moved}


def moved_by(before, after, names):
    """The gradient of a parameter that the file has under these names."""
    found = sum(before[n].astype(np.float64) - after[n] for n in names)
    return found / GRADIENT_RATE


def mixed(report, before, after, names, expected):
    """Errors of the loss and of all gradients together, in units of the largest error
    of PyTorch's autocast; and the parameter that is worst against the whole."""
    off, total, worst, name_of_worst = 0.0, 0.0, -1.0, ""
    for name, gradient in expected["gradients"].items():
        in_file = [n for n in names[name] if n in before]
        if not in_file:
            continue
        error = distance(moved_by(before, after, in_file), gradient) ** 2
        off += error
        total += float(np.linalg.norm(gradient)) ** 2
        if not error <= worst:
            worst, name_of_worst = error, name
    gradient = np.sqrt(off / max(total, 1e-60))
    loss = relative(report["losses"][0], expected["loss"])
    return {"loss": loss, "gradient": gradient, "worst gradient": name_of_worst,
            "share of worst": worst / max(off, 1e-60),
            "loss of autocast": max(expected["loss errors"]),
            "gradient of autocast": max(expected["gradient errors"])}


def bf16_ratio(found, key):
    """How many times PyTorch's error; one that fp32 has already counts as none."""
    return max(0.0, found[key] - LOSS_LIMIT) / max(found[f"{key} of autocast"], 1e-12)


def is_buffer(name):
    """Not a statistic, which a step does change."""
    return not name.endswith(("running_mean", "running_var", "num_batches_tracked"))


def same_bits(a, b):
    return a.keys() == b.keys() and all(
        a[name].tobytes() == b[name].tobytes() for name in a)


def verdict(result):
    """"passes", or what is wrong, of the parts that were run."""
    if "error" in result:
        return result["stage"]
    wrong = []
    if "loss" in result:
        wrong += wrong_in_training(result)
    if not all(result.get("same bits", {}).values()):
        wrong.append("bits differ")
    found = result.get("bf16", {})
    if "gradient" in found and not bf16_ratio(found, "gradient") <= BF16_LIMIT:
        wrong.append("bf16")
    return ", ".join(wrong) or "passes"


def wrong_in_training(result):
    wrong = []
    if not result["loss"] <= max(LOSS_LIMIT, 10 * result["loss by rounding"]):
        wrong.append("loss")
    if not result["gradient"] <= GRADIENT_LIMIT:
        wrong.append("gradient")
    if result["missing"]:
        wrong.append("weights renamed")
    if result["moved"]:
        wrong.append("buffers trained")
    if not result["steps"] <= max(STEPS_LIMIT, 10 * result["steps by rounding"]):
        wrong.append("20 steps")
    return wrong


def line(result):
    if "error" in result:
        return f"{result['stage']}: {result['error']}"
    parts = [f"{result['verdict']}: {result['operators']} operators"]
    if "loss" in result:
        parts.append(
            f"loss {result['loss']:.1e}, gradient {result['gradient']:.1e} "
            f"({result['worst gradient']}), steps {result['steps']:.1e} "
            f"(rounding {result['steps by rounding']:.1e}), "
            f"missing {result['missing'][:3]}, moved {result['moved'][:3]}")
    if "same bits" in result:
        parts.append(f"same bits {result['same bits']}")
    found = result.get("bf16", {})
    if "gradient" in found:
        parts.append(f"bf16 {found['gradient']:.1e} of "
                     f"{found['gradient of autocast']:.1e} ({found['worst gradient']} "
                     f"{found['share of worst']:.2f}), loss "
                     f"{found['loss']:.1e} of {found['loss of autocast']:.1e}")
    elif found:
        parts.append(f"bf16 {found}")
    return ", ".join([*parts, f"{result['seconds']} s"])


def first_line(error):
    """The shortest account of an exception that says what was refused."""
    lines = [text for text in str(error).splitlines() if text.strip()]
    return " ".join(lines[:3])[:400] if lines else ""


def last_lines(text):
    return " | ".join(text.strip().splitlines()[-12:])[:1500]
