"""Models of papers, written small: learned single numbers, fixed filters, hashes,
routing with a capacity, sorting by buckets."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from family import Family, image, numbers

LIBRARY = "papers"


def category(count, *shape):
    return lambda n, g: torch.randint(count, (n, *shape), generator=g)


def unit(*shape):
    return lambda n, g: torch.rand(n, *shape, generator=g)


def flag(*shape):
    return lambda n, g: (torch.rand(n, *shape, generator=g) < 0.4).float()


class Isomorphism(nn.Module):
    """A graph isomorphism network with a learned eps; edges are pairs of indices."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.e = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width),
                                 nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, 3)

    def forward(self, x, sender, receiver, keep):
        x = self.first(x)
        batch, nodes, width = x.shape
        sent = x.gather(1, sender.unsqueeze(-1).expand(-1, -1, width)).relu()
        to = receiver.unsqueeze(-1).expand(-1, -1, width)
        x = (1 + self.e) * x + torch.zeros_like(x).scatter_add(1, to, sent)
        x = self.mlp(x.reshape(batch * nodes, width)).view(batch, nodes, width)
        total = keep.sum(1, keepdim=True).clamp(min=1)
        return self.head((x * keep.unsqueeze(-1)).sum(1) / total)


class StyleGenerator(nn.Module):
    """StyleGAN2's modulated convolution, noise of a learned strength, and its blur."""

    def __init__(self, width=4, latent=5):
        super().__init__()
        self.style = nn.Linear(latent, width)
        self.weight = nn.Parameter(torch.randn(1, 6, width, 3, 3))
        self.start = nn.Parameter(torch.randn(1, width, 4, 4))
        self.ns = nn.Parameter(torch.zeros(1))
        self.rgb = nn.Conv2d(6, 3, 1)
        self.register_buffer("k", torch.tensor([[1.0, 3, 3, 1]]) / 8)

    def forward(self, latent, noise):
        latent = latent * torch.rsqrt(latent.square().mean(1, keepdim=True) + 1e-8)
        batch, style = latent.shape[0], self.style(latent) + 1
        weight = self.weight / 6 * style[:, None, :, None, None]
        scale = torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        patches = F.unfold(self.start.expand(batch, -1, -1, -1), 3, padding=1)
        x = ((weight * scale).flatten(2) @ patches).view(batch, 6, 4, 4)
        x = F.leaky_relu(x + self.ns * noise, 0.2) * math.sqrt(2)
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        blur = (self.k.t() @ self.k)[None, None].repeat(6, 1, 1, 1)
        x = F.conv2d(F.pad(x, (2, 1, 2, 1)), blur, groups=6)
        return self.rgb(x).flatten(1)


class KeyPoints(nn.Module):
    """Spatial softmax with a learned temperature, wing loss and entropy."""

    def __init__(self):
        super().__init__()
        self.maps = nn.Conv2d(3, 4, 3, padding=1)
        self.t = nn.Parameter(torch.ones(1))

    def forward(self, x, points):
        x = self.maps(x)
        batch, count, height, width = x.shape
        share = (x.flatten(2) / self.t.clamp(min=0.1)).softmax(-1)
        share = share.view(batch, count, height, width)
        found = torch.stack([(share.sum(2) * torch.linspace(-1, 1, width)).sum(-1),
                             (share.sum(3) * torch.linspace(-1, 1, height)).sum(-1)], -1)
        off = (found - points).abs()
        wing = torch.where(off < 0.5, torch.log1p(off / 0.2), off - 0.5 + math.log(3.5))
        entropy = -(share * torch.log(share + 1e-9)).sum((2, 3))
        return wing.mean() + 0.01 * entropy.mean()


