"""Tests at first use whether a tier does on this PyTorch what a plan says.

The plugin depends on private names of PyTorch, and a name that still exists may mean
something else. So a step of a few operators is planned below keeping everything and run
once for each tier. Fewer bytes must pass from forward to backward (in the full tier:
exactly what the plan keeps, and the ledger must measure the plan's peak), and the
gradients must have the same bits as without a plan. Tested by
tests/plugins/python/torch_self_test_test.py and torch_tiers_test.py.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from loadline.torch.compat import torch_internals
from loadline.torch.rewrite.ledger import run_eagerly, virtual_device
from torch.autograd.graph import saved_tensors_hooks

_SIZE = 64


def _five_operators(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ((x @ w).sin().cos() @ w).sum()


def _more_operators(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Enough operators to cut into segments."""
    y = x @ w
    for _ in range(4):
        y = y.sin().cos()
    return (y @ w).sum()


def _inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(_SIZE, _SIZE, generator=generator, requires_grad=True)
            for _ in range(2))
    return x, w


def _wrong(step: Callable[..., torch.Tensor], call: Callable[..., torch.Tensor]) -> str:
    x, w = _inputs()
    expected = torch.autograd.grad(step(x, w), (x, w))
    found = torch.autograd.grad(call(x, w), (x, w))
    return "" if all(map(torch.equal, expected, found)) else "gradients are other bits"


def check_full(partitioner: Any, planned: Sequence[Any]) -> str:
    """What is wrong, or nothing. planned: the list of graphs that the partitioner
    appends to."""
    passed: list[int] = []

    def forward(gm: torch.fx.GraphModule, example_inputs: Any) -> Any:
        output, = gm.graph.find_nodes(op="output")
        passed.append(len(output.args[0]) - 1)
        return run_eagerly(gm, example_inputs)

    call = torch_internals.aot_function(
        _five_operators, fw_compiler=forward, bw_compiler=run_eagerly,
        partition_fn=partitioner)
    with virtual_device() as ledger:
        wrong = _wrong(_five_operators, call)
    graph = planned[-1]
    if not graph.recomputed_flops:
        return "no operator was computed again"
    if passed != [graph.saved_count]:
        return f"{passed} tensors were saved where {graph.saved_count} were planned"
    if ledger.peak_bytes != graph.peak_bytes:
        return (f"the step took {ledger.peak_bytes} bytes where {graph.peak_bytes} "
                "were planned")
    return wrong


def _saved_bytes(call: Callable[..., Any]) -> int:
    """Bytes that autograd saves, without the inputs."""
    saved: dict[int, int] = {}
    inputs = _inputs()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        result = call(*inputs)
    for tensor in inputs:
        saved.pop(tensor.untyped_storage().data_ptr(), None)
    del result
    return sum(saved.values())


def check_lower(compile_: Callable[[torch.fx.GraphModule, Any], Any]) -> str:
    """What is wrong, or nothing. compile_: the tier's compiler, with a budget for which
    it must compute values again."""
    def call(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        found = compiled(x, w)
        return found[0] if isinstance(found, (tuple, list)) else found

    module = torch.fx.symbolic_trace(lambda x, w: (_more_operators(x, w),))
    compiled = compile_(module, list(_inputs()))
    before, after = _saved_bytes(_more_operators), _saved_bytes(call)
    if after >= before:
        return f"{after} bytes were saved where plain autograd saves {before}"
    return _wrong(_more_operators, call)
