"""Loadline where people train: Accelerate, PEFT, TRL, GANs, several optimizers, batches of
several sizes. Each trains with the bits that it has without Loadline, in its budget.
The Trainer and Lightning: torch_examples_test.py. Own checkpoints: torch_ways_test.py.
Limits of recompiling: torch_unplanned_test.py."""
import importlib.util
import os
import tempfile
import unittest
import warnings
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

import loadline
from loadline import torch as lt
from models import MODELS
from steps import same_bits
from training import COPIES, OPTIONS, wide_mlp


def needs(*names):
    missing = [name for name in names if not importlib.util.find_spec(name)]
    return unittest.skipIf(
        missing, f"no {', '.join(missing)}; tools/dev/setup/torch installs it")


def weights(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def made(name="mlp"):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, batch = MODELS[name](), MODELS[name].batch()
    return model, torch.optim.AdamW(model.parameters()), batch


@needs("accelerate")
class Accelerate(unittest.TestCase):
    def setUp(self):
        from accelerate import Accelerator
        self.accelerator = Accelerator(cpu=True)

    def train(self, model, optimizer, batch):
        with lt.virtual_device() as ledger:
            for _ in range(2):
                optimizer.zero_grad()
                self.accelerator.backward(model(*batch))
                optimizer.step()
        return ledger.peak_bytes

    def test_trains_the_same_prepared_before_or_after(self):
        model, optimizer, batch = made()
        self.train(*self.accelerator.prepare(model, optimizer), batch)
        expected = weights(model)
        for first in (True, False):
            with self.subTest(loadline_first=first):
                model, optimizer, batch = made()
                ours = {"sample": batch, "budget": "80%", **OPTIONS}
                if first:
                    call, optimizer = lt.prepare(model, optimizer, **ours)
                    call, optimizer = self.accelerator.prepare(call, optimizer)
                else:
                    call, optimizer = self.accelerator.prepare(model, optimizer)
                    call, optimizer = lt.prepare(call, optimizer, **ours)
                graph = lt.planned[-1]
                peak = self.train(call, optimizer, batch)
                self.assertTrue(same_bits(weights(model), expected))
                self.assertEqual({p.device.type for p in model.parameters()}, {"cpu"})
                self.assertLessEqual(peak, graph.plan.budget_bytes)
                self.assertLess(graph.plan.budget_bytes, graph.keep_everything_bytes)

    def test_clips_gradients_that_are_on_the_host(self):
        def train(call, model, optimizer):
            norms = []
            for _ in range(2):
                optimizer.zero_grad()
                self.accelerator.backward(call(*batch))
                norms.append(self.accelerator.clip_grad_norm_(
                    model.parameters(), 1e-3).clone())
                optimizer.step()
            return norms + weights(model)

        model, batch = wide_mlp()
        call, optimizer = self.accelerator.prepare(
            model, torch.optim.AdamW(model.parameters()))
        expected = train(call, model, optimizer)
        model, batch = wide_mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        call, optimizer = lt.prepare(
            model, optimizer, sample=batch, machine=COPIES, offload_gradients=True,
            budget=2 * sum(p.nbytes for p in model.parameters()), **OPTIONS)
        self.assertTrue(any(move.left for move in lt.planned[-1].moves.gradients))
        call, optimizer = self.accelerator.prepare(call, optimizer)
        self.assertTrue(same_bits(train(call, model, optimizer), expected))


def tiny_llama():
    import transformers
    torch._dynamo.reset()
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, use_cache=False,
        bos_token_id=0, eos_token_id=0, pad_token_id=0))


def lora():
    import peft
    return peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.0,
                           task_type="CAUSAL_LM")


@needs("peft", "transformers")
class Peft(unittest.TestCase):
    def test_trains_adapters_in_a_budget(self):
        import peft
        tokens = torch.randint(64, (8, 16), generator=torch.Generator().manual_seed(1))
        batch = {"input_ids": tokens, "labels": tokens}

        def train(budget):
            model = peft.get_peft_model(tiny_llama(), lora())
            optimizer = torch.optim.AdamW(
                p for p in model.parameters() if p.requires_grad)
            if budget:
                call, optimizer = lt.prepare(model, optimizer, sample=batch, budget=budget,
                                             **OPTIONS)
            else:
                call = torch.compile(model, backend="aot_eager", dynamic=False)
            with lt.virtual_device() as ledger:
                for _ in range(2):
                    optimizer.zero_grad()
                    call(**batch).loss.backward()
                    optimizer.step()
            return (weights(model), [*call.state_dict()], ledger.peak_bytes,
                    lt.planned[-1] if budget else None)

        expected, names, _, _ = train(None)
        found, found_names, peak, graph = train("70%")
        self.assertTrue(same_bits(found, expected))
        self.assertEqual(found_names, [name.removeprefix("_orig_mod.") for name in names])
        self.assertLessEqual(peak, graph.plan.budget_bytes)
        # Gradients of frozen weights are neither made nor planned.
        self.assertLess(graph.plan.budget_bytes, graph.keep_everything_bytes)


