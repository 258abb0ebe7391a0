"""What Loadline holds for one model, and for how long.

A session has one owner: the model given to `prepare` or `compile_in_place`, or, under
torch.compile alone, the code that was compiled. It holds the graphs planned for that
owner and ends with it. The process holds sessions and graphs by weak references only.
Tested by tests/plugins/python/torch_session_test.py.
"""
from __future__ import annotations

import collections
import dataclasses
import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import torch
from loadline.torch.compat.weak_table import WeakTable
from loadline.torch.problem.gradients import Owner
from loadline.torch.rewrite.planned_graph import PlannedGraph
from loadline.torch.session.written_inputs import WrittenInputs
from loadline.torch.solve.make_plan import asked_bytes
from loadline.torch.solve.options import Options, Shares
from loadline.torch.state.host_parameters import HostParameters

if TYPE_CHECKING:
    from loadline.torch.session.other_optimizers import KnownState

log = logging.getLogger("loadline.torch")

KEPT = 32  # graphs of one session, and of the process's list


@dataclasses.dataclass
class Prepared:
    """What `prepare` found, for the report."""

    budget: str  # as asked, and in bytes if it was the smallest
    optimizer_bytes: int
    step_bytes: int  # that the optimizer's step allocates for itself
    loss_bytes: int  # of a loss outside of the model, with what it holds
    accumulated_bytes: int  # gradients that stay from step to step
    outside_bytes: int  # outside PyTorch's allocator, subtracted from the budget
    corrected_bytes: int  # added after measuring
    graphs: list[PlannedGraph]
    measured_bytes: int | None  # of all graphs together
    # On a GPU, after the measured step: device memory that PyTorch's allocator holds,
    # and device memory in use otherwise, by this process or another.
    allocator_bytes: int | None
    found_outside_bytes: int | None
    structure: str = ""  # of the step, if it was asked for
    parts_bytes: int = 0  # gradients added up over parts, and the batch beside a part
    detached_outputs: int = 0  # beside the loss


def share_of(shares: Shares, place: int, number: int) -> Fraction:
    """Of the graph with this number that is compiled in this place. Another batch size of a
    graph comes later, and has as much as the largest one of prepare's step."""
    if not shares:
        return Fraction(1)
    if place < len(shares) and shares[place][0] == number:
        return shares[place][1]
    return max((share for known, share in shares if known == number),
               default=shares[-1][1])


