"""One training step of a model, traced once and then run under many plans."""
import contextlib
import copy
import dataclasses
from unittest import mock

import torch
from loadline import torch as lt
from loadline.torch.compat import torch_internals
from loadline.torch.problem.cost_model import NOMINAL
from loadline.torch.problem.joint import clean, read_joint
from loadline.torch.problem.make_problem import make_problem
from loadline.torch.rewrite.ledger import run_watched
from loadline.torch.rewrite.program import program_of
from loadline.torch.rewrite.split import split
from loadline.torch.session.session import Session
from models import MODELS


def eager_step(model, batch, call=None):
    """Loss, gradients and buffers after it, of one seeded step."""
    model.zero_grad()
    torch.manual_seed(1)
    loss = (model if call is None else call)(*batch)
    loss.backward()
    return [loss.detach().clone(),
            *(p.grad.clone() for p in model.parameters() if p.requires_grad),
            *(b.clone() for b in model.buffers())]


def same_bits(a, b):
    return len(a) == len(b) and all(map(torch.equal, a, b))


@contextlib.contextmanager
def recorded():
    """Every graph that any session records inside, kept even if its model is gone."""
    graphs, record = [], Session.record

    def keep(session, graph):
        graphs.append(graph)
        record(session, graph)

    with mock.patch.object(Session, "record", keep):
        yield graphs


class _Recorder(torch_internals.CustomPartitionerFn or object):
    """Keeps the joint graph as it comes, and splits it as PyTorch would."""

    def __call__(self, gm, joint_inputs, **kwargs):
        clean(gm)
        self.module = copy.deepcopy(gm)
        self.kwargs = kwargs
        return torch_internals.pytorch_partition(gm, joint_inputs, 1.0, **kwargs)

    def uuid(self):
        return None


@dataclasses.dataclass
class Result:
    values: list  # of the forward's outputs, gradients, inputs after the step
    ledger: lt.Ledger
    split: object
    program: object = None


class TracedStep:
    def __init__(self, name, machine=NOMINAL):
        torch.manual_seed(0)
        self.name = name
        self.model, self.batch = MODELS[name](), MODELS[name].batch()
        state = {k: v.clone() for k, v in self.model.state_dict().items()}
        recorder = _Recorder()
        seen, given = [], []

        def remember(module, inputs):
            def run(arguments):
                given.append([a.data_ptr() if isinstance(a, torch.Tensor) else None
                              for a in arguments])
                seen.append([torch.clone(a) if isinstance(a, torch.Tensor) else a
                             for a in arguments])
                return module(*arguments)

            return torch_internals.boxed_compiler(run)

        torch._dynamo.reset()
        compiled = torch.compile(
            self.model, dynamic=False, backend=torch_internals.aot_autograd(
                fw_compiler=remember, bw_compiler=remember,
                partition_fn=recorder, keep_inference_input_mutations=True))
        compiled(*self.batch)
        self.inputs = seen[0]
        self.model.load_state_dict(state)
        self.eager = self.run_eager(given[0])
        self.module, self.kwargs = recorder.module, recorder.kwargs
        self.machine = machine
        self.traced = self.make_problem()

    def make_problem(self):
        """A fresh copy: a split tags the nodes of its graph."""
        module = copy.deepcopy(self.module)
        return make_problem(read_joint(module, self.kwargs["num_fwd_outputs"]),
                    self.machine)

    @property
    def problem(self):
        return self.traced.document

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

    def run_eager(self, given):
        """Without a compiler, what Result.values holds; given: where its inputs lie."""
        tensors = {t.data_ptr(): t for t in (
            *self.model.parameters(), *self.model.buffers(), *self.batch)}
        inputs = [tensors[at] for at in given if at is not None]
        loss = eager_step(self.model, self.batch)[0]
        return [loss, *(t.grad for t in inputs if t.grad is not None),
                *(t.detach().clone() for t in inputs)]

    def run(self, plan):
        return self.run_program(lambda traced: program_of(traced, plan.document))

    def run_program(self, program_of):
        """program_of: of the traced step what runs before and after the boundary."""
        traced = self.make_problem()
        program = program_of(traced)
        parts = split(traced, program, None, **self.kwargs)
        values, ledger = self.run_modules(parts.forward, parts.backward)
        return Result(values, ledger, parts, program)

    def run_pytorch(self, budget):
        """PyTorch's own solver at a budget from 0 to 1."""
        module = copy.deepcopy(self.module)
        forward, backward = torch_internals.pytorch_partition(
            module, None, budget, **self.kwargs)
        values, ledger = self.run_modules(forward, backward)
        return Result(values, ledger, (forward, backward))


def trace(name, machine=NOMINAL):
    return TracedStep(name, machine)
