"""How much of PyTorch can be told what a plan says: the first of three tiers whose
names are there and whose self-test passes, found once per process.

full: the split into forward and backward, and the order, are the plan's. recompute:
PyTorch's own partitioner asks which dear values are saved; the rest, and the order,
are its own. public: the forward runs in segments, some within a checkpoint
(segments.py). Tested by tests/plugins/python/torch_tiers_test.py.
"""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

import torch
from loadline import _library
from loadline.errors import LoadlineWarning, Unsupported
from loadline.torch.compat import torch_internals

FULL, RECOMPUTE, PUBLIC = "full", "recompute", "public"

LIMITS = {
    FULL: "",
    RECOMPUTE: "nothing is copied to the host, optimizer state stays on the device, "
               "PyTorch decides on cheap operators and on the order, and a peak is an "
               "estimate",
    PUBLIC: "PyTorch's eager kernels run and not Inductor's, only whole segments of "
            "the model are computed again, nothing is copied to the host, optimizer "
            "state stays on the device, and a peak is an estimate",
}

# Of this process: which tier works depends on its PyTorch, not on a model.
_chosen: list[str] = []
_choice_lock = threading.Lock()


def _failure(test: Callable[[], str]) -> str:
    """What is wrong; empty: nothing."""
    found: list[str] = []

    def work() -> None:
        try:
            found.append(test())
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}".splitlines()[0])

    # In its own thread, because this one may be in the middle of a compile.
    thread = threading.Thread(target=work, name="loadline-self-test")
    thread.start()
    thread.join()
    return found[0]


def choose(tests: dict[str, Callable[[], str]]) -> str:
    """The tier of this process, found at the first call.

    tests: by tier, best first; each returns what is wrong with it, in words. Raises
    Unsupported if all fail, InternalError if our own library is missing."""
    with _choice_lock:
        if not _chosen:
            _library.version()
            _chosen.append(_first_that_works(tests))
        return _chosen[0]


def _first_that_works(tests: dict[str, Callable[[], str]]) -> str:
    reasons = []
    for tier, test in tests.items():
        missing = torch_internals.missing(tier)
        reason = (f"this PyTorch has no {', '.join(missing)}" if missing else
                  _failure(test))
        if reason:
            reasons.append(f"{tier}: {reason}")
            continue
        if reasons:
            warnings.warn(
                f"loadline: torch {torch.__version__} cannot do all that a plan says "
                f"({'; '.join(reasons)}), so the tier is \"{tier}\": {LIMITS[tier]}. "
                "loadline.torch.prepare measures the step on a GPU; torch 2.15 has the "
                "full tier", LoadlineWarning, stacklevel=4)
        return tier
    raise Unsupported(
        f"torch {torch.__version__} cannot do what a plan says ({'; '.join(reasons)}). "
        "loadline.torch is tested with torch 2.15: install that, or a newer Loadline")