@needs("trl", "peft", "transformers", "datasets")
class Trl(unittest.TestCase):
    def test_fine_tunes_adapters_in_a_budget(self):
        import datasets
        import tokenizers
        import transformers
        import trl

        from loadline.torch.trainer import BudgetCallback

        words = tokenizers.Tokenizer(tokenizers.models.WordLevel(
            {str(i): i for i in range(64)}, unk_token="0"))
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=words, pad_token="0", eos_token="0", unk_token="0")
        graphs = []
        rows = torch.randint(1, 64, (16, 16), generator=torch.Generator().manual_seed(1))

        def train(*callbacks, **options):
            with tempfile.TemporaryDirectory() as folder:
                trainer = trl.SFTTrainer(
                    model=tiny_llama(), processing_class=tokenizer, peft_config=lora(),
                    train_dataset=datasets.Dataset.from_dict(
                        {"input_ids": rows.tolist()}),
                    callbacks=[*callbacks], args=trl.SFTConfig(
                        folder, max_steps=3, per_device_train_batch_size=4, logging_steps=1,
                        max_length=16, packing=False, report_to=[], use_cpu=True,
                        bf16=False, gradient_checkpointing=False, save_strategy="no",
                        disable_tqdm=True, seed=0, **options))
                trainer.train()
            if callbacks:
                graphs.extend(lt.planned)
            return ([entry["loss"] for entry in trainer.state.log_history
                     if "loss" in entry], weights(trainer.model))

        with mock.patch.dict(os.environ, HF_HUB_OFFLINE="1"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            losses, expected = train(torch_compile=True,
                                     torch_compile_backend="aot_eager")
            # Its fused head breaks the graph, which the warning says.
            with self.assertWarnsRegex(loadline.LoadlineWarning, "graph break"):
                found_losses, found = train(BudgetCallback(
                    "600KiB", inner="aot_eager", work_limit=20_000))
        self.assertEqual(losses, found_losses)
        self.assertTrue(same_bits(found, expected))
        for graph in graphs:
            self.assertLessEqual(graph.peak_bytes, graph.plan.budget_bytes)


class Loops(unittest.TestCase):
    def test_of_a_gan_with_two_budgets(self):
        def body(inputs, outputs):
            return nn.Sequential(nn.Linear(inputs, 64), nn.GELU(), nn.Linear(64, 64),
                                 nn.GELU(), nn.Linear(64, outputs))

        def train(budget):
            torch._dynamo.reset()
            torch.manual_seed(0)
            generator, critic = body(16, 32), body(32, 1)
            optimizers = [torch.optim.AdamW(m.parameters()) for m in (generator, critic)]
            make, judge = generator, critic
            noise, real = torch.randn(128, 16), torch.randn(128, 32)
            graphs = []
            if budget:
                def step(call):  # two forwards before their backward
                    (F.softplus(-call(real)).mean() + F.softplus(
                        call(torch.randn(128, 32))).mean()).backward()

                with torch.random.fork_rng():
                    make, optimizers[0] = lt.prepare(
                        generator, optimizers[0], sample=noise, budget=budget, **OPTIONS)
                    graphs.append(lt.planned[-1])
                    judge, optimizers[1] = lt.prepare(
                        critic, optimizers[1], sample=real, budget="2MiB", step_fn=step,
                        **OPTIONS)
                    graphs.append(lt.planned[-1])
            for _ in range(2):
                optimizers[1].zero_grad()
                (F.softplus(-judge(real)).mean()
                 + F.softplus(judge(make(noise).detach())).mean()).backward()
                optimizers[1].step()
                optimizers[0].zero_grad()
                F.softplus(-judge(make(noise))).mean().backward()
                optimizers[0].step()
            return weights(generator) + weights(critic), graphs

        expected, _ = train(None)
        with warnings.catch_warnings():
            warnings.simplefilter("error", loadline.LoadlineWarning)
            found, graphs = train("90%")
        self.assertTrue(same_bits(found, expected))
        self.assertEqual(len(graphs), 2)
        self.assertLess(graphs[0].plan.budget_bytes, graphs[0].keep_everything_bytes)

    def test_with_several_optimizers_count_the_state_of_all(self):
        def train(budget):
            model, _, batch = made()
            layers = [*model.layers]
            optimizers = [torch.optim.AdamW(nn.Sequential(*layers[:6]).parameters()),
                          torch.optim.SGD(nn.Sequential(*layers[6:]).parameters(),
                                          lr=0.1, momentum=0.9)]
            if budget:
                lt.compile_in_place(model, budget, optimizers=optimizers, **OPTIONS)
            with lt.virtual_device() as ledger:
                for _ in range(2):
                    model(*batch).backward()
                    for optimizer in optimizers:
                        optimizer.step()
                        optimizer.zero_grad()
            state = sum(tensor.nbytes for optimizer in optimizers
                        for values in optimizer.state.values()
                        for tensor in values.values()
                        if isinstance(tensor, torch.Tensor) and tensor.dim())
            return (weights(model), state, ledger.peak_bytes,
                    lt.planned[-1] if budget else None)

        expected, _, _, _ = train(None)
        found, state, peak, graph = train("1400KiB")
        self.assertTrue(same_bits(found, expected))
        self.assertGreaterEqual(graph.options.reserve_bytes, state)
        self.assertLessEqual(peak + state, 1400 << 10)

    def test_with_batches_of_several_sizes_have_a_plan_for_each(self):
        def train(budget):
            model, optimizer, (x,) = made()
            call, plans = model, []
            if budget:
                call, optimizer = lt.prepare(model, optimizer, sample=(x,), budget=budget,
                                             **OPTIONS)
            for size in (512, 300, 512, 40):
                optimizer.zero_grad()
                call(x[:size]).backward()
                optimizer.step()
            if budget:
                plans = [(g.plan.budget_bytes, g.peak_bytes) for g in lt.planned]
            return weights(model), plans[-3:]

        expected, _ = train(None)
        found, plans = train("75%")
        self.assertTrue(same_bits(found, expected))
        self.assertEqual(len({budget for budget, _ in plans}), 1)  # the first batch's bytes
        for budget, peak in plans:
            self.assertLessEqual(peak, budget)


if __name__ == "__main__":
    unittest.main()
