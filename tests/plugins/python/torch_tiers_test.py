"""Each tier, forced by hiding what the one above needs: it trains as eager, in fewer
bytes, and says what it cannot do."""
import contextlib
import re
import unittest
import warnings
from pathlib import Path
from unittest import mock

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

import loadline
from loadline import torch as lt
from loadline.torch.compat import tiers, torch_internals
from loadline.torch.state.predict_state import predict_state
from models import MODELS
from steps import eager_step, same_bits

HIDDEN = {"recompute": ["partition"], "public": ["partition", "lookup_backend"]}


@contextlib.contextmanager
def only(tier):
    """As on a PyTorch without some names."""
    with contextlib.ExitStack() as stack:
        for name in HIDDEN.get(tier, []):
            stack.enter_context(mock.patch.object(torch_internals, name, None))
        stack.enter_context(mock.patch.object(tiers, "_chosen", []))
        torch._dynamo.reset()
        yield
    torch._dynamo.reset()


OPTIONS = {"inner": "aot_eager", "work_limit": 20_000}


def compiled(model, budget):
    return torch.compile(model, backend=lt.backend, dynamic=False,
                         options={"budget": budget, **OPTIONS})


class Watch(TorchDispatchMode):
    """The ledger of operators that run one by one, whoever runs them."""

    def __init__(self, ledger):
        super().__init__()
        self.ledger = ledger

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        self.ledger.watch((args, result))
        self.ledger.sample(str(operator))
        return result


def peak_bytes(model, batch, budget):
    """Of a step: what the backend makes of the traced forward, run without the
    compiler around it. budget None: the forward as it is."""
    made = []

    def backend(gm, inputs):
        call = gm if budget is None else lt.backend(gm, inputs, {
            "budget": budget, **OPTIONS})

        def run(*arguments):
            made[:] = [call, arguments]
            return call(*arguments)

        return run

    torch._dynamo.reset()
    torch.compile(model, backend=backend, dynamic=False)(*batch)
    call, arguments = made
    model.zero_grad()
    ledger = lt.Ledger()
    ledger.watch(arguments)
    with Watch(ledger):
        loss, = call(*arguments)
        loss.backward()
    return ledger.peak_bytes


