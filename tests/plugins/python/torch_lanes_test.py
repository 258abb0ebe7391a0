"""Copies of optimizer state and of a step's values on lanes of their own: everybody
finds done what they read, and no memory goes back while somebody still uses it. There
is no GPU here: a fake keeps the order that its marks promise and no other."""
import contextlib
import copy
import mmap
import unittest
from unittest import mock

import torch

import loadline
from loadline.torch.compat import torch_internals
from loadline.torch.compat.lanes import IN, MAIN, OUT, CudaLanes, Lanes
from loadline.torch.problem.joint import is_view
from loadline.torch.rewrite import copies
from loadline.torch.rewrite.program import program_of
from loadline.torch.rewrite.split import split
from loadline.torch.rewrite.state_moves import StateMoves
from loadline.torch.state import host_state
from loadline.torch.state.host_state import HostState
from loadline.torch.state.predict_state import buckets_of, predict_state, span_bytes
from random_programs import random_program
from steps import same_bits, trace
from torch_host_state_test import states, train, wide_mlp
from torch_offload_test import COPIES, WORK


class Race(Exception):
    pass


def whole(tensor):
    """All of its storage."""
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())


def storages(values):
    """Of all tensors in there, those with bytes."""
    return [whole(leaf) for leaf in torch_internals.pytree.tree_leaves(values)
            if isinstance(leaf, torch.Tensor) and leaf.untyped_storage().nbytes()]


class FakeLanes(Lanes):
    """without: (waiting lane, lane that the mark is of), of waits that are forgotten."""

    def __init__(self, without=()):
        self.without = without
        self.clock = {lane: {other: 0 for other in (MAIN, IN, OUT)}
                      for lane in (MAIN, IN, OUT)}
        # By bytes, from and to: lane, its tick, whether it writes.
        self.accesses = {}
        self.alive = {}  # by bytes on the device: storage, memory of MAIN
        self.settled = 0

    def at(self, begin, end):
        """Where there were accesses."""
        return [(b, e) for b, e in self.accesses if b < end and begin < e]

    def touch(self, lane, tensor, write):
        self.clock[lane][lane] += 1
        here = tensor.data_ptr(), tensor.data_ptr() + span_bytes(tensor)
        for place in self.at(*here):
            for other, tick, wrote in self.accesses[place]:
                if (write or wrote) and self.clock[lane][other] < tick:
                    raise Race(f"{lane} does not wait for {other}")
        self.accesses.setdefault(here, []).append(
            (lane, self.clock[lane][lane], write))

    def born(self, tensor):
        begin, end = tensor.data_ptr(), tensor.data_ptr() + span_bytes(tensor)
        self.alive[begin, end] = torch_internals.StorageWeakRef(tensor.untyped_storage())
        for place in self.at(begin, end):
            del self.accesses[place]
        # MAIN may have used that memory until just now, for something else.
        self.accesses[begin, end] = [(MAIN, self.clock[MAIN][MAIN], True)]

    def bury(self):
        for bytes_, storage in list(self.alive.items()):
            if storage.expired():
                for place in self.at(*bytes_):
                    for lane, tick, _ in self.accesses.pop(place):
                        if self.clock[MAIN][lane] < tick:
                            raise Race(f"memory goes back before {lane} is done")
                del self.alive[bytes_]

    def mark(self, lane):
        return lane, dict(self.clock[lane])

    def wait(self, lane, mark):
        if (lane, mark[0]) not in self.without:
            for other, tick in mark[1].items():
                self.clock[lane][other] = max(self.clock[lane][other], tick)

    def new(self, host):
        self.bury()
        there = super().new(host)
        self.born(there)
        self.touch(MAIN, there, True)  # some allocators fill what is new
        return there

    def fill(self, there, host):
        self.touch(IN, host, False)
        self.touch(IN, there, True)
        super().fill(there, host)

    def copy_out(self, value, host):
        self.bury()
        self.touch(OUT, whole(value), False)
        self.touch(OUT, host, True)
        super().copy_out(value, host)

    def settle(self):
        self.bury()
        self.settled = self.clock[OUT][OUT]

    def compute(self, run, given):
        self.bury()
        for tensor in storages(given):
            self.touch(MAIN, tensor, False)
        made = run()
        self.bury()
        known = {tensor.data_ptr() for tensor in storages(given)}
        for tensor in storages(made):
            if tensor.data_ptr() not in known:
                known.add(tensor.data_ptr())
                self.born(tensor)
                self.touch(MAIN, tensor, True)
        return made

    @contextlib.contextmanager
    def updates_watched(self):
        def run(optimizer):
            def tensors():
                return storages([
                    host_state.state_tensors(optimizer.state.get(p, {}))
                    for group in optimizer.param_groups for p in group["params"]])

            self.bury()
            for tensor in tensors():
                self.touch(MAIN, tensor, True)
            step(optimizer)
            known = {begin for begin, _ in self.alive}
            for tensor in tensors():
                if tensor.data_ptr() not in known:
                    self.born(tensor)
                    self.touch(MAIN, tensor, True)

        step = host_state.run_step
        with mock.patch.object(host_state, "run_step", run):
            yield


