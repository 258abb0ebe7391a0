"""Two processes over gloo: the same plan on both, the same losses as without."""
import tempfile
import unittest

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from loadline import torch as lt
from models import MODELS
from steps import same_bits


def train(rank, model, batch):
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = wrapped(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    return losses


def made(rank):
    torch.manual_seed(0)
    model = MODELS["gpt"]()
    torch.manual_seed(100 + rank)  # its own data
    return model, MODELS["gpt"].batch()


def work(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank,
                            world_size=2)
    model, batch = made(rank)
    expected = train(rank, model, batch)
    model, batch = made(rank)
    planned, _ = lt.prepare(model, sample=batch, budget="75%", inner="aot_eager",
                            work_limit=20_000)
    found = train(rank, planned, batch)
    plans = [None, None]
    dist.all_gather_object(plans, lt.planned[-1].plan.json)
    torch.save((expected, found, plans), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


class TwoProcesses(unittest.TestCase):
    def test_agree_and_train_as_without(self):
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(work, (folder,), nprocs=2)
            for rank in range(2):
                expected, found, plans = torch.load(f"{folder}/{rank}.pt")
                self.assertTrue(same_bits(expected, found))
                self.assertEqual(plans[0], plans[1])


if __name__ == "__main__":
    unittest.main()
