"""The CRF layer on images: neighbouring pixels depend on each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from chordal._validate import check_choice
from chordal.structures import Grid
from chordal.torch import _graph_checks
from chordal.torch._checks import check_count
from chordal.torch._graph_choices import Method
from chordal.torch.structured_crf import StructuredCRF

MOST_SIZES = 8  # of images, whose grids are kept


class ImageCRF(nn.Module):
    """A grid CRF on top of the scores of a segmentation network; images may differ in size.

    It uses a `StructuredCRF` per image size, all with the same tables.

    Parameters
    ----------
    num_labels : int
        Number of labels.
    inference : str, MeanField or LoopyBP
        As in `StructuredCRF`. Exact methods are feasible for narrow images: up to about 20 pixels
        on the shorter side with two labels, fewer with more.
    neighbours : {4, 8}
        Number of neighbours of a pixel; 8 includes diagonals.
    tying : {"all", "direction"}
        Whether all edges share a table, or only those of the same direction (right, down, …).
    ignore_index : int
        Value in `labels` for an unobserved label.

    Attributes
    ----------
    tables : nn.Parameter
        Scores of neighbouring labels, [number of tables, num_labels, num_labels]: rows are the
        labels of the left or upper pixel.

    Examples
    --------
    >>> import torch
    >>> crf = ImageCRF(num_labels=3)
    >>> scores = torch.randn(2, 3, 8, 10, requires_grad=True)  # [batch, labels, height, width]
    >>> labels = torch.randint(3, (2, 8, 10))
    >>> (-crf(scores, labels, reduction="token_mean")).backward()
    >>> crf.decode(scores).shape, crf.marginals(scores).shape
    (torch.Size([2, 8, 10]), torch.Size([2, 3, 8, 10]))
    """

    def __init__(
        self,
        num_labels: int,
        inference: Method = "mean_field",
        neighbours: int = 4,
        tying: str = "all",
        *,
        ignore_index: int = -100,
    ) -> None:
        check_count("num_labels", num_labels)
        if neighbours not in (4, 8):
            raise ValueError(f"neighbours must be 4 or 8, got {neighbours!r}")
        check_choice("tying", tying, ("all", "direction"))
        super().__init__()
        self.num_labels, self.neighbours, self.tying = num_labels, neighbours, tying
        self.inference, self.ignore_index = inference, ignore_index
        n_tables = neighbours // 2 if tying == "direction" else 1
        self.tables = nn.Parameter(torch.empty(n_tables, num_labels, num_labels))
        self.grids = nn.ModuleDict()  # of the sizes seen; they hold no parameters
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters from a uniform distribution between -0.1 and 0.1."""
        nn.init.uniform_(self.tables, -0.1, 0.1)

    def prepare(self, height: int, width: int) -> StructuredCRF:
        """The layer for a size of images; created if it does not exist.

        `torch.compile` and `torch.export` cannot create it: call this first.
        """
        check_count("height", height)
        check_count("width", width)
        key = f"{height}x{width}"
        if key not in self.grids:
            if torch.compiler.is_compiling():
                raise RuntimeError(
                    f"the layer has no grid of {height} × {width} pixels yet, and cannot create "
                    "one "
                    f"inside a compiled graph; call prepare({height}, {width}) first"
                )
            structure = Grid([(height, width)], self.num_labels, self.neighbours)
            made = StructuredCRF(
                structure,
                self.inference,
                self.tying,
                learned=False,
                ignore_index=self.ignore_index,
            )
            if len(self.grids) >= MOST_SIZES:
                del self.grids[next(iter(self.grids))]
            self.grids[key] = made.to(self.tables.device)
        grid = self.grids[key]
        assert isinstance(grid, StructuredCRF)
        return grid

    def forward(self, scores: Tensor, labels: Tensor, reduction: str = "sum") -> Tensor:
        """The log-likelihood of labels.

        Parameters
        ----------
        scores : Tensor
            [batch, num_labels, height, width].
        labels : Tensor
            Integers [batch, height, width]; `ignore_index` where a label was not observed.
        reduction : {"none", "sum", "mean", "token_mean"}
            "mean" is over images, "token_mean" over pixels.
        """
        grid, unary = self._grid(scores)
        value: Tensor = grid(unary, self._pixels(labels, scores), reduction, tables=self.tables)
        return value

    def pseudo_log_likelihood(
        self, scores: Tensor, labels: Tensor, reduction: str = "sum"
    ) -> Tensor:
        """Σ over pixels of the log probability of its label, given those of its neighbours."""
        grid, unary = self._grid(scores)
        gold = self._pixels(labels, scores)
        return grid.pseudo_log_likelihood(unary, gold, reduction, tables=self.tables)

    def log_partition(self, scores: Tensor) -> Tensor:
        """log Z of each image, [batch]."""
        grid, unary = self._grid(scores)
        return grid.log_partition(unary, tables=self.tables)

    def marginals(self, scores: Tensor) -> Tensor:
        """The probability of every label of every pixel, in the shape of scores."""
        grid, unary = self._grid(scores)
        return grid.marginals(unary, tables=self.tables).transpose(1, 2).reshape(scores.shape)

    def decode(self, scores: Tensor) -> Tensor:
        """The labels of pixels, [batch, height, width]: see `StructuredCRF.decode`."""
        grid, unary = self._grid(scores)
        labels = grid.decode(unary, tables=self.tables)
        return labels.reshape(scores.shape[0], *scores.shape[2:])

    def k_best(self, scores: Tensor, k: int, *, pad: int = -1) -> tuple[Tensor, Tensor]:
        """The k best labellings, [batch, k, height, width], and their scores, [batch, k]."""
        check_count("k", k)
        grid, unary = self._grid(scores)
        labels, value = grid.k_best(unary, k, tables=self.tables, pad=pad)
        return labels.reshape(scores.shape[0], k, *scores.shape[2:]), value

    def sample(
        self, scores: Tensor, n: int = 1, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Labels drawn from the model, [n, batch, height, width]."""
        check_count("n", n)
        grid, unary = self._grid(scores)
        drawn = grid.sample(unary, n, tables=self.tables, generator=generator)
        return drawn.reshape(n, scores.shape[0], *scores.shape[2:])

    def entropy(self, scores: Tensor) -> Tensor:
        """The entropy of each image's labelling, in nats, [batch]."""
        grid, unary = self._grid(scores)
        return grid.entropy(unary, tables=self.tables)

    def _grid(self, scores: Tensor) -> tuple[StructuredCRF, Tensor]:
        """The layer for this size of images, and scores as it takes them."""
        _graph_checks.check_image(scores, self.num_labels, self.tables)
        height, width = scores.shape[2:]
        return self.prepare(height, width), scores.flatten(2).transpose(1, 2)

    def _pixels(self, labels: Tensor, scores: Tensor) -> Tensor:
        _graph_checks.check_pixels(labels, scores, self.ignore_index)
        return labels.flatten(1)
