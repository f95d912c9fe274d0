"""train, evaluate, inspect, tune, convert, info."""

import json

import numpy as np
import pytest

from chordal import ChainCRF, CRFClassifier, FeatureTemplate, GridCRF, load, save
from chordal.formats import FORMATS
from chordal.metrics import conlleval_report
from chordal.preprocessing.default_template import default_template

from .conftest import SENTENCES, TEMPLATE, as_text, run

ROWS = [[list(row[:2]) for row in s] for s in SENTENCES]
LABELS = [[row[2] for row in s] for s in SENTENCES]


def test_train_is_fit(chordal, files, tmp_path):
    out = json.loads(
        chordal(
            "train", "-t", files / "template", files / "train.txt", tmp_path / "m", "--l2", "0.5",
            "--l1", "0.1", "--pairs", "all", "--json",
        )
    )  # fmt: skip
    crf = ChainCRF(
        l1=0.1, l2=0.5, pairs="all", transitions="all", feature_template=FeatureTemplate(TEMPLATE)
    )
    crf.fit(ROWS, LABELS)
    assert out["objective"] == pytest.approx(crf.objective_, rel=1e-12)
    assert (out["sequences"], out["tokens"], out["labels"]) == (3, 14, 5)
    assert out["weights"] == crf.layout_.n_weights
    assert out["bytes"] == (tmp_path / "m").stat().st_size
    np.testing.assert_array_equal(load(tmp_path / "m").weights_, crf.weights_)


def test_what_is_not_given_is_left_to_the_model(chordal, files, tmp_path):
    """Each solver has limits of its own; no option stands in for them unless it is given."""
    words = ["-q", files / "train.txt", "-t", files / "template"]
    for solver in ("lbfgs", "averaged_perceptron", "newton_cg"):
        chordal("train", *words, tmp_path / "m", "--solver", solver, "--seed", "0")
        expected = ChainCRF(
            solver=solver, feature_template=FeatureTemplate(TEMPLATE), random_state=0
        )
        assert load(tmp_path / "m").get_params() == expected.get_params()
        assert (load(tmp_path / "m").weights_ == expected.fit(ROWS, LABELS).weights_).all()
    chordal("tune", *words, "--folds", "2", "--l2", "1", "-o", tmp_path / "m")
    given = load(tmp_path / "m")
    assert (given.max_iter, given.tol) == (None, None)


