"""Loaders of images, graphs and announcements: what they make of files, good and damaged."""

import gzip
import io
import zipfile

import numpy as np
import pytest

from chordal.datasets import (
    load_citations,
    load_grabcut,
    load_msrc_images,
    load_msrc_superpixels,
    load_seminars,
    load_ugm_x,
    load_weizmann_horses,
)

IMAGES = {
    "rgb": np.arange(30, dtype=np.uint8).reshape(10, 3),
    "shapes": np.array([[2, 3], [1, 4]], dtype=np.int32),
    "offsets": np.array([0, 6, 10]),
    "names": np.array(["a", "b"]),
}
LABELS = np.array([0, 1, 0, 1, 1, 0, 2, 2, 0, 1], dtype=np.uint8)
SUPERPIXELS = {
    "X": np.zeros((3, 2), dtype=np.float16),
    "label": np.array([0, 1, 1], dtype=np.uint8),
    "node_offsets": np.array([0, 2, 3]),
    "edges": np.array([[0, 1]], dtype=np.int16),
    "edge_boundary_len": np.array([7], dtype=np.int16),
    "edge_offsets": np.array([0, 1, 1]),
    "area": np.array([5, 6, 7], dtype=np.int32),
    "names": np.array(["a", "b"]),
    "class_names": np.array(["void", "cow"]),
}
GRAPH = {
    "X_indptr": np.array([0, 2, 3], dtype=np.int32),
    "X_indices": np.array([0, 4, 1], dtype=np.int32),
    "y": np.array([0, 1], dtype=np.uint8),
    "edges": np.array([[0, 1]], dtype=np.int32),
    "cites": np.array([[1, 0]], dtype=np.int32),
}


def saved(folder, name, **arrays):
    np.savez(folder / name, **arrays)
    return folder / name


def test_images_are_cut_to_their_shapes(tmp_path):
    found = load_grabcut(saved(tmp_path, "grabcut_96.npz", label=LABELS, **IMAGES))
    assert [image.shape for image in found.images] == [(2, 3, 3), (1, 4, 3)]
    assert found.images[1][0, 3].tolist() == [27, 28, 29]
    assert found.labels[0].tolist() == [[0, 1, 0], [1, 1, 0]]
    assert found.names == ["a", "b"]
    assert found.class_names[found.ignore_label] == "unknown"


def test_masks_of_horses_are_packed(tmp_path):
    mask = np.packbits(LABELS == 1)
    found = load_weizmann_horses(saved(tmp_path, "weizmann_horses_64.npz", mask=mask, **IMAGES))
    assert found.labels[0].tolist() == [[0, 1, 0], [1, 1, 0]]
    assert found.labels[1].tolist() == [[0, 0, 0, 1]]


def test_msrc(tmp_path):
    classes = {"class_names": np.array(["void", "cow", "tree"])}
    images = load_msrc_images(saved(tmp_path, "m.npz", label=LABELS, **IMAGES, **classes))
    assert images.class_names == ["void", "cow", "tree"]
    graphs = load_msrc_superpixels(saved(tmp_path, "s.npz", **SUPERPIXELS))
    assert [len(x) for x in graphs.X] == [2, 1]
    assert [e.tolist() for e in graphs.edges] == [[[0, 1]], []]
    assert graphs.boundary[0].tolist() == [7.0]


