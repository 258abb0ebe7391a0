"""Three tiers of control over PyTorch's compiler.

The first tier whose private names exist and whose self-test passes is taken, once per
process.

full: the plan decides the split into forward and backward, and the order of operators.
recompute: PyTorch's partitioner asks which of the expensive values are saved, and
decides the rest and the order itself. public: the forward runs in segments, some of them
inside a checkpoint (segments.py). Tested by tests/plugins/python/torch_tiers_test.py.
"""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

import torch
from loadline import _library
from loadline.errors import LoadlineWarning, Unsupported
from loadline.torch.compat import recompile_internals, torch_internals

FULL, RECOMPUTE, PUBLIC = "full", "recompute", "public"

LIMITS = {  # what a tier cannot do
    FULL: "",
    RECOMPUTE: "nothing is copied to the host, optimizer state stays on the device, "
               "PyTorch decides about cheap operators and about the order, and peaks "
               "are estimates",
    PUBLIC: "PyTorch's eager kernels run instead of Inductor's, only whole segments of "
            "the model are computed again, nothing is copied to the host, optimizer "
            "state stays on the device, and peaks are estimates",
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

    torch_internals.enter_fake_mode()
    # In its own thread, because this one may be in the middle of a compile.
    thread = threading.Thread(target=work, name="loadline-self-test")
    with recompile_internals.own_metrics():
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
                "loadline.torch.prepare measures the step on a GPU; torch 2.10 and newer have the "
                "full tier", LoadlineWarning, stacklevel=4)
        return tier
    raise Unsupported(
        f"torch {torch.__version__} cannot do what a plan says ({'; '.join(reasons)}). "
        "loadline.torch is tested with torch 2.15: install that, or a newer Loadline")
