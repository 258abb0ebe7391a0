"""Exports a family's model, and what PyTorch computes with it: losses, gradients
of the first step in f32 and in double."""
import contextlib
import copy
import warnings

import numpy as np
import torch
from torch.nn import functional as F

from family import OneOutput

STEPS = 20
BF16_DRAWS = 4
OPSETS = {"torchscript": 17, "dynamo": None}


def build(family):
    """The model with every parameter a little off its initial value: zeros and
    ones would hide wrong gradients. Stochastic depth never drops."""
    torch.manual_seed(0)
    model = OneOutput(family).train()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = 0.05 * torch.randn(parameter.shape, generator=generator)
            if parameter.requires_grad:
                parameter.add_(noise)
    for module in model.modules():
        if hasattr(module, "drop_prob"):
            module.drop_prob = 0.0
        if type(module).__name__ == "StochasticDepth":
            module.p = 0.0
        if type(module).__name__ == "LabelEmbedding":  # drops labels
            module.dropout_prob = 0.0
    return model


def examples(family, count):
    generator = torch.Generator().manual_seed(2)
    return {name: make(count, generator) for name, make in family.inputs.items()}


def export(family, model, exporter, path):
    """With a dynamic batch, in training form. The model has its state afterwards."""
    state = copy.deepcopy(model.state_dict())
    sample = tuple(examples(family, family.batch).values())
    names = list(family.inputs)
    outputs = ["output"]
    common = {"input_names": names, "output_names": outputs}
    if family.loss == "model":
        outputs = []
    if exporter == "torchscript":
        torch.onnx.export(
            model, sample, str(path), dynamo=False,
            training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
            opset_version=OPSETS[exporter],
            dynamic_axes={name: {0: "batch"} for name in [*names, *outputs]}, **common)
    else:
        batch = torch.export.Dim("batch")
        torch.onnx.export(
            model, sample, str(path), dynamo=True, optimize=False,
            dynamic_shapes=(tuple({0: batch} for _ in names),),
            external_data=False, verbose=False, **common)
    model.load_state_dict(state)


@contextlib.contextmanager
def without_dropout():
    """F.dropout and its kin are the identity, also where a model calls them."""
    names = ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
             "feature_alpha_dropout"]
    kept = {name: getattr(F, name) for name in names}
    attention = F.scaled_dot_product_attention

    def plain_attention(query, key, value, attn_mask=None, dropout_p=0.0,
                        is_causal=False, **options):
        return attention(query, key, value, attn_mask, 0.0, is_causal, **options)

    for name in names:
        setattr(F, name, lambda x, *args, **kwargs: x)
    F.scaled_dot_product_attention = plain_attention
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(F, name, function)
        F.scaled_dot_product_attention = attention


def loss_of(family, output, target):
    if family.loss == "model":
        return output
    if family.loss == "cross_entropy":
        return F.cross_entropy(output.movedim(family.class_axis, 1), target)
    if family.loss == "mse":
        return F.mse_loss(output, target)
    return F.binary_cross_entropy_with_logits(output, target)


def make_target(family, output, count):
    """Random targets for `count` examples, of the shape of one batch's output."""
    generator = torch.Generator().manual_seed(3)
    shape = [count, *output.shape[1:]]
    if family.loss == "mse":
        return torch.randn(shape, generator=generator)
    if family.loss == "bce_with_logits":
        return torch.rand(shape, generator=generator)
    classes = shape.pop(family.class_axis)
    return torch.randint(classes, shape, generator=generator)


def batch_loss(family, model, data, step):
    rows = {name: values[step * family.batch:(step + 1) * family.batch]
            for name, values in data.items()}
    target = rows.pop("target", None)
    return loss_of(family, model(*rows.values()), target)


def gradients(family, model, data):
    """The first step's, as arrays of doubles."""
    return loss_and_gradients(family, model, data)[1]


def loss_and_gradients(family, model, data, mixed=False):
    model = copy.deepcopy(model)
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        loss = batch_loss(family, model, data, 0)
    loss.backward()
    return loss.item(), {name: p.grad.double().numpy()
                         for name, p in model.named_parameters() if p.grad is not None}


