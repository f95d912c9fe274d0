"""Data sets read from files: what is in them, and what is said when they are not right."""

import gzip

import numpy as np
import pytest
import scipy.io

from chordal.datasets import _files, load_ocr_letters, load_pa7


def line(number, letter, following, word, position, fold, pixels, end="\t\n"):
    head = f"{number}\t{letter}\t{following}\t{word}\t{position}\t{fold}\t"
    return head + "\t".join(map(str, pixels)) + end


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(2, size=(4, 128))


def words(pixels, **kwargs):
    """The words "it" and "is"."""
    fields = [
        (1, "i", 2, 1, 1, 3),
        (2, "t", -1, 1, 2, 3),
        (3, "i", 4, 2, 1, 0),
        (4, "s", -1, 2, 3, 0),
    ]
    return [line(*f, p, **kwargs) for f, p in zip(fields, pixels, strict=True)]


def written(tmp_path, text, name="letter.data.gz"):
    file = tmp_path / name
    data = text.encode()
    file.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    return file


@pytest.mark.parametrize("name", ["letter.data.gz", "letter.data"])
@pytest.mark.parametrize("end", ["\t\n", "\n", "\t\r\n", "\r\n"])
def test_letters(tmp_path, pixels, name, end):
    letters = load_ocr_letters(written(tmp_path, "".join(words(pixels, end=end)), name))
    assert ["".join(y) for y in letters.y] == ["it", "is"]
    assert letters.folds.tolist() == [3, 0]
    np.testing.assert_array_equal(np.concatenate(letters.images).reshape(4, 128), pixels)
    assert letters.images[0].shape == (2, 16, 8)
    np.testing.assert_array_equal(letters.X[1], pixels[2:])
    assert letters.X[1].dtype == np.float64


def no_network(*arguments, **options):
    raise OSError("there is no network")


def test_where_letters_are_looked_for(tmp_path, pixels, monkeypatch):
    monkeypatch.delenv("CHORDAL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_files.urllib.request, "urlopen", no_network)
    with pytest.raises(FileNotFoundError, match=r"letter.data.gz.*folder 'ocr'.*CHORDAL_DATA"):
        load_ocr_letters()
    monkeypatch.setenv("CHORDAL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no letter.data.gz or letter.data, and .*/ocr"):
        load_ocr_letters()
    (tmp_path / "ocr").mkdir()
    written(tmp_path / "ocr", "".join(words(pixels)))
    assert len(load_ocr_letters().y) == len(load_ocr_letters(tmp_path / "ocr").y) == 2
    with pytest.raises(FileNotFoundError, match=r"no letter.data"):
        load_ocr_letters(tmp_path / "elsewhere")


def replaced(row, old, new):
    def change(rows):
        rows[row] = rows[row].replace(old, new, 1)
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced(1, "\tt\t", "\tT\t"), r"line 2: must begin with id, letter"),
        (replaced(1, "\tt\t", "\tth\t"), r"line 2: must begin with id, letter"),
        (replaced(2, "3\t", "three\t"), r"line 3: must begin with id, letter"),
        (replaced(2, "3\t", ""), r"line 3: must begin with id, letter"),
        (replaced(3, "s\t-1\t2\t3\t0", "s\t-1\t2\t3\t10"), r"line 4: must have a fold from 0 to 9"),
        (replaced(1, "t\t-1\t1", "t\t-1\t2"), r"line 2: must go on with the word"),
        (replaced(3, "s\t-1", "s\t5"), r"line 4: must end a word"),
        (lambda rows: [*rows[:3], rows[3][:-4] + "2\t\n"], r"line 4: must end with 128 pixels"),
        (lambda rows: [*rows[:3], rows[3].replace("\t", " ")], r"line 4: must end with 128 pixels"),
        (lambda rows: [*rows[:2], "3\ti\t4\n", rows[3]], r"line 3: must have 134 fields"),
        (lambda rows: ["\n", *rows], r"line 1: must have 134 fields"),
        (lambda rows: [*rows[:3], rows[3][:-1]], r"ends within line 4: it is cut off"),
        (lambda rows: [], r"has no line that ends"),
    ],
)
def test_lines_that_are_wrong_are_named(tmp_path, pixels, change, message):
    with pytest.raises(ValueError, match=message):
        load_ocr_letters(written(tmp_path, "".join(change(words(pixels)))))


