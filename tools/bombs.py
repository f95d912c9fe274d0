"""Bombs: small files that ask for much. ``python tools/faults.py bombs`` opens each.

Each must end, refused or read, within a second (of the processor) and 100 MB beyond what the
imports take. A bomb is made by a function that writes it, and opened by a statement, which knows
`path`, its file or folder.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SECONDS, MEGABYTES = 1.0, 100.0
SIZE = 1 << 30  # bytes, decompressed

Make = Callable[[Path], object]


class Bomb(NamedTuple):
    """How a bomb is made, and what opens it."""

    make: Make
    opened: str


class Outcome(NamedTuple):
    """How the opening of a bomb ended: the error's name or "read", seconds, megabytes."""

    ended: str
    seconds: float
    megabytes: float


# ------------------------------------------------------------------------------------- compressed

READ = {
    **{f"{name} data": f"for _ in FORMATS.get('{name}')().read(path): pass" for name in
       ("conll", "conllu", "jsonl", "crfsuite")},
    "conll, whole": "FORMATS.get('conll')().load(path)",
    **{f"{name} graph": f"uai.read_{name}(path)" for name in ("uai", "fg", "wcsp", "cfn")},
    **{name: f"uai.read_{name}(path)" for name in ("evidence", "pr", "mar", "map")},
}  # fmt: skip
#: What is repeated: zeros, one endless line, and lines that are sound.
CONTENTS = {
    "zeros": lambda name: b"\0",
    "one line": lambda name: b"[" if name in ("jsonl data", "cfn graph") else b"1",
    "numbers": lambda name: b"1 " if "data" not in name else b'"a" ',
    "lines": lambda name: LINES.get(name, b"2\n"),
}
LINES = {
    "conll data": b"a B\n\n",
    "conll, whole": b"a B\n",
    "conllu data": b"1\ta\t_\tN\t_\t_\t0\troot\t_\t_\n\n",
    "jsonl data": b'{"tokens": ["a"], "labels": ["B"]}\n',
    "crfsuite data": b"B\ta\n\n",
}
HEADS = {
    "uai graph": b"MARKOV 9 ",
    "wcsp graph": b"n 9 9 9 9 ",
    "cfn graph": b'{problem: {mustbe: "<9"}, variables: {',
    "pr": b"PR\n",
    "mar": b"MAR\n9 ",
    "map": b"MAP\n999999999 ",
    "evidence": b"999999999 ",
}


