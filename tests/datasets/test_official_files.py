"""Sets as they are distributed: folders of images, citations and treebanks as text."""

import hashlib

import numpy as np
import pytest

from chordal.datasets import (
    load_citations,
    load_grabcut,
    load_msrc_images,
    load_ud_english,
    load_weizmann_horses,
)
from chordal.datasets._files import Official


@pytest.fixture
def image():
    return pytest.importorskip("PIL.Image")


def saved(image, path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(path)


@pytest.fixture
def horses(image, tmp_path):
    """A photograph of one colour, 128 × 64, and a mask of another size, white on the left."""
    photograph = np.full((64, 128, 3), [200, 100, 50])
    mask = np.zeros((50, 100))
    mask[:, :50] = 255
    root = tmp_path / "weizmann_horse_db"
    saved(image, root / "rgb" / "horse001.jpg", photograph)
    saved(image, root / "figure_ground" / "horse001.jpg", mask)
    return root


def test_horses(horses):
    for path in (horses, horses.parent):
        found = load_weizmann_horses(path)
        assert found.names == ["horse001"]
        assert found.images[0].shape == (32, 64, 3)
        assert np.abs(found.images[0] - np.array([200.0, 100.0, 50.0])).max() <= 3  # JPEG
        assert np.array_equal(found.labels[0], np.repeat([[1, 0]], 32, axis=1).repeat(32, axis=0))


def test_a_photograph_without_labels(horses):
    (horses / "figure_ground" / "horse001.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no .*figure_ground.*with the labels of"):
        load_weizmann_horses(horses)


def test_a_folder_without_images(horses):
    (horses / "rgb" / "horse001.jpg").unlink()
    with pytest.raises(FileNotFoundError, match="there is no image in"):
        load_weizmann_horses(horses)


@pytest.mark.parametrize("part", ["rgb", "figure_ground"])
@pytest.mark.parametrize("length", [0, 10, 400])
def test_damaged_images(horses, part, length):
    file = horses / part / "horse001.jpg"
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"horse001\.jpg is not an image, or is damaged"):
        load_weizmann_horses(horses)


def test_images_of_another_format(image, horses):
    image.new("RGB", (8, 8)).save(horses / "rgb" / "horse001.jpg", format="GIF")
    with pytest.raises(ValueError, match="is not an image"):
        load_weizmann_horses(horses)


def test_grabcut(image, tmp_path):
    trimap = np.repeat([0] * 4 + [128] * 2 + [255] * 4, 20)[None].repeat(100, axis=0)
    saved(image, tmp_path / "data_GT" / "a.JPG", np.zeros((100, 200, 3)))
    saved(image, tmp_path / "boundary_GT" / "a.bmp", trimap)
    found = load_grabcut(tmp_path)
    assert found.images[0].shape == (33, 66, 3)  # a third: 200 is more than twice 96
    shares = np.bincount(found.labels[0].ravel()) / found.labels[0].size
    assert np.abs(shares - [0.4, 0.4, 0.2]).max() < 0.02
    assert found.ignore_label == 2


def test_msrc(image, tmp_path):
    colours = np.array([[0, 0, 0], [0, 0, 128], [128, 64, 128], [192, 64, 0]])
    saved(image, tmp_path / "Images" / "1_1_s.bmp", np.zeros((8, 16, 3)))
    truth = colours[np.arange(16) // 4][None].repeat(8, axis=0)
    saved(image, tmp_path / "GroundTruth" / "1_1_s_GT.bmp", truth)
    found = load_msrc_images(tmp_path)
    assert found.names == ["1_1_s"]
    names = [[found.class_names[k] for k in row] for row in found.labels[0]]
    assert names == [["void", "cow", "road", "boat"]] * 2
    truth[0, 0] = truth[2, 2] = 77  # one of them is the nearest to some pixel
    saved(image, tmp_path / "GroundTruth" / "1_1_s_GT.bmp", truth)
    with pytest.raises(ValueError, match=r"1_1_s_GT\.bmp: .* colour \[77 77 77\], of no class"):
        load_msrc_images(tmp_path)


CONTENT = "x7\t1\t0\t1\ttheory\n31\t0\t0\t1\tcases\n8\t0\t1\t0\ttheory\n"


def test_citations(tmp_path):
    (tmp_path / "cora.content").write_text(CONTENT)
    (tmp_path / "cora.cites").write_text("x7\t8\n8 x7\n31\t31\nx7\t31\ngone\t8\n")
    found = load_citations("cora", tmp_path)
    assert found.X.toarray().tolist() == [[1, 0, 1], [0, 0, 1], [0, 1, 0]]
    assert found.y.tolist() == [1, 0, 1]
    assert found.cites.tolist() == [[0, 2], [2, 0], [1, 1], [0, 1]]
    assert found.edges.tolist() == [[0, 1], [0, 2]]


@pytest.mark.parametrize(
    ("content", "cites", "message"),
    [
        (CONTENT.replace("31\t0", "31\t2"), "", "row 2 must have a paper, 3 zeros and ones"),
        (CONTENT + "9\t1\ttheory\n", "", "row 4 must have"),
        (CONTENT + CONTENT, "", "every paper must have one row"),
        ("", "", "every paper must have one row"),
        (CONTENT, "x7\n", "pairs of papers"),
    ],
)
def test_citations_that_are_wrong(tmp_path, content, cites, message):
    (tmp_path / "cora.content").write_text(content)
    (tmp_path / "cora.cites").write_text(cites)
    with pytest.raises(ValueError, match=message):
        load_citations("cora", tmp_path)


def test_treebank(tmp_path):
    rows = ["1-2\tdon't" + "\t_" * 8, "1\tdo\t_\tAUX" + "\t_" * 6, "2\tn't\t_\tPART" + "\t_" * 6]
    rows += ["2.1\tgo\t_\tVERB" + "\t_" * 6, "3\t#\t_\tSYM" + "\t_" * 6]
    file = tmp_path / "en_ewt-ud-dev.conllu"
    file.write_text("# text = don't #\n" + "\n".join(rows) + "\n\n")
    found = load_ud_english("dev", tmp_path)
    assert found.X == [[["do"], ["n't"], ["#"]]]
    assert found.y == [["AUX", "PART", "SYM"]]
    file.write_text("1\tdo\n")
    with pytest.raises(ValueError, match=r"conllu, line 1: must have 10 columns, has 2"):
        load_ud_english("dev", tmp_path)


def test_digests():
    content = b"what is up, doc?"
    git = "bd9dbf5aae1a3862dd1526723246b20206e5fc37"  # as in the book on git
    sha256 = hashlib.sha256(content).hexdigest()
    for digest in (git, sha256):
        assert Official("", digest).is_of(content)
        assert not Official("", digest).is_of(content + b" ")
