"""Names, hooks and error messages around a prepared model."""
import functools
import gc
import unittest
import warnings

import torch

import loadline
from loadline import torch as lt
from loadline.torch.state.host_state import host_state_of
from models import MODELS
from steps import same_bits
from training import COPIES, OPTIONS, train, wide_mlp


class Experts(torch.nn.Module):
    """Each token goes to one expert, found by nonzero."""

    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(64, 2)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(2))

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(1)
            y = y.index_add(0, rows, expert(x[rows]))
        return y.square().mean()


def own_argument(function):
    @functools.wraps(function)
    def wrapper(self, x, own=None):
        return function(self, x)
    return wrapper


def prepared(**options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, batch = MODELS["mlp"](), (torch.randn(64, 64),)
    call, _ = lt.prepare(model, sample=batch, **{"budget": "100%", **OPTIONS, **options})
    return model, call, batch


class Names(unittest.TestCase):
    def test_of_parameters_are_the_models_own(self):
        model, call, _ = prepared()
        self.assertEqual([*call.state_dict()], [*model.state_dict()])
        outer = torch.nn.Sequential(call)
        self.assertEqual([*outer.state_dict()],
                         [f"0.{name}" for name in model.state_dict()])
        other = MODELS["mlp"]()
        for target in (call, outer):
            for parameter in model.parameters():
                torch.nn.init.zeros_(parameter)
            state = other.state_dict() if target is call else {
                f"0.{name}": value for name, value in other.state_dict().items()}
            target.load_state_dict(state)
            self.assertTrue(same_bits([*model.parameters()], [*other.parameters()]))
            # As torch.compile writes it, and older checkpoints have it.
            target.load_state_dict({
                name if target is outer else f"_orig_mod.{name}": value
                for name, value in state.items()})
            with self.assertRaisesRegex(RuntimeError, "nonsense"):
                target.load_state_dict({**state, "0.nonsense": torch.ones(1)})


class Hooks(unittest.TestCase):
    def test_that_replace_forward_are_kept(self):
        """As Accelerate's add_hook_to_module does."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, batch = MODELS["mlp"](), (torch.randn(64, 64),)
        before, called = model.forward, []

        def forward(module, *arguments):
            called.append(module)
            return before(*arguments)

        model.forward = functools.partial(forward, model)
        expected = model(*batch).detach()
        called.clear()
        for _ in range(2):
            call, _ = lt.prepare(model, sample=batch, budget="100%", **OPTIONS)
            self.assertTrue(torch.equal(call(*batch).detach(), expected))
        self.assertIsInstance(model.forward, functools.partial)


class Messages(unittest.TestCase):
    def test_of_sizes_from_data_name_the_operator(self):
        x = torch.randn(64, 64)
        torch._dynamo.reset()
        with self.assertRaisesRegex(loadline.LoadlineError, "cannot trace.*nonzero"):
            lt.prepare(Experts(), sample=x, budget="90%", **OPTIONS)
        torch._dynamo.reset()
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            with self.assertRaisesRegex(lt.Unsupported, "values of another.*nonzero"):
                lt.prepare(Experts(), sample=x, budget="90%", **OPTIONS)

    def test_of_a_sample_of_a_wrong_shape_say_so(self):
        model, optimizer = torch.nn.Linear(4, 4), torch.optim.SGD
        for call in (lambda: lt.prepare(model, sample=torch.randn(2, 3), budget="90%",
                                        **OPTIONS),
                     lambda: lt.estimate(model, optimizer, sample=torch.randn(2, 3))):
            torch._dynamo.reset()
            with self.assertLogs("torch._subclasses.fake_tensor"), self.assertRaisesRegex(
                    loadline.InvalidArgument, r"on the sample.*training: .*2, 3. X .4, 4."):
                call()

    def test_of_a_sample_with_other_arguments_say_so(self):
        model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
        for sample in ((x, x), [x, x], {"y": x}):
            for call in (lambda: lt.prepare(model, sample=sample, budget="90%", **OPTIONS),
                         lambda: lt.estimate(model, torch.optim.SGD, sample=sample)):
                with self.assertRaisesRegex(loadline.InvalidArgument,
                                            "sample: Linear.forward: .*no targets"):
                    call()

    def test_of_what_is_no_batch_say_what_to_pass(self):
        model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
        for sample, said in ((None, "not None"), (iter([x]), "not a list_iterator"),
                             (torch.utils.data.DataLoader(x, 2), "not a DataLoader"),
                             (torch.utils.data.TensorDataset(x), "not a TensorDataset"),
                             ({0: x}, "keys of a dict .* not 0")):
            for call in (lambda: lt.prepare(model, sample=sample, budget="90%", **OPTIONS),
                         lambda: lt.estimate(model, torch.optim.SGD, sample=sample)):
                with self.assertRaisesRegex(loadline.InvalidArgument, f"sample: .*{said}"):
                    call()

    def test_of_torchscript_and_of_lazy_modules_say_what_to_do(self):
        x = torch.randn(2, 4)
        scripted = torch.jit.script(torch.nn.Linear(4, 4))
        lazy = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.Linear(4, 4))
        for model, kind, said in (
                (scripted, lt.Unsupported, "TorchScript .*the module that it was made of"),
                (lazy, loadline.InvalidArgument, "0.weight has no shape yet.*one forward")):
            for call in (lambda: lt.prepare(model, sample=x, budget="90%", **OPTIONS),
                         lambda: lt.estimate(model, torch.optim.SGD, sample=x),
                         lambda: lt.compile_in_place(model, "90%", **OPTIONS)):
                with self.assertRaisesRegex(kind, said):
                    call()
        partly = torch.nn.Sequential(torch.nn.Linear(4, 4), scripted)
        with self.assertRaisesRegex(loadline.LoadlineError, "torch.jit.script.*unsupported"):
            lt.prepare(partly, sample=x, budget="90%", **OPTIONS)

    def test_of_a_number_of_a_tensor_say_to_keep_it_one(self):
        class Logging(torch.nn.Linear):
            def forward(self, x):
                y = super().forward(x)
                self.seen = y.detach().mean().item()
                return y.square()

        torch._dynamo.reset()
        x = torch.randn(2, 4)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call, _ = lt.prepare(Logging(4, 4), sample=x, budget="100%", **OPTIONS)
            call(2 * x).sum().backward()
        self.assertIn("computes between two graphs, as by .item(), was ",
                      "".join(str(one.message) for one in found))

    def test_of_a_budget_that_is_too_small_name_the_options_that_are_left(self):
        model, x = torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.randn(8, 4)
        optimizer = torch.optim.Adam(model.parameters())
        for with_, options, said in (
                (None, {}, r'split="auto" .* or micro_batches="auto"$'),
                (optimizer, {}, 'or micro_batches="auto"$'),
                (optimizer, {"machine": COPIES}, "or update_in_backward=True$"),
                (optimizer, {"machine": COPIES, "accumulate": True},
                 'or micro_batches="auto"$'),
                (optimizer, {"machine": COPIES, "update_in_backward": True},
                 r"with split=.auto. .*model\)$")):
            torch._dynamo.reset()
            with self.assertRaisesRegex(loadline.Infeasible, said) as raised:
                lt.prepare(model, with_, sample=x, budget=64, **OPTIONS, **options)
            self.assertGreater(raised.exception.smallest_met_bytes, 64)

    def test_of_a_differentiable_step_name_it(self):
        model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
        optimizer = torch.optim.Adam(model.parameters(), differentiable=True)
        with self.assertRaisesRegex(loadline.InvalidArgument, "Adam has differentiable=True"):
            lt.prepare(model, optimizer, sample=x, budget="90%", **OPTIONS)

    def test_of_a_sample_let_hooks_and_decorators_have_their_own_arguments(self):
        class Decorated(torch.nn.Linear):
            @own_argument
            def forward(self, x):
                return super().forward(x)

        hooked, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
        hooked.register_forward_pre_hook(lambda module, args: args[:1])
        for model, sample in ((hooked, (x, x)), (Decorated(4, 4), {"x": x, "own": x})):
            torch._dynamo.reset()
            lt.prepare(model, sample=sample, budget="100%", **OPTIONS)

    def test_of_a_nested_batch_say_so(self):
        nested = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)],
                                            layout=torch.jagged)
        torch._dynamo.reset()
        with self.assertRaisesRegex(lt.Unsupported, "nested tensor.*pad"):
            lt.prepare(torch.nn.Linear(4, 4), sample=nested, budget="90%", **OPTIONS)

    def test_of_estimates_arguments_name_what_is_wanted(self):
        model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
        for machine in (None, 5, "/tmp"):
            with self.assertRaisesRegex(loadline.InvalidArgument, "machine .*h100-sxm"):
                lt.estimate(model, torch.optim.SGD, sample=x, machine=machine)
        with self.assertRaisesRegex(loadline.InvalidArgument, "optimizer 'AdamW'.*function"):
            lt.estimate(model, "AdamW", sample=x)
        with self.assertRaisesRegex(loadline.InvalidArgument, "the argument is budgets"):
            lt.estimate(model, torch.optim.SGD, sample=x, budget="60%")

    def test_of_a_budget_name_what_is_meant(self):
        model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
        for budget, message in (("card", "estimate.*device"), ("big", '1000.3.*smallest')):
            with self.assertRaisesRegex(loadline.InvalidArgument, message):
                lt.prepare(model, sample=x, budget=budget, **OPTIONS)
        for budget, message in ((22, r'budget 22 B \(.*"22GiB" too\)'), ("5%", r"budget 5% = \d+ B")):
            torch._dynamo.reset()
            with self.assertRaisesRegex(loadline.Infeasible, message):
                lt.prepare(model, torch.optim.AdamW(model.parameters()), sample=x,
                           budget=budget, **OPTIONS)
        with self.assertRaisesRegex(loadline.InvalidArgument, "prepare.*card"):
            lt.estimate(model, torch.optim.SGD, sample=x, budgets="device")

    def test_of_an_option_name_one_that_is_near(self):
        model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
        for name, near in (("offload_gradient", "offload_gradients, an argument of .*prepare"),
                           ("work_limits", r"work_limit\?; the options are budget"),
                           ("nothing_like_it", "does not exist; the options are budget")):
            with self.assertRaisesRegex(loadline.InvalidArgument, near):
                lt.prepare(model, sample=x, budget="90%", **OPTIONS | {name: 1})

    def test_of_what_is_no_flag_say_so(self):
        model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
        for name in ("recompute", "offload", "measure", "agree", "accumulate",
                     "offload_gradients", "allow_micro_batch_statistics"):
            for wrong in ("no", None, 2):
                with self.assertRaisesRegex(loadline.InvalidArgument,
                                            f"{name}={wrong!r}: want True or False"):
                    lt.prepare(model, sample=x, budget="90%", **OPTIONS | {name: wrong})
        with self.assertRaisesRegex(loadline.InvalidArgument, "host_updates='yes'"):
            lt.estimate(model, torch.optim.SGD, sample=x, host_updates="yes")
        with self.assertRaisesRegex(loadline.InvalidArgument, "host_state=None"):
            lt.compile_in_place(model, "1GiB", host_state=None)
        with self.assertRaisesRegex(loadline.InvalidArgument, r"compile_in_place\(function\)"):
            lt.compile_in_place(lambda x: x, "1GiB")
        with self.assertRaisesRegex(loadline.InvalidArgument, "step_fn=5: want a function"):
            lt.prepare(model, sample=x, budget="90%", step_fn=5, **OPTIONS)

    def test_numbers_of_numpy_are_numbers(self):
        np, plans = __import__("numpy"), []
        for budget, seed in ((900_000, 3), (np.int64(900_000), np.int32(3))):
            torch._dynamo.reset()
            alive = prepared(budget=budget, seed=seed)
            plans.append(lt.planned[-1].plan.json)
        del alive
        self.assertEqual(*plans)
        self.assertEqual(loadline.parse_budget(np.float64(0.7), 1000), 700)

    def test_of_a_missing_compiler_name_what_needs_none(self):
        import torch._inductor.config as config

        with config.patch({"cpp.cxx": ("/nonexistent/c++",)}):
            with self.assertRaisesRegex(lt.Unsupported, 'compiler.*inner="aot_eager"'):
                prepared(inner="inductor")


class Memory(unittest.TestCase):
    def alive(self):
        gc.collect()
        gc.collect()
        kinds = [type(one) for one in gc.get_objects()]
        return (sum(issubclass(kind, torch.Tensor) for kind in kinds),
                sum(kind is torch.fx.Node for kind in kinds),
                sum(kind is lt.PlannedGraph for kind in kinds))

    def test_of_earlier_plans_is_free_when_a_model_is_prepared_again(self):
        for machine, budget in ((None, "100%"), (COPIES, "75%")):
            model, batch = wide_mlp()
            optimizer = torch.optim.AdamW(model.parameters())
            found = []
            for _ in range(4):
                call, _ = lt.prepare(model, optimizer, sample=batch, budget=budget,
                                     machine=machine, **OPTIONS)
                train(call, optimizer, batch, 1)
                del call
                found.append(self.alive())
            self.assertEqual(found[1], found[2])
            self.assertEqual(found[2], found[3])
            self.assertEqual(host_state_of(optimizer) is not None, machine is not None)


if __name__ == "__main__":
    unittest.main()
