"""linear_cross_entropy: the head in segments of rows, compared with PyTorch's."""
import itertools
import unittest

import torch
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from loadline.torch.compat import torch_internals
from loadline.torch.problem.inside import OPERATORS
from loadline.torch.structure.segmented_head import HEAD

ROWS, WIDTH, CLASSES = 23, 8, 11


def operands(dtype=torch.float32, rows=ROWS):
    torch.manual_seed(0)
    made = [torch.randn(*shape).to(dtype).requires_grad_()
            for shape in ((rows, WIDTH), (CLASSES, WIDTH), (CLASSES,))]
    target = torch.randint(CLASSES, (rows,))
    target[3::7] = -100
    return made, target


def both(made, target, segments, bias=True, incoming=3.0, **arguments):
    """Loss and gradients: PyTorch's, and those of the head in segments."""
    hidden, weight, row = made
    class_weight = arguments.pop("class_weight", None)
    given = made if bias else made[:2]

    def with_gradients(loss):
        return [loss, *torch.autograd.grad(loss * incoming, given)]

    return (with_gradients(F.cross_entropy(
                F.linear(hidden, weight, row if bias else None), target,
                weight=class_weight, **arguments)),
            with_gradients(lt.linear_cross_entropy(
                hidden, weight, target, row if bias else None, segments=segments,
                class_weight=class_weight, **arguments)))


def largest_error(expected, found):
    return max(float((e - f).detach().norm() / e.detach().norm())
               for e, f in zip(expected, found))