def train(family, model, data):
    """The losses of STEPS steps."""
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=family.learning_rate,
                                momentum=0.9)
    losses = []
    for step in range(STEPS):
        loss = batch_loss(family, model, data, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def in_double(family, model, data):
    """Model and data in double; as they are where the model insists on f32."""
    wide = {name: v.double() if v.is_floating_point() else v
            for name, v in data.items()}
    try:
        double = copy.deepcopy(model).double()
        batch_loss(family, copy.deepcopy(double), wide, 0)
    except RuntimeError:
        return model, data
    return double, wide


def rounded(model, seed, unit=6e-8):
    """The model with parameters off by about as much as f32 rounds, or by `unit`."""
    model = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.mul_(1 + unit * noise.to(parameter.dtype))
    return model


def names_of_parameters(model):
    """Every name of each parameter, by its first: tied weights have several."""
    first, names = {}, {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(first.setdefault(parameter, name), []).append(name)
    return names


def make_data(family, model):
    """Inputs and targets for STEPS steps."""
    data = examples(family, STEPS * family.batch)
    if family.loss != "model":
        with without_dropout(), torch.no_grad():
            output = copy.deepcopy(model)(
                *(values[:family.batch] for values in data.values()))
        data["target"] = make_target(family, output, STEPS * family.batch)
    return data


def save_data(data, path):
    np.savez(path, **{name: values.numpy() for name, values in data.items()})


def facts(model):
    """What the comparison has to know of parameters' names."""
    return {"names": names_of_parameters(model),
            "frozen": [name for name, p in model.named_parameters()
                       if not p.requires_grad]}


def reference(family, model, data):
    """PyTorch's results: gradients in double, and by how much rounding moves them:
    the largest difference of gradients in f32, and in double from weights that are a
    little off. The same of the losses."""
    with without_dropout():
        losses = train(family, model, data)
        double, wide = in_double(family, model, data)
        exact = gradients(family, double, wide)
        others = [gradients(family, model, data)]
        # Several, because a sign that flips in front of a Relu is rare.
        for seed in range(4, 9):
            others += [gradients(family, rounded(double, seed), wide),
                       gradients(family, rounded(model, seed), data)]
        trained = [train(family, double, wide), train(family, rounded(double, 4), wide)]
    return {"gradients": exact, "losses": losses,
            "rounding": {name: max(float(np.linalg.norm(other[name] - gradient))
                                   for other in others)
                         for name, gradient in exact.items()},
            "rounding of losses": [max(abs(a - b) / max(abs(a), 1e-12) for b in others)
                                   for a, *others in zip(losses, *trained)]}


def mixed_reference(family, model, data):
    """The first step's loss and gradients in f32, and the relative errors of both
    under PyTorch's autocast to bf16: one of each draw, which moves the weights by
    half a unit of bf16."""
    with without_dropout():
        draws = [(model, *loss_and_gradients(family, model, data))]
        for seed in range(4, 4 + BF16_DRAWS - 1):
            moved = rounded(model, seed, 2**-9)
            draws.append((moved, *loss_and_gradients(family, moved, data)))
        errors = []
        for moved, loss, exact in draws:
            other_loss, other = loss_and_gradients(family, moved, data, mixed=True)
            errors.append((abs(other_loss - loss) / max(abs(loss), 1e-12),
                           relative_distance(other, exact)))
    return {"loss": draws[0][1], "gradients": draws[0][2],
            "loss errors": [error for error, _ in errors],
            "gradient errors": [error for _, error in errors]}


def relative_distance(gradients, exact):
    """Of all gradients together, in the 2-norm."""
    total = sum(np.linalg.norm(g) ** 2 for g in exact.values())
    off = sum(np.linalg.norm(gradients[name] - g) ** 2 for name, g in exact.items())
    return float(np.sqrt(off / max(total, 1e-60)))


def quiet():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    np.seterr(all="ignore")
