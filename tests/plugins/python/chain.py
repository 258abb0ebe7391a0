"""A problem small enough to know its answers."""


def chain_problem():
    """Keeping everything takes 410 bytes; making `a` again from `x` 310, and no
    plan takes fewer (tests/plugins/c_api_test.c draws the same)."""
    sizes = {"x": 10, "a": 100, "b": 100, "c": 100, "g3": 100, "g2": 100,
             "g1": 100, "g0": 10}
    ids = {name: i for i, name in enumerate(sizes)}
    nodes = [("A", "x", "a"), ("B", "a", "b"), ("C", "b", "c"), ("L", "c", "g3"),
             ("dC", "b g3", "g2"), ("dB", "a g2", "g1"), ("dA", "x g1", "g0")]
    return {
        "format": "loadline.problem/1", "name": "chain",
        "values": [{"id": i, "name": name, "bytes": sizes[name]}
                   for name, i in ids.items()],
        "nodes": [{"id": n, "name": name, "time_ns": 10,
                   "inputs": [ids[v] for v in inputs.split()],
                   "outputs": [ids[output]]}
                  for n, (name, inputs, output) in enumerate(nodes)],
        "outputs": [ids["g0"]], "alignment_bytes": 1,
    }