class LinearCrossEntropy(unittest.TestCase):
    def test_equals_pytorch_at_every_number_of_segments(self):
        made, target = operands()
        for segments, bias, smoothing, weights, reduction in itertools.product(
                range(1, 8), (True, False), (0.0, 0.1),
                (None, torch.rand(CLASSES)), ("mean", "sum")):
            with self.subTest(segments=segments, bias=bias, smoothing=smoothing,
                              weights=weights is not None, reduction=reduction):
                self.assertLess(largest_error(*both(
                    made, target, segments, bias, label_smoothing=smoothing,
                    class_weight=weights, reduction=reduction)), 1e-6)

    def test_takes_any_leading_dimensions_and_index_to_ignore(self):
        (hidden, weight, _), target = operands(rows=24)
        target = target.clamp_min(0)
        found = lt.linear_cross_entropy(hidden.view(2, 3, 4, WIDTH), weight,
                                        target.view(2, 3, 4), segments=5, ignore_index=2)
        expected = F.cross_entropy(hidden @ weight.T, target, ignore_index=2)
        torch.testing.assert_close(found, expected)

    def test_has_no_gradient_without_a_target(self):
        made, target = operands()
        expected, found = both(made, torch.full_like(target, -100), 3)
        self.assertTrue(expected[0].isnan() and found[0].isnan())
        for gradient in (*expected[1:], *found[1:]):
            self.assertEqual(float(gradient.abs().max()), 0)

    def test_makes_no_gradient_that_nobody_wants(self):
        (hidden, weight, bias), target = operands()
        with torch.no_grad():
            loss = lt.linear_cross_entropy(hidden, weight, target, bias)
        self.assertFalse(loss.requires_grad)
        frozen = weight.detach()
        loss = lt.linear_cross_entropy(hidden, frozen, target, segments=2)
        torch.testing.assert_close(
            torch.autograd.grad(loss, hidden),
            torch.autograd.grad(F.cross_entropy(hidden @ frozen.T, target), hidden))
        results = HEAD(hidden, frozen, target, None, None, torch.float32, 2, -100, 0.0,
                       True, False, False)
        self.assertEqual([r.numel() for r in results[2:]], [hidden.numel(), 0, 0])

    def test_accumulates_into_tied_weights_over_several_steps(self):
        (_, weight, _), target = operands()
        ids = torch.randint(CLASSES, (ROWS,))

        def gradient(loss):
            weight.grad = None
            for _ in range(2):
                loss(F.embedding(ids, weight)).backward()
            return weight.grad

        expected = gradient(lambda h: F.cross_entropy(h @ weight.T, target))
        found = gradient(lambda h: lt.linear_cross_entropy(h, weight, target, segments=4))
        self.assertLess(largest_error([expected], [found]), 1e-6)

    def test_sums_the_weights_gradient_in_float32(self):
        made, target = operands(rows=512)
        exact = [value.detach() for value in both(made, target, 1)[0]]
        for segments in (1, 8, 64):
            with torch.autocast("cpu", torch.bfloat16):
                plain, found = both(made, target, segments)
            self.assertEqual([f.dtype for f in found], [torch.float32] * 4)
            for e, p, f in zip(exact, [value.detach() for value in plain],
                               [value.detach() for value in found]):
                self.assertLessEqual(float((f - e).norm()),
                                     1.2 * float((p - e).norm()) + 1e-3 * float(e.norm()))

    def test_keeps_the_types_of_a_model_in_half_precision(self):
        exact = both(*operands(rows=512), 1)[0]
        for dtype in (torch.bfloat16, torch.float16):
            _, found = both(*operands(dtype, rows=512), 8)
            self.assertEqual([f.dtype for f in found[1:]], [dtype] * 3)
            self.assertLess(largest_error(exact, [f.float() for f in found]), 0.02)

    def test_small_probabilities_survive_float16(self):
        """Their mean over many rows would be 0 in half precision."""
        hidden = torch.randn(64, WIDTH).half().requires_grad_()
        weight = torch.zeros(4096, WIDTH, dtype=torch.float16).requires_grad_()
        target = torch.zeros(64, dtype=torch.long)
        lt.linear_cross_entropy(hidden, weight, target, segments=4).backward()
        self.assertEqual(int((weight.grad[1:] == 0).sum()), 0)

    def test_refuses_a_second_derivative(self):
        (hidden, weight, _), target = operands()
        loss = lt.linear_cross_entropy(hidden, weight, target)
        with self.assertRaisesRegex(loadline.LoadlineError, "no second derivative"):
            torch.autograd.grad(loss, hidden, create_graph=True)

    def test_names_wrong_arguments(self):
        (hidden, weight, bias), target = operands()
        for message, change in (
                ("class_weight", {"class_weight": torch.ones(3)}),
                ("bias", {"bias": torch.ones(3)}),
                ("reduction='none'", {"reduction": "none"}),
                ("segments", {"segments": 0}), ("segments", {"segments": "many"}),
                ("label_smoothing", {"label_smoothing": 2.0}),
                ("probabilities", {"target": torch.rand(ROWS, CLASSES)}),
                ("one class for each row", {"target": target[1:]}),
                ("hidden", {"hidden": hidden[:, 1:]}),
                ("want one type", {"hidden": hidden.double()})):
            with self.subTest(message), self.assertRaisesRegex(
                    loadline.InvalidArgument, message):
                lt.linear_cross_entropy(**{"hidden": hidden, "weight": weight,
                                           "target": target, "bias": bias, **change})

    def test_is_one_operator_of_a_compiled_graph(self):
        made, target = operands()
        expected, _ = both(made, target, 3, incoming=1.0)
        for inner in ("aot_eager", "inductor"):
            torch._dynamo.reset()
            call = torch.compile(
                lambda h, w, b: lt.linear_cross_entropy(h, w, target, b, segments=3),
                backend=inner, fullgraph=True, dynamic=False)
            loss = call(*made)
            self.assertLess(largest_error(
                expected, [loss, *torch.autograd.grad(loss, made)]), 1e-6)

    def test_holds_the_workspace_that_a_plan_counts(self):
        for dtype, low, smoothing in itertools.product(
                (torch.float32, torch.bfloat16), (torch.float32, torch.bfloat16),
                (0.0, 0.1)):
            (hidden, weight, bias), target = operands(dtype)
            arguments = (hidden, weight, target, bias, torch.rand(CLASSES), low, 4, -100,
                         smoothing, True, True, True)
            with torch.no_grad(), lt.virtual_device(whole_step=True) as ledger:
                ledger.watch(arguments)
                before = ledger.sample("arguments")
                results = HEAD(*arguments)
            found = ledger.peak_bytes - before - sum(r.untyped_storage().nbytes()
                                                     for r in results)
            self.assertEqual(found, OPERATORS[HEAD](*arguments).workspace_bytes)

    def test_auto_cuts_large_logits_only(self):
        from loadline.torch.structure.linear_cross_entropy import _count
        with torch_internals.FakeTensorMode():
            for rows, classes, width, low, wanted in (
                    (64, 1000, 64, torch.float32, 1),
                    (8192, 50257, 768, torch.bfloat16, 32),
                    (4096, 128_000, 2048, torch.bfloat16, 8)):
                weight = torch.empty(classes, width)
                self.assertEqual(_count("auto", rows, weight, low), wanted)


if __name__ == "__main__":
    unittest.main()
