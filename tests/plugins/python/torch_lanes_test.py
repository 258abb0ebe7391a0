"""Copies of optimizer state on lanes of their own: everybody finds done what they
read, and no memory goes back while somebody still uses it. There is no GPU here: a
fake keeps the order that its marks promise and no other."""
import contextlib
import unittest
from unittest import mock

import torch

from loadline.torch import host_state, private
from loadline.torch.host_state import HostState
from loadline.torch.lanes import IN, MAIN, OUT, CudaLanes, Lanes
from loadline.torch.optimizer import buckets_of, foretell
from steps import same_bits
from torch_host_state_test import states, train, wide_mlp


class Race(Exception):
    pass


class FakeLanes(Lanes):
    """without: (waiting lane, lane that the mark is of), of waits that are forgotten."""

    def __init__(self, without=()):
        self.without = without
        self.clock = {lane: {other: 0 for other in (MAIN, IN, OUT)}
                      for lane in (MAIN, IN, OUT)}
        self.accesses = {}  # by address: lane, its tick, whether it writes
        self.alive = {}  # by address on the device: storage, the lane it is of
        self.settled = 0

    def touch(self, lane, tensor, write):
        self.clock[lane][lane] += 1
        before = self.accesses.setdefault(tensor.data_ptr(), [])
        for other, tick, wrote in before:
            if (write or wrote) and self.clock[lane][other] < tick:
                raise Race(f"{lane} does not wait for {other}")
        before.append((lane, self.clock[lane][lane], write))

    def born(self, tensor, lane):
        self.alive[tensor.data_ptr()] = (
            private.StorageWeakRef(tensor.untyped_storage()), lane)

    def bury(self):
        for address, (storage, home) in list(self.alive.items()):
            if storage.expired():
                for lane, tick, _ in self.accesses.pop(address, ()):
                    if self.clock[home][lane] < tick:
                        raise Race(f"memory goes back to {home} before {lane} is done")
                del self.alive[address]

    def mark(self, lane):
        return lane, dict(self.clock[lane])

    def wait(self, lane, mark):
        if (lane, mark[0]) not in self.without:
            for other, tick in mark[1].items():
                self.clock[lane][other] = max(self.clock[lane][other], tick)

    def copy_in(self, host):
        self.bury()
        self.touch(IN, host, False)
        there = super().copy_in(host)
        self.born(there, IN)
        self.touch(IN, there, True)
        return there

    def copy_out(self, value, host):
        self.bury()
        self.touch(OUT, value, False)
        self.touch(OUT, host, True)
        super().copy_out(value, host)

    def settle(self):
        self.bury()
        self.settled = self.clock[OUT][OUT]

    @contextlib.contextmanager
    def updates_watched(self):
        def run(optimizer):
            def tensors():
                return [t for group in optimizer.param_groups for p in group["params"]
                        for t in host_state.state_tensors(
                            optimizer.state.get(p, {})).values()]

            self.bury()
            for tensor in tensors():
                self.touch(MAIN, tensor, True)
            step(optimizer)
            for tensor in tensors():
                if tensor.data_ptr() not in self.alive:
                    self.born(tensor, MAIN)
                    self.touch(MAIN, tensor, True)

        step = host_state.run_step
        with mock.patch.object(host_state, "run_step", run):
            yield


def one_ahead(count):
    """Each bucket arrives while the one before it is updated."""
    tail = [("load", 0)]
    for k in range(count):
        tail += [("load", k + 1)] if k + 1 < count else []
        tail += [("update", k), ("store", k)]
    return tail


def steps(lanes=None):
    model, batch = wide_mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    with contextlib.ExitStack() as stack:
        if lanes is not None:
            buckets = buckets_of(optimizer, foretell(optimizer))
            HostState(optimizer, buckets, lanes).follow(one_ahead(len(buckets)))
            if isinstance(lanes, FakeLanes):
                stack.enter_context(lanes.updates_watched())
        losses = train(model, optimizer, batch, 3)
        before = states(optimizer)
        optimizer.load_state_dict(optimizer.state_dict())
        return [*losses, *before, *train(model, optimizer, batch, 2),
                *states(optimizer)]


class Order(unittest.TestCase):
    def test_everything_is_waited_for_and_copied_when_the_step_ends(self):
        lanes = FakeLanes()
        self.assertTrue(same_bits(steps(), steps(lanes)))
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
        buckets = len(buckets_of(optimizer, foretell(optimizer)))
        arrived = [at for at, call in enumerate(calls, 1) if call == ("mark", IN)]
        waited = [call[3] for call in calls if call[:3] == ("wait", MAIN, IN)]
        self.assertEqual(arrived, waited)  # each for its own
        # And the next one is on its way before.
        waits = [at for at, call in enumerate(calls, 1) if call[:3] == ("wait", MAIN, IN)]
        self.assertTrue(all(arrived[k + 1] < waits[k] for k in range(len(waits) - 1)
                            if (k + 1) % buckets))

    def test_a_wait_that_is_forgotten_is_found(self):
        for lane, other in ((MAIN, IN), (OUT, MAIN), (IN, OUT), (MAIN, OUT)):
            with self.subTest(f"{lane} for {other}"), self.assertRaises(Race):
                steps(FakeLanes(without=[(lane, other)]))


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
        with mock.patch.multiple(
                torch.cuda, Stream=lambda device: Stream(next(names)), Event=Event,
                stream=on, current_stream=lambda device: Stream("main")):
            lanes = CudaLanes(torch.device("cpu"))
            host = torch.arange(3.0)
            there = lanes.copy_in(host)
            self.assertNotEqual(there.data_ptr(), host.data_ptr())
            lanes.wait(MAIN, lanes.mark(IN))
            lanes.wait(OUT, lanes.mark(MAIN))
            lanes.copy_out(there + 1, host)
            lanes.wait(IN, lanes.mark(OUT))
            lanes.settle()
        self.assertEqual(host.tolist(), [1, 2, 3])
        self.assertEqual(log, [
            "on in", "off in", "main waits for in", "out waits for main", "on out",
            "off out", "in waits for out", "synchronize out"])


if __name__ == "__main__":
    unittest.main()
