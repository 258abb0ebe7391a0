"""What Loadline holds for a model ends with that model, and threads do not mix."""
import ast
import copy
import gc
import logging
import pathlib
import pickle
import sys
import threading
import time
import unittest
import warnings
import weakref
from unittest import mock

import torch

import loadline
from loadline import torch as lt
from loadline.torch.compat.weak_table import WeakTable
from loadline.torch.session.session import (KEPT, Session, live_sessions,
                                            session_of_model, session_of_options)
from loadline.torch.solve.options import Options
from models import MODELS
from steps import recorded
from training import COPIES, wide_mlp

OPTIONS = {"inner": "aot_eager", "work_limit": 1000}


class Owner(torch.nn.Module):
    pass


class Graph:
    """As much of a planned graph as a session needs."""

    number, keep_everything_bytes, options = 0, 100, Options(budget="50%")
    plan = None

    def slab(self):
        return None

    def describe(self):
        return "a graph"


def prepared(**options):
    torch._dynamo.reset()
    model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
    call = lt.prepare(model, sample=batch, budget="90%", **OPTIONS, **options)[0]
    return model, call, batch


class Lifetime(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        gc.collect()
        self.assertEqual(live_sessions(), [])
        self.assertEqual(len(lt.planned), 0)

    def test_a_prepared_model_takes_everything_along(self):
        model, call, _ = prepared()
        graph = lt.planned[-1]
        held = [weakref.ref(thing) for thing in (
            model, session_of_model(model), graph, graph.traced,
            graph.traced.joint.module)]
        del model, call, graph
        gc.collect()
        self.assertEqual([thing() for thing in held], [None] * len(held))
        self.assertEqual(len(lt.planned), 0)
        with self.assertRaisesRegex(loadline.LoadlineError, "still exists"):
            lt.report()

    def test_optimizer_state_ends_with_its_optimizer(self):
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        call = lt.prepare(model, optimizer, sample=batch, budget="67%",
                          machine=COPIES, **OPTIONS)[0]
        call(*batch).backward()
        optimizer.step()
        self.assertTrue(lt.planned[-1].moves.moved)
        held = [weakref.ref(model), weakref.ref(optimizer),
                weakref.ref(next(iter(optimizer.state.values()))["exp_avg"])]
        del model, optimizer, call, batch
        gc.collect()
        self.assertEqual([thing() for thing in held], [None] * len(held))

    def test_a_model_compiled_in_place_too(self):
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        lt.compile_in_place(model, "90%", **OPTIONS)
        model(*batch).backward()
        held = [weakref.ref(model), weakref.ref(lt.planned[-1])]
        del model
        gc.collect()
        self.assertEqual([thing() for thing in held], [None] * len(held))

    def test_a_plain_compile_ends_with_the_compiled_code(self):
        model, batch = MODELS["mlp"](), MODELS["mlp"].batch()
        call = torch.compile(model, backend=lt.backend, dynamic=False,
                             options={"budget": "90%", **OPTIONS})
        call(*batch).backward()
        gc.collect()
        graph = weakref.ref(lt.planned[-1])
        self.assertEqual(len(live_sessions()), 1)
        call(*batch).backward()
        del call, model
        torch._dynamo.reset()
        gc.collect()
        self.assertIsNone(graph())
        self.assertEqual(live_sessions(), [])

    def test_a_model_prepared_again_keeps_the_last_plan_only(self):
        model, call, batch = prepared()
        first = weakref.ref(lt.planned[-1])
        for _ in range(2):
            call, _ = lt.prepare(call, sample=batch, budget="95%", **OPTIONS)
        gc.collect()
        self.assertIsNone(first())
        self.assertEqual(len(live_sessions()), 1)
        self.assertEqual(len(lt.planned), 1)
        self.assertIn("budget 95%", lt.report())
        self.assertIs(session_of_model(model), live_sessions()[0])

    def test_a_sequence_prepared_again_and_another_like_it_have_plans_of_their_own(self):
        batch = torch.randn(8, 16)
        calls = []
        for model in [torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU())
                      for _ in range(2)]:
            for _ in range(2):
                call, _ = lt.prepare(model, sample=batch, budget="100%", **OPTIONS)
                self.assertIs(session_of_model(model).graphs[0], lt.planned[-1])
            calls.append(call)
        with warnings.catch_warnings():
            warnings.simplefilter("error", loadline.LoadlineWarning)
            for call in calls:  # the code of one may serve the other
                with lt.virtual_device() as ledger:
                    call(batch).sum().backward()
                self.assertGreater(ledger.peak_bytes, 0)
                self.assertLessEqual(ledger.peak_bytes, lt.planned[-1].peak_bytes)

    def test_what_fails_leaves_nothing(self):
        model, call, batch = prepared()
        kept = lt.planned[-1]
        with self.assertRaises(loadline.Infeasible):
            lt.prepare(model, sample=batch, budget="1%", **OPTIONS)
        gc.collect()
        self.assertEqual([*lt.planned], [kept])
        self.assertEqual(len(live_sessions()), 1)


