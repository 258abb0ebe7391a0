"""Optimizer state on the host: the plan's share, its bytes, the same bits."""
import copy
import dataclasses
import unittest
from unittest import mock

import torch

import loadline
from loadline import torch as lt
from loadline.torch.solve.make_plan import EFFORT
from loadline.torch.state.host_state import HostState, host_state_of
from loadline.torch.state.predict_state import predict_state
from models import MODELS
from steps import same_bits
from training import (COPIES, OPTIONS, copied_bytes, planned_bytes, states, train,
                      wide_mlp)


class Prepare(unittest.TestCase):
    def prepare(self, budget, make=torch.optim.AdamW):
        model, batch = wide_mlp()
        optimizer = make(model.parameters())
        call, _ = lt.prepare(model, optimizer, sample=batch, budget=budget,
                             machine=COPIES, **OPTIONS)
        return model, call, optimizer, batch

    def test_the_plan_decides_the_share_and_every_byte_is_counted(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        expected = train(model, optimizer, batch)
        before, hosted = states(optimizer), []
        for budget in ("100%", "85%", "70%", "67%"):
            with self.subTest(budget):
                model, call, optimizer, batch = self.prepare(budget)
                graph = lt.planned[-1]
                moved = sum(graph.moves.bytes[k] for k in graph.moves.moved)
                hosted.append(moved)
                self.assertEqual(moved + graph.resident_state_bytes,
                                 predict_state(optimizer).bytes)
                state = host_state_of(optimizer)
                self.assertEqual(state is not None, moved > 0)
                with lt.virtual_device() as ledger:
                    found = train(call, optimizer, batch, 2)
                    copied = copied_bytes(state)
                    found += train(call, optimizer, batch, 1)
                self.assertTrue(same_bits(expected, found))
                self.assertTrue(same_bits(before, states(optimizer)))
                if moved:
                    self.assertEqual(graph.measured_bytes, graph.peak_bytes)
                else:  # the optimizer's step of all parameters is the peak
                    self.assertLessEqual(graph.measured_bytes, graph.update_peak_bytes)
                self.assertLessEqual(max(graph.peak_bytes, graph.update_peak_bytes),
                                     graph.plan.budget_bytes)
                if moved:
                    # From the second step on all state is watched.
                    self.assertEqual(ledger.peak_bytes, max(
                        graph.peak_bytes, graph.update_peak_bytes))
                    out, in_ = (now - before for now, before in zip(
                        copied_bytes(state), copied))
                    # What came back behind its update leaves without a copy.
                    self.assertLessEqual(out, planned_bytes(graph)[0])
                    self.assertEqual(in_, planned_bytes(graph)[1])
                    self.assertIn("on the host for a part", lt.report())
        self.assertEqual(hosted[0], 0)
        self.assertGreater(hosted[-1], hosted[1])

    def test_state_stays_where_that_is_faster(self):
        slow = dataclasses.replace(COPIES, d2h_bytes_per_s=1e8, h2d_bytes_per_s=1e8)
        moved = []
        for budget in ("90%", "80%", "70%", "smallest of activations"):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, batch = MODELS["mlp"](), (torch.randn(64, 64),)
            optimizer = torch.optim.AdamW(model.parameters())
            if budget.startswith("smallest"):  # too little with all state there
                budget = lt.planned[-1].keep_everything_bytes * 53 // 100
            lt.prepare(model, optimizer, sample=batch, budget=budget, machine=slow,
                       inner="aot_eager")
            graph = lt.planned[-1]
            moved.append(len(graph.moves.moved))
            resident = copy.deepcopy(graph.problem)
            for value in graph.traced.state:
                resident["values"][value]["offload"] = False
            try:
                plan = loadline.plan(resident, graph.plan.budget_bytes,
                                     effort=EFFORT)
            except loadline.Infeasible:
                self.assertGreater(moved[-1], 0)
                continue
            self.assertLessEqual(graph.plan.step_ns, plan.step_ns)
        self.assertEqual(moved[0], 0)
        self.assertGreater(moved[-1], 0)

    def test_a_state_dict_goes_on_where_it_was_saved(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        train(model, optimizer, batch)
        halfway = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        expected = train(model, optimizer, batch)
        model, call, optimizer, batch = self.prepare("67%")
        model.load_state_dict(halfway[0])
        optimizer.load_state_dict(halfway[1])
        self.assertTrue(same_bits(expected, train(call, optimizer, batch)))

    def test_of_an_optimizer_that_has_state_already(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        expected = train(model, optimizer, batch, 4)
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        found = train(model, optimizer, batch, 2)
        for _ in range(2):  # prepared twice: the second plan holds
            call, _ = lt.prepare(model, optimizer, sample=batch, budget="67%",
                                 machine=COPIES, **OPTIONS)
            losses = train(call, optimizer, batch, 1)
            self.assertGreater(host_state_of(optimizer).host_bytes, 0)
            found += losses
        self.assertTrue(same_bits(expected, found))
        mover = host_state_of(optimizer)
        mover.detach()
        on_host = {slab.memory.untyped_storage().data_ptr() for slab in mover._slabs
                   if slab.memory is not None}
        self.assertTrue(all(t.untyped_storage().data_ptr() not in on_host
                            for s in optimizer.state.values() for t in s.values()))


class Unusual(unittest.TestCase):
    """Programs that do not step behind every backward, or look in between."""

    def checked(self, whole=HostState._before):
        """The hook before the step, and then: what the optimizer's own step updates is on
        the device, which a CPU cannot tell from the host."""
        def before(state, optimizer, args, kwargs):
            result = whole(state, optimizer, args, kwargs)
            slabs = {slab.memory.untyped_storage().data_ptr() for slab in state._slabs
                     if slab.memory is not None}
            for group in optimizer.param_groups:
                for p in group["params"]:
                    for t in optimizer.state.get(p, {}).values():
                        self.assertNotIn(t.untyped_storage().data_ptr(), slabs)
            return result

        return mock.patch.object(HostState, "_before", before)

    def same(self, program):
        """program(call, optimizer, batch) gives tensors, those of the step without a
        plan; every bucket that may rest somewhere else does so in some plan."""
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        expected = [*program(model, optimizer, batch), *states(optimizer)]
        seen = set()
        for budget in ("85%", "70%"):
            model, batch = wide_mlp()
            optimizer = torch.optim.AdamW(model.parameters())
            with self.checked():
                call, _ = lt.prepare(model, optimizer, sample=batch, budget=budget,
                                     machine=COPIES, **OPTIONS)
            moves = lt.planned[-1].moves
            seen |= {bucket in moves.resting_on_host for bucket in moves.moved}
            found = program(call, optimizer, batch)
            self.assertTrue(same_bits(expected, [*found, *states(optimizer)]), budget)
        self.assertEqual(seen, {False, True})

    def test_gradients_of_several_batches_make_one_step(self):
        def program(call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.zero_grad()
            for _ in range(3):
                losses.append(call(*batch))
                losses[-1].backward()
            optimizer.step()
            return [loss.detach() for loss in losses] + train(call, optimizer, batch, 1)

        self.same(program)

    def test_a_step_that_is_left_out_changes_nothing(self):
        def program(call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            call(*batch).backward()  # as a scaler does whose gradients are infinite
            between = states(optimizer)
            losses += train(call, optimizer, batch, 2)
            call(*batch)  # nor did this come to a backward
            optimizer.zero_grad()
            return [*losses, *between, *train(call, optimizer, batch, 1)]

        self.same(program)

    def test_a_step_without_a_forward_of_its_own(self):
        def program(call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            optimizer.step()
            call(*batch)
            optimizer.step()
            return [*losses, *train(call, optimizer, batch, 1)]

        self.same(program)

    def same_with(self, changes):
        """changes(optimizer): each is made between a backward and its step."""
        def program(call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            for change in changes(optimizer):
                optimizer.zero_grad()
                losses.append(call(*batch))
                losses[-1].backward()
                change()
                optimizer.step()
            return [loss.detach() for loss in losses] + train(call, optimizer, batch, 2)

        self.same(program)

    def test_state_that_somebody_writes_to_before_the_step(self):
        def changes(optimizer):
            saved = copy.deepcopy(optimizer.state_dict())
            return (lambda: [s["exp_avg"].mul_(0.5) for s in optimizer.state.values()],
                    lambda: optimizer.load_state_dict(saved))

        self.same_with(changes)

    def test_state_that_somebody_replaces_or_clears_before_the_step(self):
        def changes(optimizer):
            first = optimizer.param_groups[0]["params"][0]
            return (lambda: [s.update(exp_avg=torch.zeros_like(s["exp_avg"]))
                             for s in optimizer.state.values()],
                    lambda: optimizer.state[first].clear(), optimizer.state.clear)

        self.same_with(changes)

    def test_batches_of_two_shapes(self):
        def program(call, optimizer, batch):
            small = batch[0][:8].contiguous(),
            losses = []
            for one in (batch, small, batch, small):
                losses += train(call, optimizer, one, 2)
            loss, other = call(*batch), call(*small)  # the step follows the second
            loss.backward()
            other.backward()
            optimizer.step()
            return [*losses, loss.detach(), *train(call, optimizer, small, 1)]

        self.same(program)

    def test_prepared_again_in_vain_the_first_plan_holds(self):
        def program(call, optimizer, batch):
            losses = train(call, optimizer, batch, 2)
            mover = host_state_of(optimizer)
            if mover is not None:
                with self.assertRaises(loadline.Infeasible):
                    lt.prepare(call, optimizer, sample=batch, budget="1%",
                               machine=COPIES, **OPTIONS)
                self.assertIs(host_state_of(optimizer), mover)
            return losses + train(call, optimizer, batch, 2)

        self.same(program)

    def test_a_sample_for_which_nothing_moves(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        expected = train(model, optimizer, batch, 2)
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        small = batch[0][:1].contiguous(),
        everything = sum(p.nbytes for p in model.parameters()) * 4 + (60 << 10)
        call, _ = lt.prepare(model, optimizer, sample=small, budget=everything,
                             machine=COPIES, **OPTIONS)
        self.assertIsNone(host_state_of(optimizer))
        large = torch.cat([batch[0]] * 16),
        call(*large).backward()
        self.assertTrue(lt.planned[-1].moves.moved)
        self.assertIs(host_state_of(optimizer).moves, lt.planned[-1].moves)
        self.assertTrue(same_bits(expected, train(call, optimizer, batch, 2)))


if __name__ == "__main__":
    unittest.main()
