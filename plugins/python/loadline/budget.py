"""Reads budgets and other numbers as people write them."""
from __future__ import annotations

import numbers
import re
from typing import Any

from loadline.errors import InvalidArgument

WHOLE_PPB = 10**9  # a share of 1, in the planner's billionths
# The largest number that the planner takes; ctypes would silently truncate more.
_MOST = (1 << 63) - 1
_UNITS = {"b": 1}  # in lower case: any case is read, as by the command
for _power, _letter in enumerate("kmgt", 1):
    _UNITS[f"{_letter}ib"] = _UNITS[f"{_letter}i"] = 1024**_power
    _UNITS[f"{_letter}b"] = 1000**_power
    _UNITS[_letter] = 1024**_power
# As the command reads them: +.5KiB too. More digits are no number of bytes.
_FORM = re.compile(r"\s*\+?([0-9]{0,30})(?:\.([0-9]{0,30}))?\s*([A-Za-z]+|%)\s*")


def check_whole(name: str, value: Any, most: int = _MOST, least: int = 0) -> None:
    """Raises InvalidArgument for anything but a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not (
            least <= value <= most):
        raise InvalidArgument(
            f"{name}={value!r}: want a whole number from {least} to {most}")


def check_flags(**given: Any) -> None:
    """Raises InvalidArgument for anything but True and False, and 1 and 0: "no" is true."""
    for name, value in given.items():
        if not isinstance(value, int) or value not in (True, False):
            raise InvalidArgument(f"{name}={value!r}: want True or False")


def check_seconds(name: str, value: Any) -> None:
    """Raises InvalidArgument for anything but a time limit, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(
            value, (int, float)) or not 0 < value < 1e9):
        raise InvalidArgument(f"{name}={value!r}: want seconds, more than 0")


def plain_number(value: Any) -> Any:
    """A number of another library, such as numpy.int64, as Python's; others as they are."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, numbers.Rational)):
        return float(value)
    return value


SMALLEST = "smallest"


def read_share(budget: Any) -> Any:
    """A share that is a float, such as 0.6, as "60%"; anything else as it is. A float above 1
    may be meant as bytes or GiB, so it is refused; the text "110%" is clear."""
    budget = plain_number(budget)
    if isinstance(budget, str) and budget.strip() == SMALLEST:
        return SMALLEST
    if not isinstance(budget, float):
        return budget
    if not 0 < budget <= 1:
        raise InvalidArgument(
            f"budget {budget!r}: a share is more than 0 and at most 1; give bytes as a "
            'whole number or "3GiB", and a larger share as "110%"')
    return f"{100 * budget:.7f}".rstrip("0").rstrip(".") + "%"


def parse_budget(budget: int | float | str, whole_bytes: int | None = None) -> int:
    """Bytes: 3221225472, "3GiB", "1.5 GB", or "60%" or 0.6 of whole_bytes.

    A share is read to 1e-7 percent and rounded up to a whole byte, as the planner does.
    """
    budget = read_share(budget)
    if isinstance(budget, int) and not isinstance(budget, bool):
        if budget <= 0:
            raise InvalidArgument(f"budget {budget}: must be more than 0 bytes")
        return _within(budget, budget)
    bytes_, ppb = _parse_text(budget)
    if ppb == 0:
        return _within(budget, bytes_)
    if whole_bytes is None:
        raise InvalidArgument(
            f"budget {budget!r}: nothing is known to take a share of; give bytes")
    return _within(budget, -(-ppb * whole_bytes // WHOLE_PPB))


def budget_fields(budget: int | float | str) -> dict[str, int]:
    """The budget as fields of the C interface's options: the planner turns a share
    into bytes, so that it is rounded in one place."""
    budget = read_share(budget)
    if budget == SMALLEST:
        return {}
    if isinstance(budget, str):
        bytes_, ppb = _parse_text(budget)
        if ppb:
            return {"budget_share_ppb": _within(budget, ppb)}
    return {"budget_bytes": parse_budget(budget)}


def _parse_text(budget: int | float | str) -> tuple[int, int]:
    """(bytes, 0) or (0, share in billionths, rounded up)."""
    hint = 'want bytes, "3GiB" (1024^3 bytes each), "3GB" (1000^3), "60%" or "smallest"'
    match = _FORM.fullmatch(budget) if isinstance(budget, str) else None
    whole, fraction, unit = match.groups("") if match is not None else ("", "", "")
    if not whole + fraction:
        raise InvalidArgument(f"budget {budget!r}: {hint}")
    scale = 10 ** len(fraction)
    scaled = int(whole + fraction)  # exact: no float in between
    if unit == "%":
        result = (0, -(-scaled * WHOLE_PPB // (100 * scale)))
    elif unit.lower() in _UNITS:
        result = (scaled * _UNITS[unit.lower()] // scale, 0)
    else:
        raise InvalidArgument(f"budget {budget!r}: no unit {unit!r}; {hint}")
    if not any(result):
        raise InvalidArgument(f"budget {budget!r}: must be more than 0 bytes")
    return result


def is_share(budget: int | float | str) -> bool:
    """Whether a valid budget is a share, such as "60%" or 0.6."""
    return isinstance(budget, float) or isinstance(budget, str) and budget.rstrip().endswith("%")


def _within(budget: int | float | str, bytes_: int) -> int:
    if bytes_ > _MOST:
        raise InvalidArgument(f"budget {budget!r}: more than {_MOST} bytes")
    return bytes_


def format_bytes(bytes_: int) -> str:
    """"3.25 MiB"."""
    size, unit = float(bytes_), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{int(size)} B" if unit == "B" else f"{size:.3g} {unit}"
