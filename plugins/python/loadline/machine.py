"""The machine that will run a plan: loadline.machine/1 (docs/formats.md)."""
from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from loadline.errors import InvalidArgument


@dataclasses.dataclass(frozen=True)
class Machine:
    """Copies exist in a plan only where both bandwidths are given."""

    name: str
    device_bytes: int = 0
    reserved_bytes: int = 0  # outside our control: context, libraries
    d2h_bytes_per_s: float = 0
    h2d_bytes_per_s: float = 0
    copy_latency_ns: int = 0
    bidirectional: float = 1.0  # factor on both rates while both move bytes
    host_bytes: int = 0  # limit for host buffers
    # Prices for operators that were never measured.
    matmul_flop_per_s: dict[str, float] = dataclasses.field(default_factory=dict)
    memory_bytes_per_s: float = 0
    launch_ns: int = 0

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Machine:
        """Reads what `loadline doctor` wrote."""
        with open(path, encoding="utf-8") as file:
            try:
                return Machine.from_document(json.load(file))
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidArgument(
                    f"{os.fspath(path)}: no loadline.machine/1: {error}") from error

    @staticmethod
    def from_document(document: dict[str, Any]) -> Machine:
        fields = dict(document)
        if fields.pop("format", None) != "loadline.machine/1":
            raise InvalidArgument('field "format" must be "loadline.machine/1"')
        rates = fields.pop("rates", {})
        for name in ("ops", "extra"):  # of operators that torch does not have
            fields.pop(name, None)
        return Machine(**fields, **rates)

    def document(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"format": "loadline.machine/1"}
        fields.update(dataclasses.asdict(self))
        rates = {name: fields.pop(name) for name in
                 ("matmul_flop_per_s", "memory_bytes_per_s", "launch_ns")}
        if any(rates.values()):
            fields["rates"] = rates
        return fields
