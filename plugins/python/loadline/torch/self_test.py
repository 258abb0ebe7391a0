"""Whether this PyTorch does what a plan says, found out at the first use.

Everything here leans on names of PyTorch that are not public, and a name that is
still there may mean something else. So a step of five operators is traced, planned
tighter than keeping everything, and run once: what passes from forward to backward
must be what the plan keeps, the ledger must find the plan's peak, and the gradients
must be the bits of the plain step. Tested by
tests/plugins/python/torch_self_test_test.py.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from loadline.torch import private
from loadline.torch.joint import Unsupported
from loadline.torch.ledger import run_eagerly, virtual_device

_SIZE = 64
_outcome: list[str] = []  # once per process; empty: passed


def _five_operators(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ((x @ w).sin().cos() @ w).sum()


def _differences(partitioner: Any, planned: Sequence[Any]) -> str:
    """In words; empty where there are none."""
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(_SIZE, _SIZE, generator=generator, requires_grad=True)
            for _ in range(2))
    expected = torch.autograd.grad(_five_operators(x, w), (x, w))
    passed: list[int] = []

    def forward(gm: torch.fx.GraphModule, example_inputs: Any) -> Any:
        output, = gm.graph.find_nodes(op="output")
        passed.append(len(output.args[0]) - 1)
        return run_eagerly(gm, example_inputs)

    call = private.aot_function(
        _five_operators, fw_compiler=forward, bw_compiler=run_eagerly,
        partition_fn=partitioner)
    with virtual_device() as ledger:
        found = torch.autograd.grad(call(x, w), (x, w))
    graph = planned[-1]
    if not graph.recomputed_flops:
        return "nothing was computed again"
    if passed != [graph.saved_count]:
        return f"{passed} tensors were saved where {graph.saved_count} were planned"
    if ledger.peak_bytes != graph.peak_bytes:
        return (f"the step took {ledger.peak_bytes} bytes where {graph.peak_bytes} "
                "were planned")
    if not all(map(torch.equal, expected, found)):
        return "gradients are other bits"
    return ""


def check(partitioner: Callable[[], Any], planned: list[Any]) -> None:
    """Raises Unsupported where something differs; planned: where the partitioner
    reports to, left as it was."""
    if not _outcome:
        count = len(planned)

        def work() -> None:
            try:
                _outcome.append(_differences(partitioner(), planned))
            except Exception as error:
                _outcome.append(f"{type(error).__name__}: {error}")

        # A thread of its own: this one may be in the middle of a compile.
        thread = threading.Thread(target=work, name="loadline-self-test")
        thread.start()
        thread.join()
        del planned[count:]
    if _outcome[0]:
        raise Unsupported(
            f"torch {torch.__version__} does not do what a plan says "
            f"({_outcome[0]}); loadline.torch is tried with torch 2.15. Without a "
            "plan, PyTorch's own torch._functorch.config.activation_memory_budget "
            "computes again by shares")