class Session:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self.number = _sessions.add(self)
        self.prepared: Prepared | None = None
        # Reentrant: a finalizer may close the session inside one of its methods.
        self._lock = threading.RLock()
        self._graphs: collections.deque[PlannedGraph] = collections.deque(maxlen=KEPT)
        # Of the Python functions that were compiled: Dynamo's number and the code.
        self._frames: list[tuple[int, Any]] = []
        # In bytes, by the graph's number: what a share of the first batch came to.
        self._budgets: dict[int, int] = {}
        self._keeps_budgets = False
        self._first: set[int] = set()  # numbers of graphs that were planned
        self._planned_count = 0  # of graphs
        self.has_breaks = False  # of the graph, as far as it is known
        self.is_preparing = False  # by prepare, which compiles more than once
        self._breaks: set[tuple[str, int]] = set()  # that were warned of by then
        # Forwards that may wait for their backward at a time without a warning.
        self._live_forwards = 1
        self.counts_forwards = False  # a step is measured, whatever it does
        self.written: WrittenInputs | None = None  # of the step that is measured
        self._model: Callable[[], torch.nn.Module | None] = lambda: None
        self._finalizer: Any = None
        self.autocast_types: dict[str, torch.dtype] | None = None  # of prepare's step
        self.warned_of_unplanned = False
        self.warned_of_number = False
        self.warned_of_saved_hooks = False
        self.heads = 0  # that run in segments
        self.detached_outputs = 0
        # Parameters whose gradients may leave the device.
        self.owners: Mapping[torch.Tensor, Owner] = {}
        # Puts parameters on the host, if they may leave the device.
        self.host_parameters: HostParameters | None = None
        self.known_state: KnownState | None = None  # of optimizers that step the model
        # Bytes of optimizer state that the plans do not have, because it came later.
        self.state_growth: Callable[[], int] = lambda: 0
        # Gradients of an earlier backward may be there during a forward: the plans have them.
        self.counts_gradients = True
        self._options: Any = None  # kept, so that no other object gets its id

    @property
    def reference(self) -> SessionReference:
        return SessionReference(self.number)

    @property
    def graphs(self) -> list[PlannedGraph]:
        """The last ones, oldest first."""
        with self._lock:
            return [*self._graphs]

    @property
    def is_of_options(self) -> bool:
        """Of all models that torch.compile was given with one object `options`."""
        return self._options is not None

    def model(self) -> torch.nn.Module | None:
        """Its owner, if that is a model which exists."""
        return self._model()

    def record(self, graph: PlannedGraph) -> None:
        with self._lock:
            self._graphs.append(graph)
            self._first.add(graph.number)
            self._planned_count += 1
            self._budgets.setdefault(graph.number, asked_bytes(
                graph.options, graph.keep_everything_bytes, graph.plan))
        recent_graphs.add(graph)
        log.info("%s", graph.describe())

    def resolved(self, options: Options, number: int) -> Options:
        """With a share of the budget as the bytes that it was for the first batch, so
        that another batch size trains in the same memory. All ranks plan the first graph
        together; whoever compiles another one does so alone."""
        with self._lock:
            # A plain torch.compile may have several models with the same options.
            owned = self._keeps_budgets or self._model() is not None
            budget = self._budgets.get(number) if owned else None
            first = number not in self._first
            share = share_of(options.shares, self._planned_count, number)
        return dataclasses.replace(
            options, agree=options.agree and first, share=share,
            reserve_bytes=options.reserve_bytes + self.state_growth(),
            budget=options.budget if budget is None else budget)

    def was_divided_without(self, shares: Shares, number: int) -> bool:
        """Whether the graph that is compiled next has no share of its own."""
        with self._lock:
            of_number = [share for known, share in shares if known == number]
            return bool(shares) and (not of_number or len(of_number) > 1
                                     and self._planned_count >= len(shares))

    def is_new_break(self, reason: str, number: int) -> bool:
        """Whether a graph break was not warned of while the model is prepared."""
        with self._lock:
            known = (reason, number) in self._breaks
            self._breaks.add((reason, number))
            return not known

    def allows(self, live_forwards: int) -> bool:
        """False, once for each number, if so many forwards of a graph that wait for their
        backward were neither measured nor warned of."""
        with self._lock:
            known = live_forwards <= self._live_forwards
            self._live_forwards = max(self._live_forwards, live_forwards)
            return known or self.counts_forwards

    def restart(self, keep_budgets: bool = False) -> None:
        """Forgets what a trial compile recorded. keep_budgets: but not the bytes that a
        share came to."""
        with self._lock:
            self._keeps_budgets = keep_budgets
            self._first.clear()
            self._planned_count = 0
            self.has_breaks = False
            self.heads = self.detached_outputs = 0
            if not keep_budgets:
                self._budgets.clear()
            self._graphs.clear()
            self._frames.clear()

    def frame_number(self, number: int, code: Any) -> int:
        """Of a Python function among those compiled for this session, from 0.

        number: Dynamo's, -1 if it has none. code: None if PyTorch does not name it."""
        with self._lock:
            for place, (old_number, old_code) in enumerate(self._frames):
                if old_code == code and (code is not None or old_number == number):
                    self._frames[place] = number, code  # compiled again: a new number
                    return place
            if any(old_number == number for old_number, _ in self._frames):
                self._frames.clear()  # of another model, before a reset
            self._frames.append((number, code))
            return len(self._frames) - 1

    def belong_to(self, model: torch.nn.Module) -> None:
        """From now on; earlier sessions of the model end."""
        for session in live_sessions():
            if session is not self and session._model() is model:
                session.close()
        self._model = weakref.ref(model)
        self._finalizer = weakref.finalize(model, self.close)  # keeps it alive
        self._finalizer.atexit = False

    def close(self) -> None:
        """Releases the host memory of its graphs, and the graphs."""
        if self._finalizer is not None:
            self._finalizer.detach()
        with self._lock:
            graphs = [*self._graphs]
            self._graphs.clear()
            self._frames.clear()
            self._budgets.clear()
            self.owners = {}
            self.prepared = None
            self.known_state = None
            self.state_growth = lambda: 0
            self._model = lambda: None
            if self.host_parameters is not None:
                self.host_parameters.close()
        # Compiled code may outlive the model and serve another instance of its class.
        for graph in graphs:
            if (slab := graph.slab()) is not None:
                slab.release()


_sessions: WeakTable[Session] = WeakTable()
_by_options_lock = threading.Lock()
_by_options: weakref.WeakValueDictionary[int, Session] = weakref.WeakValueDictionary()


@dataclasses.dataclass(frozen=True)
class SessionReference:
    """A session in torch.compile's options and in Inductor's configuration.

    All references are equal and pickle alike: whose session it is changes neither what
    a graph compiles to nor which compiled code may serve it."""

    number: int = dataclasses.field(compare=False, repr=False)

    def __call__(self) -> Session | None:
        """None: its owner is gone."""
        return _sessions.get(self.number)

    def record(self, graph: PlannedGraph) -> None:
        if (session := self()) is not None:
            session.record(graph)

    def __deepcopy__(self, memo: dict[int, Any]) -> SessionReference:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return SessionReference, (0,)


def live_sessions() -> list[Session]:
    return [session for _, session in _sessions.items()]


def session_of_model(model: torch.nn.Module) -> Session | None:
    return next((session for session in live_sessions()
                 if session._model() is model), None)


def session_of_options(options: Any) -> Session:
    """Of one call of torch.compile, told apart by its options object. The caller keeps
    the session alive."""
    with _by_options_lock:
        if (session := _by_options.get(id(options))) is None:
            session = _by_options[id(options)] = Session()
            session._options = options
        return session


class RecentGraphs(Sequence[PlannedGraph]):
    """The graphs planned last, oldest first: those whose session still holds them."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._graphs: collections.deque[weakref.ref[PlannedGraph]] = (
            collections.deque(maxlen=KEPT))

    def add(self, graph: PlannedGraph) -> None:
        with self._lock:
            self._graphs.append(weakref.ref(graph))

    def _alive(self) -> list[PlannedGraph]:
        with self._lock:
            references = [*self._graphs]
        return [graph for reference in references
                if (graph := reference()) is not None]

    def __len__(self) -> int:
        return len(self._alive())

    @overload
    def __getitem__(self, index: int) -> PlannedGraph: ...
    @overload
    def __getitem__(self, index: slice) -> list[PlannedGraph]: ...

    def __getitem__(self, index: int | slice) -> PlannedGraph | list[PlannedGraph]:
        return self._alive()[index]


recent_graphs = RecentGraphs()
