"""CUDA's lanes, on a fake runtime: pinned memory, streams and events."""
import contextlib
import mmap
import unittest
from unittest import mock

import torch

from loadline.torch.compat import torch_internals
from loadline.torch.compat.lanes import IN, MAIN, OUT, CudaLanes


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
