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
from loadline.errors import Unsupported
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

_chosen: list[str] = []  # once per process


def _fails(test: Callable[[], str]) -> str:
    found: list[str] = []

    def work() -> None:
        try:
            found.append(test())
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}".splitlines()[0])

    # A thread of its own: this one may be in the middle of a compile.
    thread = threading.Thread(target=work, name="loadline-self-test")
    thread.start()
    thread.join()
    return found[0]


def choose(tests: dict[str, Callable[[], str]]) -> str:
    """tests: by tier, best first; what is wrong with it, in words. Raises Unsupported
    where all are, InternalError where our own library is not there."""
    if not _chosen:
        _library.version()
        reasons = []
        for tier, test in tests.items():
            missing = torch_internals.missing(tier)
            reason = (f"this PyTorch has no {', '.join(missing)}" if missing else
                      _fails(test))
            if not reason:
                _chosen.append(tier)
                break
            reasons.append(f"{tier}: {reason}")
        if not _chosen:
            raise Unsupported(
                f"torch {torch.__version__} does not do what a plan says "
                f"({'; '.join(reasons)}); loadline.torch is tried with torch 2.15: "
                "install that, or a Loadline that knows this one")
        if reasons:
            warnings.warn(
                f"loadline: torch {torch.__version__} does not do all that a plan says "
                f"({'; '.join(reasons)}), so the tier is \"{_chosen[0]}\": "
                f"{LIMITS[_chosen[0]]}. Have loadline.torch.prepare measure the step "
                "on its device, or install torch 2.15", stacklevel=3)
    return _chosen[0]
