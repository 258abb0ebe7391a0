"""What can go wrong, by kind. Each message is one line that names what and
where."""
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
        # The smallest budget that a plan was found for; 0: none was.
        self.smallest_met_bytes = smallest_met_bytes
        # No plan of any kind takes fewer bytes.
        self.proven_bound_bytes = proven_bound_bytes


class Stopped(LoadlineError):
    """Time limit or interrupt before any plan was found."""


class NotValid(LoadlineError):
    """A plan that the verifier rejects."""


class Unsupported(LoadlineError):
    """A graph or a PyTorch that cannot be planned for, and what to do about it."""


class InternalError(LoadlineError):
    """Out of memory, or a bug of Loadline's."""


class LoadlineWarning(UserWarning):
    """The category of every warning of this package."""
