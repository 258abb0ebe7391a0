"""Copies of optimizer state and of a step's values on their own lanes: every reader waits
for what it reads, and no memory is freed while it is in use."""
import contextlib
import copy
import unittest

import torch

import loadline
from loadline.torch.compat.lanes import IN, MAIN, OUT, Lanes
from loadline.torch.problem.joint import is_view
from loadline.torch.rewrite import copies
from loadline.torch.rewrite.program import program_of
from loadline.torch.rewrite.split import split
from loadline.torch.rewrite.state_moves import StateMoves
from loadline.torch.state.host_state import HostState
from loadline.torch.state.predict_state import buckets_of, predict_state
from fake_lanes import FakeLanes, Race
from random_programs import random_program
from steps import same_bits, trace
from torch_offload_test import WORK
from training import COPIES, states, train, wide_mlp


def one_ahead(count):
    """Each bucket arrives while the one before it is updated."""
    tail = [("load", 0)]
    for k in range(count):
        tail += [("load", k + 1)] if k + 1 < count else []
        tail += [("update", k), ("start_store", k)]
        tail += [("end_store", k - 1)] if k > 0 else []
    return StateMoves(0, *3 * (frozenset(range(count)),), (),
                      (*tail, ("end_store", count - 1)))


def updates(count):
    """What moves does so before the last gradient: `away` calls for that."""
    return StateMoves(0, frozenset(range(count)), frozenset(),
                      frozenset(range(count)), (),
                      tuple(("update", k) for k in range(count)))


def away(mover, call):
    """As the modules of a planned step do: all leaves while the loss is computed,
    each beside the one before, and comes back."""
    def run(*batch):
        count = len(mover.buckets)
        mover.begin(mover.moves)
        for k in range(count + 1):
            if k < count:
                mover.start_store(k)
            if k > 0:
                mover.end_store(k - 1)
        loss = call(*batch)
        for k in range(count):
            mover.load(k)
        return loss

    return run


def steps(lanes=None, moves=one_ahead):
    model, batch = wide_mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    call = model
    with contextlib.ExitStack() as stack:
        if lanes is not None:
            buckets = buckets_of(optimizer, predict_state(optimizer))
            mover = HostState(optimizer, buckets, lanes)
            mover.follow(moves(len(buckets)))
            if moves is updates:
                call = away(mover, model)
            if isinstance(lanes, FakeLanes):
                stack.enter_context(lanes.updates_watched())
        losses = train(call, optimizer, batch, 3)
        call(*batch)  # no step comes
        before = states(optimizer)
        optimizer.load_state_dict(optimizer.state_dict())
        losses = [*losses, *before, *train(call, optimizer, batch, 2),
                  *states(optimizer)]
        if lanes is not None:
            mover.detach()
        return losses


class Order(unittest.TestCase):
    def test_everything_is_waited_for_and_copied_when_the_step_ends(self):
        for moves in (one_ahead, updates):
            lanes = FakeLanes()
            self.assertTrue(same_bits(steps(), steps(lanes, moves)))
            self.assertGreater(lanes.settled, 0)
            self.assertEqual(lanes.settled, lanes.clock[OUT][OUT])

    def test_the_next_bucket_does_not_wait_for_this_ones_update(self):
        calls = []

        class Log(Lanes):
            def mark(self, lane):
                calls.append(("mark", lane))
                return lane, len(calls)

            def wait(self, lane, mark):
                calls.append(("wait", lane, mark[0], mark[1]))

        steps(Log())
        model, _ = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        buckets = len(buckets_of(optimizer, predict_state(optimizer)))
        arrived = [at for at, call in enumerate(calls, 1) if call == ("mark", IN)]
        waited = [call[3] for call in calls if call[:3] == ("wait", MAIN, IN)]
        self.assertEqual(arrived, waited)  # each for its own
        del arrived[-buckets:]  # of the end, where all come back one by one
        # And the next one is on its way before.
        waits = [at for at, call in enumerate(calls, 1) if call[:3] == ("wait", MAIN, IN)]
        self.assertTrue(all(arrived[k + 1] < waits[k] for k in range(len(arrived) - 1)
                            if (k + 1) % buckets))

    def test_what_a_failed_forward_left_on_its_way_is_still_the_devices(self):
        def program(lanes):
            model, batch = wide_mlp()
            optimizer = torch.optim.AdamW(model.parameters())
            call = model
            if lanes is not None:
                buckets = buckets_of(optimizer, predict_state(optimizer))
                mover = HostState(optimizer, buckets, lanes)
                mover.follow(updates(len(buckets)))
                call = away(mover, model)
            losses = train(call, optimizer, batch, 2)
            saved = copy.deepcopy(optimizer.state_dict())
            for change in (
                    lambda: [s["exp_avg"].add_(1) for s in optimizer.state.values()],
                    lambda: optimizer.load_state_dict(copy.deepcopy(saved))):
                if lanes is not None:
                    mover.begin(mover.moves)
                    for k in range(len(buckets)):
                        mover.start_store(k)
                change()
                losses += train(call, optimizer, batch, 1)
            return [*losses, *states(optimizer)]

        self.assertTrue(same_bits(program(None), program(Lanes())))
        program(FakeLanes())

    def test_a_wait_that_is_forgotten_is_found(self):
        for lane, other in ((MAIN, IN), (OUT, MAIN), (IN, MAIN), (MAIN, OUT)):
            for moves in (one_ahead, updates):
                with self.subTest(f"{lane} for {other} {moves.__name__}"), (
                        self.assertRaises(Race)):
                    steps(FakeLanes(without=[(lane, other)]), moves)


