"""A tiny GPT-2 under Hugging Face's Trainer, inside 85 % of its memory.

    python trainer_budget.py [BUDGET]        without one: Trainer alone
"""
import sys
import tempfile

import loadline
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

budget = sys.argv[1] if len(sys.argv) > 1 else None
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(
    vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4,
    attn_implementation="eager", bos_token_id=0, eos_token_id=0, use_cache=False))
texts = torch.randint(64, (16, 32))
data = [{"input_ids": text, "labels": text} for text in texts]
callbacks = []
if budget:
    from loadline.torch.trainer import BudgetCallback

    callbacks = [BudgetCallback(budget, inner="aot_eager")]
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=model, train_dataset=data, callbacks=callbacks,
        args=TrainingArguments(
            folder, max_steps=3, per_device_train_batch_size=4, logging_steps=1,
            gradient_accumulation_steps=2, report_to=[], use_cpu=True,
            save_strategy="no", disable_tqdm=True))
    trainer.train()
print("losses", [entry["loss"] for entry in trainer.state.log_history
                 if "loss" in entry])
print("weights", sum(p.double().sum().item() for p in model.parameters()))
if budget:
    print(loadline.torch.report())