def saved_bytes(call, batch):
    """What autograd holds between forward and backward, checkpoints' inputs apart."""
    saved = {}

    def pack(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = call(*batch)
    del loss
    return sum(saved.values())


class LowerTiers(unittest.TestCase):
    def trains_as_eager(self, tier, name, budget="70%"):
        torch.manual_seed(0)
        model, batch = MODELS[name](), MODELS[name].batch()
        state = {key: value.clone() for key, value in model.state_dict().items()}
        expected = [*eager_step(model, batch), torch.rand(3)]
        plain = saved_bytes(model, batch)
        model.load_state_dict(state)
        with only(tier):
            call = compiled(model, budget)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = [*eager_step(model, batch, call), torch.rand(3)]
            said = [str(w.message) for w in caught if "tier" in str(w.message)]
            self.assertEqual(len(said), 1, said)
            self.assertIn("min_cut_rematerialization_partition", said[0])
            self.assertIn(f'the tier is "{tier}"', said[0])
            self.assertIn("prepare", said[0])
            self.assertTrue(same_bits(expected, found), name)
            self.assertLess(saved_bytes(call, batch), plain, name)
            eager = peak_bytes(model, batch, None)
            peak = peak_bytes(model, batch, budget)
            self.assertLess(peak, eager, name)
            self.assertLessEqual(peak, lt.planned[-1].plan.budget_bytes, name)
            graph = lt.planned[-1]
            self.assertEqual(graph.tier, tier)
            self.assertLessEqual(graph.peak_bytes, graph.plan.budget_bytes)
            self.assertIn(f"tier {tier}: ", lt.report())
        return graph

    def test_recompute_by_pytorchs_solver_hook(self):
        for name in ("mlp", "gpt"):
            with self.subTest(name):
                graph = self.trains_as_eager("recompute", name)
                self.assertGreater(graph.plan.recompute_ns, 0)

    def test_a_graph_that_pytorch_asks_nothing_about_is_said_aloud(self):
        x = torch.randn(8, 8, requires_grad=True)

        def cheap(x):
            return x.sin().cos().sum()

        with only("recompute"), self.assertWarnsRegex(
                UserWarning, "never called our solver"):
            compiled(cheap, "80%")(x).backward()

    def test_public_names_only(self):
        for name in ("mlp", "gpt_dropout", "unet"):
            with self.subTest(name):
                graph = self.trains_as_eager("public", name, "80%")
                self.assertGreater(graph.plan.recompute_ns, 0)

    def test_what_updates_buffers_is_never_run_again_by_public_names(self):
        torch.manual_seed(0)
        model, batch = MODELS["resnet18"](), MODELS["resnet18"].batch()
        state = {key: value.clone() for key, value in model.state_dict().items()}
        expected = eager_step(model, batch)
        with only("public"), warnings.catch_warnings(record=True):
            model.load_state_dict(state)
            with self.assertRaises(loadline.Infeasible):
                compiled(model, "80%")(*batch)
            self.assertTrue(same_bits(list(state.values()),
                                      list(model.state_dict().values())))
            found = eager_step(model, batch, compiled(model, "100%"))
        self.assertTrue(same_bits(expected, found))

    def test_a_budget_that_cannot_be_met_says_which_can(self):
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        with only("public"), warnings.catch_warnings(record=True):
            with self.assertRaises(loadline.Infeasible) as caught:
                compiled(model, "200KiB")(*batch)
        self.assertGreater(caught.exception.smallest_met_bytes, 0)

    def test_prepare_reserves_the_optimizers_state(self):
        torch.manual_seed(0)
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        optimizer = torch.optim.AdamW(model.parameters())
        with only("public"), self.assertWarnsRegex(UserWarning, "tier"):
            call, _ = lt.prepare(model, optimizer, sample=batch, budget="80%",
                                 inner="aot_eager", work_limit=20_000)
            call(*batch).backward()
        graph = lt.planned[-1]
        self.assertLess(graph.plan.budget_bytes, 0.8 * graph.keep_everything_bytes + 1
                        + 0.8 * predict_state(optimizer).bytes)


class Choice(unittest.TestCase):
    def test_where_nothing_works_it_is_said(self):
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        with only("public"), mock.patch(
                "loadline.torch.fallback.segments.checkpoint", lambda part, *inputs, **_: (
                    part(*inputs))):
            with self.assertRaises(torch._dynamo.exc.BackendCompilerFailed) as caught:
                compiled(model, "80%")(*batch)
        error = caught.exception.inner_exception
        self.assertIsInstance(error, lt.Unsupported)
        self.assertRegex(str(error), "full: .*recompute: .*public: .*bytes were saved")

    def test_our_own_library_missing_is_no_fault_of_pytorchs(self):
        missing = loadline.InternalError("libloadline.so cannot be loaded")
        with only("full"), mock.patch("loadline.torch.compat.tiers._library.version",
                                      side_effect=missing):
            with self.assertRaisesRegex(loadline.InternalError, "cannot be loaded"):
                tiers.choose({"full": lambda: ""})

    def test_every_name_of_every_tier_is_here(self):
        for tier in ("full", "recompute", "public"):
            self.assertEqual(torch_internals.missing(tier), [])
        with mock.patch.object(torch_internals, "fx_graph_cse", None):
            self.assertEqual(torch_internals.missing("full"),
                             ["torch._functorch.compile_utils.fx_graph_cse"])
            self.assertEqual(torch_internals.missing("recompute"), [])

    def test_no_other_file_has_private_names(self):
        for path in Path(torch_internals.__file__).parents[1].rglob("*.py"):
            if not path.name.endswith("_internals.py"):
                self.assertEqual(re.findall(
                    r"torch\.(?:\w+\.)*_[a-z]\w+|\._cdata|_pytree", path.read_text()),
                    [], path.name)


if __name__ == "__main__":
    unittest.main()
