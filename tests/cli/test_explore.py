"""``chordal explore``: pages from files."""

import numpy as np
import pytest

from chordal import ChainCRF, CRFClassifier, GraphCRF, GridCRF, MultiLabelCRF, TypedGraphCRF, save
from chordal.formats.graphs import Graph, write_graphs

from .conftest import SENTENCES, TEMPLATE, as_text


@pytest.fixture(scope="module")
def files(tmp_path_factory, chordal):
    """A model of columns, and data."""
    folder = tmp_path_factory.mktemp("explore")
    (folder / "template").write_text(TEMPLATE)
    (folder / "data.txt").write_text(as_text(SENTENCES))
    (folder / "plain.txt").write_text(as_text(SENTENCES, labels=False))
    chordal("train", "-q", "-t", folder / "template", folder / "data.txt", folder / "model")
    return folder


def test_a_page_of_columns(files, chordal, tmp_path):
    page = tmp_path / "page.html"
    chordal("explore", files / "model", files / "data.txt", "-o", page)
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert "<title>model on data.txt</title>" in html


def test_a_title_and_data_without_labels(files, chordal, tmp_path):
    page = tmp_path / "page.html"
    words = ["--no-labels", "--title", "<Mine>", "-k", "2", "--max-attributes", "0", "-o", page]
    chordal("explore", files / "model", files / "plain.txt", *words)
    assert "<title>&lt;Mine&gt;</title>" in page.read_text(encoding="utf-8")


def test_items_and_json_lines(files, chordal, tmp_path):
    lines = "".join("".join(f"{y}\tw={w}\tp={p}\n" for w, p, y in own) + "\n" for own in SENTENCES)
    (tmp_path / "items.crfsuite").write_text(lines)
    chordal("train", "-q", "-f", "crfsuite", tmp_path / "items.crfsuite", tmp_path / "items.model")
    page = tmp_path / "page.html"
    words = ["-f", "crfsuite", "-o", page]
    chordal("explore", tmp_path / "items.model", tmp_path / "items.crfsuite", *words)
    assert page.stat().st_size > 10_000
    page.unlink()
    words.append("--no-labels")
    chordal("explore", tmp_path / "items.model", tmp_path / "items.crfsuite", *words)
    assert page.stat().st_size > 10_000


def test_arrays(chordal, refused, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(12, 6))
    y = np.array(list("abcabcabcabc"))
    save(ChainCRF().fit([X[:6].astype(float)], [y[:6].tolist()]), tmp_path / "letters")
    np.savez(tmp_path / "letters.npz", X=X, y=y, lengths=[5, 7])
    page = tmp_path / "page.html"
    words = ["explore", tmp_path / "letters", tmp_path / "letters.npz", "-o", page]
    chordal(*words, "--image-shape", "3x2")
    page.unlink()
    chordal(*words, "--no-labels")
    assert page.exists()
    assert "must be HEIGHTxWIDTH" in refused(*words, "--image-shape", "3", code=2)
    assert "needs rows of 4 numbers" in refused(*words, "--image-shape", "2x2")


