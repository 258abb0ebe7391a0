"""More of hard_models.py: models that are programs of unusual operators."""
import torch
from torch import nn
from torch.nn import functional as F

from hard_models import HARD_MODELS, on, randint

__all__ = ["HARD_MODELS"]


@on(lambda: (torch.randn(16, 8),))
class GradientPenalty(nn.Module):
    """A gradient by torch.func inside of the loss."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 1)

    def critic(self, x):
        return self.c(torch.tanh(self.b(F.softplus(self.a(x)))))

    def forward(self, x):
        real = self.critic(x).mean()
        grad = torch.func.grad(lambda t: self.critic(t).sum())(x)
        return -real + 10 * (grad.norm(dim=1) - 1).square().mean()


@on(lambda: (torch.randn(2, 32, 16), randint(32, 2, 32, 6)))
class SparseAttention(nn.Module):
    """Scores written by index_put_ and scatter_."""

    def __init__(self, w=16):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(w, w) for _ in range(4))
        self.ff = nn.Sequential(nn.Linear(w, 64), nn.ReLU(True), nn.Linear(64, w))

    def forward(self, x, near):
        b, n, w = x.shape
        for _ in range(2):
            s = self.q(x) @ self.k(x).mT / 4
            rows = torch.arange(n)[None, :, None].expand_as(near)
            bs = torch.arange(b)[:, None, None].expand_as(near)
            full = torch.full_like(s, -1e9)
            full.index_put_((bs, rows, near), s.gather(2, near))
            full.scatter_(2, torch.arange(n)[None, :, None].expand(b, n, 1), 0.0)
            x = x + self.o(full.softmax(-1) @ self.v(x))
            x = x + self.ff(x)
        return x.square().mean()


@on(lambda: (torch.randn(40, 8), randint(40, 2, 120), randint(5, 40), torch.randn(5)))
class Graph(nn.Module):
    """Messages along edges: index_add_, scatter_reduce."""

    def __init__(self, w=8):
        super().__init__()
        self.m = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * w, 32), nn.ReLU(), nn.Linear(32, w)) for _ in range(3)
        )
        self.u = nn.GRUCell(w, w)
        self.att = nn.Linear(w, 1)
        self.head = nn.Linear(w, 1)

    def forward(self, x, edges, graph, y):
        src, dst = edges
        for m in self.m:
            msg = m(torch.cat([x[src], x[dst]], -1))
            a = self.att(msg).squeeze(-1)
            top = torch.full((len(x),), -1e9).scatter_reduce(
                0, dst, a, "amax", include_self=True
            )
            e = (a - top[dst]).exp()
            z = torch.zeros(len(x)).index_add_(0, dst, e)
            agg = torch.zeros_like(x).scatter_add_(
                0, dst[:, None].expand_as(msg), msg * (e / z[dst])[:, None]
            )
            x = self.u(agg, x)
        pooled = torch.zeros(5, x.shape[1]).scatter_reduce(
            0, graph[:, None].expand_as(x), x, "mean"
        )
        return F.smooth_l1_loss(self.head(pooled).squeeze(-1), y)


@on(lambda: (torch.randn(32, 20),))
class TiedAutoencoder(nn.Module):
    """The decoder has the encoder's weights, transposed."""

    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Parameter(torch.randn(20, 40) / 5), nn.Parameter(
            torch.randn(40, 10) / 5
        )
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(n)) for n in (40, 10, 40, 20)])

    def forward(self, x):
        h = torch.sigmoid(x @ self.w1 + self.b[0])
        z = torch.tanh(h @ self.w2 + self.b[1])
        h = torch.sigmoid(z @ self.w2.T + self.b[2])
        return F.huber_loss(h @ self.w1.T + self.b[3], x) + 1e-3 * z.abs().mean()


