"""The machine that will run a plan: loadline.machine/1 (docs/formats.md)."""
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
_WHOLE = ("device_bytes", "reserved_bytes", "copy_latency_ns", "host_bytes",
          "switch_ns")
# Fields of `extra` that plans use; the others are for executors.
_EXTRA = ("copies_stop_compute", "switch_ns", "nominal")


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
    d2h_bytes_per_s: float = 0
    h2d_bytes_per_s: float = 0
    copy_latency_ns: int = 0
    bidirectional: float = 1.0  # factor on both rates while both move bytes
    host_bytes: int = 0  # limit for host buffers
    # Rates for operators that were never measured.
    matmul_flop_per_s: dict[str, float] = dataclasses.field(default_factory=dict)
    memory_bytes_per_s: float = 0
    launch_ns: int = 0
    copies_stop_compute: bool = False  # copies and compute share cores or memory
    switch_ns: int = 0  # compute time lost per copy besides waiting
    nominal: bool = False  # from a data sheet, not measured

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Machine:
        """A profile that `loadline doctor` wrote; a name that is no file is a known GPU."""
        if isinstance(path, str) and not os.path.isfile(path) and (
                "/" not in path and not path.endswith(".json")):
            try:
                return Machine.known(path)
            except InvalidArgument as error:
                raise InvalidArgument(f"there is no such file, and {error}") from error
        with open(path, encoding="utf-8") as file:
            try:
                return Machine.from_document(json.load(file))
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidArgument(
                    f"{os.fspath(path)}: no loadline.machine/1: {error}") from error

    @staticmethod
    def known(name: str) -> Machine:
        """The nominal profile of a well-known GPU, by a name such as "h100-sxm" or by its
        driver's name, such as "NVIDIA L4". Otherwise InvalidArgument lists all names."""
        return Machine.from_document(json.loads(_library.known_machine(name)))

    @staticmethod
    def from_document(document: dict[str, Any]) -> Machine:
        fields = dict(document)
        if fields.pop("format", None) != "loadline.machine/1":
            raise InvalidArgument('field "format" must be "loadline.machine/1"')
        fields.pop("ops", None)  # for operators of Loadline's executors
        extra, rates = fields.pop("extra", {}), fields.pop("rates", {})
        heeded = {name: extra[name] for name in _EXTRA if name in extra}
        machine = Machine(**fields, **heeded, **rates)
        for name in _WHOLE:
            check_whole(name, getattr(machine, name))
        return machine

    def document(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"format": "loadline.machine/1"}
        fields.update(dataclasses.asdict(self))
        rates = {name: fields.pop(name) for name in _RATES}
        if any(rates.values()):
            fields["rates"] = rates
        extra = {name: value for name in _EXTRA if (value := fields.pop(name))}
        if extra:
            fields["extra"] = extra
        return fields
