"""The end of a planned step: which optimizer state lives on the host, and how it
passes through the device around its update.

A plan may bring state in while gradients are still computed and may keep it away
from the device only for a part of the step. PyTorch's step begins when all
gradients are there, so here all of that happens behind them, in the plan's order:
state that is copied at all rests on the host, arrives no earlier than in the plan
and leaves when it is updated. So no moment holds more than in the plan.
Tested by tests/plugins/python/torch_host_state_test.py.
"""
from __future__ import annotations

from typing import Any

from loadline.torch.pose import Posed

LOAD, UPDATE, STORE = "load", "update", "store"


def tail_of(posed: Posed, plan: dict[str, Any]) -> list[tuple[str, int]]:
    """Loads, updates and stores of buckets; those that stay are only updated."""
    buffers = {buffer["id"]: buffer for buffer in plan["buffers"]}
    loaded: dict[int, int] = {}  # by bucket: where its last copy in stands
    updated: dict[int, int] = {}
    for at, step in enumerate(plan["steps"]):
        if step["lane"] == "compute":
            if step["node"] > posed.end:
                updated[step["node"] - posed.end - 1] = at
        elif (value := buffers[step["from"]]["value"]) in posed.state:
            loaded[posed.state[value]] = (at if step["lane"] == "h2d" else
                                          loaded.get(posed.state[value], at))
    order = sorted([(at, UPDATE, k) for k, at in updated.items()]
                   + [(min(at, updated[k]), LOAD, k) for k, at in loaded.items()])
    tail = []
    for _, action, bucket in order:
        tail.append((action, bucket))
        if action == UPDATE and bucket in loaded:
            tail.append((STORE, bucket))
    return tail


def with_tail(posed: Posed, plan: dict[str, Any],
              tail: list[tuple[str, int]]) -> tuple[dict[str, Any], int]:
    """The plan's buffers and steps as they will be, and how many steps are of the
    tail."""
    buffers = [b for b in plan["buffers"] if b["value"] not in posed.state]
    kept = {b["id"] for b in buffers}
    steps = [s for s in plan["steps"] if (
        s["node"] <= posed.end if s["lane"] == "compute" else s["from"] in kept)]
    graph_steps = len(steps)
    next_id = 1 + max(b["id"] for b in plan["buffers"])
    hosted = {bucket for action, bucket in tail if action == STORE}
    latest: dict[tuple[int, str], int] = {}
    values = {(bucket, version): value for value, bucket in posed.state.items()
              for version in ("old", "new")
              if (value in posed.new_state) == (version == "new")}

    def buffer(bucket: int, version: str, space: str) -> int:
        nonlocal next_id
        value = values[bucket, version]
        buffers.append({"id": next_id, "value": value, "space": space,
                        "bytes": posed.document["values"][value]["bytes"]})
        latest[bucket, space] = next_id
        next_id += 1
        return next_id - 1

    for bucket in range(len(posed.state) // 2):
        buffer(bucket, "old", "host" if bucket in hosted else "device")
    for action, bucket in tail:
        if action == UPDATE:
            old = latest[bucket, "device"]
            steps.append({"lane": "compute", "node": posed.end + 1 + bucket,
                          "in": [old], "out": [buffer(bucket, "new", "device")]})
        elif action == LOAD:
            source = latest[bucket, "host"]
            steps.append({"lane": "h2d", "from": source,
                          "to": buffer(bucket, "old", "device")})
        else:
            source = latest[bucket, "device"]
            steps.append({"lane": "d2h", "from": source,
                          "to": buffer(bucket, "new", "host")})
    return {"buffers": buffers, "steps": steps}, len(steps) - graph_steps
