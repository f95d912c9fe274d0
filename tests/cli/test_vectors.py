"""Vectors in JSON Lines: train, tag and inspect."""

import json

import numpy as np

from chordal import ChainCRF, load


def test_vectors_in_json_lines(tmp_path, chordal, refused):
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(20):
        vectors = rng.normal(size=(4, 2)).round(3)
        X.append([{"word": f"w{k % 3}", "vec": v.tolist()} for k, v in enumerate(vectors)])
        y.append(["B-X" if v[0] > 0 else "O" for v in vectors])
    path = tmp_path / "train.jsonl"
    path.write_text(
        "".join(
            json.dumps({"tokens": x, "labels": labels}) + "\n"
            for x, labels in zip(X, y, strict=True)
        )
    )
    chordal("train", "-q", path, tmp_path / "model")
    arrays = [[{**token, "vec": np.array(token["vec"])} for token in x] for x in X]
    expected = ChainCRF().fit(arrays, y).predict(arrays)
    assert load(tmp_path / "model").predict(arrays) == expected
    lines = chordal("tag", tmp_path / "model", path).decode().splitlines()
    tagged = [json.loads(line) for line in lines]
    assert [line["tokens"] for line in tagged] == X
    assert [line["labels"] for line in tagged] == expected
    assert b"vec:0" in chordal("inspect", tmp_path / "model")
    sizes = json.loads(chordal("info", "--json", tmp_path / "model"))["sizes"]
    assert sizes["numbers_of_vectors"] == 2
    path.write_text(json.dumps({"tokens": [{"word": "a", "vec": [1, 2, 3]}]}) + "\n")
    assert "must have 2 numbers as in training, got 3" in refused("tag", tmp_path / "model", path)
