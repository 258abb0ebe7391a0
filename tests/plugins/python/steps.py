"""One training step of a model, traced once and then run under many plans."""
import copy
import dataclasses
import random

import torch
from loadline import torch as lt
from loadline.torch import private
from loadline.torch.joint import clean, read_joint
from loadline.torch.ledger import run_watched
from loadline.torch.pose import pose
from loadline.torch.price import NOMINAL
from loadline.torch.program import program_of, program_of_sequence
from loadline.torch.split import split
from models import MODELS


def eager_step(model, batch, call=None):
    """Loss, gradients and buffers after it, of one seeded step."""
    model.zero_grad()
    torch.manual_seed(1)
    loss = (model if call is None else call)(*batch)
    loss.backward()
    return [loss.detach().clone(),
            *(p.grad.clone() for p in model.parameters()),
            *(b.clone() for b in model.buffers())]


def same_bits(a, b):
    return len(a) == len(b) and all(map(torch.equal, a, b))


class _Recorder(private.CustomPartitionerFn):
    """Keeps the joint graph as it comes, and splits it as PyTorch would."""

    def __call__(self, gm, joint_inputs, **kwargs):
        clean(gm)
        self.module = copy.deepcopy(gm)
        self.kwargs = kwargs
        return private.pytorch_partition(gm, joint_inputs, 1.0, **kwargs)

    def uuid(self):
        return None


@dataclasses.dataclass
class Result:
    values: list  # of the forward's outputs, gradients, inputs after the step
    ledger: lt.Ledger
    split: object


class TracedStep:
    def __init__(self, name, machine=NOMINAL):
        torch.manual_seed(0)
        self.name = name
        self.model, self.batch = MODELS[name](), MODELS[name].batch()
        recorder = _Recorder()
        seen = []

        def remember(module, inputs):
            def run(arguments):
                seen.append([torch.clone(a) if isinstance(a, torch.Tensor) else a
                             for a in arguments])
                return module(*arguments)

            return private.boxed_compiler(run)

        torch._dynamo.reset()
        compiled = torch.compile(
            self.model, dynamic=False, backend=private.aot_autograd(
                fw_compiler=remember, bw_compiler=remember,
                partition_fn=recorder, keep_inference_input_mutations=True))
        compiled(*self.batch)
        self.inputs = seen[0]
        self.module, self.kwargs = recorder.module, recorder.kwargs
        self.machine = machine
        self.posed = self.pose()

    def pose(self):
        """A fresh copy: a split tags the nodes of its graph."""
        module = copy.deepcopy(self.module)
        return pose(read_joint(module, self.kwargs["num_fwd_outputs"]),
                    self.machine)

    @property
    def problem(self):
        return self.posed.document

    def run_modules(self, forward, backward):
        ledger = lt.Ledger()
        inputs = [a.detach().clone() if isinstance(a, torch.Tensor) else a
                  for a in self.inputs]
        count = self.kwargs["num_fwd_outputs"]
        torch.manual_seed(1)
        made = list(run_watched(forward, list(inputs), ledger))
        outputs, saved = made[:count], made[count:]
        del made
        tangents = [torch.ones_like(o) for o in outputs]  # held, as by autograd
        arguments = [*saved, *tangents]
        del saved
        gradients = run_watched(backward, arguments, ledger)
        values = [v for v in (*outputs, *gradients, *inputs)
                  if isinstance(v, torch.Tensor)]
        return values, ledger

    def run(self, plan):
        """A plan, or a sequence of node ids."""
        posed = self.pose()
        program = (program_of_sequence(posed, plan) if isinstance(plan, list)
                   else program_of(posed, plan.document))
        parts = split(posed, program, None, **self.kwargs)
        values, ledger = self.run_modules(parts.forward, parts.backward)
        return Result(values, ledger, parts)

    def run_pytorch(self, budget):
        """PyTorch's own solver at a budget from 0 to 1."""
        module = copy.deepcopy(self.module)
        forward, backward = private.pytorch_partition(
            module, None, budget, **self.kwargs)
        values, ledger = self.run_modules(forward, backward)
        return Result(values, ledger, (forward, backward))

    def random_sequence(self, seed):
        """Any valid one: orders at random, and what the forward made is lost or
        kept at random, again and again."""
        rng = random.Random(seed)
        nodes = self.problem["nodes"]
        maker = {v: n["id"] for n in nodes for v in n["outputs"]}
        # An update follows all that read the old contents.
        after = {n["id"]: {maker[v] for v in n["inputs"] if v in maker}
                 for n in nodes}
        for node in nodes:
            for old, _ in node.get("inplace", ()):
                after[node["id"]].update(
                    n["id"] for n in nodes if old in n["inputs"] and n is not node)
        at = self.posed.boundary
        updated = {pair[0] for n in nodes for pair in n.get("inplace", ())}
        must = {at}
        open_ = [at]
        while open_:
            for before in after[open_.pop()]:
                if before not in must:
                    must.add(before)
                    open_.append(before)

        def shuffled(ids):
            ids, order = set(ids), []
            while ids:
                ready = [i for i in sorted(ids)
                         if not (after[i] & ids)]
                pick = rng.choice(ready)
                order.append(pick)
                ids.discard(pick)
            return order

        forward = shuffled(must - {at})
        there = {v for i in forward for v in nodes[i]["outputs"]}
        there |= {v["id"] for v in self.problem["values"] if v["id"] not in maker}
        ran = set(forward)
        order = [*forward, at]
        there |= set(nodes[at]["outputs"])
        ran.add(at)
        keep = rng.random()
        outputs = set(self.problem["outputs"])

        def may_lose(value):
            node = nodes[maker[value]] if value in maker else None
            return (node is not None and node.get("recompute", True)
                    and value not in outputs
                    and not any(v in updated for v in node["inputs"]))

        def lose():
            for value in sorted(there):
                if may_lose(value) and rng.random() > keep:
                    there.discard(value)

        def make(number):
            for value in nodes[number]["inputs"]:
                if value not in there:
                    make(maker[value])
            order.append(number)
            there.update(nodes[number]["outputs"])
            ran.add(number)

        lose()
        for number in shuffled(set(range(len(nodes))) - must):
            if number not in ran:
                make(number)
            if rng.random() < 0.2:
                lose()
        return order


def trace(name, machine=NOMINAL):
    return TracedStep(name, machine)
