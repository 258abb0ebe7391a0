#!/usr/bin/env python3
"""The table of docs/pytorch_figures.md: do language models train on cards of several sizes?

    pytorch_estimates.py [--models 1B,3B,8B,14B]
        [--ways lora,full,backward,lora-parameters,parameters]
        [--sequences 2048,8192,32768]

Runs `loadline.torch.estimate` on the language models of `transformers` with Llama 3's shapes,
and one with Qwen 2.5's (14B), without weights, in bf16 with AdamW, one sequence a step: LoRA of
rank 16 on the attention's layers, every parameter, or every parameter with updates in the
backward; the last two also with parameters that may rest on the host. One line for each: the
least memory, and what a step takes longer within each card's memory than with everything kept;
"-": no plan. Times are those of the profile of --machine, for all card sizes.
Prints the seconds and the resident memory that each took.
"""
import argparse
import gc
import resource
import time

import torch
import transformers

import loadline
from loadline.torch.session.llama_shaped import Shape

SHAPES = {
    "1B": Shape(16, 2048, 8192, 32, 128256, 8, tied=True),
    "3B": Shape(28, 3072, 8192, 24, 128256, 8, tied=True),
    "8B": Shape(32, 4096, 14336, 32, 128256, 8),
    "14B": Shape(48, 5120, 13824, 40, 152064, 8, attention_bias=True),
}
WAYS = {"lora": "LoRA", "full": "full", "backward": "full, in the backward",
        "lora-parameters": "LoRA, parameters leave", "parameters": "full, parameters leave"}
CARDS_GIB = (8, 12, 16, 24, 48, 80)


def made(shape):
    """The class of transformers, on meta, in training mode."""
    kind = transformers.Qwen2Config if shape.attention_bias else transformers.LlamaConfig
    config = kind(
        num_hidden_layers=shape.layers, hidden_size=shape.width,
        intermediate_size=shape.feed_forward, num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads, vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied, max_position_embeddings=131_072, use_cache=False)
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).train()


def row(name, way, sequence, machine):
    torch._dynamo.reset()
    gc.collect()
    start, cpu = time.perf_counter(), time.process_time()
    tokens = torch.zeros(1, sequence, dtype=torch.long)
    found = loadline.torch.estimate(
        made(SHAPES[name]), torch.optim.AdamW,
        sample={"input_ids": tokens, "labels": tokens}, machine=machine,
        lora=16 if way.startswith("lora") else None, update_in_backward=way == "backward",
        offload_parameters=way.endswith("parameters"),
        budgets=["smallest", *(f"{gib}GiB" for gib in CARDS_GIB)])
    smallest, *cards = found.rows
    cells = [f"{100 * one.slower:.1f} %" if one.plan else "-" for one in cards]
    gib = (smallest.peak_bytes + found.outside_bytes) / 2**30
    least = f"{gib:.1f}" if smallest.plan else "-"
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {WAYS[way]} | {sequence:,} | {least} | "
          + " | ".join(cells) + f" | {time.process_time() - cpu:.0f} |",
          f"  wall {time.perf_counter() - start:.0f} s, most resident so far {rss:.0f} MiB",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--ways", default="lora,full,backward")
    parser.add_argument("--sequences", default="2048,8192,32768")
    parser.add_argument("--machine", default="rtx-4090")
    given = parser.parse_args()
    print("| model | trained | tokens | least GiB | "
          + " | ".join(f"{gib} GiB" for gib in CARDS_GIB) + " | CPU s |")
    for name in given.models.split(","):
        for way in given.ways.split(","):
            for sequence in map(int, given.sequences.split(",")):
                row(name, way, sequence, given.machine)


if __name__ == "__main__":
    main()
