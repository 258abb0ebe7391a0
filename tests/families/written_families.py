"""Models as people write them for themselves, which none of the libraries has."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from family import Family, image, numbers, tokens

LIBRARY = "written"


class Upsampler(nn.Module):
    """Segments with an encoder and F.interpolate, as in many a notebook."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1),
                                   nn.Conv2d(8, 16, 3, padding=1),
                                   nn.Conv2d(16, 16, 3, padding=1)])
        self.up = nn.ModuleList([nn.Conv2d(32, 8, 3, padding=1),
                                 nn.Conv2d(16, 8, 3, padding=1)])
        self.head = nn.Conv2d(8, 5, 1)

    def forward(self, x):
        skips = []
        for conv in self.down:
            x = F.relu(conv(x))
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = skips.pop()
        for conv in self.up:
            skip = skips.pop()
            x = F.interpolate(x, size=skip.shape[-2:], mode="bilinear",
                              align_corners=False)
            x = F.leaky_relu(conv(torch.cat([x, skip], dim=1)), 0.1)
        return self.head(F.interpolate(x, scale_factor=2, mode="nearest"))[:, :, ::2]


class WaveNet(nn.Module):
    """Dilated causal convolutions with gates, residuals and skips."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 12)
        self.gates = nn.ModuleList(nn.Conv1d(12, 24, 2, dilation=2**i)
                                   for i in range(4))
        self.residuals = nn.ModuleList(nn.Conv1d(12, 12, 1) for _ in range(4))
        self.skips = nn.ModuleList(nn.Conv1d(12, 16, 1) for _ in range(4))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(16, 16, 1), nn.ReLU(),
                                  nn.Conv1d(16, 32, 1))

    def forward(self, x):
        x = self.embedding(x).transpose(1, 2)
        total = 0
        for gate, residual, skip in zip(self.gates, self.residuals, self.skips):
            both = gate(F.pad(x, (gate.dilation[0], 0)))
            value, opened = both.chunk(2, dim=1)
            z = torch.tanh(value) * torch.sigmoid(opened)
            total = total + skip(z)
            x = x + residual(z)
        return self.head(total).transpose(1, 2)


class Siamese(nn.Module):
    """Two images through one network, and the contrastive loss of their distance."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 5), nn.PReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 5),
            nn.PReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 16))

    def forward(self, left, right, same):
        a, b = self.body(left), self.body(right)
        distance = F.pairwise_distance(a, b)
        apart = torch.clamp(1.0 - distance, min=0.0)
        return torch.mean(same * distance**2 + (1 - same) * apart**2)


class Translator(nn.Module):
    """Sequence to sequence with GRU cells and additive attention, step by step."""

    def __init__(self):
        super().__init__()
        self.source = nn.Embedding(30, 12)
        self.target = nn.Embedding(25, 12)
        self.encoder = nn.GRU(12, 16, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(32, 24)
        self.key = nn.Linear(32, 20)
        self.query = nn.Linear(24, 20, bias=False)
        self.score = nn.Linear(20, 1, bias=False)
        self.cell = nn.GRUCell(12 + 32, 24)
        self.head = nn.Linear(24 + 32, 25)

    def forward(self, source, words):
        memory, last = self.encoder(self.source(source))
        state = torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=-1)))
        keys = self.key(memory)
        embedded = self.target(words)
        outputs = []
        for t in range(words.shape[1]):
            scores = self.score(torch.tanh(keys + self.query(state).unsqueeze(1)))
            weights = F.softmax(scores.squeeze(-1), dim=-1)
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            state = self.cell(torch.cat([embedded[:, t], context], dim=-1), state)
            outputs.append(self.head(torch.cat([state, context], dim=-1)))
        return torch.stack(outputs, dim=1)


