"""Optimizers that hold another optimizer, or tensors of their own: looked through or
refused, and never stepped or changed."""
import copy
import functools
import importlib.util
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

import loadline
from loadline import torch as lt
from loadline.budget import format_bytes
from loadline.torch.state.foreign_parameters import check_trains
from loadline.torch.state.host_state import host_state_of
from loadline.torch.state.predict_state import predict_state
from loadline.torch.state.wrappers import innermost
from models import MODELS
from steps import same_bits
from training import COPIES, train, wide_mlp

OPTIONS = {"inner": "aot_eager", "work_limit": 20_000}


class Around(torch.optim.Optimizer):
    """As Accelerate's and Lightning's: all is the other's."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.steps = 0

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    @param_groups.setter
    def param_groups(self, groups):
        self.optimizer.param_groups = groups

    @property
    def state(self):
        return self.optimizer.state

    @state.setter
    def state(self, state):
        self.optimizer.state = state

    def zero_grad(self, set_to_none=True):
        self.optimizer.zero_grad(set_to_none)

    def step(self, closure=None):
        self.steps += 1
        return self.optimizer.step(closure)


class Lookahead(torch.optim.Optimizer):
    """Holds another, and state of its own."""

    def __init__(self, optimizer):
        super().__init__(optimizer.param_groups, {})
        self.fast = [optimizer]

    def step(self, closure=None):
        return self.fast[0].step(closure)


class OwnTensors(torch.optim.Optimizer):
    """Writes to parameters that it remembers, and to a list of its own."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})
        self.remembered = [p for group in self.param_groups for p in group["params"]]
        self.log = []

    @torch.no_grad()
    def step(self, closure=None):
        self.log.append(1)
        for p in self.remembered:
            p.mul_(2)


def contents(model, optimizer):
    return [*(p.detach().clone() for p in model.parameters()),
            *(t.clone() for p in model.parameters()
              for t in optimizer.state.get(p, {}).values() if torch.is_tensor(t))]


