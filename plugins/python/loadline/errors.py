"""Kinds of errors. Each message is one line that says what is wrong and where."""
from __future__ import annotations


class LoadlineError(Exception):
    """Any error of this package."""


class InvalidArgument(LoadlineError, ValueError):
    """A document, a budget or an option that cannot be used."""


class Infeasible(LoadlineError):
    """No plan within the budget was found."""

    def __init__(self, message: str, budget_bytes: int = 0,
                 smallest_met_bytes: int = 0, proven_bound_bytes: int = 0):
        super().__init__(message)
        self.budget_bytes = budget_bytes
        # The smallest budget for which a plan was found; 0: none was found.
        self.smallest_met_bytes = smallest_met_bytes
        # Proven: no plan takes fewer bytes.
        self.proven_bound_bytes = proven_bound_bytes


class Stopped(LoadlineError):
    """Time limit or interrupt before any plan was found."""


class NotValid(LoadlineError):
    """A plan that the verifier rejects."""


class Unsupported(LoadlineError):
    """A graph or a PyTorch that cannot be planned; the message says what to do."""


class InternalError(LoadlineError):
    """Out of memory, or a bug in Loadline."""


class LoadlineWarning(UserWarning):
    """The category of every warning of this package."""
