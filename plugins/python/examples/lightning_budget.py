"""A tiny network under Lightning's Trainer, inside 80 % of its memory.

    python lightning_budget.py [BUDGET [MACHINE]]    without a budget: Lightning alone

MACHINE is a profile, as `loadline doctor` writes it: where it can copy, the plan may
put optimizer state on the host.
"""
import logging
import sys

import lightning
import loadline
import torch
from torch import nn

budget = sys.argv[1] if len(sys.argv) > 1 else None
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(*[
            layer for _ in range(4) for layer in (nn.Linear(32, 32), nn.GELU())])
        self.losses = []

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.model(x), y)
        self.log("loss", loss)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


torch.manual_seed(0)
module = Regression()
data = torch.utils.data.TensorDataset(torch.randn(1024, 32), torch.randn(1024, 32))
callbacks = []
if budget:
    from loadline.torch.lightning import BudgetCallback

    options = {"machine": sys.argv[2]} if len(sys.argv) > 2 else {}
    callbacks = [BudgetCallback(budget, inner="aot_eager", **options)]
trainer = lightning.Trainer(
    max_steps=4, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, callbacks=callbacks)
trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=256))
print("losses", module.losses)
print("weights", sum(p.double().sum().item() for p in module.parameters()))
if budget:
    print(loadline.torch.report())
