"""Through Inductor: the plan's saved set, and gradients as without it."""
import unittest

import torch

from loadline import torch as lt
from models import MODELS
from steps import eager_step


class Inductor(unittest.TestCase):
    def test_gradients_are_eagers_within_rounding(self):
        # The second time comes from Inductor's cache, and is planned all the same.
        for name in ("mlp", "gpt", "mlp"):
            torch.manual_seed(0)
            model, batch = MODELS[name](), MODELS[name].batch()
            expected = eager_step(model, batch)
            torch._dynamo.reset()
            count = len(lt.planned)
            call = torch.compile(
                model, backend=lt.backend, dynamic=False,
                options={"budget": "65%", "work_limit": 20_000})
            found = eager_step(model, batch, call)
            graph, = lt.planned[count:]
            self.assertGreater(graph.plan.recompute_ns, 0)
            self.assertLessEqual(graph.plan.peak_bytes,
                                 0.65 * graph.keep_everything_bytes)
            for a, b in zip(expected, found, strict=True):
                torch.testing.assert_close(b, a, rtol=0, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
