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


def reference_file(path):
    return path.with_suffix(".reference")


def save_reference(path, expected):
    kept = {key: value for key, value in expected.items() if key != "data"}
    reference_file(path).write_bytes(pickle.dumps(kept))


def load_reference(path):
    """Of a file that this program wrote."""
    return pickle.loads(reference_file(path).read_bytes())


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
        found = sum(before[n].astype(np.float64) - after[n] for n in in_file)
        found = found / GRADIENT_RATE
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


def is_buffer(name):
    """Not a statistic, which a step does change."""
    return not name.endswith(("running_mean", "running_var", "num_batches_tracked"))


def same_bits(a, b):
    return a.keys() == b.keys() and all(
        a[name].tobytes() == b[name].tobytes() for name in a)


def verdict(result):
    """"passes", or what is wrong."""
    if "error" in result:
        return result["stage"]
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
    if not all(result.get("same bits", {}).values()):
        wrong.append("bits differ")
    return ", ".join(wrong) or "passes"


def line(result):
    if "error" in result:
        return f"{result['stage']}: {result['error']}"
    return (f"{result['verdict']}: {result['operators']} operators, "
            f"loss {result['loss']:.1e}, gradient {result['gradient']:.1e} "
            f"({result['worst gradient']}), steps {result['steps']:.1e} "
            f"(rounding {result['steps by rounding']:.1e}), "
            f"missing {result['missing'][:3]}, moved {result['moved'][:3]}, "
            f"same bits {result.get('same bits')}, {result['seconds']} s")


def first_line(error):
    """The shortest account of an exception that says what was refused."""
    lines = [text for text in str(error).splitlines() if text.strip()]
    return " ".join(lines[:3])[:400] if lines else ""


def last_lines(text):
    return " | ".join(text.strip().splitlines()[-12:])[:1500]