class GraphNetwork(nn.Module):
    """Messages along edges, added up at their targets, and a mean over nodes."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(5, 16)
        self.message = nn.ModuleList(nn.Linear(32, 16) for _ in range(2))
        self.update = nn.ModuleList(nn.Linear(32, 16) for _ in range(2))
        self.head = nn.Linear(16, 10)

    def forward(self, nodes, sources, targets):
        h = F.relu(self.encode(nodes))
        for message, update in zip(self.message, self.update):
            wide = sources.unsqueeze(-1).expand(-1, -1, h.shape[-1])
            into = targets.unsqueeze(-1).expand(-1, -1, h.shape[-1])
            ends = torch.cat([torch.gather(h, 1, wide), torch.gather(h, 1, into)], -1)
            sums = torch.zeros_like(h).scatter_add(1, into, F.relu(message(ends)))
            h = h + F.relu(update(torch.cat([h, sums], dim=-1)))
        return self.head(h.mean(dim=1))


class RadianceField(nn.Module):
    """Sines and cosines of positions, a skip, density and colour, composited."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(4) * math.pi)
        self.first = nn.Linear(27, 32)
        self.second = nn.Linear(32 + 27, 32)
        self.density = nn.Linear(32, 1)
        self.colour = nn.Linear(32, 3)

    def encode(self, x):
        angles = x.unsqueeze(-1) * self.bands
        return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)

    def forward(self, points, steps):
        x = self.encode(points)
        h = F.relu(self.second(torch.cat([F.relu(self.first(x)), x], dim=-1)))
        alpha = 1 - torch.exp(-F.softplus(self.density(h).squeeze(-1)) * steps)
        through = torch.exp(torch.cumsum(torch.log(1 - alpha + 1e-10), dim=-1))
        through = torch.cat([torch.ones_like(through[:, :1]), through[:, :-1]], -1)
        weights = alpha * through
        return (weights.unsqueeze(-1) * torch.sigmoid(self.colour(h))).sum(dim=1)


class SuperResolution(nn.Module):
    """ESPCN: sub-pixel convolution, on top of the bicubically enlarged image."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 8, 3, padding=1),
            nn.Tanh(), nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, image):
        wide = F.interpolate(image, scale_factor=2, mode="bicubic",
                             align_corners=False)
        return (wide + self.body(image)).clamp(-3, 3)


class MixtureOfSoftmax(nn.Module):
    """An LSTM language model whose probabilities are a mixture of softmaxes."""

    def __init__(self, vocabulary=30, width=16, count=3):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.prior = nn.Linear(width, count, bias=False)
        self.latent = nn.Linear(width, count * width)
        self.decoder = nn.Linear(width, vocabulary)
        self.count, self.width = count, width

    def forward(self, tokens, labels):
        h, _ = self.lstm(self.embedding(tokens))
        prior = F.softmax(self.prior(h), dim=-1)
        latent = torch.tanh(self.latent(h)).view(*h.shape[:2], self.count, self.width)
        each = F.softmax(self.decoder(latent), dim=-1)
        mixed = (prior.unsqueeze(-1) * each).sum(dim=2)
        return F.nll_loss(torch.log(mixed + 1e-8).flatten(0, 1), labels.flatten())


class Induced(nn.Module):
    """Attention through inducing points (set transformer)."""

    def __init__(self, width, points):
        super().__init__()
        self.inducing = nn.Parameter(torch.randn(1, points, width))
        self.into = nn.MultiheadAttention(width, 4, batch_first=True)
        self.back = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        points = self.inducing.expand(x.shape[0], -1, -1)
        h = points + self.into(points, x, x, need_weights=False)[0]
        return self.norm(x + self.back(x, h, h, need_weights=False)[0])


class SetTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(4, 16)
        self.blocks = nn.Sequential(Induced(16, 5), Induced(16, 5))
        self.seeds = nn.Parameter(torch.randn(1, 2, 16))
        self.pool = nn.MultiheadAttention(16, 4, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, points):
        x = self.blocks(self.encode(points))
        seeds = self.seeds.repeat(x.shape[0], 1, 1)
        pooled, _ = self.pool(seeds, x, x)
        return self.head(pooled.flatten(1))


class Capsules(nn.Module):
    """Routing by agreement between two layers of capsules; margin loss."""

    def __init__(self, rounds=3):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 9)
        self.primary = nn.Conv2d(16, 16, 9, stride=2)
        self.weight = nn.Parameter(0.1 * torch.randn(1, 144, 5, 8, 4))
        self.rounds = rounds

    @staticmethod
    def squash(s, dim=-1):
        square = (s**2).sum(dim=dim, keepdim=True)
        return square / (1 + square) * s / torch.sqrt(square + 1e-9)

    def forward(self, image, label):
        x = self.primary(F.relu(self.conv(image)))
        u = self.squash(x.view(x.shape[0], 4, 4, -1).permute(0, 3, 1, 2)
                        .reshape(x.shape[0], -1, 4))
        votes = torch.matmul(self.weight, u[:, :, None, :, None]).squeeze(-1)
        logits = torch.zeros_like(votes[..., 0])
        for i in range(self.rounds):
            c = F.softmax(logits, dim=2).unsqueeze(-1)
            v = self.squash((c * votes).sum(dim=1))
            if i < self.rounds - 1:
                logits = logits + (votes.detach() * v.unsqueeze(1)).sum(dim=-1)
        length = v.norm(dim=-1)
        wanted = F.one_hot(label, 5).to(length.dtype)
        loss = (wanted * F.relu(0.9 - length)**2
                + 0.5 * (1 - wanted) * F.relu(length - 0.1)**2)
        return loss.sum(dim=1).mean()


class VectorQuantized(nn.Module):
    """The nearest code of a codebook, straight through, with both of its losses."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(),
                                     nn.Conv2d(8, 6, 4, 2, 1))
        self.codebook = nn.Embedding(16, 6)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(6, 8, 4, 2, 1), nn.ReLU(),
                                     nn.ConvTranspose2d(8, 3, 4, 2, 1))

    def forward(self, image):
        z = self.encoder(image).permute(0, 2, 3, 1)
        flat = z.reshape(-1, 6)
        codes = self.codebook.weight
        distances = (flat.pow(2).sum(1, keepdim=True) - 2 * flat @ codes.t()
                     + codes.pow(2).sum(1))
        q = self.codebook(distances.argmin(dim=1)).view(z.shape)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        through = z + (q - z).detach()
        return F.mse_loss(self.decoder(through.permute(0, 3, 1, 2)), image) + loss


