"""Small models in the style of notebooks, one for each way of writing that the other
lists lack."""
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from family import Family, image, numbers, padding, tokens

LIBRARY = "notebooks"


class BagRecommender(nn.Module):
    """Bags of items of fixed length, averaged with weights, and factors of a user."""

    def __init__(self):
        super().__init__()
        self.items = nn.EmbeddingBag(40, 8, mode="sum")
        self.users = nn.Embedding(20, 8)
        self.bias = nn.Embedding(20, 1)

    def forward(self, user, items):
        bag = self.items(items) / items.shape[1]
        return (bag * self.users(user)).sum(-1) + self.bias(user).squeeze(-1)


class TemporalBlock(nn.Module):
    """Of a TCN: weight norm, causal padding that is chomped off."""

    def __init__(self, n_in, n_out, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.a = parametrizations.weight_norm(
            nn.Conv1d(n_in, n_out, 3, padding=self.pad, dilation=dilation))
        self.b = parametrizations.weight_norm(
            nn.Conv1d(n_out, n_out, 3, padding=self.pad, dilation=dilation))
        self.down = nn.Conv1d(n_in, n_out, 1) if n_in != n_out else None

    def forward(self, x):
        y = F.relu(self.a(x)[:, :, :-self.pad].contiguous())
        y = F.relu(self.b(y)[:, :, :-self.pad].contiguous())
        return F.relu(y + (x if self.down is None else self.down(x)))


class TemporalNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(TemporalBlock(3, 8, 1), TemporalBlock(8, 8, 2),
                                    TemporalBlock(8, 8, 4))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.blocks(x)[:, :, -1])


