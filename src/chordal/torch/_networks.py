"""Networks that give every variable a score for each label; by name, or the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from chordal.estimators.grid_crf import NEIGHBOURS
from chordal.torch._forms import Form, GraphForm, ImageForm
from chordal.torch._inputs import PADDING, Inputs

#: The user's: a module, or a function of the size of inputs and the number of labels.
Network: TypeAlias = str | nn.Module | Callable[..., nn.Module]


@dataclass(frozen=True)
class Sizes:
    """The settings of the networks that have names."""

    hidden: int
    n_layers: int
    embedding: int
    channels: int
    window: int
    dropout: float


class MLP(nn.Module):
    """Each position separately: layers of hidden units with ReLU and dropout."""

    def __init__(self, inputs: Inputs, n_labels: int, sizes: Sizes) -> None:
        super().__init__()
        self.first, n = _first(inputs, sizes)
        self.layers = _stack(n, n_labels, sizes)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Scores [batch, steps, labels]."""
        return _spread(self.layers(self.first(x[mask])), mask)


class ImageCNN(nn.Module):
    """Each image separately: two rounds of 3 × 3 convolutions and pooling, then hidden units."""

    def __init__(self, inputs: Inputs, n_labels: int, sizes: Sizes) -> None:
        super().__init__()
        *depth, height, width = inputs.shape
        c = sizes.channels
        self.flat = not depth
        self.convolutions = nn.Sequential(
            *(nn.Conv2d(depth[0] if depth else 1, c, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)),
            *(nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)),
            *(nn.Flatten(), nn.Dropout(sizes.dropout)),
        )
        n = 2 * c * -(-height // 4) * -(-width // 4)
        self.layers = _stack(n, n_labels, sizes)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Scores [batch, steps, labels]."""
        images = x[mask]
        images = images.unsqueeze(1) if self.flat else images
        return _spread(self.layers(self.convolutions(images)), mask)


class SequenceCNN(nn.Module):
    """Convolutions along the sequence: a position sees its neighbours."""

    def __init__(self, inputs: Inputs, n_labels: int, sizes: Sizes) -> None:
        super().__init__()
        self.first, n = _first(inputs, sizes)
        before = [n] + [sizes.hidden] * (sizes.n_layers - 1)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(k, sizes.hidden, sizes.window, padding=sizes.window // 2) for k in before
        )
        self.dropout = nn.Dropout(sizes.dropout)
        self.last = nn.Linear(sizes.hidden, n_labels)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Scores [batch, steps, labels]."""
        there = mask.unsqueeze(1)
        values = self.first(x).transpose(1, 2)
        for convolution in self.convolutions:
            # What stands beyond the end must not depend on the other sequences.
            values = self.dropout(torch.relu(convolution(values * there)))
        scores: Tensor = self.last(values.transpose(1, 2))
        return scores


class BiLSTM(nn.Module):
    """A position sees the whole sequence: memory cells that read it forwards and backwards."""

    def __init__(self, inputs: Inputs, n_labels: int, sizes: Sizes) -> None:
        super().__init__()
        self.first, n = _first(inputs, sizes)
        between = sizes.dropout if sizes.n_layers > 1 else 0.0
        options = {"batch_first": True, "bidirectional": True, "dropout": between}
        self.cells = nn.LSTM(n, sizes.hidden, sizes.n_layers, **options)
        self.dropout = nn.Dropout(sizes.dropout)
        self.last = nn.Linear(2 * sizes.hidden, n_labels)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Scores [batch, steps, labels]."""
        lengths = mask.sum(1).clamp(min=1).cpu()
        values = self.dropout(self.first(x))
        packed = pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)
        found, _ = pad_packed_sequence(
            self.cells(packed)[0], batch_first=True, total_length=mask.shape[1]
        )
        scores: Tensor = self.last(self.dropout(found))
        return scores


class PixelLayers(nn.Module):
    """Convolutions of images or volumes: a pixel sees a window around it; of 1, itself alone."""

    def __init__(self, inputs: Inputs, n_labels: int, sizes: Sizes, n_axes: int) -> None:
        super().__init__()
        convolution = nn.Conv3d if n_axes == 3 else nn.Conv2d
        n, layers = inputs.shape[0], list[nn.Module]()
        for _ in range(sizes.n_layers):
            layers += [convolution(n, sizes.hidden, sizes.window, padding=sizes.window // 2)]
            layers += [nn.ReLU(), nn.Dropout(sizes.dropout)]
            n = sizes.hidden
        self.layers = nn.Sequential(*layers, convolution(n, n_labels, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Scores [batch, labels, height, width]."""
        scores: Tensor = self.layers(x)
        return scores


class OfNodes(nn.Module):
    """A network that sees single positions, for the nodes of graphs."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Scores [nodes, labels]."""
        there = torch.ones((1, len(x)), dtype=torch.bool, device=x.device)
        scores: Tensor = self.network(x.unsqueeze(0), there)
        return scores.squeeze(0)


class Given(nn.Module):
    """The user's module, called with the mask or with edges if it takes a second argument."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        taken = inspect.signature(module.forward).parameters.values()
        places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.takes_more = sum(p.kind in places for p in taken) > 1

    def forward(self, x: Tensor, *more: Tensor) -> Tensor:
        """Scores, in the shape that the structure asks for."""
        try:
            scores: Tensor = self.module(x, *more) if self.takes_more else self.module(x)
        except RuntimeError as error:
            if type(error) is not RuntimeError:
                raise  # such as too little memory
            raise ValueError(
                f"network does not take inputs of shape {tuple(x.shape)}: {error}"
            ) from error
        return scores


PRESETS = ("mlp", "cnn", "bilstm")


def network_of(network: Network, form: Form, n_labels: int, sizes: Sizes) -> nn.Module:
    """The network for these inputs; a module that is given is copied."""
    if isinstance(network, nn.Module):
        return Given(deepcopy(network))
    if isinstance(network, str):
        return _preset(network, form, n_labels, sizes)
    made = network(form.inputs.size, n_labels)
    if not isinstance(made, nn.Module):
        raise TypeError(f"network must give an nn.Module, got {made!r}")
    return Given(made)


def _preset(name: str, form: Form, n_labels: int, sizes: Sizes) -> nn.Module:
    inputs, crf = form.inputs, type(form.crf).__name__
    if name not in form.presets:
        names = ", ".join(map(repr, form.presets))
        raise ValueError(f"network {name!r} reads sequences; with a {crf} use one of {names}")
    if isinstance(form, ImageForm):
        near = sizes if name == "cnn" else replace(sizes, window=1)
        return PixelLayers(inputs, n_labels, near, NEIGHBOURS[form.crf.neighbours])
    images = len(inputs.shape) > 1
    if isinstance(form, GraphForm):
        if name == "cnn" and not images:
            raise ValueError(
                "network 'cnn' needs nodes that are images, [nodes, height, width]; use 'mlp'"
            )
        inner = ImageCNN if name == "cnn" else MLP
        return OfNodes(inner(inputs, n_labels, sizes))
    if name == "cnn" and images:
        return ImageCNN(inputs, n_labels, sizes)
    kinds = {"mlp": MLP, "cnn": SequenceCNN, "bilstm": BiLSTM}
    return kinds[name](inputs, n_labels, sizes)


def _first(inputs: Inputs, sizes: Sizes) -> tuple[nn.Module, int]:
    """What makes vectors of positions, and their length: embeddings of tokens, pixels in a row."""
    if inputs.shape == ():
        n_tokens = inputs.size
        assert isinstance(n_tokens, int)
        return nn.Embedding(n_tokens, sizes.embedding, padding_idx=PADDING), sizes.embedding
    return nn.Flatten(-len(inputs.shape)), prod(inputs.shape)


def _stack(n: int, n_labels: int, sizes: Sizes) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(sizes.n_layers):
        layers += [nn.Linear(n, sizes.hidden), nn.ReLU(), nn.Dropout(sizes.dropout)]
        n = sizes.hidden
    return nn.Sequential(*layers, nn.Linear(n, n_labels))


def _spread(rows: Tensor, mask: Tensor) -> Tensor:
    """Rows of the steps that are there, in their places; zeros elsewhere."""
    scores = rows.new_zeros((*mask.shape, rows.shape[-1]))
    scores[mask] = rows
    return scores
