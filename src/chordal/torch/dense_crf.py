"""Mean field on images, with links between all similar pixels within a window."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from chordal._validate import check_number
from chordal.torch import _graph_checks
from chordal.torch._checks import check_count, check_tensor, looks_at_numbers, same_device
from chordal.torch._scores import common_dtype, full_precision

LARGEST = 1e15  # of widths and colours: squares of larger ones overflow in float32


class DenseCRF(nn.Module):
    """A fully connected CRF for segmentation, with Gaussian kernels cut off at a window.

    Two pixels at a distance d attract equal labels by
    w₁ exp(−d²/2θ₁² − ‖difference of colours‖²/2θ₂²) + w₂ exp(−d²/2θ₃²).
    Mean field takes `n_iter` parallel steps, and derivatives go through all of them.

    Parameters
    ----------
    num_labels : int
        Number of labels.
    window : int
        Side of the square window around a pixel, in pixels; odd, at least 3.
    n_iter : int
        Number of mean-field steps.
    position_width, colour_width, smoothness_width : float
        Initial θ₁ and θ₃ in pixels, θ₂ in the unit of colours.

    Attributes
    ----------
    log_widths, weights : nn.Parameter
        Logarithms of θ₁, θ₂, θ₃; and w₁, w₂.
    compatibility : nn.Parameter
        How much two labels attract each other, [num_labels, num_labels]; initially the identity.

    References
    ----------
    Krähenbühl and Koltun (2011), Efficient inference in fully connected CRFs with Gaussian edge
    potentials. Zheng et al. (2015), Conditional random fields as recurrent neural networks.
    Teichmann and Cipolla (2018), Convolutional CRFs for semantic segmentation.

    Examples
    --------
    >>> import torch
    >>> crf = DenseCRF(num_labels=3, window=5)
    >>> scores = torch.randn(2, 3, 8, 10, requires_grad=True)  # [batch, labels, height, width]
    >>> images, labels = torch.rand(2, 3, 8, 10), torch.randint(3, (2, 8, 10))
    >>> loss = torch.nn.functional.nll_loss(crf(scores, images), labels)
    >>> loss.backward()
    >>> crf.decode(scores, images).shape
    torch.Size([2, 8, 10])
    """

    def __init__(
        self,
        num_labels: int,
        window: int = 7,
        n_iter: int = 5,
        *,
        position_width: float = 3.0,
        colour_width: float = 0.2,
        smoothness_width: float = 1.0,
    ) -> None:
        check_count("num_labels", num_labels)
        check_count("window", window, 3)
        if window % 2 == 0:
            raise ValueError(f"window must be an odd number of at least 3, got {window}")
        check_count("n_iter", n_iter)
        widths = (position_width, colour_width, smoothness_width)
        for name, width in zip(("position", "colour", "smoothness"), widths, strict=True):
            check_number(f"{name}_width", width, strict=True)
            if not 1 / LARGEST <= width <= LARGEST:
                raise ValueError(
                    f"{name}_width must be from {1 / LARGEST:g} to {LARGEST:g}, got {width!r}"
                )
        super().__init__()
        self.num_labels, self.window, self.n_iter = num_labels, window, n_iter
        self.log_widths = nn.Parameter(torch.tensor(widths).log())
        self.weights = nn.Parameter(torch.ones(2))
        self.compatibility = nn.Parameter(torch.eye(num_labels))

    def forward(self, scores: Tensor, images: Tensor) -> Tensor:
        """Logarithms of marginals, for `nll_loss`, in the shape of scores.

        Parameters
        ----------
        scores : Tensor
            Of labels, [batch, num_labels, height, width].
        images : Tensor
            Colours, [batch, channels, height, width].
        """
        self._check(scores, images)
        dtype = common_dtype(scores, images, self.weights)
        scores, kernel = scores.to(dtype), self._kernel(images.to(dtype))
        attraction = (self.compatibility + self.compatibility.T).to(dtype) / 2
        log_q = scores.log_softmax(1)
        _graph_checks.check_possible(scores, 1)
        for _ in range(self.n_iter):
            near = (self._neighbours(log_q.exp()) * kernel).sum(2)  # [B, L, H, W]
            with full_precision(near):
                pull = torch.einsum("lm,bmhw->blhw", attraction, near)
            log_q = (scores + pull).log_softmax(1)
        return _graph_checks.check_answer(
            log_q, "the layer", "look at log_widths, weights and compatibility"
        )

    def marginals(self, scores: Tensor, images: Tensor) -> Tensor:
        """The probability of every label of every pixel, in the shape of scores."""
        return self.forward(scores, images).exp()

    def decode(self, scores: Tensor, images: Tensor) -> Tensor:
        """The most probable label of every pixel, [batch, height, width]."""
        with torch.no_grad():
            return self.forward(scores, images).argmax(1)

    def _neighbours(self, values: Tensor) -> Tensor:
        """[B, C, window², H, W]: the values around every pixel, 0 outside of the image."""
        batch, channels, height, width = values.shape
        found = functional.unfold(values, self.window, padding=self.window // 2)
        return found.reshape(batch, channels, self.window**2, height, width)

    def _kernel(self, images: Tensor) -> Tensor:
        """[B, 1, window², H, W]: how strongly pixels pull each other; 0 for a pixel and itself.

        What is outside of the image pulls nothing, as no label there has a probability.
        """
        side = torch.arange(self.window, device=images.device) - self.window // 2
        distance = (side[:, None] ** 2 + side**2).reshape(1, 1, -1, 1, 1).to(images.dtype)
        colour = (self._neighbours(images) - images.unsqueeze(2)).square().sum(1, keepdim=True)
        near, alike, smooth = (0.5 * (-2 * self.log_widths).exp()).to(images.dtype)
        first, second = self.weights.to(images.dtype)
        kernel = first * (-distance * near - colour * alike).exp()
        kernel = kernel + second * (-distance * smooth).exp()
        return kernel * (distance > 0)

    def _check(self, scores: Tensor, images: Tensor) -> None:
        _graph_checks.check_image(scores, self.num_labels, self.weights)
        check_tensor("images", images)
        if images.dim() != 4 or images.shape[0] != scores.shape[0] or images.shape[1] < 1:
            raise ValueError(
                f"images must have shape [{scores.shape[0]}, channels, height, width], got "
                f"{tuple(images.shape)}"
            )
        if images.shape[2:] != scores.shape[2:]:
            raise ValueError(
                "images and scores must have the same height and width, got "
                f"{tuple(images.shape[2:])} and {tuple(scores.shape[2:])}"
            )
        if not images.is_floating_point():
            raise TypeError(f"images must be floating point, got {images.dtype}")
        same_device("images", images, "the layer's parameters", self.weights)
        axes = ("image", "channel", "row", "column")
        _graph_checks.check_scores("images", images, axes, finite=True)
        if not images.numel() or not looks_at_numbers(images):
            return
        largest = float(images.detach().abs().max())
        if largest > LARGEST:
            raise ValueError(
                f"images must be at most {LARGEST:g} in size, got {largest:g}; scale the colours"
            )
