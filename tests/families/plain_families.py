"""Models written with PyTorch's own layers."""
import torch
from torch import nn

from family import Family, first_tensor, image, numbers, tokens


class Recurrent(nn.Module):
    """A recurrent network over tokens that tags each of them."""

    def __init__(self, kind, **options):
        super().__init__()
        self.embedding = nn.Embedding(40, 16)
        self.layers = kind(16, 24, batch_first=True, **options)
        self.head = nn.Linear(48 if options.get("bidirectional") else 24, 10)

    def forward(self, x):
        return self.head(self.layers(self.embedding(x))[0])


class Recommender(nn.Module):
    """Embeddings of users and items, numbers beside them, and a factorization
    machine's products of all pairs, as in DLRM."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 8) for n in (50, 30, 20))
        self.bottom = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))
        self.top = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, categories, features):
        dense = self.bottom(features)
        rows = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        all_rows = torch.stack([dense, *rows], dim=1)
        products = torch.bmm(all_rows, all_rows.transpose(1, 2))
        i, j = torch.tril_indices(4, 4, offset=-1)
        return self.top(torch.cat([dense, products[:, i, j]], dim=1))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(),
                         nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def transformer():
    return nn.TransformerEncoder(
        nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2,
        enable_nested_tensor=False)


def bag():
    return nn.Sequential(nn.EmbeddingBag(40, 16), nn.Linear(16, 10))


sentence = {"tokens": tokens(40, 12)}

FAMILIES = [
    Family("mlp_784", "torch", mlp, {"image": image(1, 28, 28)}),
    Family("rnn", "torch", lambda: Recurrent(nn.RNN), sentence),
    Family("lstm", "torch", lambda: Recurrent(nn.LSTM, num_layers=2), sentence),
    Family("lstm_bidirectional", "torch",
           lambda: Recurrent(nn.LSTM, bidirectional=True), sentence),
    Family("gru", "torch", lambda: Recurrent(nn.GRU, num_layers=2), sentence),
    Family("transformer_encoder", "torch", transformer,
           {"sequence": numbers(10, 32)}, loss="mse"),
    Family("recommender", "torch", Recommender,
           {"categories": tokens(20, 3), "features": numbers(6)},
           first_tensor, loss="bce_with_logits"),
    Family("embedding_bag", "torch", bag, sentence),
]