class Denoiser(nn.Module):
    """A small diffusion U-Net with embeddings of the time, and its own loss."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.down = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(32, 32, 3, padding=1)
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.last = nn.Conv2d(32, 3, 3, padding=1)
        self.norms = nn.ModuleList([nn.GroupNorm(4, 16), nn.GroupNorm(8, 32)])
        self.shifts = nn.ModuleList([nn.Linear(32, 32), nn.Linear(32, 64)])
        betas = torch.linspace(1e-4, 0.02, 100)
        self.register_buffer("kept", torch.cumprod(1 - betas, dim=0))

    def embed(self, t):
        angles = t[:, None] * torch.exp(-math.log(1e4) * torch.arange(8) / 8)
        return self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))

    def modulate(self, i, x, t):
        scale, shift = self.shifts[i](t)[:, :, None, None].chunk(2, dim=1)
        return F.silu(self.norms[i](x) * (1 + scale) + shift)

    def forward(self, image, noise, t):
        kept = self.kept[t].view(-1, 1, 1, 1)
        x = kept.sqrt() * image + (1 - kept).sqrt() * noise
        e = self.embed(t.float())
        first = self.modulate(0, self.first(x), e)
        h = self.modulate(1, self.middle(self.down(first)), e)
        found = self.last(torch.cat([self.up(h), first], dim=1))
        return F.mse_loss(found, noise)


class Tabular(nn.Module):
    """Categories and numbers as tokens of a transformer, and two heads."""

    def __init__(self, sizes=(7, 12, 30)):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 16) for n in sizes)
        self.scale = nn.Parameter(torch.randn(4, 16))
        self.offset = nn.Parameter(torch.randn(4, 16))
        self.missing = nn.Parameter(torch.randn(16))
        self.cls = nn.Parameter(torch.zeros(1, 1, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classes, self.value = nn.Linear(16, 5), nn.Linear(16, 1)

    def forward(self, region, kind, day, numbers, label, amount):
        rows = [table(x) for table, x in zip(self.tables, (region, kind, day))]
        known = numbers.unsqueeze(-1) * self.scale + self.offset
        known = torch.where(numbers.unsqueeze(-1) > 1.0, self.missing, known)
        x = torch.cat([self.cls.expand(region.shape[0], -1, -1),
                       torch.stack(rows, dim=1), known], dim=1)
        h = self.body(x)[:, 0]
        return (F.cross_entropy(self.classes(h), label)
                + 0.5 * (self.value(h).squeeze(-1) - amount).abs().mean())


class Contrastive(nn.Module):
    """Two encoders, cosine similarities, and a cross-entropy of both directions."""

    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.SiLU(),
                                   nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                   nn.Linear(8, 12))
        self.table = nn.Embedding(40, 16)
        self.text = nn.Linear(16, 12)
        self.temperature = nn.Parameter(torch.tensor(1.5))

    def forward(self, image, text):
        a = F.normalize(self.image(image), dim=-1)
        b = F.normalize(self.text(self.table(text).amax(dim=1)), dim=-1)
        logits = self.temperature.exp() * a @ b.t()
        wanted = torch.arange(a.shape[0])
        return (F.cross_entropy(logits, wanted)
                + F.cross_entropy(logits.t(), wanted)) / 2


class TwoHeads(nn.Module):
    """Two heads of one body, whose losses have learned weights; weight norm, instance
    norm, einsum, a maximum over adaptive windows and standard deviations."""

    def __init__(self):
        super().__init__()
        self.stem = nn.utils.parametrizations.weight_norm(nn.Conv1d(6, 16, 3))
        self.mix = nn.Parameter(torch.randn(16, 16) / 4)
        self.norm = nn.InstanceNorm1d(16, affine=True)
        self.depth, self.label = nn.Linear(16, 1), nn.Linear(16, 4)
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, signal, label, depth):
        x = F.elu(self.stem(signal))
        x = x + torch.einsum("bct,cd->bdt", self.norm(x), self.mix)
        x = F.adaptive_max_pool1d(x, 4)
        a = F.cross_entropy(self.label(x.mean(dim=-1)), label)
        b = F.mse_loss(self.depth(x.std(dim=-1)).squeeze(-1), depth)
        weights = torch.exp(-self.log_variance)
        return weights[0] * a + weights[1] * b + self.log_variance.sum()


def one_number(low=0.0, high=1.0):
    return lambda n, g: low + (high - low) * torch.rand(n, generator=g)


def category(count, *shape):
    return lambda n, g: torch.randint(count, (n, *shape), generator=g)


FAMILIES = [
    Family("interpolating_cnn", LIBRARY, Upsampler, {"image": image(3, 24, 20)},
           loss="mse"),
    Family("wavenet", LIBRARY, WaveNet, {"tokens": tokens(32, 24)}),
    Family("siamese", LIBRARY, Siamese,
           {"left": image(1, 20, 20), "right": image(1, 20, 20),
            "same": lambda n, g: torch.randint(2, (n,), generator=g).float()},
           loss="model"),
    Family("gru_attention", LIBRARY, Translator,
           {"source": tokens(30, 7), "words": tokens(25, 5)}),
    Family("graph_scatter", LIBRARY, GraphNetwork,
           {"nodes": numbers(9, 5), "sources": category(9, 20),
            "targets": category(9, 20)}),
    Family("nerf", LIBRARY, RadianceField,
           {"points": numbers(12, 3),
            "steps": lambda n, g: 0.1 + torch.rand(n, 12, generator=g)}, loss="mse"),
    Family("pixel_shuffle", LIBRARY, SuperResolution, {"image": image(3, 12, 12)},
           loss="mse"),
    Family("mixture_of_softmax", LIBRARY, MixtureOfSoftmax,
           {"tokens": tokens(30, 8), "labels": tokens(30, 8)}, loss="model"),
    Family("set_transformer", LIBRARY, SetTransformer, {"points": numbers(11, 4)}),
    Family("capsules", LIBRARY, Capsules,
           {"image": image(1, 28, 28), "label": category(5)}, loss="model"),
    Family("vector_quantized", LIBRARY, VectorQuantized, {"image": image(3, 16, 16)},
           loss="model"),
    Family("denoiser", LIBRARY, Denoiser,
           {"image": image(3, 16, 16), "noise": image(3, 16, 16), "t": category(100)},
           loss="model"),
    Family("tabular_transformer", LIBRARY, Tabular,
           {"region": category(7), "kind": category(12), "day": category(30),
            "numbers": numbers(4), "label": category(5), "amount": one_number()},
           loss="model"),
    Family("contrastive", LIBRARY, Contrastive,
           {"image": image(3, 16, 16), "text": tokens(40, 6)}, loss="model"),
    Family("two_heads", LIBRARY, TwoHeads,
           {"signal": numbers(6, 18), "label": category(4), "depth": one_number()},
           loss="model"),
]
