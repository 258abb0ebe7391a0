"""A small model whose optimizer state may move, its training loop, and what was copied."""
import dataclasses

import torch

from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.rewrite.state_moves import StateMoves
from models import MODELS

OPTIONS = {"inner": "aot_eager", "work_limit": 20_000}
# Fast enough for copies of small tensors to be worth their time.
COPIES = dataclasses.replace(
    NOMINAL, name="with copies", d2h_bytes_per_s=2e10, h2d_bytes_per_s=2e10,
    host_bytes=1 << 30, d2h_h2d_factor=0.8)


def wide_mlp():
    """More state than activations."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = MODELS["mlp"]()
    return model, (torch.randn(16, 64),)


def train(call, optimizer, batch, steps=3, scheduler=None):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = call(*batch)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.detach().clone())
    return losses


def states(optimizer):
    return [t.clone() for _, s in sorted(optimizer.state_dict()["state"].items())
            for t in s.values() if isinstance(t, torch.Tensor)]


def at_the_end(buckets, moved):
    """Each comes, is updated and leaves behind the last gradient."""
    return StateMoves(0, frozenset(moved), frozenset(moved), frozenset(moved),
                      tuple(b.state_bytes for b in buckets),
                      tuple((action, k) for k in moved for action in (
                          "load", "update", "start_store", "end_store")))


def copied_bytes(state):
    """Out and in."""
    return (state.out_bytes, state.in_bytes) if state else (0, 0)


def planned_bytes(graph):
    """Of state, in a step that finds it."""
    bytes_ = {"d2h": 0, "h2d": 0}
    buffers = {b["id"]: b for b in graph.plan.document["buffers"]}
    for step in graph.plan.document["steps"]:
        if "from" in step and buffers[step["from"]]["value"] in graph.traced.state:
            bytes_[step["lane"]] += buffers[step["from"]]["bytes"]
    return bytes_["d2h"], bytes_["h2d"]