class Sessions(unittest.TestCase):
    def test_keep_the_last_graphs(self):
        model, session = Owner(), Session()
        session.belong_to(model)
        graphs = [Graph() for _ in range(KEPT + 3)]
        for graph in graphs:
            session.record(graph)
        self.assertEqual(session.graphs, graphs[3:])
        self.assertEqual(lt.planned[-KEPT:], graphs[3:])
        self.assertIs(lt.planned[-1], graphs[-1])

    def test_references_change_neither_keys_nor_guards(self):
        one, other = Session(), Session()
        self.assertEqual(one.reference, other.reference)
        self.assertEqual(hash(one.reference), hash(other.reference))
        self.assertEqual(repr(one.reference), repr(other.reference))
        self.assertEqual(pickle.dumps(one.reference), pickle.dumps(other.reference))
        self.assertIs(one.reference(), one)
        self.assertIs(copy.deepcopy(one.reference)(), one)
        reference = one.reference
        del one
        gc.collect()
        self.assertIsNone(reference())
        reference.record(Graph())  # no session: nobody to tell

    def test_of_one_call_of_compile_is_one(self):
        options, found = {}, []
        threads = [threading.Thread(
            target=lambda: found.append(session_of_options(options)))
            for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({id(session) for session in found}), 1)
        self.assertIsNot(session_of_options({}), found[0])

    def test_record_from_many_threads(self):
        model, session = Owner(), Session()
        session.belong_to(model)
        graphs = [[Graph() for _ in range(200)] for _ in range(8)]

        def record(mine):
            for graph in mine:
                session.record(graph)
                session.frame_number(0, mine)
                self.assertLessEqual(len(lt.planned), KEPT)

        threads = [threading.Thread(target=record, args=(mine,)) for mine in graphs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(session.graphs), KEPT)

    def test_models_prepared_in_two_threads_have_a_plan_each(self):
        torch._dynamo.reset()
        found, errors = {}, []

        def work(name, budget):
            try:
                model, batch = MODELS[name](), MODELS[name].batch()
                call, _ = lt.prepare(model, sample=batch, budget=budget, **OPTIONS)
                graph, = session_of_model(model).prepared.graphs
                with lt.virtual_device() as ledger:
                    call(*batch).backward()
                found[name] = budget, graph, ledger, call
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=case)
                   for case in (("mlp", "85%"), ("gpt", "80%"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        for budget, graph, ledger, _ in found.values():
            self.assertEqual(graph.options.budget, budget)
            self.assertEqual(ledger.peak_bytes, graph.peak_bytes)
            self.assertEqual(graph.measured_bytes, graph.peak_bytes)


class OneAtATime(unittest.TestCase):
    def test_two_threads_prepare_one_after_the_other(self):
        inside, most, errors = set(), [], []

        def note(*arguments):
            inside.add(threading.get_ident())
            most.append(len(inside))
            time.sleep(0.2)  # the other thread would be here meanwhile
            inside.discard(threading.get_ident())
            raise loadline.InvalidArgument("noted")

        def work():
            try:
                lt.prepare(torch.nn.Linear(2, 2), sample=torch.ones(1, 2), budget="100%")
            except BaseException as error:
                errors.append(str(error))

        with mock.patch.object(sys.modules["loadline.torch.session.prepare"],
                               "_check_arguments", note):
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual((most, errors), ([1, 1], ["noted", "noted"]))


class Tables(unittest.TestCase):
    def test_hold_nothing(self):
        table = WeakTable()
        thing = Owner()
        number = table.add(thing)
        self.assertIs(table[number], thing)
        self.assertNotEqual(table.reserve(), number)
        del thing
        gc.collect()
        self.assertIsNone(table.get(number))
        self.assertEqual(table.items(), [])
        table.remove(number)


class Voices(unittest.TestCase):
    def test_every_warning_has_the_packages_category(self):
        self.assertTrue(issubclass(loadline.LoadlineWarning, UserWarning))
        calls = 0
        package = pathlib.Path(loadline.__file__).parent
        for path in package.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == (
                        "warnings.warn"):
                    self.assertIn("LoadlineWarning", map(ast.unparse, node.args), path)
                    calls += 1
        self.assertGreater(calls, 5)

    def test_every_log_is_under_the_packages_name(self):
        with self.assertLogs("loadline", logging.INFO) as logs, recorded():
            kept = prepared()
        self.assertIn("keeping everything", "".join(logs.output))
        del kept


if __name__ == "__main__":
    unittest.main()
