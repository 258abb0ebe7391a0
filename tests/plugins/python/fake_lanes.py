"""Lanes without a GPU: they keep the order that marks promise, and no other, and raise
Race for a read of unfinished data and for memory that is freed while it is in use."""
import contextlib
from unittest import mock

import torch

from loadline.torch.compat import torch_internals
from loadline.torch.compat.lanes import IN, MAIN, OUT, Lanes
from loadline.torch.state import host_state, host_updates
from loadline.torch.state.predict_state import span_bytes


HOST = "host"  # the program itself, which starts the work of all lanes


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
        lanes = MAIN, IN, OUT, HOST
        self.clock = {lane: {other: 0 for other in lanes} for lane in lanes}
        # By bytes, from and to: lane, its tick, whether it writes.
        self.accesses = {}
        self.alive = {}  # by bytes on the device: storage, memory of MAIN
        self.settled = 0

    def at(self, begin, end):
        """Where there were accesses."""
        return [(b, e) for b, e in self.accesses if b < end and begin < e]

    def touch(self, lane, tensor, write):
        self.clock[lane][lane] += 1
        for other, tick in self.clock[HOST].items():  # the program knew that at the start
            self.clock[lane][other] = max(self.clock[lane][other], tick)
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

    def settle(self, lane=OUT):
        self.bury()
        if lane == OUT:
            self.settled = self.clock[OUT][OUT]
        self.wait(HOST, (lane, self.clock[lane]))

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

    @contextlib.contextmanager
    def host_watched(self):
        """Updates on the host read gradients and write parameters there."""
        def run(optimizer):
            for group in optimizer.param_groups:
                for one in group["params"]:
                    self.touch(HOST, one.grad, False)
                    self.touch(HOST, one.detach(), True)
            step(optimizer)

        step = host_updates.run_step
        with mock.patch.object(host_updates, "run_step", run):
            yield
