"""Snakes read from files, and what is said when they are not right."""

import numpy as np
import pytest

from chordal.datasets import load_snakes
from chordal.datasets.snakes import neighbourhood


def arrays():
    out = {}
    for part in ("train", "test"):
        pixels = np.zeros((10, 3), dtype=np.uint8)
        pixels[:, 2] = 255
        pixels[1] = (255, 0, 0)
        out |= {
            f"{part}_shapes": np.array([[2, 3], [1, 4]]),
            f"{part}_offsets": np.array([0, 6, 10]),
            f"{part}_X": pixels,
            f"{part}_y": np.arange(10, dtype=np.uint8),
        }
    return out


def written(folder, **changed):
    file = folder / "snakes.npz"
    np.savez(file, **{k: v for k, v in (arrays() | changed).items() if v is not None})
    return file


def test_what_is_read(tmp_path):
    snakes = load_snakes(written(tmp_path))
    assert [image.shape for image in snakes.images] == [(2, 3, 3), (1, 4, 3)]
    assert snakes.y[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert snakes.test_X[1].shape == (1, 4, 45)


def test_neighbours_by_hand(tmp_path):
    image = load_snakes(written(tmp_path)).images[0]
    around = neighbourhood(image).reshape(2, 3, 3, 3, 5)
    assert around[0, 1, 1, 1].argmax() == 3  # red, of the five colours
    assert around[0, 0, 1, 2].argmax() == 3  # to the right of the first cell
    assert around[1, 1, 0, 1].argmax() == 3  # above the one below
    assert around[1, 2, 2].argmax(axis=1).tolist() == [0, 0, 0]  # outside


BAD = [
    ({"train_y": None}, "has no array 'train_y'"),
    ({"test_y": np.zeros(10)}, "test_y in .* must be whole numbers, got float64"),
    ({"train_shapes": np.array([[2, 3, 1]])}, "must be heights and widths"),
    ({"train_shapes": np.array([[2, 3], [1, -4]])}, "must be heights and widths"),
    ({"train_offsets": np.array([0, 5, 10])}, "train_offsets in .* do not fit"),
    ({"test_X": np.zeros((9, 3), dtype=np.uint8)}, "test_X and test_y in .* do not fit"),
    ({"test_y": np.full(10, 11, dtype=np.uint8)}, "must be between 0 and 10"),
    ({"test_y": np.array([None] * 10, dtype=object)}, "pickle|Object arrays"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_files_are_named(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        load_snakes(written(tmp_path, **change))


def test_a_file_that_is_cut_off(tmp_path):
    file = written(tmp_path)
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(ValueError, match=r"not an npz file, or is damaged|pickle"):
        load_snakes(file)