@on(lambda: (torch.randn(16, 12), randint(4, 16)))
class PerSample(nn.Module):
    """A loss by vmap, and Jacobians."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 4))

    def forward(self, x, y):
        losses = torch.func.vmap(lambda a, b: F.cross_entropy(self.f(a[None]), b[None]))(x, y)
        jac = torch.func.vmap(torch.func.jacrev(lambda a: self.f(a)))(x)
        return losses.mean() + 0.01 * jac.square().sum((1, 2)).mean()


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        q = torch.round(x / s).clamp(-4, 3)
        ctx.save_for_backward(x, s, q)
        return q * s

    @staticmethod
    def backward(ctx, g):
        x, s, q = ctx.saved_tensors
        inside = (q > -4) & (q < 3)
        return g * inside, (g * torch.where(inside, q - x / s, q)).sum().reshape(s.shape)


@on(lambda: (torch.randn(32, 16),))
class CustomFunction(nn.Module):
    """Quantization with a gradient of its own."""

    def __init__(self):
        super().__init__()
        self.l = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
        self.s = nn.Parameter(torch.full((4,), 0.1))

    def forward(self, x):
        for l, s in zip(self.l, self.s):
            x = F.relu(
                F.linear(
                    StraightThrough.apply(x, s), StraightThrough.apply(l.weight, s / 4), l.bias
                )
            )
        return x.square().mean()


@on(lambda: (torch.randn(4, 30, 6),))
class Cumulative(nn.Module):
    """cumsum, cumprod, cummax, sort, quantile."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.g = nn.Linear(6, 12), nn.Linear(12, 6), nn.Linear(6, 12)

    def forward(self, x):
        h = self.a(x)
        g = torch.sigmoid(self.g(x))
        c = torch.cumsum(h * g, 1) / torch.arange(1, 31)[:, None]
        p = torch.cumprod(0.9 + 0.1 * g, 1)
        m, _ = torch.cummax(c, 1)
        s, i = torch.sort(c, -1)
        l = torch.logcumsumexp(h, 1)
        q = torch.quantile(m, 0.3, dim=1)
        med = m.median(1).values
        return (
            (self.b(p * m + s.flip(-1)) - x).square().mean()
            + l.mean() * 0.01
            + q.mean()
            + med.mean()
        )


@on(lambda: (torch.randn(4, 12, 16),))
class Universal(nn.Module):
    """One block, called six times."""

    def __init__(self):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(16, 2, 48, 0.0, batch_first=True)
        self.halt = nn.Linear(16, 1)
        self.step = nn.Embedding(6, 16)

    def forward(self, x):
        y, rest, out = x, torch.ones(x.shape[:2]), torch.zeros_like(x)
        for i in range(6):
            y = self.block(y + self.step.weight[i])
            p = torch.sigmoid(self.halt(y)).squeeze(-1)
            out = out + (rest * p)[..., None] * y
            rest = rest * (1 - p)
        return (out - x).square().mean() + rest.mean()


@on(lambda: (torch.randn(16, 16),))
class MixedTypes(nn.Module):
    """Parameters of three types."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 32).bfloat16()
        self.b = nn.Linear(32, 32)
        self.c = nn.Linear(32, 8).double()
        self.n = nn.LayerNorm(32)

    def forward(self, x):
        h = F.gelu(self.a(x.bfloat16()))
        h = torch.tanh(self.b(self.n(h.float())))
        return self.c(h.double()).square().mean().float() + h.half().float().abs().mean()


@on(lambda: (torch.randn(4, 3, 16, 16).to(memory_format=torch.channels_last), randint(5, 4)))
class ChannelsLast(nn.Module):
    """Convolutions in channels_last, instance norm with statistics."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.SiLU(True),
            nn.Conv2d(8, 8, 3, 1, 1, groups=8),
            nn.InstanceNorm2d(8, affine=True, track_running_stats=True),
            nn.Hardswish(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 1),
            nn.PReLU(12),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(48, 5),
        )
        self.to(memory_format=torch.channels_last)

    def forward(self, x, y):
        return F.cross_entropy(self.net(x), y)