def test_images_of_one_size_and_of_several(chordal, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(np.repeat([[[0, 0, 1, 1]]], 3, axis=1), 4, axis=0)
    X = y[..., None] + rng.normal(size=(4, 3, 4, 1))
    save(GridCRF(l2=0.1).fit(list(X), list(y)), tmp_path / "grid")
    np.savez(tmp_path / "one.npz", X=X, y=y)
    flat = {"X": X.reshape(-1, 1), "y": y.ravel()}
    np.savez(tmp_path / "several.npz", **flat, shapes=[[3, 4], [6, 2], [4, 6]])
    for name in ("one", "several"):
        chordal("explore", tmp_path / "grid", tmp_path / f"{name}.npz", "-o", tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000


def test_classifiers(chordal, refused, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 4))
    y = np.array(list("abcabcabcabc"))
    save(CRFClassifier().fit(X, y), tmp_path / "rows.model")
    save(MultiLabelCRF().fit(X, X[:, :2] > 0), tmp_path / "labels.model")
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    np.savez(tmp_path / "labels.npz", X=X, y=X[:, :2] > 0)
    page = tmp_path / "page.html"
    for name in ("rows", "labels"):
        chordal("explore", tmp_path / f"{name}.model", tmp_path / f"{name}.npz", "-o", page)
        assert f"<title>{name}.model on {name}.npz</title>" in page.read_text(encoding="utf-8")
        page.unlink()
    words = ["explore", tmp_path / "rows.model", tmp_path / "rows.npz", "-o", page]
    chordal(*words, "--image-shape", "2x2", "--no-labels")
    page.unlink()
    (tmp_path / "rows.csv").write_text("1,2\n")
    message = refused("explore", tmp_path / "rows.model", tmp_path / "rows.csv", "-o", page)
    assert "a CRFClassifier takes rows of numbers: give an npz file" in message
    np.savez(tmp_path / "bad.npz", X=X, y=y[:-1])
    message = refused("explore", tmp_path / "rows.model", tmp_path / "bad.npz", "-o", page)
    assert "y must have 12 labels" in message
    assert not page.exists()


def test_graphs(chordal, refused, tmp_path):
    rng = np.random.default_rng(0)
    edges = np.array([(0, 1), (1, 2)])
    plain = [
        Graph(rng.normal(size=(3, 2)), edges, None, ["a", "b", "a"], np.eye(3)[:, :2], list("xyz"))
        for _ in range(4)
    ]
    model = GraphCRF().fit([own.x for own in plain], [own.labels for own in plain])
    save(model, tmp_path / "graphs.model")
    write_graphs([plain[0]._replace(labels=None), *plain], tmp_path / "graphs.jsonl")
    page = tmp_path / "page.html"
    words = ["explore", tmp_path / "graphs.model", tmp_path / "graphs.jsonl", "-o", page]
    chordal(*words)
    assert "<title>graphs.model on graphs.jsonl</title>" in page.read_text(encoding="utf-8")
    page.unlink()
    nodes = {"text": np.ones((1, 1)), "word": [["red"], ["blue"]]}
    typed = Graph(nodes, {("word", "text"): [(0, 0), (1, 0)]}, labels={"word": ["N", "V"]})
    typed = [typed._replace(labels={**typed.labels, "text": [own]}) for own in ("s", "t")]
    links = [("word", "text")]
    crf = TypedGraphCRF(node_types=["word", "text"], edge_types=links)
    save(crf.fit([own.x for own in typed], [own.labels for own in typed]), tmp_path / "typed")
    names = {"text": ["title"], "word": ["red", "blue"]}
    write_graphs([own._replace(names=names) for own in typed], tmp_path / "typed.jsonl")
    chordal("explore", tmp_path / "typed", tmp_path / "typed.jsonl", "-o", page)
    page.unlink()
    (tmp_path / "bad.jsonl").write_text('{"nodes": [[1, 2]], "edges": [[0, 5]]}\n')
    message = refused("explore", tmp_path / "graphs.model", tmp_path / "bad.jsonl", "-o", page)
    assert "must join nodes below 1 and 1" in message
    (tmp_path / "empty.jsonl").write_text("\n")
    message = refused("explore", tmp_path / "graphs.model", tmp_path / "empty.jsonl", "-o", page)
    assert "the file has no graphs" in message
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)))
    message = refused("explore", tmp_path / "graphs.model", tmp_path / "x.npz", "-o", page)
    assert "a GraphCRF takes graphs: give them in JSON Lines" in message
    message = refused("explore", tmp_path / "graphs.model", tmp_path / "x.txt", "-o", page)
    assert "takes graphs in JSON Lines" in message
    assert not page.exists()


def bad_arrays():
    X, y = np.zeros((4, 2)), np.array(list("abab"))
    yield {"y": y}, "there is no array X of numbers"
    yield {"X": X, "y": y}, "add an array lengths .* or shapes"
    yield {"X": X, "y": y, "lengths": [2, 3]}, "must add up to the 4 rows"
    yield {"X": X, "y": y, "lengths": [-1, 5]}, "must add up to the 4 rows"
    yield {"X": X, "y": y, "lengths": [2.0, 2.0]}, "lengths must be whole numbers"
    yield {"X": X, "y": y, "shapes": [2, 2]}, "shapes must be whole numbers"
    yield {"X": X, "y": y[:3], "lengths": [4]}, "y must have 4 labels"
    yield {"X": X + np.nan, "y": y, "lengths": [4]}, "NaN or infinity"
    yield {"X": X[0], "y": y}, "X must have 2 or 4 dimensions"
    yield {"X": np.zeros((1, 2, 2, 1)), "y": y}, "y must have the shape"


@pytest.mark.parametrize(("arrays", "message"), list(bad_arrays()))
def test_bad_arrays(tmp_path, arrays, message):
    from chordal._errors import FormatError
    from chordal.cli._arrays import load_arrays

    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(FormatError, match=message):
        load_arrays(str(tmp_path / "bad.npz"))


def test_objects_are_never_unpickled(tmp_path):
    from chordal._errors import FormatError
    from chordal.cli._arrays import load_arrays

    np.savez(tmp_path / "bad.npz", X=np.array([{"a": 1}], dtype=object))
    with pytest.raises(FormatError, match="not an npz file of plain arrays"):
        load_arrays(str(tmp_path / "bad.npz"))
    (tmp_path / "worse.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(FormatError, match="or damaged"):
        load_arrays(str(tmp_path / "worse.npz"))


def test_what_does_not_fit(files, refused, tmp_path):
    page = tmp_path / "page.html"
    words = ["-o", page]
    assert "trained with 2" in refused("explore", files / "model", files / "plain.txt", *words)
    assert "gold-column" in refused(
        "explore", files / "model", files / "data.txt", *words, "--gold-column", "0"
    )
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)), lengths=[2])
    message = refused("explore", files / "model", tmp_path / "x.npz", *words)
    assert "the model reads attributes or columns" in message
    assert not page.exists()
