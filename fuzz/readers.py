"""The readers: one target for each kind of file and request, with inputs to start from."""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import os
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import chordal
from chordal import ChainCRF
from chordal.compat.crfpp_model import read_crfpp
from chordal.compat.crfsuite_model import read_crfsuite, write_crfsuite
from chordal.compat.wapiti_model import read_wapiti, write_wapiti
from chordal.formats import FORMATS, uai
from chordal.formats.graphs import read_graphs, write_graphs
from chordal.text import FeatureTemplate
from fuzz.models import models, more_models, neural_models
from fuzz.mutation import of_bytes, of_container, of_json
from fuzz.target import ITEMS, TAGS, TEMPLATE, WORDS, Target, path, put, written


def crfsuite_models() -> Target:
    """Models of CRFsuite."""
    model = ChainCRF().fit(ITEMS, TAGS)
    seed = written(functools.partial(write_crfsuite, model))
    words = [
        b"lCRF",
        b"FOMC",
        b"FEAT",
        b"LFRF",
        b"AFRF",
        b"CQDB",
        b"\xff\xff\xff\xff",
        b"\x10\0\0\0",
    ]
    return Target([seed], lambda data: read_crfsuite(data).predict(ITEMS), of_bytes(words, [seed]))


def wapiti_models() -> Target:
    """Models of Wapiti."""
    template = FeatureTemplate("u:1=%x[0,0]\nb\n", "wapiti")
    model = ChainCRF(feature_template=template).fit(WORDS, TAGS)
    seed = written(functools.partial(write_wapiti, model))
    words = [b"#mdl#2#", b"#rdr#", b"#qrk#", b"0x1p+0", b"12:", b",", b"u:", b"b", b"*"]
    return Target([seed], lambda data: read_wapiti(data).predict(WORDS), of_bytes(words, [seed]))


def crfpp_models() -> Target:
    """Models of CRF++ as text."""
    seed = (
        b"version: 100\ncost-factor: 1\nmaxid: 8\nxsize: 1\n\nD\nN\n\nU0:%x[0,0]\nB\n\n4 U0:the\n"
        b"6 U0:cat\n0 B\n\n" + b"0.5\n-0.5\n" * 4
    )
    words = [b"maxid:", b"xsize:", b"U0:", b"B\n", b"\n\n", b"%x[0,0]", b"version: 100"]
    return Target([seed], lambda data: read_crfpp(data).predict(WORDS), of_bytes(words, [seed]))


DATA = {
    "conll": b"# comment\nthe D\ncat N\n\nsees\tV\r\n\n-DOCSTART- O\n",
    "conllu": b"# text = the cat\n1\tthe\t_\tDET\t_\t_\t0\troot\t_\t_\n"
    b"2-3\tx\t_\t_\t_\t_\t_\t_\t_\t_\n2\tcat\t_\tNOUN\t_\t_\t1\tdep\t_\t_\n\n",
    "jsonl": b'{"tokens": ["the", "cat"], "labels": ["D", "N"], "weight": 0.5}\n'
    b'{"tokens": [{"w": 1.5, "v": [1.0, 2.0]}, ["a", "b"]]}\n',
    "crfsuite": b"D\tw=the\tp:0.5\nN\tw=cat\\:x\n\n@weight:2\nV\ta:1e3\tb\n\n",
}


def data_file(name: str) -> Target:
    """A format of labelled data: what is read can be written, and is then read as the same."""
    form = FORMATS.get(name)()

    def run(data: bytes) -> None:
        records = list(form.read(io.BytesIO(data)))
        again = io.BytesIO()
        try:
            form.write(records, again)
        except ValueError:
            return
        found = list(form.read(io.BytesIO(again.getvalue())))
        rows, again_rows = (
            [[_plain(row, name == "crfsuite") for row in record.rows] for record in own]
            for own in (records, found)
        )
        if again_rows != rows:
            raise AssertionError(f"written and read again: {found!r:.300} for {records!r:.300}")

    words = [
        b"\t",
        b"\n\n",
        b"# ",
        b'"tokens"',
        b"@weight:",
        b"1-2\t",
        b"1.1\t",
        b"_\t_",
        b'{"',
        b"]}",
    ]
    mutate = of_json(words) if name == "jsonl" else of_bytes(words, [DATA[name]])
    return Target([DATA[name]], run, mutate)


def _plain(row: Any, attributes: bool) -> str:
    """A row as text; an attribute of a list has the value 1."""
    if attributes and isinstance(row, list):
        row = dict.fromkeys(row, 1.0)
    return repr(sorted((k, str(v)) for k, v in row.items()) if isinstance(row, dict) else row)


