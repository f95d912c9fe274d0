"""Handwritten dates: a fair split, real days, the same seed the same data."""

from datetime import datetime

import numpy as np
import pytest
from sklearn.datasets import load_digits

from chordal.datasets import load_digit_dates


@pytest.fixture(scope="module")
def dates():
    return load_digit_dates(n_train=300, n_test=200)


def days(labels):
    return [datetime.strptime("".join(map(str, y)), "%d%m%Y").date() for y in labels]


def test_shapes_and_range(dates):
    for X, y, images, n in [
        (dates.X_train, dates.y_train, dates.images_train, 300),
        (dates.X_test, dates.y_test, dates.images_test, 200),
    ]:
        assert len(X) == len(y) == len(images) == n
        assert all(x.shape == (8, 64) and x.dtype == np.float64 for x in X)
        assert all(labels.shape == (8,) and labels.dtype.kind == "i" for labels in y)
        assert np.min(X) == 0.0
        assert np.max(X) == 1.0


def test_no_image_is_in_both_halves(dates):
    train, test = np.unique(dates.images_train), np.unique(dates.images_test)
    assert len(np.intersect1d(train, test)) == 0
    assert len(train) + len(test) <= 1797


def test_dates_exist_and_none_is_in_both(dates):
    train, test = days(dates.y_train), days(dates.y_test)
    assert {day.year for day in train + test} <= set(range(1995, 2005))
    assert len(set(train + test)) == 500


def test_images_show_their_digits():
    clean = load_digit_dates(n_train=50, n_test=50, blots=0.0)
    pixels, digit = load_digits(return_X_y=True)
    for x, y, images in zip(clean.X_test, clean.y_test, clean.images_test, strict=True):
        np.testing.assert_array_equal(digit[images], y)
        np.testing.assert_array_equal(x, pixels[images] / 16.0)


def test_blots_only_add_ink_to_their_share(dates):
    pixels = load_digits().data[np.array(dates.images_train)] / 16.0
    changed = np.array(dates.X_train) != pixels
    assert (np.array(dates.X_train)[changed] == 1.0).all()
    spoilt = changed.any(axis=2).mean()
    assert 0.3 < spoilt < 0.4


@pytest.mark.parametrize("seed", [0, 7])
def test_the_same_seed_gives_the_same_data(seed):
    a, b = (load_digit_dates(n_train=20, n_test=10, random_state=seed) for _ in range(2))
    for name in vars(a):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_another_seed_gives_other_data(dates):
    other = load_digit_dates(n_train=300, n_test=200, random_state=1)
    assert not np.array_equal(dates.y_train, other.y_train)
    assert not np.array_equal(dates.images_train, other.images_train)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_train": 0}, "n_train must be an integer of at least 1, got 0"),
        ({"n_test": 1.5}, "n_test must be an integer of at least 1, got 1.5"),
        ({"blots": -0.1}, "blots must be a number of at least 0, got -0.1"),
        ({"blots": 2.0}, "blots must be a share of at most 1, got 2.0"),
        ({"n_train": 3000, "n_test": 1000}, "n_train \\+ n_test must be at most 3653"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_digit_dates(**arguments)