def test_packed_files_that_are_damaged(tmp_path, pixels, monkeypatch):
    file = written(tmp_path, "".join(words(pixels)))
    whole = file.read_bytes()
    for damaged in (whole[:40], b"letters", whole[:30] + b"\xff\x00\xff" + whole[33:]):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is not a gzip file, or is damaged|CRC"):
            load_ocr_letters(file)
    file.write_bytes(whole)
    monkeypatch.setattr("chordal.datasets.ocr_letters.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        load_ocr_letters(file)


# -------------------------------------------------------------------------------- assignment 7


@pytest.fixture
def arrays():
    rng = np.random.default_rng(1)
    made = {}
    for part, n in (("train", 5), ("test", 2)):
        made[f"full_{part}Data_X"] = rng.integers(1, 3, size=(n, 3, 32)).astype(np.uint8)
        made[f"full_{part}Data_y"] = rng.integers(1, 27, size=(n, 3)).astype(np.uint8)
    for name in ("Train1", "Train2", "Validation1", "Validation2", "Test1"):
        made[f"{name}X"] = rng.integers(2, size=(4, 129)).astype(np.uint8)
        made[f"{name}Y"] = rng.integers(2, size=4).astype(np.uint8)
    made["Part1Lambdas"] = made["ValidationAccuracy"] = np.linspace(0.0, 1.0, 11)
    return made


def packed(tmp_path, arrays):
    file = tmp_path / "coursera_pgm_pa7.npz"
    np.savez(file, **arrays)
    return file


def matlab(folder, arrays):
    """As the assignment has them: a file for each array, words in a struct array."""
    folder.mkdir()
    words = {}
    for part in ("trainData", "testData"):
        X, y = arrays[f"full_{part}_X"], arrays[f"full_{part}_y"]
        cells = np.empty((1, len(X)), dtype=[("X", object), ("y", object)])
        for k in range(len(X)):
            cells[0, k] = X[k], y[k][None]
        words[part] = cells
    scipy.io.savemat(folder / "Part2FullDataset.mat", words)
    for name, array in arrays.items():
        if not name.startswith("full"):
            column = array[:, None] if array.ndim == 1 else array
            scipy.io.savemat(folder / f"{name}.mat", {name: column})
    return folder


def test_words(tmp_path, arrays):
    loaded = [load_pa7(packed(tmp_path, arrays)), load_pa7(matlab(tmp_path / "mat", arrays))]
    for pa7 in loaded:
        pixels = np.array(pa7.images_train).swapaxes(2, 3).reshape(5, 3, 32) + 1  # down columns
        np.testing.assert_array_equal(pixels, arrays["full_trainData_X"])
        for letters, labels in zip(pa7.y_test, arrays["full_testData_y"], strict=True):
            assert [ord(letter) - 96 for letter in letters] == labels.tolist()
        assert pa7.images_test[0].shape == (3, 8, 4)
        for name, array in pa7.part_one.items():
            np.testing.assert_array_equal(array, arrays[name])
    assert len(loaded[0].part_one) == 12


def test_where_words_are_looked_for(tmp_path, arrays, monkeypatch):
    monkeypatch.delenv("CHORDAL_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"coursera_pgm_pa7.npz.*folder 'pa7'"):
        load_pa7()
    monkeypatch.setenv("CHORDAL_DATA", str(tmp_path))
    (tmp_path / "pa7").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no coursera_pgm_pa7.npz"):
        load_pa7()
    folder = matlab(tmp_path / "pa7" / "mat", arrays)
    assert len(load_pa7().y_train) == 5
    (folder / "Test1Y.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"no .*Test1Y.mat: put it there"):
        load_pa7()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("full_trainData_X", np.zeros((5, 3, 32)), "pixels of full_trainData must be 1 or 2"),
        ("full_trainData_X", np.ones((5, 3, 31)), "must have 32 pixels for each label"),
        ("full_testData_y", np.full((2, 3), 27), "whole numbers from 1 to 26"),
        ("full_testData_y", np.full((2, 3), 1.5), "whole numbers from 1 to 26"),
        ("Train1X", np.full((4, 129), np.nan), "Train1X must be finite numbers"),
        ("Train1X", np.full((4, 129), "x"), "Train1X must be finite numbers"),
        ("Train1X", np.zeros((4, 128)), "Train1X must have 129 columns"),
        ("Test1Y", np.zeros(5), "Test1Y must have a label per row"),
    ],
)
def test_arrays_that_are_wrong_are_named(tmp_path, arrays, name, value, message):
    arrays[name] = value
    with pytest.raises(ValueError, match=message):
        load_pa7(packed(tmp_path, arrays))


def test_arrays_that_are_missing(tmp_path, arrays):
    del arrays["ValidationAccuracy"]
    with pytest.raises(ValueError, match="has no array 'ValidationAccuracy'"):
        load_pa7(packed(tmp_path, arrays))


def test_nothing_is_unpickled(tmp_path, arrays):
    arrays["Train1X"] = np.array([{}], dtype=object)
    file = tmp_path / "coursera_pgm_pa7.npz"
    np.savez(file, allow_pickle=True, **arrays)
    with pytest.raises(ValueError, match="not an npz file of plain arrays, or is damaged"):
        load_pa7(file)


@pytest.mark.parametrize("name", ["Part2FullDataset.mat", "Train1X.mat"])
def test_matlab_files_that_are_damaged(tmp_path, arrays, name):
    folder = matlab(tmp_path / "mat", arrays)
    whole = (folder / name).read_bytes()
    for damaged in (b"", whole[:50], b"x" * 500):
        (folder / name).write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"{name} is not a MATLAB file, or is damaged"):
            load_pa7(folder)
