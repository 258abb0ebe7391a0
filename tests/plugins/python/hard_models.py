"""Small models that are hard to plan: whole steps, as in models.py."""

import math

import torch
from torch import nn
from torch.nn import functional as F

HARD_MODELS = {}  # by name: the class and a function that makes a batch


def on(batch):
    def put(kind):
        HARD_MODELS[kind.__name__] = kind, batch
        return kind

    return put


def randint(end, *shape):
    return torch.randint(end, shape)


@on(lambda: (torch.randn(4, 3, 16, 16), randint(10, 4)))
class ConvNext(nn.Module):
    """Depthwise convolutions, layer scale, stochastic depth."""

    class Block(nn.Module):
        def __init__(self, w, drop):
            super().__init__()
            self.dw = nn.Conv2d(w, w, 7, padding=3, groups=w)
            self.norm = nn.LayerNorm(w, eps=1e-6)
            self.a, self.b = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)
            self.scale = nn.Parameter(1e-1 * torch.ones(w))
            self.drop = drop

        def forward(self, x):
            y = self.norm(self.dw(x).permute(0, 2, 3, 1))
            y = (self.scale * self.b(F.gelu(self.a(y)))).permute(0, 3, 1, 2)
            if self.training and self.drop:
                keep = 1 - self.drop
                y = y * y.new_empty(y.shape[0], 1, 1, 1).bernoulli_(keep).div_(keep)
            return x + y

    def __init__(self, w=12):
        super().__init__()
        self.stem = nn.Conv2d(3, w, 2, 2)
        self.blocks = nn.Sequential(*[self.Block(w, 0.1 * i) for i in range(4)])
        self.down = nn.Sequential(nn.GroupNorm(1, w), nn.Conv2d(w, 2 * w, 2, 2))
        self.more = nn.Sequential(*[self.Block(2 * w, 0.2) for i in range(2)])
        self.head = nn.Linear(2 * w, 10)

    def forward(self, x, y):
        x = self.more(self.down(self.blocks(self.stem(x))))
        return F.cross_entropy(self.head(x.mean((2, 3))), y, label_smoothing=0.1)


def _bert_batch():
    ids = randint(50, 4, 24)
    mask = torch.arange(24)[None] < torch.tensor([24, 20, 13, 5])[:, None]
    labels = torch.where((torch.rand(4, 24) < 0.3) & mask, ids, -100)
    labels[0, 0] = 3
    return ids, mask, labels, randint(2, 4)


@on(_bert_batch)
class Bert(nn.Module):
    """Padding mask, dropout, tied head, two losses."""

    def __init__(self, w=32):
        super().__init__()
        self.e, self.p = nn.Embedding(50, w, padding_idx=0), nn.Embedding(24, w)
        self.norm, self.drop = nn.LayerNorm(w), nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(w, 4, 64, 0.1, "gelu", batch_first=True)
        self.layers = nn.ModuleList(
            [
                layer,
                nn.TransformerEncoderLayer(
                    w, 4, 64, 0.2, "gelu", batch_first=True, norm_first=True
                ),
            ]
        )
        self.pool, self.nsp = nn.Linear(w, w), nn.Linear(w, 2)
        self.bias = nn.Parameter(torch.zeros(50))

    def forward(self, ids, mask, labels, nsp):
        x = self.drop(self.norm(self.e(ids) + self.p.weight))
        for l in self.layers:
            x = l(x, src_key_padding_mask=~mask)
        mlm = F.cross_entropy(
            (F.linear(x, self.e.weight, self.bias)).flatten(0, 1), labels.flatten()
        )
        return mlm + F.cross_entropy(self.nsp(torch.tanh(self.pool(x[:, 0]))), nsp)


