"""Programs at random: any order that is valid, with values lost and made again, or
copied to the host and brought back."""
import random

from loadline.torch.problem.make_problem import Snapshot
from loadline.torch.rewrite.program import Copy, Run


class _Writer:
    def __init__(self, traced, seed, copies):
        self.traced, self.copies = traced, copies
        self.rng = random.Random(seed)
        self.values = traced.document["values"]
        self.nodes = traced.document["nodes"]
        self.maker = {v: n["id"] for n in self.nodes for v in n["outputs"]}
        self.outputs = set(traced.document["outputs"])
        # Others may be written over where they end, and need not be.
        self.updated = {old for n in self.nodes for old, _ in n.get("inplace", ())
                        if self.values[old].get("persistent")}
        # An update follows all that read the old contents.
        self.after = {n["id"]: {self.maker[v] for v in n["inputs"] if v in self.maker}
                      for n in self.nodes}
        for node in self.nodes:
            for old in {old for old, _ in node.get("inplace", ())} & self.updated:
                self.after[node["id"]].update(
                    n["id"] for n in self.nodes if old in n["inputs"] and n is not node)
        self.there = {v["id"] for v in self.values if v["id"] not in self.maker}
        self.ran = set()
        self.slot_of = {}  # of what is on the host
        self.slots = 0
        self.program = []
        # How much is kept, and how much of what is lost is copied.
        self.keep, self.copied = self.rng.random(), self.rng.random()

    def shuffled(self, ids):
        ids, order = set(ids), []
        while ids:
            order.append(self.rng.choice(
                [i for i in sorted(ids) if not (self.after[i] & ids)]))
            ids.discard(order[-1])
        return order

    def repeatable(self, value):
        node = self.nodes[self.maker[value]] if value in self.maker else None
        return (node is not None and node.get("recompute", True)
                and not any(v in self.updated for v in node["inputs"]))

    def movable(self, value):
        about = self.values[value]
        return (self.copies and self.traced.values[value] is not None
                and not about.get("persistent") and about.get("offload", True))

    def lose(self):
        for value in sorted(self.there - self.outputs):
            if self.rng.random() < self.keep:
                continue
            if self.movable(value) and value not in self.slot_of and (
                    self.rng.random() < self.copied):
                self.slot_of[value] = self.slots
                self.slots += 1
                self.program.append(Copy(
                    self.traced.values[value], self.slot_of[value], out=True))
            if value in self.slot_of or self.repeatable(value):
                self.there.discard(value)

    def bring(self, value):
        if value in self.there:
            return
        if value in self.slot_of and (
                not self.repeatable(value) or self.rng.random() < 0.5):
            self.program.append(Copy(
                self.traced.values[value], self.slot_of[value], out=False))
            self.there.add(value)
        else:
            self.make(self.maker[value])

    def make(self, number):
        for value in self.nodes[number]["inputs"]:
            self.bring(value)
        operation = self.traced.operations[number]
        if operation is not None:
            self.program.append(
                operation if isinstance(operation, Snapshot) else Run(operation))
        self.there.update(self.nodes[number]["outputs"])
        self.ran.add(number)

    def part(self, numbers):
        for number in self.shuffled(numbers):
            if number not in self.ran:
                self.make(number)
            if self.rng.random() < 0.2:
                self.lose()

    def write(self):
        boundary = self.traced.boundary
        before, open_ = set(), [boundary]
        while open_:
            new = self.after[open_.pop()] - before
            before |= new
            open_ += new
        self.part(before)
        self.lose()
        self.make(boundary)
        forward, self.program = self.program, []
        self.part({n["id"] for n in self.nodes} - before - {boundary})
        return forward, self.program, []


def random_program(traced, seed, copies=False):
    """As program_of does for a plan; no state."""
    return _Writer(traced, seed, copies).write()


def counts(program):
    """Copies out, copies in, and runs."""
    items = [item for part in program for item in part]
    return (sum(isinstance(i, Copy) and i.out for i in items),
            sum(isinstance(i, Copy) and not i.out for i in items),
            sum(not isinstance(i, Copy) for i in items))