def test_each_option_reaches_the_model(chordal, files, tmp_path):
    options = {
        "l1": 0.25, "l2": 0.5, "solver": "owlqn", "objective": "likelihood", "max_iter": 7,
        "tol": 0.125, "min_freq": 2,
    }  # fmt: skip
    flags = [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    words = ["-q", "-t", files / "template", files / "train.txt", tmp_path / "m"]
    chordal("train", *words, *flags, "--pairs", "all", "--seed", "3")
    found = load(tmp_path / "m").get_params()
    assert {k: found[k] for k in options} == options
    assert (found["pairs"], found["transitions"], found["random_state"]) == ("all", "all", 3)


def test_c_is_one_over_l2(chordal, files, tmp_path):
    words = ["train", "-t", files / "template", files / "train.txt", tmp_path / "m", "--json"]
    assert (
        json.loads(chordal(*words, "-c", "4"))["objective"]
        == json.loads(chordal(*words, "--l2", "0.25"))["objective"]
    )


def test_train_from_stdin_quietly(chordal, files, tmp_path):
    text = (files / "train.txt").read_bytes()
    out = chordal("train", "-q", "-t", files / "template", "-", tmp_path / "m", input=text)
    assert out == b""
    same = load(tmp_path / "m").weights_ == load(files / "model").weights_
    assert same.all()


def test_progress_vanishes_in_a_pipe(files, tmp_path):
    done = run("train", "-t", files / "template", files / "train.txt", tmp_path / "m")
    assert done.stderr == b""
    assert b"objective" in done.stdout


@pytest.mark.parametrize("task", ["chunking", "ner", "pos"])
def test_train_by_task(chordal, files, tmp_path, task):
    chordal("train", "-q", "--task", task, files / "train.txt", tmp_path / "m")
    model = load(tmp_path / "m")
    assert model.predict(ROWS) == LABELS
    words = ("--dialect", "wapiti", files / "train.txt", tmp_path / "m")
    chordal("train", "-q", "--task", task, *words)
    assert load(tmp_path / "m").feature_template.dialect == "wapiti"


def test_label_column_and_validation(chordal, files, tmp_path):
    first = "\n\n".join("\n".join(f"{r[2]} {r[0]} {r[1]}" for r in s) for s in SENTENCES)
    (tmp_path / "first.txt").write_text(first)
    out = json.loads(
        chordal(
            "train", "-t", files / "template", tmp_path / "first.txt", tmp_path / "m", "--json",
            "--label-column", "0", "--validation", tmp_path / "first.txt",
            "--n-iter-no-change", "3",
        )
    )  # fmt: skip
    assert out["validation_accuracy"] == 1.0
    assert (load(tmp_path / "m").predict(ROWS)) == LABELS


def test_a_compact_model_is_smaller(chordal, files, tmp_path):
    out = chordal(
        "train", "-t", files / "template", files / "train.txt", tmp_path / "m",
        "--compact", "0.2", "--dtype", "float16",
    )  # fmt: skip
    assert b"weights kept" in out
    small, large = load(tmp_path / "m"), load(files / "model")
    assert small.layout_.n_weights < large.layout_.n_weights
    assert (small.weights_ == small.weights_.astype(np.float16)).all()


def test_the_saved_model_does_not_remember_threads(chordal, files, tmp_path):
    chordal("train", "-q", "-j", "2", "-t", files / "template", files / "train.txt", tmp_path / "m")
    model = load(tmp_path / "m")
    assert (model.n_jobs, model.verbose) == (None, 0)
    assert (model.weights_ == load(files / "model").weights_).all()


# ---------------------------------------------------------------------------------------- evaluate

FOUND = [["B-NP", "B-VP", "B-NP", "I-NP", "O"], LABELS[1], ["B-NP", "I-NP", "O", "O"]]


@pytest.fixture
def judged(tmp_path):
    lines = [
        "\n".join(f"{r[0]} {r[2]} {label}" for r, label in zip(s, found, strict=True))
        for s, found in zip(SENTENCES, FOUND, strict=True)
    ]
    path = tmp_path / "judged.txt"
    path.write_text("\n\n".join(lines) + "\n\n")
    return path


def test_evaluate_prints_what_conlleval_prints(chordal, judged):
    assert chordal("evaluate", judged).decode() == conlleval_report(LABELS, FOUND)
    assert chordal("evaluate", "-", input=judged.read_bytes()) == chordal("evaluate", judged)
    swapped = chordal("evaluate", judged, "--gold-column", "-1", "--predicted-column", "1")
    assert swapped.decode() == conlleval_report(FOUND, LABELS)


def test_document_marks_count_where_that_is_asked_for(chordal, refused, judged):
    text = judged.read_text()
    marked = ("-DOCSTART- O O\n\n" + text).encode()
    assert "1 lines -DOCSTART- would count" in refused("evaluate", "-", input=marked)
    counted = chordal("evaluate", "-", "--document-marks", "count", input=marked).decode()
    assert counted == conlleval_report([["O"], *LABELS], [["O"], *FOUND])
    skipped = chordal("evaluate", "-", "--document-marks", "skip", input=marked).decode()
    assert skipped == conlleval_report(LABELS, FOUND)
    short = chordal("evaluate", "-", input=("-DOCSTART- O\n\n" + text).encode()).decode()
    assert short == conlleval_report(LABELS, FOUND)


def test_evaluate_as_json(chordal, judged):
    out = json.loads(
        chordal("evaluate", judged, "--json", "--confusion", "--labels", "--bootstrap", "50")
    )
    assert out["overall"]["correct"] == 5
    assert out["n_tokens"] == 14
    assert out["confusion"]["counts"][out["confusion"]["labels"].index("B-VP")][-1] == 1
    low, value, high = (out["bootstrap"]["chunk_f1"][k] for k in ("low", "value", "high"))
    assert low <= value <= high
    assert value == out["overall"]["f1"]
    assert out["labels"]["I-VP"]["support"] == 1


def test_evaluate_tables(chordal, judged):
    text = chordal("evaluate", judged, "--table", "--labels", "--confusion", "--bootstrap", "9")
    words = text.decode()
    assert "taken for" in words
    assert "bootstrap, 9 samples" in words
    assert "processed" not in words


def test_evaluate_a_model(chordal, files):
    text = chordal("evaluate", "--model", files / "model", files / "train.txt").decode()
    assert text == conlleval_report(LABELS, load(files / "model").predict(ROWS))


def test_evaluate_refuses(refused, files, judged):
    assert "the file has no tokens" in refused("evaluate", "-", input=b"\n")
    assert "no column 7" in refused("evaluate", judged, "--predicted-column", "7")


def test_evaluate_refuses_what_are_not_two_columns_of_labels(chordal, refused, files, judged):
    message = refused("evaluate", files / "train.txt")
    assert "columns -2 and -1 have no label in common (PRP, VBZ, DT, …; B-NP, " in message
    text = judged.read_bytes()
    for option in ("--marginals", "--all-marginals"):
        tagged = chordal("tag", files / "model", files / "train.txt", option)
        message = refused("evaluate", "-", input=tagged)
        assert "holds probabilities (" in message
        assert "-column" in message
    good = chordal("tag", files / "model", files / "train.txt", "--marginals")
    columns = ["--gold-column", "-3", "--predicted-column", "-2"]
    assert b"accuracy: 100.00%" in chordal("evaluate", "-", *columns, input=good)
    words = text.replace(b"B-", b"X").replace(b"I-", b"Y").replace(b" O", b" Z")
    message = refused("evaluate", "--model", files / "model", "-", input=words)
    assert "are not those of the model (B-NP, B-VP, I-NP, …)" in message


def test_json_lines_keep_gold_labels(chordal, refused, files, tmp_path):
    path, tagged = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    gold = [["O"] * len(labels) for labels in LABELS[:2]] + [LABELS[2]]
    lines = [{"tokens": rows, "labels": y} for rows, y in zip(ROWS, gold, strict=True)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    chordal("tag", files / "model", path, "-o", tagged)
    found = [json.loads(line) for line in tagged.read_text().splitlines()]
    assert [line["gold_labels"] for line in found] == gold
    assert [line["labels"] for line in found] == LABELS
    assert chordal("evaluate", tagged).decode() == conlleval_report(gold, LABELS)
    assert chordal("evaluate", "--model", files / "model", path) == chordal("evaluate", tagged)
    assert "sequence 1 has no 'gold_labels'" in refused("evaluate", path)


# --------------------------------------------------------------------------------- inspect and info


def test_inspect_explains_the_attributes_of_a_template(chordal, files):
    out = json.loads(chordal("inspect", files / "model", "--json", "-n", "500"))["meanings"]
    assert {name[:2]: text for name, text in out.items()} == {
        "U0": "column 0",
        "U1": "column 0, 1 before",
        "U2": "column 0, 1 after",
        "U3": "column 1",
        "U4": "column 1, 1 before / column 1",
    }
    assert b"column 0, 1 before" in chordal("inspect", files / "model", "-n", "500")
    one = chordal("inspect", files / "model", "--attribute", "U0:pound")
    assert b"U0:pound (column 0)" in one


@pytest.mark.parametrize("task", ["chunking", "ner", "pos"])
def test_every_attribute_of_the_ready_made_templates_is_explained(task):
    template = FeatureTemplate(default_template(task, 2))
    attributes = template.attributes([["Paris", "NNP"], ["1900", "CD"], ["sleeps", "VBZ"]])
    meanings = {name: template.explain(name) for row in attributes for name in row}
    assert all(meanings.values())
    assert len(set(meanings.values())) > 10
    assert any("shape of column 0" in text for text in meanings.values()) or task != "ner"


def test_inspect(chordal, refused, files):
    model = load(files / "model")
    out = json.loads(chordal("inspect", files / "model", "--json", "-n", "3"))
    assert set(out["weights"]) == set(model.classes_)
    name, _, weight = model.top_features(1, "O")[0]
    assert out["weights"]["O"][0] == [name, pytest.approx(weight)]
    assert len(out["transitions"]) == 3
    one = json.loads(chordal("inspect", files / "model", "--attribute", "U0:the", "--json"))
    coef = model.coef_.toarray()
    column = next(k for k in range(coef.shape[1]) if model.reader_.inputs[0].name(k) == "U0:the")
    for label, weight in one["weights"].items():
        assert weight == coef[model.classes_.tolist().index(label), column]
    text = chordal("inspect", files / "model", "--label", "B-VP").decode()
    assert "B-VP: for and against" in text
    assert "I-NP: for" not in text
    assert "no label 'X'" in refused("inspect", files / "model", "--label", "X")
    assert "no weight of attribute 'X'" in refused("inspect", files / "model", "--attribute", "X")


def test_info(chordal, files):
    out = json.loads(chordal("info", "--json"))
    assert out["formats"] == FORMATS.names()
    assert {"lbfgs", "owlqn"} <= set(out["solvers"])
    assert out["instruction set"] in ("baseline", "x86-64-v3")
    of_model = json.loads(chordal("info", files / "model", "--json"))
    assert of_model["feature_template"] == TEMPLATE
    assert of_model["parameters"]["l2"] == 1.0
    assert of_model["fit"]["status"] == "converged"
    assert of_model["sizes"]["labels"] == 5
    assert b"U4:%x[-1,1]/%x[0,1]" in chordal("info", files / "model")


# -------------------------------------------------------------------------------------------- tune


def test_info_of_other_models(chordal, tmp_path):
    rng = np.random.default_rng(0)
    grid = GridCRF().fit([rng.normal(size=(3, 3, 2))], [np.eye(3, dtype=int)])
    rows = CRFClassifier().fit(rng.normal(size=(20, 3)), rng.integers(2, size=20))
    for model in (grid, rows):
        save(model, tmp_path / "model")
        facts = json.loads(chordal("info", tmp_path / "model", "--json"))
        assert facts["class"] == type(model).__name__
        assert facts["labels"] == ["0", "1"]
        assert facts["sizes"]["weights"] == len(model.weights_)
        assert facts["fit"]["objective"] == model.objective_


def test_tune_by_validation(chordal, files, tmp_path):
    words = ["-t", files / "template", "--validation", files / "train.txt", "--l2", "0.01,1000"]
    out = json.loads(
        chordal("tune", files / "train.txt", *words, "-q", "--json", "-o", tmp_path / "m")
    )
    assert out["best"]["l2"] == 0.01
    assert out["best"]["chunk_f1"] == 1.0
    for result in out["results"]:
        crf = ChainCRF(l2=result["l2"], feature_template=TEMPLATE).fit(ROWS, LABELS)
        assert (crf.predict(ROWS) == LABELS) == (result["chunk_f1"] == 1.0)
    assert load(tmp_path / "m").l2 == 0.01


def test_tune_by_folds(chordal, refused, files):
    words = ["tune", files / "train.txt", "-t", files / "template", "-q"]
    out = json.loads(chordal(*words, "--n-iter", "2", "--l2", "0.1,10", "--json", "--folds", "3"))
    assert [len(r["scores"]) for r in out["results"]] == [3, 3]
    assert all(0.1 <= r["l2"] <= 10 for r in out["results"])
    text = chordal(*words, "--l2", "1", "--metric", "accuracy").decode()
    assert "fold 3" in text
    assert text.endswith("best: --l1 0 --l2 1\n")
    assert "4 folds need at least 4 sequences" in refused(*words, "--folds", "4")


# ----------------------------------------------------------------------------------------- convert


def test_convert_data_there_and_back(chordal, files, tmp_path):
    chordal("convert", files / "train.txt", tmp_path / "a.jsonl")
    chordal("convert", tmp_path / "a.jsonl", tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_text() == as_text(SENTENCES)
    chordal("convert", tmp_path / "a.jsonl", tmp_path / "c.crfsuite")
    assert (tmp_path / "c.crfsuite").read_text().startswith("B-NP\tHe\tPRP\n")


def test_convert_schemes(chordal, refused, files):
    iobes = chordal(
        "convert", files / "train.txt", "-", "--from-scheme", "bio", "--to-scheme", "iobes"
    ).decode()
    assert iobes.startswith("He PRP S-NP\nreckons VBZ S-VP\nthe DT B-NP\ncurrent JJ I-NP\n")
    back = chordal(
        "convert", "-", "-", "--from-scheme", "iobes", "--to-scheme", "bio", input=iobes.encode()
    ).decode()
    assert back == as_text(SENTENCES)
    words = ["convert", "-", "-", "--from-scheme", "bio", "--to-scheme", "iobes"]
    assert "sequence 1: labels[0] = 'I-X'" in refused(*words, input=b"a I-X\n\n")
    assert chordal(*words, "--lenient", input=b"a I-X\n\n") == b"a S-X\n\n"


def test_convert_a_model_to_itself(chordal, refused, files, tmp_path):
    chordal("convert", files / "model", tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == (files / "model").read_bytes()
    message = refused("convert", files / "model", tmp_path / "x", "--to", "jsonl")
    assert "--to must be one of chordal, crfsuite" in message


def test_convert_a_model_to_crfsuite(chordal, tmp_path):
    """CRFsuite's own tagger and chordal give the same from the converted model."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    items = [[[f"w={word}", f"p:{tag}"] for word, tag, _ in s] for s in SENTENCES]
    lines = (
        "\n".join("\t".join(["O", *(a.replace(":", "\\:") for a in token)]) for token in s)
        for s in items
    )
    (tmp_path / "data.crfsuite").write_text("\n\n".join(lines) + "\n")
    save(ChainCRF().fit(items, LABELS), tmp_path / "m")
    chordal("convert", tmp_path / "m", tmp_path / "theirs", "--to", "crfsuite")
    assert (tmp_path / "theirs").read_bytes().startswith(b"lCRF")
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "theirs"))
    expected = "\n\n".join("\n".join(tagger.tag(s)) for s in items) + "\n\n"
    tagger.close()
    for name in ("m", "theirs"):
        assert chordal("tag", tmp_path / name, tmp_path / "data.crfsuite").decode() == expected
    assert json.loads(chordal("info", tmp_path / "theirs", "--json"))["written by"] == "crfsuite"
    chordal("convert", tmp_path / "theirs", tmp_path / "back")
    assert chordal("tag", tmp_path / "back", tmp_path / "data.crfsuite").decode() == expected


# -------------------------------------------------------------------------------------- real data


@pytest.mark.data
def test_conll2000_from_file_to_figures(chordal, conll2000, tmp_path):
    chordal("train", "-q", "--task", "chunking", conll2000 / "train.txt", tmp_path / "m", "-j", "2")
    tagged = tmp_path / "tagged.txt"
    chordal("tag", tmp_path / "m", conll2000 / "test.txt", "-o", tagged)
    assert (
        b"\n".join(line.rpartition(b" ")[0] for line in tagged.read_bytes().split(b"\n"))
        == (conll2000 / "test.txt").read_bytes()
    )
    by_column = chordal("evaluate", tagged)
    by_model = chordal("evaluate", "--model", tmp_path / "m", conll2000 / "test.txt")
    assert by_column == by_model
    f1 = json.loads(chordal("evaluate", tagged, "--json"))["overall"]["f1"]
    assert f1 > 0.88  # of 800 sentences