class OnMain(torch.fx.Interpreter):
    """A module, node by node, in the lane MAIN; a value goes after its last use."""

    def __init__(self, module, lanes):
        super().__init__(module)
        self.lanes = lanes

    def call_function(self, target, args, kwargs):
        if target in (copies.OFFLOAD, copies.WAIT, copies.RELOAD, copies.ARRIVE):
            return super().call_function(target, args, kwargs)
        return self.lanes.compute(
            lambda: super(OnMain, self).call_function(target, args, kwargs),
            (args, kwargs))


def run_step(step, parts, lanes):
    """As TracedStep.run_modules does, on lanes."""
    inputs = [a.detach().clone() if isinstance(a, torch.Tensor) else a
              for a in step.inputs]
    count = step.kwargs["num_fwd_outputs"]
    torch.manual_seed(1)
    parts.slab.lanes = lanes
    outputs = OnMain(parts.forward, lanes).run(*inputs)
    gradients = OnMain(parts.backward, lanes).run(
        *outputs[count:], *(torch.ones_like(o) for o in outputs[:count]))
    lanes.bury()
    return [v for v in (*outputs[:count], *gradients, *inputs)
            if isinstance(v, torch.Tensor)]


def planned(step, percent):
    traced = step.make_problem()
    plan = loadline.plan(traced.document, percent, recompute=False, work_limit=WORK)
    return split(traced, program_of(traced, plan.document), None, **step.kwargs)


def at_random(step, seed):
    traced = step.make_problem()
    return split(traced, random_program(traced, seed, True), None, **step.kwargs)


class Values(unittest.TestCase):
    def test_everything_is_waited_for_in_any_program(self):
        for name in ("mlp", "gpt_dropout"):
            step = trace(name, COPIES)
            moved = 0
            for parts in (planned(step, "75%"), at_random(step, 1), at_random(step, 2)):
                lanes = FakeLanes()
                for _ in range(2):  # the second step writes where the first one read
                    self.assertTrue(same_bits(step.eager, run_step(step, parts, lanes)))
                self.assertEqual(parts.slab.leaving, {})
                self.assertEqual(parts.slab.arriving, {})
                moved += parts.slab.in_bytes
            self.assertGreater(moved, 0)

    def test_a_wait_that_is_forgotten_is_found(self):
        step = trace("mlp", COPIES)
        for lane, other in ((OUT, MAIN), (MAIN, OUT), (IN, MAIN), (MAIN, IN)):
            with self.subTest(f"{lane} for {other}"), self.assertRaises(Race):
                run_step(step, planned(step, "75%"), FakeLanes([(lane, other)]))

    def test_copies_run_beside_what_computes(self):
        step = trace("gpt", COPIES)
        parts = planned(step, "75%")
        for module, start, end in ((parts.forward, copies.OFFLOAD, copies.WAIT),
                                   (parts.backward, copies.RELOAD, copies.ARRIVE)):
            nodes = [*module.graph.nodes]
            beside = [nodes.index(node) - nodes.index(began)
                      for node in nodes if node.target is end
                      for began in node.all_input_nodes if began.target is start]
            self.assertGreater(len(beside), 0)
            self.assertGreater(max(beside), 1)

    def test_what_arrives_is_waited_for_only_before_it_is_read(self):
        step = trace("gpt", COPIES)
        for module in (planned(step, "75%").backward, at_random(step, 1).backward):
            nodes = [*module.graph.nodes]
            arrivals = [at for at, node in enumerate(nodes)
                        if node.target is copies.ARRIVE]
            self.assertGreater(len(arrivals), 0)
            for at in arrivals:
                read = min(nodes.index(user) for user in nodes[at].users)
                # What else its reader reads may arrive or be viewed in between.
                self.assertTrue(all(node.target is copies.ARRIVE or is_view(node)
                                    for node in nodes[at + 1:read]), nodes[at])

    def test_what_a_failed_backward_left_goes_with_the_next_forward(self):
        def steps_without(*forgotten):
            slab = copies.Slab({3: 64}, torch.device("cpu"))
            number = copies.slabs.add(slab)
            slab.lanes = FakeLanes(forgotten)
            value = torch.arange(16.0)

            def forward():
                token = copies.OFFLOAD(value, number, 3, [16], [1], 0)
                return copies.WAIT(value, token, number, 3)

            copies.RELOAD(forward(), number, 3)
            self.assertEqual(len(slab.arriving), 1)
            forward()
            self.assertEqual(slab.arriving, {})
            slab.lanes.bury()

        steps_without()
        with self.assertRaises(Race):
            steps_without((MAIN, IN))


if __name__ == "__main__":
    unittest.main()