@on(lambda: (randint(20, 4, 10), randint(20, 4, 10)))
class Shared(nn.Module):
    """Parameters shared by three modules, and a view of one."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 16)
        self.out = nn.Linear(16, 20, bias=False)
        self.out.weight = self.e.weight
        self.l1, self.l2 = nn.Linear(16, 16), nn.Linear(16, 16)
        self.l2.weight = self.l1.weight
        self.norm1 = self.norm2 = nn.LayerNorm(16)

    def forward(self, a, b):
        x = torch.tanh(self.l1(self.norm1(self.e(a))))
        y = self.l2(self.norm2(self.e(b)))
        s = (x @ y.mT).softmax(-1) @ y @ self.l1.weight[:, :16].T
        return (
            F.cross_entropy(self.out(s).flatten(0, 1), b.flatten())
            + self.l1.weight.view(-1)[::3].square().sum()
        )


@on(lambda: (torch.randn(2, 24, 8),))
class Mamba(nn.Module):
    """A scan in Python."""

    def __init__(self, w=8, n=4):
        super().__init__()
        self.inp, self.conv, self.x = (
            nn.Linear(w, 4 * w),
            nn.Conv1d(2 * w, 2 * w, 3, padding=2, groups=2 * w),
            nn.Linear(2 * w, 2 * n + 1),
        )
        self.a = nn.Parameter(torch.log(torch.arange(1.0, n + 1)).repeat(2 * w, 1))
        self.d = nn.Parameter(torch.ones(2 * w))
        self.out = nn.Linear(2 * w, w)

    def forward(self, u):
        x, z = self.inp(u).chunk(2, -1)
        x = F.silu(self.conv(x.mT)[..., : u.shape[1]].mT)
        dt, b, c = self.x(x).split([1, 4, 4], -1)
        dt = F.softplus(dt)
        h = x.new_zeros(len(x), x.shape[2], 4)
        ys = []
        for t in range(u.shape[1]):
            h = (
                torch.exp(-dt[:, t, :, None] * self.a.exp()) * h
                + (dt[:, t] * x[:, t])[..., None] * b[:, t, None]
            )
            ys.append((h * c[:, t, None]).sum(-1))
        y = torch.stack(ys, 1) + self.d * x
        return (self.out(y * F.silu(z)) - u).square().mean()


@on(lambda: (torch.randn(20, 3), torch.randn(20)))
class GaussianProcess(nn.Module):
    """Cholesky, solve, slogdet."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(3, 3)
        self.ls = nn.Parameter(torch.zeros(3))
        self.noise = nn.Parameter(torch.tensor(0.0))

    def forward(self, x, y):
        z = self.f(x) / self.ls.exp()
        k = torch.exp(-0.5 * torch.cdist(z, z).square()) + (
            self.noise.exp() + 0.1
        ) * torch.eye(len(x))
        L = torch.linalg.cholesky(k)
        a = torch.cholesky_solve(y[:, None], L)
        return (
            0.5 * (y @ a).squeeze()
            + L.diagonal().log().sum()
            + torch.linalg.matrix_norm(self.f.weight)
            + torch.linalg.slogdet(k)[1] * 0.01
            + torch.linalg.solve(k, y).sum() * 0.01
        )


@on(lambda: (torch.randn(16, 12),))
class Randomness(nn.Module):
    """Eight ways to draw numbers."""

    def __init__(self):
        super().__init__()
        self.l = nn.ModuleList(nn.Linear(12, 12) for _ in range(6))
        self.k = nn.Parameter(torch.randn(12, 12))

    def forward(self, x):
        a = F.alpha_dropout(F.selu(self.l[0](x)), 0.1, True)
        a = F.rrelu(self.l[1](a), training=True)
        a = F.dropout2d(self.l[2](a)[:, :, None, None], 0.2, True)[..., 0, 0]
        g = F.gumbel_softmax(self.l[3](a), tau=0.5, hard=True) @ self.k
        p = torch.sigmoid(self.l[4](g))
        b = torch.bernoulli(p).detach()
        logp = b * p.log() + (1 - b) * (1 - p).log()
        i = torch.multinomial(self.l[5](a).softmax(-1), 1)
        ent = torch.distributions.Normal(a, 1.0 + p).rsample()
        return (
            (logp.sum(-1) * (b.mean(-1) - 0.5)).mean()
            + self.l[5](a).log_softmax(-1).gather(1, i).mean()
            + ent.square().mean()
            + a[:, torch.randperm(12)].mul(x).mean()
        )


@on(lambda: (torch.randn(8, 6),))
class NeuralOde(nn.Module):
    """Runge-Kutta and a trace by vjp."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(7, 24), nn.Linear(24, 6)

    def f(self, t, x):
        return self.b(
            torch.tanh(self.a(torch.cat([x, torch.full((*x.shape[:-1], 1), t)], -1)))
        )

    def forward(self, x):
        h, div = 0.25, 0
        for i in range(4):
            t = i * h
            k1 = self.f(t, x)
            k2 = self.f(t + h / 2, x + h / 2 * k1)
            k3 = self.f(t + h / 2, x + h / 2 * k2)
            k4 = self.f(t + h, x + h * k3)
            e = torch.randn_like(x)
            _, vjp = torch.func.vjp(lambda z: self.f(t, z), x)
            div = div + (vjp(e)[0] * e).sum(-1).mean() * h
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x.square().mean() - div


@on(lambda: (torch.randn(8, 10),))
class Maml(nn.Module):
    """Two gradient steps inside of the forward."""

    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Parameter(torch.randn(10, 20) / 3), nn.Parameter(
            torch.randn(20, 10) / 4
        )
        self.lr = nn.Parameter(torch.tensor(0.1))

    def forward(self, x):
        def loss(p, t):
            return (torch.tanh(t @ p[0]) @ p[1] - t).square().mean()

        p = (self.w1, self.w2)
        for _ in range(2):
            g = torch.func.grad(loss)(p, x[:4])
            p = tuple(a - self.lr * b for a, b in zip(p, g))
        return loss(p, x[4:])
