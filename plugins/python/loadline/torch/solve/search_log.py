"""Says how a long search stands, through the logger loadline.torch.

Tested by tests/plugins/python/torch_make_plan_test.py.
"""
from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

from loadline.budget import format_bytes
from loadline.planning import Progress

log = logging.getLogger("loadline.torch")

EVERY_S = 10.0
LONG_S = 30.0  # then once as a warning, which Python prints where nobody set up logging


@contextlib.contextmanager
def logged_search(budget: int | float | str, time_limit_s: float | None
                  ) -> Iterator[Callable[[Progress], None]]:
    """Takes what the search reports inside."""
    best: list[Progress] = []
    ended = threading.Event()
    start = time.monotonic()

    def say() -> None:
        warned = False
        while not ended.wait(EVERY_S):
            seconds = time.monotonic() - start
            found = (f"the best plan takes {best[-1].step_ns / 1e6:.1f} ms, proven are "
                     f"{best[-1].bound_step_ns / 1e6:.1f} ms" if best else "no plan yet")
            within = format_bytes(budget) if isinstance(budget, int) else "the smallest budget"
            text = (f"searching for a plan within {within}, "
                    f"{seconds:.0f} s so far: {found}")
            if seconds >= LONG_S and not warned and time_limit_s is None:
                warned = True
                log.warning("%s. time_limit_s=... stops the search", text)
            else:
                log.info("%s", text)

    thread = threading.Thread(target=say, name="loadline-search-log", daemon=True)
    thread.start()
    try:
        yield best.append
    finally:
        ended.set()
        thread.join()
