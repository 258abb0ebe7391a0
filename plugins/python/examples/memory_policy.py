"""A memory policy as torchtitan's parallelize functions apply them: the model is
compiled in place within a budget, then sharded; loop and optimizer know nothing.

    torchrun --nproc-per-node 2 memory_policy.py [BUDGET]
"""
import sys

import loadline
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block(32) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def parallelize(model, budget):
    """Where torchtitan applies activation checkpointing, compile and FSDP."""
    if budget:
        from loadline.torch import compile_in_place

        compile_in_place(model, budget, inner="aot_eager")
    fully_shard(model)
    return model


dist.init_process_group("gloo")
torch.manual_seed(0)
model = parallelize(Model(), sys.argv[1] if len(sys.argv) > 1 else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(dist.get_rank())
x = torch.randn(256, 32)
losses = []
for _ in range(3):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
if dist.get_rank() == 0:
    print("losses", losses)
    if len(sys.argv) > 1:
        print(loadline.torch.report())
# Gloo's threads may still hold tensors of the last collective, which they free with
# the interpreter's help. So let them finish before the interpreter ends.
dist.barrier()
dist.destroy_process_group()