def one_ahead(count):
    """Each bucket arrives while the one before it is updated."""
    tail = [("load", 0)]
    for k in range(count):
        tail += [("load", k + 1)] if k + 1 < count else []
        tail += [("update", k), ("start_store", k)]
        tail += [("end_store", k - 1)] if k > 0 else []
    return StateMoves(0, frozenset(range(count)), frozenset(range(count)), (),
                      (*tail, ("end_store", count - 1)))


def updates(count):
    """What moves does so before the last gradient: `away` calls for that."""
    return StateMoves(0, frozenset(range(count)), frozenset(), (),
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


class Pinned(unittest.TestCase):
    """Whole pages, as asked for, and no longer than they are there."""

    class Runtime:
        def __init__(self, error=0):
            self.error, self.pinned = error, {}

        def cudaHostRegister(self, address, bytes_, flags):
            if not self.error:
                self.pinned[address] = bytes_
            return self.error

        def cudaHostUnregister(self, address):
            del self.pinned[address]
            return 0

    @contextlib.contextmanager
    def on(self, runtime, waited):
        with mock.patch.multiple(
                torch.cuda, Stream=lambda device: None, cudart=lambda: runtime,
                synchronize=lambda device: waited.append(dict(runtime.pinned))):
            yield CudaLanes(torch.device("cpu"))

    def test_memory_is_pinned_where_it_lies_and_let_go_when_nothing_is_copied(self):
        runtime, waited = self.Runtime(), []
        with self.on(runtime, waited) as lanes:
            sizes = (3 * mmap.PAGESIZE + 1, 1, 5 << 20)
            memory = [lanes.host_memory(bytes_) for bytes_ in sizes]
            self.assertEqual([m.numel() for m in memory], [*sizes])
            self.assertEqual(runtime.pinned, {
                m.data_ptr(): pages * mmap.PAGESIZE
                for m, pages in zip(memory, (4, 1, (5 << 20) // mmap.PAGESIZE))})
            self.assertTrue(all(at % mmap.PAGESIZE == 0 for at in runtime.pinned))
            # They lie within what was allocated.
            self.assertTrue(all(
                m.storage_offset() + runtime.pinned[m.data_ptr()]
                <= m.untyped_storage().nbytes() for m in memory))
            self.assertEqual(lanes.host_memory(0).numel(), 0)
            del memory
            self.assertEqual(runtime.pinned, {})
            self.assertEqual([len(pinned) for pinned in waited], [3, 2, 1])

    def test_where_that_cannot_be_pytorchs_own_is_asked(self):
        asked, empty = [], torch.empty

        def logged(*sizes, pin_memory=False, **options):
            asked.append(pin_memory)
            return empty(*sizes, **options)

        runtime = self.Runtime(error=801)
        with self.on(runtime, []) as lanes, mock.patch("torch.empty", logged):
            self.assertEqual(lanes.host_memory(100).numel(), 100)
        self.assertEqual(asked, [False, True])


class Streams(unittest.TestCase):
    """What CudaLanes asks of torch.cuda, which is not here."""

    def test_copies_run_on_streams_of_their_own_and_marks_are_events(self):
        log = []

        class Stream:
            def __init__(self, name):
                self.name = name

            def wait_event(self, event):
                log.append(f"{self.name} waits for {event.at}")

            def synchronize(self):
                log.append(f"synchronize {self.name}")

        class Event:
            def record(self, stream):
                self.at = stream.name

        @contextlib.contextmanager
        def on(stream):
            log.append(f"on {stream.name}")
            yield
            log.append(f"off {stream.name}")

        names = iter(("in", "out"))
        main = Stream("main")
        with mock.patch.multiple(
                torch.cuda, Stream=lambda device: Stream(next(names)), Event=Event,
                stream=on, set_stream=lambda stream: log.append(f"on {stream.name}"),
                current_device=lambda: current,
                current_stream=lambda device: main), mock.patch.object(
                torch_internals, "raw_stream", lambda index: 7):
            current = 0
            lanes = CudaLanes(torch.device("cpu", 0))
            host = torch.arange(3.0)
            there, = lanes.copy_in([host])
            self.assertNotEqual(there.data_ptr(), host.data_ptr())
            lanes.wait(MAIN, lanes.mark(IN))
            lanes.wait(OUT, lanes.mark(MAIN))
            lanes.copy_out(there + 1, host)
            lanes.wait(IN, lanes.mark(OUT))
            lanes.settle()
            current = 1  # the program's device, and not this one's
            again, = lanes.copy_in([host])
        self.assertEqual(host.tolist(), [1, 2, 3])
        self.assertEqual(again.tolist(), [1, 2, 3])
        self.assertEqual(log, [
            "in waits for main", "on in", "on main", "main waits for in",
            "out waits for main", "on out", "on main", "in waits for out",
            "synchronize out", "in waits for main", "on in", "off in"])


if __name__ == "__main__":
    unittest.main()
