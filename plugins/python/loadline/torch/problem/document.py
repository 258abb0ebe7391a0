"""Writes a loadline.problem/1 document (docs/formats.md).

Values and nodes are numbered in the order in which they are added. Tested with its
users, in tests/plugins/python/torch_step_test.py and torch_tiers_test.py."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Document:
    def __init__(self, name: str, **of_every_value: Any):
        self.name = name
        self.of_every_value = of_every_value  # fields that all values share
        self.values: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []

    def value(self, name: str, bytes_: int, **fields: Any) -> int:
        """The id of the new value."""
        self.values.append({"id": len(self.values), "name": name, "bytes": bytes_,
                            **self.of_every_value, **fields})
        return len(self.values) - 1

    def node(self, name: str, time_ns: int, inputs: list[int], outputs: list[int],
             **fields: Any) -> int:
        """The id of the new node."""
        self.nodes.append({"id": len(self.nodes), "name": name, "time_ns": time_ns,
                           "inputs": inputs, "outputs": outputs, **fields})
        return len(self.nodes) - 1

    def problem(self, outputs: Iterable[int]) -> dict[str, Any]:
        """The plan needs no addresses, because PyTorch's allocator chooses them."""
        return {"format": "loadline.problem/1", "name": self.name,
                "values": self.values, "nodes": self.nodes, "outputs": list(outputs),
                "addresses": False}