class EarlyState(torch.optim.Optimizer):
    """Its constructor makes the state, as that of Adagrad did before PyTorch 2.12."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].addcmul_(p.grad, p.grad)
                p.addcdiv_(p.grad, self.state[p]["sum"].sqrt().add_(1e-10), value=-group["lr"])


class Wrapped(unittest.TestCase):
    def trains_as_without(self, wrap):
        model, batch = wide_mlp()
        optimizer = wrap(torch.optim.AdamW(model.parameters()))
        expected = [*train(model, optimizer, batch), *model.parameters()]
        model, batch = wide_mlp()
        inner = torch.optim.AdamW(model.parameters())
        optimizer = wrap(inner)
        before = contents(model, inner)
        attributes = {**vars(inner)}
        call, returned = lt.prepare(model, optimizer, sample=batch, budget="67%",
                                    machine=COPIES, **OPTIONS)
        self.assertIs(returned, optimizer)
        self.assertTrue(same_bits(before, contents(model, inner)))
        self.assertEqual({p.device.type for p in model.parameters()}, {"cpu"})
        self.assertEqual({**vars(inner)}.keys(), attributes.keys())
        self.assertIs(inner.param_groups, attributes["param_groups"])
        self.assertEqual([p for group in inner.param_groups for p in group["params"]],
                         list(model.parameters()))
        # Its state is planned as that of the one inside.
        self.assertIsNotNone(host_state_of(inner))
        found = train(call, optimizer, batch)
        self.assertTrue(same_bits(expected, [*found, *model.parameters()]))

    def test_by_one_that_only_passes_on_is_looked_through(self):
        self.trains_as_without(Around)
        self.trains_as_without(lambda optimizer: Around(Around(optimizer)))

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "no accelerate")
    def test_by_accelerate_is_looked_through(self):
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True)
        self.trains_as_without(accelerator.prepare_optimizer)

    def refused(self, optimizer, model, batch, *words):
        before = contents(model, optimizer)
        for call in (
                lambda: lt.prepare(model, optimizer, sample=batch, budget="90%",
                                   **OPTIONS),
                lambda: lt.compile_in_place(model, "90%", optimizers=[optimizer])):
            with self.assertRaisesRegex(
                    loadline.InvalidArgument, ".*".join(words)):
                call()
        self.assertTrue(same_bits(before, contents(model, optimizer)))

    def test_by_one_with_state_of_its_own_is_refused_by_name(self):
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        inner = torch.optim.AdamW(model.parameters())
        self.refused(Lookahead(inner), model, batch, "Lookahead", "AdamW",
                     "reserve_bytes")
        self.assertEqual(len(inner.state), 0)

    def test_by_zero_redundancy_is_refused_and_makes_no_step(self):
        with tempfile.TemporaryDirectory() as folder:
            dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=0,
                                    world_size=1)
            try:
                model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
                optimizer = ZeroRedundancyOptimizer(
                    model.parameters(), torch.optim.AdamW, lr=0.1)
                model(*batch).backward()
                self.refused(optimizer, model, batch, "ZeroRedundancyOptimizer")
                self.assertEqual(len(optimizer.optim.state), 0)
            finally:
                dist.destroy_process_group()


class Early(unittest.TestCase):
    def test_state_of_a_constructor_is_counted(self):
        def losses(prepare):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = MODELS["mlp"]()
            batch, optimizer = MODELS["mlp"].batch(), EarlyState(model.parameters())
            call = model
            if prepare:
                call, _ = lt.prepare(model, optimizer, sample=batch, budget="80%", **OPTIONS)
                state = sum(p.nbytes for p in model.parameters())
                self.assertIn(f"optimizer state {format_bytes(state)}", lt.report())
            found = []
            for _ in range(3):
                optimizer.zero_grad()
                loss = call(*batch)
                loss.backward()
                optimizer.step()
                found.append(loss.detach().clone())
            return [*found, *model.state_dict().values()]

        self.assertTrue(same_bits(losses(False), losses(True)))


class OfOneself(unittest.TestCase):
    def test_a_plain_optimizer_is_itself(self):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=1.0)
        self.assertIs(innermost(optimizer), optimizer)

    def test_a_step_that_writes_elsewhere_is_stopped_before_it_does(self):
        parameter = torch.nn.Parameter(torch.ones(2))
        optimizer = OwnTensors([parameter])
        with self.assertRaisesRegex(loadline.InvalidArgument, "OwnTensors.*outside"):
            predict_state(optimizer)
        self.assertTrue(torch.equal(parameter, torch.ones(2)))
        self.assertEqual(optimizer.log, [])


GLOBAL_WEIGHT = torch.ones(4, requires_grad=True)


class Sparse(unittest.TestCase):
    def test_adam_is_refused_with_what_to_use(self):
        model = torch.nn.Embedding(10, 4, sparse=True)
        with self.assertRaisesRegex(lt.Unsupported, "SparseAdam.*use Adam, and sparse=False"):
            lt.prepare(model, torch.optim.SparseAdam([*model.parameters()]), budget="100%",
                       sample=torch.zeros(2, dtype=torch.long), **OPTIONS)


class OfAnotherModel(unittest.TestCase):
    def setUp(self):
        self.model = torch.nn.Linear(4, 4)
        self.other = torch.nn.Linear(4, 4)

    def refused(self, optimizer, *functions):
        try:
            check_trains(self.model, optimizer, *functions)
        except loadline.InvalidArgument as error:
            return str(error)
        return ""

    def test_is_refused(self):
        optimizer = torch.optim.AdamW(copy.deepcopy(self.model).parameters())
        for make in (lambda: lt.prepare(self.model, optimizer, sample=torch.ones(2, 4),
                                        budget="100%", **OPTIONS),
                     lambda: lt.prepare(self.model, Around(optimizer), budget="100%",
                                        sample=torch.ones(2, 4), step_fn=lambda call: None),
                     lambda: lt.estimate(self.model, optimizer, sample=torch.ones(2, 4))):
            with self.assertRaisesRegex(loadline.InvalidArgument,
                                        "AdamW has none of the parameters of Linear"):
                make()

    def test_is_not_one_with_some_parameters_of_the_model_or_none_at_all(self):
        sgd = torch.optim.SGD
        self.assertFalse(self.refused(sgd([*self.other.parameters(), self.model.bias])))
        self.assertFalse(self.refused(sgd([{"params": []}])))

    def test_is_not_one_of_what_the_step_uses(self):
        other, model = self.other, self.model
        optimizer = torch.optim.SGD(other.parameters(), lr=0.1)

        class Holder:
            __slots__ = ("inner",)

            def loss(self, output):
                return self.inner["a"][0](output).sum()

        holder = Holder()
        holder.inner = {"a": [other]}

        def nested(output):
            return (lambda: other(output))().sum()

        for function in (other, other.forward, nested, holder.loss,
                         functools.partial(lambda a, b: a(b), other),
                         lambda output, head=other: head(output), lambda x: nested(x)):
            self.assertFalse(self.refused(optimizer, function))
        self.assertFalse(self.refused(torch.optim.SGD([GLOBAL_WEIGHT], lr=0.1),
                                      lambda x: (lambda: x * GLOBAL_WEIGHT)()))
        self.assertTrue(self.refused(optimizer, lambda x: model(x), None))
        model.extra = torch.ones(3, requires_grad=True)  # no nn.Parameter
        self.assertFalse(self.refused(torch.optim.SGD([model.extra], lr=0.1)))


class InHooks(unittest.TestCase):
    """An optimizer that steps as soon as a gradient is there."""

    def test_on_gradients_are_not_called_while_a_model_is_prepared(self):
        model, calls = torch.nn.Linear(4, 4), []
        x = torch.randn(2, 4, requires_grad=True)
        for one in (*model.parameters(), x):
            one.register_hook(lambda gradient: calls.append(0))
        torch._dynamo.reset()
        call, _ = lt.prepare(model, sample=x, budget="100%", **OPTIONS)
        self.assertEqual(len(calls), 0)
        call(x).sum().backward()
        self.assertEqual(len(calls), 3)

    def test_makes_no_step_while_a_model_is_prepared(self):
        def hooked():
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = MODELS["mlp"]()
            calls = []
            for p in model.parameters():
                optimizer = torch.optim.AdamW([p], lr=0.1)

                def step(p, optimizer=optimizer):
                    calls.append(p)
                    optimizer.step()
                    optimizer.zero_grad()

                p.register_post_accumulate_grad_hook(step)
            return model, calls

        batch = torch.randn(16, 64)
        plain, _ = hooked()
        model, calls = hooked()
        call, _ = lt.prepare(model, sample=batch, budget="100%", **OPTIONS)
        self.assertEqual(calls, [])
        self.assertTrue(same_bits([*model.parameters()], [*plain.parameters()]))
        for _ in range(2):
            plain(batch).backward()
            call(batch).backward()
        self.assertEqual(len(calls), 2 * len([*model.parameters()]))
        self.assertTrue(same_bits([*model.parameters()], [*plain.parameters()]))


class Later(unittest.TestCase):
    """An optimizer that `prepare` was not given steps the model."""

    def steps(self, first, second, **options):
        """What is said of the second optimizer's steps."""
        torch._dynamo.reset()
        model = torch.nn.Linear(16, 16)
        first, x = first and first(model.parameters(), lr=0.1), torch.randn(4, 16)
        call, first = lt.prepare(model, first, sample=x, budget="100%", **OPTIONS, **options)
        train(lambda: call(x).sum(), second(model.parameters(), lr=0.1), (), 1)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            one = second(model.parameters(), lr=0.1)
            train(lambda: call(x).sum(), one, ())
            other = torch.nn.Linear(16, 16)
            train(lambda: other(x).sum(), torch.optim.Adam(other.parameters()), (), 1)
        return [str(one.message) for one in found], first

    def test_is_warned_of_once_if_its_state_is_in_no_plan(self):
        sgd, adam = torch.optim.SGD, torch.optim.AdamW
        state = 2 * 4 * 17 * 16
        with self.assertWarnsRegex(loadline.LoadlineWarning,
                                   r"AdamW.*prepare. 2.12 KiB .*in no plan: memory.*again"):
            said, _ = self.steps(sgd, adam)
        self.assertEqual(said, [])  # another one instead of it is not more
        with self.assertWarnsRegex(loadline.LoadlineWarning,
                                   "AdamW.*2.12 KiB.*beside .* still exists"):
            self.steps(adam, adam)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for first, second, options in ((adam, sgd, {}), (None, sgd, {}), (
                    None, adam, {"reserve_bytes": state})):
                self.assertEqual(self.steps(first, second, **options)[0], [])

    def test_is_no_concern_of_a_compiled_step(self):
        model = torch.nn.Linear(4, 4)
        lt.prepare(model, sample=torch.randn(2, 4), budget="100%", **OPTIONS)
        optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.1))
        model(torch.randn(2, 4)).sum().backward()
        module, graphs = sys.modules["torch.optim.optimizer"], []
        hooks = module._global_optimizer_post_hooks

        def count(gm, inputs):
            graphs.append(gm)
            return gm

        for there in (hooks, {}):
            torch._dynamo.reset()
            with mock.patch.object(module, "_global_optimizer_post_hooks", there):
                torch.compile(lambda: optimizer.step(), backend=count)()
        self.assertEqual(len(hooks), 1)
        self.assertEqual(len(graphs) % 2, 0)


class OfTheLoss(unittest.TestCase):
    def test_keeps_no_gradient_of_the_sample_step(self):
        model, batch = wide_mlp()
        head = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
        lt.prepare(model, optimizer, sample=batch, budget="1GiB", **OPTIONS,
                   step_fn=lambda call: head(call(*batch).reshape(1)).sum().backward())
        self.assertEqual([p.grad for p in head.parameters()], [None, None])


if __name__ == "__main__":
    unittest.main()
