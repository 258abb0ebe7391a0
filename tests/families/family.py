"""One row of the list of families: a model, its inputs and its loss."""
import contextlib
import dataclasses
import typing

import torch
from torch import nn


@dataclasses.dataclass
class Family:
    name: str
    library: str
    make: typing.Callable[[], nn.Module]
    # Input name: function of the number of examples, which makes them.
    inputs: dict
    # From the model and its inputs to the one output that is exported.
    output: typing.Callable | None = None
    loss: str = "cross_entropy"  # mse, bce_with_logits, or model
    class_axis: int = -1
    learning_rate: float = 0.01
    batch: int = 4
    # Buffers that a file without marks shows as weights, by the ends of their names.
    buffers: tuple = ()


class OneOutput(nn.Module):
    """The model with the one output that the row names."""

    def __init__(self, family):
        super().__init__()
        self.model = family.make()
        self.output = family.output or first_tensor
        self.names = list(family.inputs)

    def forward(self, *values):
        return self.output(self.model, **dict(zip(self.names, values)))


def first_tensor(model, **inputs):
    """The output of a model that takes its inputs in the row's order."""
    found = model(*inputs.values())
    while not isinstance(found, torch.Tensor):
        found = list(found.values() if hasattr(found, "values") else found)[0]
    return found


def field(name, **constants):
    """An output by its name, of a model that takes its inputs by name."""
    return lambda model, **inputs: getattr(model(**inputs, **constants), name)


# Inputs. Every call with the same generator state gives the same numbers.

def image(*shape):
    return lambda n, g: torch.randn(n, *shape, generator=g)


def numbers(*shape):
    return image(*shape)


def tokens(vocabulary, *shape):
    return lambda n, g: torch.randint(3, vocabulary, (n, *shape), generator=g)


def padding(length):
    """A mask of ones with up to a third of zeros at the end of each row."""
    def make(n, g):
        lengths = torch.randint(length - length // 3, length + 1, (n, 1), generator=g)
        return (torch.arange(length) < lengths).to(torch.int64)
    return make


def labels(vocabulary, length):
    """Tokens, of which a quarter is -100, the label that counts nowhere."""
    def make(n, g):
        found = torch.randint(3, vocabulary, (n, length), generator=g)
        return torch.where(torch.rand(n, length, generator=g) < 0.25, -100, found)
    return make


KEPT = {1, 2, 3, 10}  # channels that `narrow` never divides: images, classes


@contextlib.contextmanager
def narrow(factor):
    """Layers made in this context have a factor less channels, so that classes
    whose widths are no arguments are exported small."""
    def less(width):
        return width if width in KEPT or width % factor else width // factor

    def divide(kind, positions):
        original = kind.__init__

        def init(self, *args, **kwargs):
            args = list(args)
            for position, name in positions:
                if position < len(args):
                    if isinstance(args[position], int):
                        args[position] = less(args[position])
                elif isinstance(kwargs.get(name), int):
                    kwargs[name] = less(kwargs[name])
            if "groups" in kwargs:
                kwargs["groups"] = less(kwargs["groups"])
            original(self, *args, **kwargs)
        return original, init

    kinds = {nn.Linear: [(0, "in_features"), (1, "out_features")]}
    for kind in (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d):
        kinds[kind] = [(0, "in_channels"), (1, "out_channels")]
    for kind in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
        kinds[kind] = [(0, "num_features")]
    kinds[nn.LayerNorm] = [(0, "normalized_shape")]
    kinds[nn.GroupNorm] = [(1, "num_channels")]
    originals = {}
    for kind, positions in kinds.items():
        originals[kind], kind.__init__ = divide(kind, positions)
    try:
        yield
    finally:
        for kind, original in originals.items():
            kind.__init__ = original


def narrowed(factor, make, *args, **kwargs):
    def made():
        with narrow(factor):
            return make(*args, **kwargs)
    return made
