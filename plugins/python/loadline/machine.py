"""The machine that will run a plan: loadline.machine/2 (docs/formats.md)."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import Any

from loadline import _library
from loadline.budget import check_whole
from loadline.errors import InvalidArgument

_RATES = ("matmul_flop_per_s", "memory_bytes_per_s", "launch_ns")
_LINKS = ("d2h", "h2d", "write", "read")
_LINK_FIELDS = ("bytes_per_s", "latency_ns")
_WHOLE = ("device_bytes", "reserved_bytes", "host_bytes", "disk_bytes",
          "copy_overhead_ns", *(f"{link}_latency_ns" for link in _LINKS))
# For Loadline's executors.
_UNUSED = ("ops", "algorithms", "extra")
# Fields of `extra` in loadline.machine/1, and what they are now.
_EXTRA_1 = {"copies_stop_compute": "copies_exclude_compute",
            "switch_ns": "copy_overhead_ns", "nominal": "nominal"}


def cache_folder() -> pathlib.Path:
    """The folder for what the command has measured (docs/command.md)."""
    return pathlib.Path(os.environ.get("LOADLINE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
        "loadline"))


@dataclasses.dataclass(frozen=True)
class Machine:
    """A plan has copies only if both bandwidths are given."""

    name: str
    device_bytes: int = 0
    reserved_bytes: int = 0  # outside our control: context, libraries
    host_bytes: int = 0  # limit for host buffers
    # Copies to the host and back; a latency is of each copy.
    d2h_bytes_per_s: float = 0
    h2d_bytes_per_s: float = 0
    d2h_latency_ns: int = 0
    h2d_latency_ns: int = 0
    d2h_h2d_factor: float = 1.0  # on both rates while both move bytes
    # A disk, from and to the host: kept, and used by no plan.
    disk_bytes: int = 0
    write_bytes_per_s: float = 0
    read_bytes_per_s: float = 0
    write_latency_ns: int = 0
    read_latency_ns: int = 0
    write_read_factor: float = 1.0
    # Rates for operators that were never measured.
    matmul_flop_per_s: dict[str, float] = dataclasses.field(default_factory=dict)
    memory_bytes_per_s: float = 0
    launch_ns: int = 0
    copies_exclude_compute: bool = False  # they share cores or memory
    copy_overhead_ns: int = 0  # compute time lost per copy besides waiting
    nominal: bool = False  # from a data sheet, not measured

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Machine:
        """A profile that `loadline doctor` wrote; a name that is no file is a known GPU."""
        if not isinstance(path, (str, os.PathLike)) or os.path.isdir(path):
            raise InvalidArgument(f"machine {path!r}: want a GPU's name such as \"h100-sxm\", or "
                                  "the path of a profile")
        if isinstance(path, str) and not os.path.isfile(path) and (
                "/" not in path and not path.endswith(".json")):
            try:
                return Machine.known(path)
            except InvalidArgument as error:
                raise InvalidArgument(
                    f"machine {path!r}: there is no such file, and {error}") from error
        with open(path, encoding="utf-8") as file:
            try:
                return Machine.from_document(json.load(file))
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidArgument(
                    f"{os.fspath(path)}: no loadline.machine/2 or /1: {error}") from error

    @staticmethod
    def known(name: str) -> Machine:
        """The nominal profile of a well-known GPU, by a name such as "h100-sxm" or by its
        driver's name, such as "NVIDIA L4". Otherwise InvalidArgument lists all names."""
        return Machine.from_document(json.loads(_library.known_machine(name)))

    @staticmethod
    def from_document(document: dict[str, Any]) -> Machine:
        """A loadline.machine/2, or a /1."""
        version = document.get("format")
        if version == "loadline.machine/1":
            fields = _fields_of_1(document)
        elif version == "loadline.machine/2":
            fields = dict(document)
        else:
            raise InvalidArgument(
                'field "format" must be "loadline.machine/2" or "loadline.machine/1"')
        for name in ("format", *_UNUSED):
            fields.pop(name, None)
        for link in _LINKS:
            for name, value in fields.pop(link, {}).items():
                if name not in (*_LINK_FIELDS, "extra"):
                    raise InvalidArgument(f'field "{link}.{name}" is unknown')
                if name != "extra":
                    fields[f"{link}_{name}"] = value
        rates = fields.pop("rates", {})
        machine = Machine(**fields, **rates)
        for name in _WHOLE:
            check_whole(name, getattr(machine, name))
        return machine

    def document(self) -> dict[str, Any]:
        """A loadline.machine/2."""
        fields: dict[str, Any] = {"format": "loadline.machine/2"}
        fields.update(dataclasses.asdict(self))
        rates = {name: fields.pop(name) for name in _RATES}
        for link in _LINKS:
            parts = {name: fields.pop(f"{link}_{name}") for name in _LINK_FIELDS}
            if parts["bytes_per_s"]:
                fields[link] = parts
        if any(rates.values()):
            fields["rates"] = rates
        return fields


def _fields_of_1(document: dict[str, Any]) -> dict[str, Any]:
    """A loadline.machine/1 with the fields of a /2."""
    fields = dict(document)
    for link in ("d2h", "h2d"):
        rate = fields.pop(f"{link}_bytes_per_s", 0)
        if rate:
            fields[link] = {"bytes_per_s": rate,
                            "latency_ns": fields.get("copy_latency_ns", 0)}
    fields.pop("copy_latency_ns", None)
    if "bidirectional" in fields:
        fields["d2h_h2d_factor"] = fields.pop("bidirectional")
    extra = fields.get("extra", {})
    fields.update({new: extra[old] for old, new in _EXTRA_1.items() if old in extra})
    return fields