class HashGrid(nn.Module):
    """Instant-NGP: hashed corners of grids, and weights of trilinear interpolation."""

    def __init__(self, size=32, features=2, levels=2):
        super().__init__()
        self.tables = nn.ParameterList(0.1 * torch.randn(size, features)
                                       for _ in range(levels))
        self.mlp = nn.Sequential(nn.Linear(features * levels, 8), nn.ReLU(),
                                 nn.Linear(8, 1))
        self.register_buffer("corners", torch.tensor(
            [[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]))
        self.register_buffer("primes", torch.tensor([1, 2654435761, 805459861]))

    def forward(self, at):
        found = []
        for level, table in enumerate(self.tables):
            scaled = at * (4 * 2 ** level)
            low = scaled.floor()
            corners = low.long()[:, None] + self.corners
            rows = (corners * self.primes).sum(-1) % table.shape[0]
            inside = (scaled - low)[:, None]
            weight = torch.where(self.corners == 1, inside, 1 - inside).prod(-1)
            found.append((table[rows] * weight.unsqueeze(-1)).sum(1))
        return self.mlp(torch.cat(found, -1))


class CapacityExperts(nn.Module):
    """GShard: two experts a token, at most `capacity` tokens an expert, and the loss
    that balances them."""

    def __init__(self, width=6, experts=4, capacity=5):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(0.3 * torch.randn(experts, width, 8))
        self.down = nn.Parameter(0.3 * torch.randn(experts, 8, width))
        self.experts, self.capacity = experts, capacity

    def places(self, chosen, place):
        fits = chosen * (place < self.capacity)
        place = place.long().clamp(0, self.capacity - 1)
        return fits.unsqueeze(-1) * F.one_hot(place, self.capacity).float()

    def forward(self, x, wanted):
        share = self.gate(x).softmax(-1)
        weight, index = share.topk(2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        first, second = F.one_hot(index, self.experts).float().unbind(2)
        place = (second.cumsum(1) - 1 + first.sum(1, keepdim=True)) * second
        combine = (weight[..., 0, None, None]
                   * self.places(first, (first.cumsum(1) - 1) * first)
                   + weight[..., 1, None, None] * self.places(second, place))
        sent = torch.einsum("btec,btd->becd", (combine > 0).float(), x)
        hidden = torch.einsum("becd,edh->bech", sent, self.up).relu()
        done = torch.einsum("bech,ehd->becd", hidden, self.down)
        y = torch.einsum("btec,becd->btd", combine, done)
        balance = (share.mean((0, 1)) * first.mean((0, 1))).sum() * self.experts
        return F.mse_loss(y, wanted) + 0.01 * balance


class BucketAttention(nn.Module):
    """Reformer: buckets by rotations, attention among sorted neighbours."""

    def __init__(self, width=8, chunk=4):
        super().__init__()
        self.query, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, 3)
        self.chunk = chunk
        self.register_buffer("rotation", torch.randn(width, 2))

    def forward(self, x):
        batch, length, width = x.shape
        query, value = self.query(x), self.value(x)
        turned = query.detach() @ self.rotation
        bucket = torch.cat([turned, -turned], -1).argmax(-1)
        order = (bucket * length + torch.arange(length)).argsort(-1)

        def sort(values, index):
            return values.gather(1, index.unsqueeze(-1).expand(-1, -1, width))

        def with_previous(values):
            return torch.cat([values, torch.roll(values, 1, 1)], 2)

        q = sort(query, order).view(batch, -1, self.chunk, width)
        v = sort(value, order).view(batch, -1, self.chunk, width)
        keys = with_previous(F.normalize(q, dim=-1))
        scores = q @ keys.transpose(-1, -2) / math.sqrt(width)
        y = (scores.softmax(-1) @ with_previous(v)).reshape(batch, length, width)
        return self.head(sort(y, order.argsort(-1)))


FAMILIES = [
    Family("isomorphism", LIBRARY, Isomorphism,
           {"x": numbers(6, 4), "sender": category(6, 9), "receiver": category(6, 9),
            "keep": flag(6)}),
    Family("style_generator", LIBRARY, StyleGenerator,
           {"latent": numbers(5), "noise": image(1, 4, 4)}, loss="mse"),
    Family("key_points", LIBRARY, KeyPoints,
           {"x": image(3, 6, 7), "points": numbers(4, 2)}, loss="model"),
    Family("hash_grid", LIBRARY, HashGrid, {"at": unit(3)}, loss="mse", batch=8),
    Family("capacity_experts", LIBRARY, CapacityExperts,
           {"x": numbers(8, 6), "wanted": numbers(8, 6)}, loss="model"),
    Family("bucket_attention", LIBRARY, BucketAttention, {"x": numbers(8, 8)}),
]