def test_citations(tmp_path):
    found = load_citations("cora", saved(tmp_path, "cora.npz", **GRAPH))
    assert found.X.toarray().tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]]
    assert found.edges.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="name must be one of 'cora', 'citeseer'"):
        load_citations("pubmed")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("label", LABELS[:9], r"label must have a label per pixel \(10\)"),
        ("label", LABELS + 1, "label must be below 3, holds 3"),
        ("shapes", np.array([[2, 3], [1, 5]]), "shapes must be height and width"),
        ("offsets", np.array([0, 6, 9]), "shapes must be height and width"),
        ("rgb", np.zeros((10, 4), dtype=np.uint8), "rgb must be bytes in 3 columns"),
        ("rgb", np.zeros(30, dtype=np.uint8), "rgb must have 2 dimensions"),
        ("names", np.array([1, 2]), "names must have 1 dimensions of kind 'U'"),
        ("names", None, "has no array 'names'"),
        ("names", np.array(["a", None], dtype=object), "not an npz file of plain arrays"),
    ],
)
def test_images_that_are_not_right(tmp_path, name, change, message):
    arrays = {"label": LABELS, **IMAGES, name: change}
    arrays = {key: array for key, array in arrays.items() if array is not None}
    with pytest.raises(ValueError, match=message):
        load_grabcut(saved(tmp_path, "grabcut_96.npz", **arrays))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("edges", np.array([[0, 2]]), "edges of image 0 must join its superpixels 0 to 1"),
        ("edge_offsets", np.array([0, 1]), "offsets must be those of 2 images"),
        ("edge_offsets", np.array([0, 2, 1]), "offsets must rise from 0"),
        ("label", np.array([0, 1, 2], dtype=np.uint8), "label must be below 2"),
        ("X", np.full((3, 2), np.nan), "X must be finite"),
    ],
)
def test_superpixels_that_are_not_right(tmp_path, name, change, message):
    with pytest.raises(ValueError, match=message):
        load_msrc_superpixels(saved(tmp_path, "s.npz", **{**SUPERPIXELS, name: change}))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("X_indptr", np.array([0, 3, 2]), "a row for each of 2 papers"),
        ("X_indices", np.array([0, -4, 1]), "must not be negative"),
        ("edges", np.array([[0, 2]]), "edges must join papers 0 to 1"),
    ],
)
def test_graphs_that_are_not_right(tmp_path, name, change, message):
    with pytest.raises(ValueError, match=message):
        load_citations("cora", saved(tmp_path, "cora.npz", **{**GRAPH, name: change}))


def test_files_that_are_no_archives(tmp_path, monkeypatch):
    file = tmp_path / "ugm_X.npz"
    file.write_bytes(b"not a zip file")
    with pytest.raises(ValueError, match="not an npz file of plain arrays, or is damaged"):
        load_ugm_x(file)
    monkeypatch.setattr("chordal.datasets._npz.MOST_BYTES", 10_000)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(20_000))
    with pytest.raises(ValueError, match="it holds 20000 bytes, more than 10000"):
        load_ugm_x(file)
    np.savez(file, X=np.zeros((31, 32), dtype=np.uint8))
    with pytest.raises(ValueError, match="X must be 32 × 32 of 0 and 1"):
        load_ugm_x(file)


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("CHORDAL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"weizmann_horses_64\.npz"):
        load_weizmann_horses()
    with pytest.raises(FileNotFoundError, match=r"seminars_test\.tsv\.gz"):
        load_seminars("test")


ANNOUNCEMENTS = "# doc 0\nTime\t1\tO\n:\t0\tO\n5\t0\tB-stime\n\n# doc 1\n#\t1\tO\n"


def test_announcements(tmp_path):
    (tmp_path / "seminars_train.tsv.gz").write_bytes(gzip.compress(ANNOUNCEMENTS.encode()))
    found = load_seminars("train", tmp_path)
    assert found.words == [["Time", ":", "5"], ["#"]]
    assert found.line_start == [[True, False, False], [True]]
    assert found.y == [["O", "O", "B-stime"], ["O"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Time\t1\tO\n", "line 1: must begin with a line '# doc 0'"),
        ("# doc 0\nTime\t2\tO\n", "line 2: must have a token, 0 or 1, and a tag"),
        ("# doc 0\nTime\t1\tB-place\n", "line 2: must have a token, 0 or 1, and a tag"),
        ("", "has no announcement"),
    ],
)
def test_announcements_that_are_not_right(tmp_path, text, message):
    file = tmp_path / "seminars_train.tsv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_seminars("train", file)


def test_announcements_that_are_damaged(tmp_path):
    file = tmp_path / "seminars_train.tsv.gz"
    file.write_bytes(gzip.compress(ANNOUNCEMENTS.encode())[:-9])
    with pytest.raises(ValueError, match="not such a text, or is damaged"):
        load_seminars("train", file)
    stream = io.BytesIO(b"\xff\xfe# doc 0\n")
    (tmp_path / "seminars_test.tsv").write_bytes(stream.read())
    with pytest.raises(ValueError, match="not such a text, or is damaged"):
        load_seminars("test", tmp_path)