def items() -> Target:
    """Attributes of items by name and value, from JSON, through a model."""
    model = ChainCRF().fit(ITEMS, TAGS)

    def run(data: bytes) -> None:
        model.predict(json.loads(data))

    allowed = (ValueError, TypeError, OSError)  # a str names a data set
    return Target([json.dumps(ITEMS).encode()], run, of_json(), allowed)


def templates() -> Target:
    """Feature templates of both dialects; the first byte says which."""
    seeds = [
        b"+" + TEMPLATE.encode(),
        b'+U1:%x[-1,0]\nB01:%x[0,1]\nU:a%t[0,0,"^A.?\\\\d*$"]\n',
        b'w*:1=%X[0,0]\nu:%m[0,0,"\\a+"]\nb:2\n* :%t[0,1,"x"]\n',
    ]
    rows = [[["the", "A12"], ["Été", "-"], ["x" * 20, ""]], [["", "b"]]]

    def run(data: bytes) -> None:
        dialect = "crf++" if data[:1] == b"+" else "wapiti"
        made = FeatureTemplate(data[1:].decode("utf-8", "replace"), dialect)
        for sequence in rows:
            made.attributes(sequence)

    words = [
        b"%x[",
        b"%X[",
        b"%m[",
        b"%t[",
        b'"',
        b"\\a*",
        b"\\D?",
        b"^",
        b"$",
        b"U1:",
        b"B",
        b"#",
        b",0]",
    ]
    return Target(seeds, run, of_bytes(words, seeds))


GRAPHS = {
    "uai": b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n1.0 0.5 0.5 1.0\n6\n1 2 3 4 5 0\n",
    "fg": b"2\n\n2\n0 1\n2 2\n4\n0 1.0\n1 0.5\n2 0.5\n3 1.0\n\n1\n1\n2\n1\n1 0.3\n",
    "wcsp": b"n 3 3 2 100\n2 2 3\n2 0 1 0 2\n0 0 5\n1 1 3\n1 2 7 1\n0 0\n",
    "cfn": b'{problem: {name: "x", mustbe: "<10.5"}, variables: {a: 2, b: ["u", "v"]},\n'
    b"functions: {f: {scope: [a, b], costs: [0, 1.5, 2, 0]}, g: {scope: [a], costs: [1, 2]}}}\n",
}


def graphs(name: str) -> Target:
    """Files of factor graphs: what is read can be asked."""
    read = getattr(uai, f"read_{name}")

    def run(data: bytes) -> None:
        found = read(io.BytesIO(data))
        if found.structure.n_variables:
            found.score(np.zeros(found.structure.n_variables, dtype=np.int32))
            found.bound()

    words = [
        b"MARKOV",
        b"BAYES",
        b"n ",
        b"scope:",
        b"costs:",
        b"mustbe:",
        b"defaultcost:",
        b"{",
        b"}",
        b"[",
        b"]",
    ]
    return Target([GRAPHS[name]], run, of_bytes(words, [GRAPHS[name]]))


def labelled_graphs() -> Target:
    """Graphs in JSON Lines: what is read can be written, and is then read as the same."""
    seeds = [
        b'{"nodes": [[0.5, 1], [2, 3]], "edges": [[0, 1]], "labels": ["a", null], '
        b'"names": ["x", "y"], "positions": [[0, 1], [2, 3]]}',
        b'{"nodes": {"w": ["a", {"b": 2}], "t": [[1.5]]}, "edges": {"w-t": [[0, 0]]}, '
        b'"labels": {"t": [1]}}',
    ]

    def run(data: bytes) -> None:
        texts = []
        found = list(read_graphs(io.BytesIO(data)))
        for _ in range(2):
            again = io.BytesIO()
            write_graphs(found, again)
            texts.append(again.getvalue())
            found = list(read_graphs(io.BytesIO(again.getvalue())))
        if texts[0] != texts[1]:
            raise AssertionError(f"written and read again: {texts!r:.300}")

    words = [b'"nodes"', b'"edges"', b'"labels"', b'"positions"', b'"w-t"', b"1e999", b"null"]
    return Target(seeds, run, of_json(words))


