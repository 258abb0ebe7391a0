"""What values of a traced model are computed from.

Tested by tests/plugins/python/torch_detach_outputs_test.py and torch_micro_batches_test.py.
"""
from __future__ import annotations

from collections.abc import Iterable

import torch


def sources_of(nodes: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
    """Inputs of the graph, and modules with parameters, that these nodes depend on."""
    open_ = [*nodes]
    seen = {*open_}
    while open_:
        new = {*open_.pop().all_input_nodes} - seen
        seen |= new
        open_ += new
    return {node for node in seen if node.op not in ("call_function", "call_method")}