class AttentionGate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Sequential(nn.Conv2d(width, width // 2, 1),
                                  nn.BatchNorm2d(width // 2))
        self.skip = nn.Sequential(nn.Conv2d(width, width // 2, 1, bias=False),
                                  nn.BatchNorm2d(width // 2))
        self.psi = nn.Sequential(nn.Conv2d(width // 2, 1, 1), nn.BatchNorm2d(1),
                                 nn.Sigmoid())

    def forward(self, gate, skip):
        return skip * self.psi(F.relu(self.gate(gate) + self.skip(skip)))


def twice(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out),
                         nn.ReLU(inplace=True), nn.Conv2d(n_out, n_out, 3, padding=1),
                         nn.BatchNorm2d(n_out), nn.ReLU(inplace=True))


class GatedUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = twice(3, 8), twice(8, 16), twice(16, 32)
        self.up_two = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.up_one = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.gate_two, self.gate_one = AttentionGate(16), AttentionGate(8)
        self.join_two, self.join_one = twice(32, 16), twice(16, 8)
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        one = self.one(x)
        two = self.two(F.max_pool2d(one, 2))
        x = self.up_two(self.three(F.max_pool2d(two, 2)))
        x = self.join_two(torch.cat((self.gate_two(x, two), x), dim=1))
        x = self.up_one(x)
        x = self.join_one(torch.cat((self.gate_one(x, one), x), dim=1))
        return self.head(x)


class Variational(nn.Module):
    """An autoencoder whose noise is an input, so that both draw the same."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ELU())
        self.mean, self.log_variance = nn.Linear(32, 6), nn.Linear(32, 6)
        self.decoder = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 64))

    def forward(self, x, noise):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h).clamp(-6, 6)
        z = mean + torch.exp(0.5 * log_variance) * noise
        target = torch.sigmoid(x).flatten(1)
        found = F.binary_cross_entropy_with_logits(self.decoder(z), target,
                                                   reduction="sum") / len(x)
        kl = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return found + 0.1 * kl / x.size(0)


class Transform(nn.Module):
    """PointNet's, a matrix of k by k with the identity as its start."""

    def __init__(self, k):
        super().__init__()
        self.k = k
        self.shared = nn.Sequential(nn.Conv1d(k, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(),
                                  nn.Linear(16, k * k))

    def forward(self, x):
        m = self.head(torch.max(self.shared(x), 2)[0]).view(-1, self.k, self.k)
        return m + torch.eye(self.k, device=x.device).unsqueeze(0)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.space, self.feature = Transform(3), Transform(8)
        self.a = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
        self.b = nn.Sequential(nn.Conv1d(8, 24, 1), nn.BatchNorm1d(24))
        self.head = nn.Sequential(nn.Linear(24, 16), nn.LayerNorm(16), nn.ReLU(),
                                  nn.Linear(16, 5))

    def forward(self, points):
        x = points.transpose(2, 1)
        x = torch.bmm(self.space(x).transpose(1, 2), x)
        x = self.a(x)
        x = torch.bmm(x.transpose(2, 1), self.feature(x)).transpose(2, 1)
        return F.log_softmax(self.head(torch.amax(self.b(x), dim=-1)), dim=1)


class DenseGraph(nn.Module):
    """Graph convolutions by an adjacency matrix that the batch has."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 12, bias=False),
                                     nn.Linear(12, 12, bias=False)])
        self.bias = nn.Parameter(torch.zeros(12))
        self.attention = nn.Parameter(torch.randn(24, 1) / 5)
        self.head = nn.Linear(12, 3)

    def forward(self, x, adjacency):
        a = adjacency + torch.eye(adjacency.size(-1))
        degree = a.sum(-1).clamp(min=1).rsqrt()
        a = degree.unsqueeze(-1) * a * degree.unsqueeze(-2)
        for layer in self.layers:
            x = F.dropout(F.leaky_relu(a @ layer(x) + self.bias, 0.2), 0.1,
                          self.training)
        n = x.size(1)
        pairs = torch.cat([x.unsqueeze(2).expand(-1, -1, n, -1),
                           x.unsqueeze(1).expand(-1, n, -1, -1)], dim=-1)
        scores = F.leaky_relu((pairs @ self.attention).squeeze(-1))
        scores = scores.masked_fill(a == 0, float("-inf"))
        return self.head((scores.softmax(-1) @ x).mean(dim=1))


class PaddedEncoder(nn.Module):
    """nn.TransformerEncoder with src_key_padding_mask and a pooled mean."""

    def __init__(self, norm_first=False):
        super().__init__()
        self.embedding = nn.Embedding(40, 16, padding_idx=0)
        self.position = nn.Parameter(torch.randn(1, 9, 16) * 0.1)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, activation="gelu",
                                           batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens, kept):
        empty = kept == 0
        x = self.embedding(tokens) * math.sqrt(16) + self.position
        x = self.encoder(x, src_key_padding_mask=empty)
        x = x.masked_fill(empty.unsqueeze(-1), 0.0).sum(1)
        return self.head(x / kept.sum(1, keepdim=True))


class Decoder(nn.Module):
    """nn.TransformerDecoder, time first, with a causal mask and memory's padding."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(30, 12), nn.Embedding(30, 12)
        layer = nn.TransformerDecoderLayer(12, 3, 24, dropout=0.0)
        self.decoder = nn.TransformerDecoder(layer, 2, nn.LayerNorm(12))
        self.head = nn.Linear(12, 30)

    def forward(self, source, words, kept):
        mask = nn.Transformer.generate_square_subsequent_mask(words.size(1))
        memory = self.source(source).transpose(0, 1)
        x = self.decoder(self.target(words).permute(1, 0, 2), memory, tgt_mask=mask,
                         memory_key_padding_mask=kept == 0, tgt_is_causal=True)
        return self.head(x).transpose(0, 1)


class WholeTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 12)
        self.transformer = nn.Transformer(12, 2, 1, 1, 24, dropout=0.1,
                                          batch_first=True)
        self.head = nn.Linear(12, 30, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, source, words):
        mask = torch.triu(torch.full((words.size(1), words.size(1)), float("-inf")), 1)
        return self.head(self.transformer(self.embedding(source),
                                          self.embedding(words), tgt_mask=mask,
                                          tgt_is_causal=True))


class ConvLSTM(nn.Module):
    """Unrolled over the frames of a clip."""

    def __init__(self):
        super().__init__()
        self.gates = nn.Conv2d(2 + 6, 24, 3, padding=1)
        self.head = nn.Conv2d(6, 2, 1)

    def forward(self, clip):
        n, t, _, h, w = clip.shape
        hidden, cell = clip.new_zeros(n, 6, h, w), clip.new_zeros(n, 6, h, w)
        frames = []
        for i in range(t):
            i_, f, o, g = torch.split(
                self.gates(torch.cat([clip[:, i], hidden], 1)), 6, dim=1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i_) * torch.tanh(g)
            hidden = torch.sigmoid(o) * torch.tanh(cell)
            frames.append(self.head(hidden))
        return torch.stack(frames, dim=1)


class SqueezeExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(12, momentum=None, track_running_stats=False)
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(12, 3, 1),
                                     nn.Hardswish(), nn.Conv2d(3, 12, 1),
                                     nn.Hardsigmoid())
        self.depth = nn.Conv2d(12, 12, 5, padding="same", groups=12,
                               padding_mode="reflect")
        self.head = nn.Linear(12, 6)

    def forward(self, x):
        x = F.relu6(self.norm(self.stem(x)))
        x = x + self.depth(x) * self.squeeze(x)
        return self.head(F.adaptive_max_pool2d(x, 1).flatten(1))


class Mixer(nn.Module):
    """MLP-Mixer with patches by unfold."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Linear(3 * 16, 12)
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in range(4))
        self.tokens = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 20), nn.GELU(), nn.Linear(20, 16))
            for _ in range(2))
        self.channels = nn.ModuleList(
            nn.Sequential(nn.Linear(12, 24), nn.GELU("tanh"), nn.Linear(24, 12))
            for _ in range(2))
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        x = x.unfold(2, 4, 4).unfold(3, 4, 4)
        x = x.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        x = self.patches(x)
        for i in range(2):
            x = x + self.tokens[i](self.norms[2 * i](x).mT).mT
            x = x + self.channels[i](self.norms[2 * i + 1](x))
        return self.head(x.mean(1))


class Folded(nn.Module):
    """Overlapping patches, mixed and folded back: nn.Unfold and nn.Fold."""

    def __init__(self):
        super().__init__()
        self.unfold = nn.Unfold(4, stride=2, padding=1)
        self.fold = nn.Fold((12, 10), 4, stride=2, padding=1)
        self.mix = nn.Linear(48, 48)

    def forward(self, x):
        patches = self.unfold(x).transpose(1, 2)
        return self.fold(F.gelu(self.mix(patches)).transpose(1, 2))


class Critic(nn.Module):
    """A discriminator with spectral norm by parametrization."""

    def __init__(self):
        super().__init__()
        norm = parametrizations.spectral_norm
        self.a = norm(nn.Conv2d(3, 8, 4, 2, 1))
        self.b = norm(nn.Conv2d(8, 12, 4, 2, 1))
        self.c = norm(nn.Linear(12 * 16, 1))

    def forward(self, x):
        x = F.leaky_relu(self.a(x), 0.2)
        x = F.leaky_relu(self.b(x), 0.2)
        return self.c(torch.flatten(x, 1))


class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 24), nn.Linear(24, 24)])
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.sin((30.0 if i == 0 else 1.0) * layer(x))
        return self.head(x)


class ArcFace(nn.Module):
    """An additive margin of the angle, with scatter_ and a scale."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(48, 16), nn.PReLU(),
                                  nn.Linear(16, 10))
        self.centers = nn.Parameter(torch.randn(7, 10))
        self.margin, self.scale = 0.4, 16.0

    def forward(self, x, label):
        cosine = F.linear(F.normalize(self.body(x)), F.normalize(self.centers))
        sine = torch.sqrt((1.0 - cosine**2).clamp(1e-6, 1))
        phi = cosine * math.cos(self.margin) - sine * math.sin(self.margin)
        phi = torch.where(cosine > math.cos(math.pi - self.margin), phi,
                          cosine - math.sin(self.margin) * self.margin)
        hot = torch.zeros_like(cosine).scatter_(1, label.view(-1, 1), 1)
        return F.cross_entropy(self.scale * (hot * phi + (1 - hot) * cosine), label)


class FocalDetector(nn.Module):
    """Sigmoid focal loss and a box loss by GIoU on the positives."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.GroupNorm(3, 12),
                                  nn.ReLU())
        self.classes = nn.Conv2d(12, 4, 1)
        self.boxes = nn.Conv2d(12, 4, 1)

    def forward(self, x, labels, boxes):
        f = self.body(x)
        logits, found = self.classes(f), F.softplus(self.boxes(f))
        p = torch.sigmoid(logits)
        bce = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        p_t = p * labels + (1 - p) * (1 - labels)
        alpha = 0.25 * labels + 0.75 * (1 - labels)
        focal = (alpha * bce * (1 - p_t) ** 2).sum() / labels.sum().clamp(min=1)
        positive = labels.amax(dim=1) > 0
        a, b = found.abs(), boxes.abs()
        low = torch.minimum(a, b)
        inter = (low[:, 0] + low[:, 2]) * (low[:, 1] + low[:, 3])
        area = lambda t: (t[:, 0] + t[:, 2]) * (t[:, 1] + t[:, 3])  # noqa: E731
        union = area(a) + area(b) - inter
        high = torch.maximum(a, b)
        giou = inter / (union + 1e-6) - (area(high) - union) / (area(high) + 1e-6)
        box = torch.where(positive, 1 - giou, torch.zeros_like(giou)).sum()
        return focal + box / positive.float().sum().clamp(min=1.0)


class HuberRegressor(nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(),
                                  nn.Linear(16, 2))
        self.loss = loss

    def forward(self, x, y):
        mean, spread = self.body(x).unbind(-1)
        variance = F.softplus(spread) + 1e-3
        likelihood = 0.5 * (torch.log(variance) + (mean - y) ** 2 / variance)
        return self.loss(mean, y) + likelihood.mean()


class UncertainTasks(nn.Module):
    """Two heads whose losses are weighted by a learned variance."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.label, self.amount = nn.Linear(16, 4), nn.Linear(16, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))
        self.register_buffer("weight", torch.tensor([1.0, 2.0, 0.5, 1.5]))

    def forward(self, x, label, amount):
        h = self.body(x)
        one = F.cross_entropy(self.label(h), label, weight=self.weight,
                              label_smoothing=0.1)
        two = F.l1_loss(self.amount(h).squeeze(1), amount)
        losses = torch.stack([one, two])
        return (torch.exp(-self.log_vars) * losses + self.log_vars).sum()


class Experts(nn.Module):
    """A mixture of experts with dense gates, all experts by one einsum, and a loss
    that balances them."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.w = nn.Parameter(torch.randn(4, 8, 12) / 3)
        self.v = nn.Parameter(torch.randn(4, 12, 5) / 3)

    def forward(self, x, label):
        gate = F.softmax(self.gate(x), dim=-1)
        top, which = gate.topk(2, dim=-1)
        kept = torch.zeros_like(gate).scatter(-1, which, top)
        kept = kept / kept.sum(-1, keepdim=True)
        h = F.silu(torch.einsum("bd,edh->beh", x, self.w))
        y = torch.einsum("beh,eho->beo", h, self.v)
        y = torch.einsum("be,beo->bo", kept, y)
        load = gate.mean(0) * (kept > 0).float().mean(0)
        return F.cross_entropy(y, label) + 0.01 * 4 * load.sum()


class RoPE(nn.Module):
    """A block with rotary positions by complex-free halves and grouped queries."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 24)
        self.q = nn.Linear(24, 24, bias=False)
        self.kv = nn.Linear(24, 2 * 2 * 6, bias=False)
        self.o = nn.Linear(24, 24, bias=False)
        self.gate, self.up = nn.Linear(24, 40, False), nn.Linear(24, 40, False)
        self.down = nn.Linear(40, 24, False)
        self.norms = nn.ModuleList(nn.RMSNorm(24) for _ in range(3))
        self.head = nn.Linear(24, 30, bias=False)
        t = torch.outer(torch.arange(10).float(),
                        1.0 / (10000 ** (torch.arange(0, 6, 2).float() / 6)))
        self.register_buffer("cos", torch.cat((t, t), -1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat((t, t), -1).sin(), persistent=False)

    def turn(self, x):
        a, b = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat((-b, a), dim=-1) * self.sin

    def forward(self, words):
        x = self.embedding(words)
        n, t, _ = x.shape
        h = self.norms[0](x)
        q = self.turn(self.q(h).view(n, t, 4, 6).transpose(1, 2))
        k, v = self.kv(h).view(n, t, 2, 2, 6).permute(2, 0, 3, 1, 4)
        k, v = self.turn(k), v
        k, v = (z.repeat_interleave(2, dim=1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(n, t, 24))
        h = self.norms[1](x)
        x = x + self.down(F.silu(self.gate(h)) * self.up(h))
        return self.head(self.norms[2](x))


class SplineLayer(nn.Module):
    """A Kolmogorov-Arnold layer: cubic B-splines by the recursion over a grid."""

    def __init__(self, n_in, n_out, grid=5, order=3):
        super().__init__()
        h = 2 / grid
        knots = torch.arange(-order, grid + order + 1) * h - 1
        self.register_buffer("grid", knots.expand(n_in, -1).contiguous())
        self.order = order
        self.base = nn.Parameter(torch.randn(n_out, n_in) / 3)
        self.spline = nn.Parameter(torch.randn(n_out, n_in, grid + order) / 5)

    def forward(self, x):
        grid, wide = self.grid, x.unsqueeze(-1)
        bases = ((wide >= grid[:, :-1]) & (wide < grid[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            bases = ((wide - grid[:, :-(k + 1)])
                     / (grid[:, k:-1] - grid[:, :-(k + 1)]) * bases[:, :, :-1]
                     + (grid[:, k + 1:] - wide)
                     / (grid[:, k + 1:] - grid[:, 1:-k]) * bases[:, :, 1:])
        return (F.linear(F.silu(x), self.base)
                + F.linear(bases.flatten(1), self.spline.flatten(1)))


class KAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = SplineLayer(4, 6), SplineLayer(6, 3)

    def forward(self, x):
        return self.b(torch.tanh(self.a(torch.tanh(x))))


class SubPixel(nn.Module):
    """ESPCN with a residual by bicubic interpolation."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 5, padding=2), nn.Tanh(),
                                  nn.Conv2d(16, 12, 3, padding=1))

    def forward(self, x):
        big = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        return F.pixel_shuffle(self.body(x), 2) + big


class Deformed(nn.Module):
    """Samples where an offset says, by grid_sample with reflection."""

    def __init__(self, mode="reflection", align=True):
        super().__init__()
        self.offset = nn.Conv2d(3, 2, 3, padding=1)
        self.body = nn.Conv2d(3, 4, 3, padding=1)
        self.mode, self.align = mode, align

    def forward(self, x):
        h, w = x.shape[-2:]
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w),
                                indexing="ij")
        grid = torch.stack((xs, ys), -1).unsqueeze(0)
        grid = grid + 0.7 * self.offset(x).permute(0, 2, 3, 1)
        y = F.grid_sample(x, grid, mode="bilinear", padding_mode=self.mode,
                          align_corners=self.align)
        return self.body(y)


class SpatialTransformer(nn.Module):
    """STN: affine_grid of a learned theta."""

    def __init__(self):
        super().__init__()
        self.theta = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 6))
        self.head = nn.Conv2d(3, 2, 3)

    def forward(self, x):
        theta = self.theta(x).view(-1, 2, 3) * 0.1 + torch.tensor(
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        grid = F.affine_grid(theta, list(x.size()), align_corners=False)
        return self.head(F.grid_sample(x, grid, align_corners=False))


class Pixels(nn.Module):
    """uint8 images, normalized in the graph."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406])
                             .view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225])
                             .view(1, 3, 1, 1))
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(),
                                 nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                                 nn.Linear(32, 4))

    def forward(self, x):
        return self.net((x.float() / 255.0 - self.mean) / self.std)


class Highway(nn.Module):
    """A bidirectional GRU over characters, packed, with the last hidden states."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8, padding_idx=0)
        self.gru = nn.GRU(8, 6, bidirectional=True)
        self.gate, self.value = nn.Linear(12, 12), nn.Linear(12, 12)
        self.head = nn.Linear(12, 4)

    def forward(self, words):
        x = self.embedding(words).permute(1, 0, 2)
        _, hidden = self.gru(x)
        h = torch.cat([hidden[-2], hidden[-1]], dim=1)
        t = torch.sigmoid(self.gate(h))
        h = t * F.elu(self.value(h)) + (1 - t) * h
        return self.head(h)


class Clocks(nn.Module):
    """Phases that wrap: floor mod, fmod, remainder, frac, round, and bool logic."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 12), nn.Linear(12, 3)

    def forward(self, x):
        h = self.a(x) * 3
        h = (torch.remainder(h, 2.0) + torch.fmod(h, 1.5) + h % 0.75
             + h - torch.floor(h) + torch.frac(h))
        same = (h > 0) == (h < 1)
        count = (h > 0).sum(-1, keepdim=True)
        ints = (h * 10).long()
        spread = ints.amax(-1, keepdim=True) - ints.amin(-1, keepdim=True)
        total = ints.sum(-1, keepdim=True) + count
        h = torch.where(same, h, -h) / (1 + spread + total.abs())
        return self.b(h)


class MultiHead(nn.Module):
    """nn.MultiheadAttention, time first, with a bias of keys and average weights."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 3, kdim=8, vdim=6, add_bias_kv=True,
                                               dropout=0.1)
        self.head = nn.Linear(12, 4)

    def forward(self, q, k, v):
        y, weights = self.attention(q.transpose(0, 1), k.transpose(0, 1),
                                    v.transpose(0, 1))
        return self.head(y.mean(0)) + weights.std(dim=(1, 2)).unsqueeze(-1)


class WindowAttention(nn.Module):
    """Swin's: roll, windows, a table of relative positions by an index, a mask."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(49, 2) * 0.1)
        y, x = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
        at = torch.stack([y.flatten(), x.flatten()])
        apart = at[:, :, None] - at[:, None, :] + 3
        self.register_buffer("index", apart[0] * 7 + apart[1])
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones(2, 1, 1)))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        n, h, w, c = x.shape
        x = torch.roll(x, (-2, -2), dims=(1, 2))
        x = x.view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(-1, 16, c)
        q, k, v = self.qkv(x).reshape(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4)
        a = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        a = a * self.logit_scale.clamp(max=math.log(100.0)).exp()
        bias = self.table[self.index.view(-1)].view(16, 16, 2).permute(2, 0, 1)
        a = (a + bias.unsqueeze(0)).softmax(-1)
        x = self.out((a @ v).transpose(1, 2).reshape(-1, 16, c))
        x = x.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5)
        x = torch.roll(x.reshape(n, h, w, c), shifts=(2, 2), dims=(1, 2))
        return self.head(x.mean((1, 2)))


class Distances(nn.Module):
    """Prototypes by distance, triplet and cosine losses, logsumexp, cumsum, sort."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 5)
        self.prototypes = nn.Parameter(torch.randn(4, 5))

    def forward(self, a, b, c, label):
        a, b, c = self.body(a), self.body(b), self.body(c)
        d = (a.unsqueeze(1) - self.prototypes).pow(2).sum(-1).add(1e-6).sqrt()
        loss = F.cross_entropy(-d, label) + F.triplet_margin_loss(a, b, c)
        loss = loss + F.cosine_embedding_loss(a, b, torch.ones(a.size(0)))
        loss = loss + torch.logsumexp(-d, -1).mean()
        ranks = torch.sort(d, dim=-1, descending=True)[0].cumsum(-1)
        loss = loss + ranks.norm(dim=-1).mean() + torch.var(a, dim=0).sum()
        return loss + torch.prod(torch.sigmoid(a), dim=-1).mean()


class Losses(nn.Module):
    """Distillation by KL, negative log-likelihood, Poisson and soft margin."""

    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(6, 12), nn.Mish(), nn.Linear(12, 5))
        self.teacher = nn.Linear(6, 5)
        for p in self.teacher.parameters():
            p.requires_grad_(False)

    def forward(self, x, label):
        y = self.student(x)
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / 2.0, dim=1)
        loss = F.kl_div(F.log_softmax(y / 2.0, 1), soft, reduction="batchmean") * 4
        loss = loss + F.nll_loss(F.log_softmax(y, -1), label)
        loss = loss + (torch.exp(y) - soft * y).mean()
        return loss + torch.log1p(torch.exp(-torch.sign(soft - 0.2) * y)).mean()


def category(count, *shape):
    return lambda n, g: torch.randint(count, (n, *shape), generator=g)


def one_number():
    return lambda n, g: torch.randn(n, generator=g)


def pixels(*shape):
    return lambda n, g: torch.randint(256, (n, *shape), generator=g, dtype=torch.uint8)


def edges(nodes):
    def make(n, g):
        a = (torch.rand(n, nodes, nodes, generator=g) < 0.4).float()
        return torch.maximum(a, a.transpose(1, 2)) * (1 - torch.eye(nodes))
    return make


def rare(*shape):
    return lambda n, g: (torch.rand(n, *shape, generator=g) < 0.1).float()


POINTS = {"x": numbers(6), "label": category(5)}
FAMILIES = [
    Family("bag_recommender", LIBRARY, BagRecommender,
           {"user": category(20), "items": category(40, 6)}, loss="mse"),
    Family("tcn_weight_norm", LIBRARY, TemporalNetwork, {"signal": numbers(3, 20)}),
    Family("gated_unet", LIBRARY, GatedUNet, {"image": image(3, 16, 16)},
           class_axis=1),
    Family("variational", LIBRARY, Variational,
           {"image": image(1, 8, 8), "noise": numbers(6)}, loss="model"),
    Family("pointnet", LIBRARY, PointNet, {"points": numbers(14, 3)}, batch=8),
    Family("dense_graph", LIBRARY, DenseGraph,
           {"nodes": numbers(7, 6), "adjacency": edges(7)}),
    Family("padded_encoder", LIBRARY, PaddedEncoder,
           {"tokens": tokens(40, 9), "kept": padding(9)}),
    Family("padded_encoder_norm_first", LIBRARY, lambda: PaddedEncoder(True),
           {"tokens": tokens(40, 9), "kept": padding(9)}),
    Family("transformer_decoder", LIBRARY, Decoder,
           {"source": tokens(30, 7), "words": tokens(30, 5), "kept": padding(7)}),
    Family("whole_transformer", LIBRARY, WholeTransformer,
           {"source": tokens(30, 7), "words": tokens(30, 5)}),
    Family("conv_lstm", LIBRARY, ConvLSTM, {"clip": image(4, 2, 6, 6)}, loss="mse"),
    Family("squeeze_excite", LIBRARY, SqueezeExcite, {"image": image(3, 16, 16)}),
    Family("mlp_mixer", LIBRARY, Mixer, {"image": image(3, 16, 16)}),
    Family("fold_patches", LIBRARY, Folded, {"image": image(3, 12, 10)}, loss="mse"),
    Family("spectral_critic", LIBRARY, Critic, {"image": image(3, 16, 16)},
           loss="bce_with_logits"),
    Family("siren", LIBRARY, Siren, {"at": numbers(2)}, loss="mse", batch=16),
    Family("arcface", LIBRARY, ArcFace,
           {"image": image(3, 4, 4), "label": category(7)}, loss="model"),
    Family("focal_detector", LIBRARY, FocalDetector,
           {"image": image(3, 12, 12), "labels": rare(4, 6, 6),
            "boxes": image(4, 6, 6)}, loss="model"),
    Family("huber", LIBRARY, lambda: HuberRegressor(nn.HuberLoss(delta=0.7)),
           {"x": numbers(6), "y": one_number()}, loss="model", batch=8),
    Family("smooth_l1", LIBRARY, lambda: HuberRegressor(nn.SmoothL1Loss()),
           {"x": numbers(6), "y": one_number()}, loss="model", batch=8),
    Family("uncertain_tasks", LIBRARY, UncertainTasks,
           {"x": numbers(8), "label": category(4), "amount": one_number()},
           loss="model"),
    Family("experts", LIBRARY, Experts, {"x": numbers(8), "label": category(5)},
           loss="model", batch=8),
    Family("rope_gqa", LIBRARY, RoPE, {"tokens": tokens(30, 10)}),
    Family("kan", LIBRARY, KAN, {"x": numbers(4)}, loss="mse", batch=8),
    Family("sub_pixel", LIBRARY, SubPixel, {"image": image(3, 8, 8)}, loss="mse"),
    Family("deformed_reflection", LIBRARY, Deformed, {"image": image(3, 9, 8)},
           loss="mse"),
    Family("deformed_border", LIBRARY, lambda: Deformed("border", False),
           {"image": image(3, 9, 8)}, loss="mse"),
    Family("spatial_transformer", LIBRARY, SpatialTransformer,
           {"image": image(3, 8, 8)}, loss="mse"),
    Family("pixels", LIBRARY, Pixels, {"image": pixels(3, 13, 13)}),
    Family("gru_highway", LIBRARY, Highway, {"words": tokens(30, 7)}),
    Family("clocks", LIBRARY, Clocks, {"x": numbers(5)}, batch=8),
    Family("multihead", LIBRARY, MultiHead,
           {"q": numbers(5, 12), "k": numbers(7, 8), "v": numbers(7, 6)}),
    Family("window_attention", LIBRARY, WindowAttention, {"x": image(8, 8, 8)}),
    Family("distances", LIBRARY, Distances,
           {"a": numbers(6), "b": numbers(6), "c": numbers(6), "label": category(4)},
           loss="model"),
    Family("losses", LIBRARY, Losses, POINTS, loss="model"),
]