def answers() -> Target:
    """Evidence and results of the UAI competitions; the first byte says which."""
    readers = [uai.read_evidence, uai.read_pr, uai.read_mar, uai.read_map]
    seeds = [
        b"02 0 1 2 0\n",
        b"01\n1 0 1\n",
        b"1PR\n-3.5\n",
        b"2MAR\n2 2 0.5 0.5 3 0.1 0.2 0.7\n",
        b"3MAP\n3 0 1 2\n",
    ]

    def run(data: bytes) -> None:
        readers[data[0] % 4 if data else 0](io.BytesIO(data[1:]))

    return Target(seeds, run, of_bytes([b"PR", b"MAR", b"MAP", b"MPE"], seeds))


def prepared() -> Target:
    """Data sets on disk: the index and the first part, one after another in one input."""
    from chordal.prepared import Dataset

    place = path("set")
    shutil.rmtree(place, ignore_errors=True)
    ChainCRF().prepare(place, ITEMS, TAGS)
    names = sorted(os.listdir(place))
    index = next(n for n in names if n.endswith(".json"))
    part = next(n for n in names if n not in (index,) and os.path.isfile(os.path.join(place, n)))
    contents = {n: Path(place, n).read_bytes() for n in (index, part)}
    of_index, of_part = of_json(), of_container("model")
    seeds = [b"\0" + contents[index], b"\1" + contents[part]]

    def mutate(data: bytes, rng: random.Random) -> bytes:
        if data[:1] == b"\1":
            return b"\1" + of_part(data[1:], rng)
        return b"\0" + of_index(data[1:], rng)

    def run(data: bytes) -> None:
        changed = {**contents, (part if data[:1] == b"\1" else index): data[1:]}
        for name, content in changed.items():
            with open(os.path.join(place, name), "wb") as file:
                file.write(content)
        ChainCRF(max_iter=1).fit(Dataset(place))

    return Target(seeds, run, mutate, (ValueError, OSError))


def checkpoints() -> Target:
    """States of a fit, from which it goes on."""
    place = path("checkpoint")
    X, y = ITEMS * 3, TAGS * 3

    def fit() -> None:
        ChainCRF(max_iter=3, tol=0).fit(X, y, checkpoint=chordal.Checkpoint(place, interval=1))

    if os.path.exists(place):
        os.remove(place)
    fit()
    with open(place, "rb") as file:
        seed = file.read()

    def run(data: bytes) -> None:
        put("checkpoint", data)
        fit()

    return Target([seed], run, of_container("checkpoint"))


def requests() -> Target:
    """Bodies of requests to the server, up to the answer."""
    from chordal.serve import Limits
    from chordal.serve._json import parsed
    from chordal.serve._predicting import Task, answers
    from chordal.serve._questions import question_of
    from chordal.serve._refusal import Refusal
    from chordal.serve._shelf import Loaded

    made = [ChainCRF(feature_template=TEMPLATE).fit(WORDS, TAGS), ChainCRF().fit(ITEMS, TAGS)]
    loaded = [Loaded.of("m", model, "1") for model in made]
    limits = Limits()

    def run(data: bytes) -> None:
        body = parsed(data)
        for own in loaded:
            try:
                question = question_of(body, own, limits)
            except Refusal:
                continue
            (answer,) = answers([Task(own, question)], 5.0)
            if isinstance(answer, Refusal) and answer.status == 500:
                raise AssertionError("an error inside the server")
            if not isinstance(answer, Refusal):
                json.loads(answer)

    seeds = [
        b'{"text": "the cat sees. A dog"}',
        b'{"tokens": ["the", "cat"], "marginals": true, "k": 3}',
        b'{"inputs": [{"rows": [["the"], ["dog"]]}, {"tokens": []}], "entities": true}',
        b'{"rows": [{"w=the": 1.0}, ["w=cat", "p"]], "method": "mpm", "constrain": "iob"}',
    ]
    words = [
        b'"text"',
        b'"tokens"',
        b'"rows"',
        b'"inputs"',
        b'"k"',
        b'"method"',
        b'"mpm"',
        b"\\ud800",
    ]
    return Target(seeds, run, of_json(words), (Refusal,))


TARGETS: dict[str, Callable[[], Target]] = {
    "models": models,
    "more_models": more_models,
    **({"neural_models": neural_models} if importlib.util.find_spec("torch") else {}),
    "crfsuite_models": crfsuite_models,
    "wapiti_models": wapiti_models,
    "crfpp_models": crfpp_models,
    **{name: functools.partial(data_file, name) for name in DATA},
    "items": items,
    "templates": templates,
    **{name: functools.partial(graphs, name) for name in GRAPHS},
    "labelled_graphs": labelled_graphs,
    "answers": answers,
    "prepared": prepared,
    "checkpoints": checkpoints,
    "requests": requests,
}

warnings.simplefilter("ignore")