@on(lambda: (torch.randn(3, 1, 16, 16),))
class Diffusion(nn.Module):
    """A U-Net with noise, times and attention inside of the forward."""

    class Res(nn.Module):
        def __init__(self, a, b, t):
            super().__init__()
            self.n1, self.c1 = nn.GroupNorm(2, a), nn.Conv2d(a, b, 3, padding=1)
            self.n2, self.c2 = nn.GroupNorm(2, b), nn.Conv2d(b, b, 3, padding=1)
            self.t = nn.Linear(t, 2 * b)
            self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()
            self.d = nn.Dropout(0.1)

        def forward(self, x, t):
            h = self.c1(F.silu(self.n1(x)))
            s, b = self.t(F.silu(t))[:, :, None, None].chunk(2, 1)
            h = self.n2(h) * (1 + s) + b
            return self.skip(x) + self.c2(self.d(F.silu(h)))

    def __init__(self, w=8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.inn = nn.Conv2d(1, w, 3, padding=1)
        self.d1, self.d2 = self.Res(w, w, 32), self.Res(w, 2 * w, 32)
        self.mid = self.Res(2 * w, 2 * w, 32)
        self.qkv, self.o = nn.Conv2d(2 * w, 6 * w, 1), nn.Conv2d(2 * w, 2 * w, 1)
        self.u2, self.u1 = self.Res(4 * w, w, 32), self.Res(2 * w, w, 32)
        self.out = nn.Conv2d(w, 1, 3, padding=1)
        self.register_buffer("alphas", torch.linspace(0.99, 0.01, 100))

    def forward(self, x):
        t = torch.randint(100, (len(x),), device=x.device)
        noise = torch.randn_like(x)
        a = self.alphas[t][:, None, None, None]
        y = a.sqrt() * x + (1 - a).sqrt() * noise
        f = torch.exp(-math.log(1e4) * torch.arange(8) / 8)
        e = t[:, None].float() * f
        e = self.time(torch.cat([e.sin(), e.cos()], -1))
        h0 = self.d1(self.inn(y), e)
        h1 = self.d2(F.avg_pool2d(h0, 2), e)
        m = self.mid(h1, e)
        q, k, v = self.qkv(m).flatten(2).chunk(3, 1)
        m = m + self.o(F.scaled_dot_product_attention(q.mT, k.mT, v.mT).mT.reshape(m.shape))
        u = self.u2(torch.cat([m, h1], 1), e)
        u = F.interpolate(u, scale_factor=2.0, mode="nearest")
        return F.mse_loss(self.out(self.u1(torch.cat([u, h0], 1), e)), noise)


@on(lambda: (torch.rand(8, 1, 16, 16),))
class Vae(nn.Module):
    """Noise inside, batch norm, activations in place."""

    def __init__(self, w=8, z=6):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, w, 4, 2, 1),
            nn.BatchNorm2d(w),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(w, 2 * w, 4, 2, 1),
            nn.BatchNorm2d(2 * w),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            nn.Linear(32 * w, 2 * z),
        )
        self.dec = nn.Sequential(
            nn.Linear(z, 32 * w),
            nn.Unflatten(1, (2 * w, 4, 4)),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * w, w, 4, 2, 1),
            nn.BatchNorm2d(w, momentum=None),
            nn.ReLU(),
            nn.ConvTranspose2d(w, 1, 4, 2, 1),
        )

    def forward(self, x):
        mu, lv = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        rec = F.binary_cross_entropy_with_logits(self.dec(z), x, reduction="sum")
        return (rec - 0.5 * (1 + lv - mu.square() - lv.exp()).sum()) / len(x)


@on(lambda: (torch.randn(64, 16),))
class MoeCapacity(nn.Module):
    """Two experts for each token, with a capacity and a loss of balance."""

    def __init__(self, w=16, e=4):
        super().__init__()
        self.gate = nn.Linear(w, e)
        self.w1, self.w2 = nn.Parameter(torch.randn(e, w, 32) / 4), nn.Parameter(
            torch.randn(e, 32, w) / 4
        )
        self.out = nn.Linear(w, w)

    def forward(self, x):
        n, e, c = len(x), 4, 24
        p = self.gate(x).softmax(-1)
        top, idx = p.topk(2, -1)
        one = F.one_hot(idx, e).float()
        place = one.flatten(0, 1).cumsum(0).view(n, 2, e) * one - 1
        ok = (place >= 0) & (place < c)
        slot = idx * c + place.amax(-1).long().clamp(0, c - 1)
        keep = ok.any(-1)
        buf = x.new_zeros(e * c, x.shape[1]).index_add(
            0, slot.flatten(), (x[:, None] * keep[..., None]).flatten(0, 1)
        )
        y = torch.bmm(F.gelu(torch.bmm(buf.view(e, c, -1), self.w1)), self.w2).view(e * c, -1)
        y = (y[slot] * (top * keep)[..., None]).sum(1)
        balance = e * (p.mean(0) * one.sum(1).mean(0)).sum()
        return self.out(x + y).square().mean() + 0.01 * balance


@on(lambda: (torch.randn(8, 32, 4),))
class Fourier(nn.Module):
    """Products in the frequency domain."""

    def __init__(self, w=8, modes=6):
        super().__init__()
        self.lift, self.modes = nn.Linear(4, w), modes
        self.spec = nn.ParameterList(
            [
                nn.Parameter(
                    torch.view_as_real(torch.randn(w, w, modes, dtype=torch.cfloat) / w)
                )
                for _ in range(3)
            ]
        )
        self.skip = nn.ModuleList(nn.Conv1d(w, w, 1) for _ in range(3))
        self.proj = nn.Linear(w, 4)

    def forward(self, x):
        y = self.lift(x).transpose(1, 2)
        for s, k in zip(self.spec, self.skip):
            f = torch.fft.rfft(y, norm="ortho")
            o = torch.einsum("bim,iom->bom", f[..., : self.modes], torch.view_as_complex(s))
            o = F.pad(o, (0, f.shape[-1] - self.modes))
            y = F.gelu(torch.fft.irfft(o, n=y.shape[-1], norm="ortho") + k(y))
        return F.l1_loss(self.proj(y.transpose(1, 2)), x)
