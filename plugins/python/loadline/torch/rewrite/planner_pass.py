"""What every tier's pass has in common: options, the graph's number, who records.

Tested by tests/plugins/python/torch_step_test.py and torch_tiers_test.py.
"""
from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from collections.abc import Mapping
from typing import Any, Protocol

from loadline._library import version as loadline_version
from loadline.torch.compat import torch_internals
from loadline.torch.problem.gradients import Owner
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.solve.options import Options


class Recorder(Protocol):
    def record(self, graph: PlannedGraph) -> None:
        """Called once for each graph that was planned."""


@dataclasses.dataclass(eq=False)
class PlannerPass:
    """At module level, so that Inductor's cache can pickle its subclasses."""

    options: Options
    recorder: Recorder
    number: int = 0  # of the graph, if the model has several
    # By input of the graph: the parameter that it is, if gradients may leave.
    owners: tuple[Owner | None, ...] = ()
    # By input of the graph: the number of the parameter that it is, if it may leave.
    parameters: Mapping[int, int] = dataclasses.field(default_factory=dict)

    def uuid(self) -> Any:
        # Same options and same code make the same plan of a graph.
        files = sorted(map(str, pathlib.Path(__file__).parents[2].rglob("*.py")))
        return hashlib.sha256(
            f"{self.options} {self.number} {self.owners} {self.parameters} "
            f"{loadline_version()}".encode()
            + torch_internals.get_hash_for_files(tuple(files))).hexdigest()