def _compressed(compress: Callable[[bytes], bytes], head: bytes, unit: bytes) -> bytes:
    """A gigabyte in as many streams as one piece needs: gzip, bzip2 and xz may be joined."""
    piece = unit * ((1 << 24) // len(unit))
    return compress(head) + compress(piece) * (SIZE // len(piece))


def _compressed_bombs() -> dict[str, Bomb]:
    found = {}
    ways = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    for name, opened in READ.items():
        for kind, unit in CONTENTS.items():
            for way, compress in ways.items() if kind == "zeros" else [("gz", gzip.compress)]:

                def make(path: Path, compress=compress, name=name, unit=unit) -> None:
                    head = HEADS.get(name, b"")
                    path.write_bytes(_compressed(compress, head, unit(name)))

                found[f"{name}, {way} of {kind}"] = Bomb(make, opened)
    return found


# -------------------------------------------------------------------------------- absurd headers

HEADER = {
    "numbers": lambda n: b'{"a": [' + b"1," * (n // 2) + b"1]}",
    "lists": lambda n: b'{"a": [' + b"[]," * (n // 3) + b"[]]}",
    "keys": lambda n: b"{" + b",".join(b'"%d":0' % k for k in range(n // 11)) + b"}",
    "nested": lambda n: b'{"a": ' + b"[" * (n // 2) + b"]" * (n // 2) + b"}",
    "nested a little": lambda n: b'{"a": [' + b"[[[[[[[[]]]]]]]]," * (n // 17) + b"1]}",
    "text": lambda n: '{"__metadata__": {"format": "chordal", "model": "🦔'.encode()
    + b"x" * n + b'"}}',
    "facts": lambda n: b'{"__metadata__": {"format": "chordal", "version": "1", "checksum": "", '
    b'"model": "[' + b"1," * (n // 2) + b'1]"}}',
    "digits": lambda n: b'{"a": ' + b"9" * n + b"}",
    "an array of 10^9": lambda n: json.dumps({
        "__metadata__": {"format": "chordal", "version": "1", "model": "{}", "checkpoint": "{}",
                         "part": "{}", "vocabulary": "{}", "checksum": "0"},
        "a": {"dtype": "F64", "shape": [10**9], "data_offsets": [0, 8 * 10**9]},
    }).encode(),
    "numbers, as many as may be": lambda n: HEADER["numbers"](1_990_000),
    "lists, as many as may be": lambda n: HEADER["lists"](290_000),
    "keys, as many as may be": lambda n: HEADER["keys"](2_150_000),
    "arrays": lambda n: json.dumps({
        "__metadata__": {"format": "chordal", "version": "1", "model": "{}", "checkpoint": "{}",
                         "part": "{}", "vocabulary": "{}", "checksum": "0"},
        **{str(k): {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for k in range(n // 70)},
    }).encode(),
}  # fmt: skip
FULL = 7_900_000


def _container(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


def _checked(facts: bytes, key: str) -> bytes:
    """A container without arrays whose checksum is right."""
    from chordal._container import _checksum

    text = facts.decode()
    about = {"format": "chordal", "version": "1", key: text, "checksum": _checksum(text, {}, [])}
    return _container(json.dumps({"__metadata__": about}, ensure_ascii=False).encode())


def _small_set(path: Path) -> Path:
    from chordal import ChainCRF

    ChainCRF().prepare(path, [[["a"], ["b"]]], [["A", "B"]])
    return path


def _part_bomb(path: Path, content: bytes, which: str) -> None:
    (file,) = _small_set(path).glob(f"{which}-*")
    file.write_bytes(content)


def _index_bomb(path: Path, content: bytes) -> None:
    (_small_set(path) / "index.json").write_bytes(content)


def _index_of(parts: int) -> bytes:
    """An index that names many parts, with the right checksum."""
    from chordal.prepared._dataset import FORMAT, VERSION, checksum

    entries = [{"file": f"p{k}", "examples": 2**47, "variables": 2**47} for k in range(parts)]
    index = {"format": FORMAT, "version": VERSION, "id": "x", "generation": 1, "facts": {},
             "vocabulary": "v", "parts": entries}  # fmt: skip
    return json.dumps({**index, "checksum": checksum(index)}).encode()


FIT = "ChainCRF(max_iter=1).fit([[['a'], ['b']]], [['A', 'B']], checkpoint=path)"


def _header_bombs() -> dict[str, Bomb]:
    found = {}
    for kind, content in HEADER.items():

        def header(path: Path, content=content) -> None:
            path.write_bytes(_container(content(FULL)))

        found[f"model file, header of {kind}"] = Bomb(header, "chordal.load(path)")
        found[f"checkpoint, header of {kind}"] = Bomb(header, FIT)
        for which in ("part", "vocabulary"):

            def stored(path: Path, content=content, which=which) -> None:
                _part_bomb(path, _container(content(FULL)), which)

            opened = "ChainCRF(max_iter=1).fit(Dataset(path))"
            found[f"{which} of a data set, header of {kind}"] = Bomb(stored, opened)

        def index(path: Path, content=content) -> None:
            _index_bomb(path, content(FULL))

        found[f"index of a data set, {kind}"] = Bomb(index, "Dataset(path)")

        def facts(path: Path, content=content) -> None:
            path.write_bytes(_checked(content(FULL // 3), "model"))

        found[f"model file, checked facts of {kind}"] = Bomb(facts, "chordal.load(path)")
    found["index of a data set, 300,000 parts"] = Bomb(
        lambda path: _index_bomb(path, _index_of(300_000)), "len(Dataset(path))"
    )
    found["index of a data set, 900 MB of blanks"] = Bomb(
        lambda path: _blank(_small_set(path) / "index.json"), "Dataset(path)"
    )
    found["model file, a length of 10^9"] = Bomb(
        lambda path: path.write_bytes((10**9).to_bytes(8, "little") + b"{" * 100),
        "chordal.load(path)",
    )
    found["model file, a gigabyte of nothing"] = Bomb(_blank, "chordal.load(path)")
    return found


def _blank(path: Path) -> None:
    """A file with a hole: it takes no room on the disk."""
    with open(path, "wb") as file:
        file.truncate(900_000_000)


# ------------------------------------------------------------------------- models of other tools


def _foreign_bombs() -> dict[str, Bomb]:
    big = 1 << 31
    crfsuite = (
        b"lCRF" + (10**9).to_bytes(4, "little") + b"FOMC" + (100).to_bytes(4, "little")
        + (0xFFFFFFF0).to_bytes(4, "little") * 8
    )  # fmt: skip
    crfpp = f"version: 100\ncost-factor: 1\nmaxid: {big}\nxsize: 1\n\nD\nN\n\nU0:%x[0,0]\nB\n\n"
    labels = "".join(f"{k}\n" for k in range(300_000))
    wapiti = "#mdl#2#999999999\n#rdr#9/9/0\n3:a=b,\n#qrk#999999999\n3:abc,\n"
    made = {
        "crfsuite model, 4 billion features": (crfsuite, "read_crfsuite(path)"),
        "crfsuite model, zeros": (b"lCRF" + bytes(30_000_000), "read_crfsuite(path)"),
        "crfpp model, 2 billion weights": (crfpp.encode(), "read_crfpp(path)"),
        "crfpp model, 300,000 labels": (
            f"version: 100\ncost-factor: 1\nmaxid: 9\nxsize: 1\n\n{labels}\nB\n\n0 B\n\n".encode(),
            "read_crfpp(path)",
        ),
        "crfpp model, one long line": (b"version: 100\ncost-factor: " + b"1" * 30_000_000,
                                       "read_crfpp(path)"),
        "wapiti model, a billion": (wapiti.encode(), "read_wapiti(path)"),
        "wapiti model, a text of 10^9": (b"#mdl#2#1\n#rdr#1/1/0\n999999999:a", "read_wapiti(path)"),
        "template, a million lines": (b"U:%x[0,0]\n" * 1_000_000, TEMPLATE),
        "template, one long line": (b"U:" + b"%x[0,0]/" * 1_000_000, TEMPLATE),
        "template, a long pattern": (b'U:%m[0,0,"' + b"a?" * 1_000_000 + b'"]', TEMPLATE),
        "template, far away": (b"U:%x[-999999999,999999999]\n", TEMPLATE),
        "pickle as a model": (pickle.dumps(list(range(10**6))), "chordal.load(path)"),
        "pickle that builds much": (b"\x80\x04]" + b"]a" * 10_000_000 + b".", "chordal.load(path)"),
        "gzip as a model": (gzip.compress(bytes(1 << 24)) * 64, "chordal.load(path)"),
        "gzip as a crfsuite model": (gzip.compress(bytes(1 << 24)) * 64, "read_crfsuite(path)"),
        "gzip as a wapiti model": (gzip.compress(b"#mdl#2#1\n" * (1 << 20)) * 99,
                                   "read_wapiti(path)"),
    }  # fmt: skip
    return {
        name: Bomb(lambda path, content=content: path.write_bytes(content), opened)
        for name, (content, opened) in made.items()
    }


TEMPLATE = "FeatureTemplate(open(path).read()).attributes([['a'], ['b']])"
BODIES = {
    "numbers": b'{"rows": [' + b"1," * 500_000 + b"1]}",
    "lists": b'{"rows": [' + b"[]," * 330_000 + b"[]]}",
    "keys": b"{" + b",".join(b'"%d":0' % k for k in range(90_000)) + b"}",
    "nested": b'{"rows": ' + b"[" * 500_000 + b"]" * 500_000 + b"}",
    "words": b'{"text": "' + b"a " * 500_000 + b'"}',
    "k": b'{"tokens": ["a"], "k": 999999999999}',
    "digits": b'{"tokens": ["a"], "k": ' + b"9" * 1_000_000 + b"}",
    "halves": b'{"text": "' + b"\\ud800" * 160_000 + b'"}',
}


def _request_bombs() -> dict[str, Bomb]:
    return {
        f"request, {name}": Bomb(lambda path, body=body: path.write_bytes(body), "ask(path)")
        for name, body in BODIES.items()
    }


# --------------------------------------------------------------------------------- Arrow, Parquet


def _table(path: Path, rows: int, kind: str) -> None:
    """A table that is small only on disk: the same short list in every row, or one long list."""
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet as pq

    if kind == "long":
        tokens = pa.array([["a" * 10] * rows])
    elif kind == "wide":
        tokens = pa.array([["a" * rows]])
    else:
        tokens = pa.array([["a"]] * rows)
    table = pa.table({"tokens": tokens, "labels": tokens})
    if path.suffix == ".arrow":
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(str(path), table.schema, options=options) as file:
            file.write_table(table)
    else:
        pq.write_table(table, path, compression="zstd", row_group_size=rows)


def _parquet_footer(path: Path) -> None:
    """A footer as long as the file claims: 2 GB of a file of a few bytes."""
    path.write_bytes(b"PAR1" + bytes(64) + (2**31 - 9).to_bytes(4, "little") + b"PAR1")


def _arrow_bombs() -> dict[str, Bomb]:
    found = {}
    for name, ending in (("parquet", ".parquet"), ("arrow", ".arrow")):
        opened = f"for _ in FORMATS.get('{name}')().read(path + '{ending}'): pass"
        for kind, rows in (("long", 20_000_000), ("wide", 200_000_000), ("many", 5_000_000)):
            if name == "arrow" and kind != "wide":  # offsets hardly shrink: not a small file
                continue

            def make(path: Path, rows=rows, kind=kind, ending=ending) -> None:
                _table(Path(f"{path}{ending}"), rows, kind)

            found[f"{name}, {kind}"] = Bomb(make, opened)
    opened = "for _ in FORMATS.get('parquet')().read(path + '.parquet'): pass"
    found["parquet, an absurd footer"] = Bomb(
        lambda path: _parquet_footer(Path(f"{path}.parquet")), opened
    )
    return found


BOMBS: dict[str, Bomb] = {
    **_compressed_bombs(),
    **_header_bombs(),
    **_foreign_bombs(),
    **_request_bombs(),
    **_arrow_bombs(),
}

CHILD = """
import gc, json, sys, time, warnings
warnings.simplefilter("ignore")
import bz2, gzip, lzma, zlib
import numpy as np
import chordal
from chordal import ChainCRF, Dataset
from chordal.compat.crfpp_model import read_crfpp
from chordal.compat.crfsuite_model import read_crfsuite
from chordal.compat.wapiti_model import read_wapiti
from chordal.formats import FORMATS, uai
from chordal.text import FeatureTemplate
bombs = json.loads(sys.stdin.read())
for name in ("conll", "conllu", "jsonl", "crfsuite", "parquet", "arrow"):
    FORMATS.get(name)
if any("parquet" in opened or "arrow" in opened for _, opened in bombs):
    import pyarrow, pyarrow.ipc, pyarrow.parquet
X, y = [[["a"], ["b"]]], [["A", "B"]]
model = ChainCRF(feature_template="U:%x[0,0]").fit(X, y)
if any(opened.startswith("ask") for _, opened in bombs):
    from chordal.serve import Limits
    from chordal.serve._json import parsed
    from chordal.serve._predicting import Task, answers
    from chordal.serve._questions import question_of
    from chordal.serve._refusal import Refusal
    from chordal.serve._shelf import Loaded
    loaded = Loaded.of("m", model, "1")
def ask(path):
    with open(path, "rb") as file:
        body = file.read()
    if len(body) > Limits().max_body:
        raise Refusal(413, "too large")
    (answer,) = answers([Task(loaded, question_of(parsed(body), loaded, Limits()))], 5.0)
    if isinstance(answer, Refusal):
        raise answer
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
for path, opened in bombs:
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before, start, ended = peak(), time.process_time(), "read"
    try:
        exec(opened)
    except Exception as error:
        ended = type(error).__name__
        if len(str(error)) > 5000:
            ended += " with a long message"
    print(ended, time.process_time() - start, (peak() - before) / 1024, flush=True)
"""


def exploded(names: Sequence[str], folder: Path, timeout: float = 300.0) -> Iterator[Outcome]:
    """Make some bombs in a folder, and open them one after another in one process.

    Those that a crash or the time limit leaves without an answer end with the reason.
    """
    given = []
    for k, name in enumerate(names):
        BOMBS[name].make(folder / str(k))
        given.append((str(folder / str(k)), BOMBS[name].opened))
    command = [sys.executable, "-c", CHILD]
    said, ended = "", f"no end within {timeout:g} s"
    try:
        ran = subprocess.run(
            command, input=json.dumps(given), capture_output=True, text=True, timeout=timeout
        )
        said, ended = ran.stdout, f"exit code {ran.returncode}: {ran.stderr[-300:]}"
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode()
    lines = [line.rsplit(maxsplit=2) for line in said.splitlines()]
    for k in range(len(names)):
        if k < len(lines):
            yield Outcome(lines[k][0], float(lines[k][1]), float(lines[k][2]))
        else:
            yield Outcome(ended, float("inf"), float("inf"))


def groups(size: int = 12) -> dict[str, list[str]]:
    """The names of bombs, some at a time: a process for each would mostly import."""
    names = list(BOMBS)
    return {names[k]: names[k : k + size] for k in range(0, len(names), size)}
