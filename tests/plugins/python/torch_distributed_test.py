"""Two processes over gloo: one plan on both, the same losses as without."""
import contextlib
import tempfile
import unittest
from unittest import mock

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.fsdp import fully_shard

import loadline
from chain import chain_problem
from loadline import planning
from loadline import torch as lt
from loadline.torch.compat import tiers
from loadline.torch.session.compiler import current_tier
from loadline.torch.solve import rank_consensus
from models import MODELS
from steps import recorded, same_bits

OPTIONS = {"inner": "aot_eager", "work_limit": 20_000}


def train(call, parameters, batch):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = call(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    return losses


def made(rank):
    torch.manual_seed(0)
    model = MODELS["gpt"]()
    torch.manual_seed(100 + rank)  # its own data
    return model, MODELS["gpt"].batch()


def ddp(rank, prepare):
    model, batch = made(rank)
    call = prepare(model, batch)
    call = torch.nn.parallel.DistributedDataParallel(call)
    return train(call, call.parameters(), batch)


def ddp_first(rank, prepare):
    """Prepared when it is wrapped, in buckets that are smaller than the model."""
    model, batch = made(rank)
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.02)
    call = prepare(model, batch)
    return train(call, call.parameters(), batch)


def ddp_accumulated(rank, prepare):
    """Gradients of three batches are added up, and sent with the last."""
    model, batch = made(rank)
    call = torch.nn.parallel.DistributedDataParallel(prepare(model, batch))
    optimizer = torch.optim.SGD(call.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        for part in range(3):
            with call.no_sync() if part < 2 else contextlib.nullcontext():
                loss = call(*batch) / 3
                loss.backward()
            losses.append(loss.detach().clone())
        losses += [one.grad.clone() for one in call.parameters()]
        optimizer.step()
    return losses


def fsdp(rank, prepare):
    """Sharded after it was compiled."""
    model, batch = made(rank)
    call = prepare(model, batch)
    fully_shard(model)
    return train(call, model.parameters(), batch)


def planned(model, batch):
    return lt.prepare(model, sample=batch, budget="75%", **OPTIONS)[0]


def planned_accumulating(model, batch):
    return lt.prepare(model, sample=batch, budget="75%", accumulate=True, **OPTIONS)[0]


def alone(rank):
    """One rank's last batch is smaller: whether it waits for the other, and its loss."""
    torch._dynamo.reset()
    model, batch = made(rank)
    call = planned(model, batch)
    call(*batch).backward()
    if rank == 1:
        with mock.patch.object(rank_consensus, "gather", side_effect=AssertionError):
            loss = call(*(tensor[:2] for tensor in batch))
        return bool(torch.equal(loss, model(*(tensor[:2] for tensor in batch))))
    return True


def split_by_ddp(rank):
    """The error of a plain torch.compile of a model in several buckets."""
    torch._dynamo.reset()
    model, batch = made(rank)
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.02)
    call = torch.compile(model, backend=lt.backend, dynamic=False,
                         options={**OPTIONS, "budget": "75%"})
    with torch._dynamo.config.patch(optimize_ddp=True), mock.patch.object(
            dist, "_DEFAULT_FIRST_BUCKET_BYTES", 1 << 10):
        try:
            call(*batch)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            return str(error.inner_exception)
    return "no error"


def uneven(rank):
    """Ranks whose problems differ in bytes and machine, or in more than that."""
    problem = chain_problem()
    problem["values"][1]["bytes"] += 50 * rank
    if rank == 0:
        problem["machine"] = loadline.Machine("m", host_bytes=1).document()
    worst, together = rank_consensus.common_problem(problem)
    plan = rank_consensus.plan_of_rank_0(worst, lambda: loadline.plan(worst, 360, work_limit=9))
    problem["nodes"][0]["name"] += str(rank)
    with mock.patch("warnings.warn") as warn:
        apart = rank_consensus.common_problem(problem)[1]
    return (worst["values"][1]["bytes"], together, plan.json, apart,
            worst["machine"]["host_bytes"], warn.call_args[0][0][:50])


def infeasible(rank):
    problem = chain_problem()
    try:
        rank_consensus.plan_of_rank_0(problem, lambda: loadline.plan(problem, 150, work_limit=9))
    except loadline.Infeasible as error:
        return error.smallest_met_bytes


def work(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank,
                            world_size=2)
    # Its self-test's plan is not to be counted below.
    result = {"tier": current_tier(), "uneven": uneven(rank), "infeasible": infeasible(rank),
              "alone": alone(rank), "split": split_by_ddp(rank)}
    for kind in (ddp, ddp_first, ddp_accumulated, fsdp):
        torch._dynamo.reset()
        expected = kind(rank, lambda model, batch: model)
        torch._dynamo.reset()
        with recorded() as graphs, mock.patch.object(
                planning, "plan", wraps=planning.plan) as solve:
            found = kind(rank, planned_accumulating if kind is ddp_accumulated else planned)
        result[kind.__name__] = (
            expected, found, [g.plan.json for g in graphs], solve.call_count,
            [g.recomputed_flops for g in graphs])
    torch.save(result, f"{folder}/{rank}.pt")
    dist.barrier()  # Gloo's threads free their tensors while the interpreter runs
    dist.destroy_process_group()


class TwoProcesses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(work, (folder,), nprocs=2)
            cls.ranks = [torch.load(f"{folder}/{rank}.pt") for rank in range(2)]

    def test_pass_the_self_test(self):
        self.assertEqual([rank["tier"] for rank in self.ranks], [tiers.FULL, tiers.FULL])

    def test_train_as_without_by_one_plan(self):
        for kind in ("ddp", "ddp_first", "ddp_accumulated", "fsdp"):
            with self.subTest(kind):
                for rank in self.ranks:
                    expected, found, _, _, again = rank[kind]
                    self.assertTrue(same_bits(expected, found))
                    self.assertGreater(again[-1], 0)
                (_, _, plans, solved, _), (_, _, other, solved1, _) = (
                    rank[kind] for rank in self.ranks)
                self.assertEqual(plans, other)
                self.assertEqual(solved, len(plans))
                # Rank 0 plans for both what both compile first. FSDP2's modules are
                # compiled again.
                self.assertEqual(solved1, len(plans) - 1)

    def test_a_model_in_ddps_buckets_has_one_plan(self):
        for rank in self.ranks:
            self.assertEqual(len(rank["ddp_first"][2]), 1)
            self.assertIn("optimize_ddp = False", rank["split"])

    def test_a_rank_that_compiles_again_waits_for_nobody(self):
        self.assertEqual([rank["alone"] for rank in self.ranks], [True, True])

    def test_the_worst_ranks_numbers_count(self):
        for rank in self.ranks:
            bytes_, together, plan, apart, host_bytes, warning = rank["uneven"]
            self.assertEqual((bytes_, together, apart, host_bytes), (150, True, False, 1))
            self.assertEqual(plan, self.ranks[0]["uneven"][2])
            self.assertIn("different graphs", warning)

    def test_rank_0s_error_is_everyones(self):
        self.assertEqual([rank["infeasible"] for rank in self.ranks], [310, 310])


class Device(unittest.TestCase):
    def test_of_collectives_is_the_callers(self):
        with mock.patch("torch.cuda.is_available", return_value=True), mock.patch(
                "torch.cuda.current_device", return_value=3), mock.patch(
                    "torch.cuda.device") as device:
            rank_consensus._in_thread(lambda: device.assert_called_once_with(3))


if __name__ == "__main__":
    unittest.main()
