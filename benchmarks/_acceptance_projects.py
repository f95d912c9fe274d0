"""What `python -m benchmarks.acceptance` asks of each project, run in an environment of its own.

    python _acceptance_projects.py PROJECT theirs|ours N FOLDER

Both runs get the same inputs. "theirs" is first: models that are trained here are kept in FOLDER,
and both answer with the one that the real package has trained.
"""

from __future__ import annotations

import json
import pickle
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FAILED = "failed: "


class Skip(Exception):
    """Why a project cannot be tried here."""


class Case(NamedTuple):
    """Inputs, the project's answer to one of them, and probabilities or weights behind it."""

    inputs: Sequence[Any]
    answer: Callable[[Any], Any]
    numbers: Callable[[Any], Iterable[float]] | None = None
    tolerance: float = 1e-9
    # Whether another answer is as probable as the own one: rounding then decides between them.
    tie: Callable[[Any, Any], bool] | None = None


def listed(words: str) -> list[str]:
    return words.split()


WORDS = listed(
    "the a old new red quick lazy small first second house road river garden station dog cat man "
    "woman child city letter music window runs sleeps sees finds makes opens reads writes slowly "
    "often never here there with without under over because although and or but he she it they"
)
STREETS = listed("Main Oak Pine Maple Cedar Elm Washington Lake Hill Park Broadway Martin-Luther")
KINDS = listed("St Ave Blvd Rd Street Avenue Lane Dr. Ct Pkwy")
CITIES = ["Chicago", "New York", "Boise", "St. Louis", "San Francisco", "Austin"]
FIRST = listed("Mary John Anna Robert Linda James Patricia Michael Dr. Mrs. Juan")
LAST = listed("Smith Johnson O'Brien Garcia Miller de-la-Cruz Lee Jr. Nguyen Brown")
FIRMS = ["Acme", "Global Foods", "Smith & Sons", "Northern Lights", "First Bank of"]


def addresses(n: int) -> list[str]:
    draw = random.Random(1)
    texts = []
    for _ in range(n):
        parts = [str(draw.randrange(1, 9999)), draw.choice(["", "N ", "SW ", "West "])]
        text = " ".join(parts).strip() + f" {draw.choice(STREETS)} {draw.choice(KINDS)}"
        if draw.random() < 0.4:
            text += draw.choice([" Apt ", " Suite ", " #", ", Unit "]) + str(draw.randrange(400))
        if draw.random() < 0.8:
            text += f", {draw.choice(CITIES)}, {draw.choice(['IL', 'NY', 'CA', 'Texas'])}"
        if draw.random() < 0.6:
            text += f" {draw.randrange(10000, 99999)}"
        texts.append(text)
    return texts


def people(n: int) -> list[str]:
    draw = random.Random(2)
    texts = []
    for _ in range(n):
        name = f"{draw.choice(FIRST)} {draw.choice(['', 'Q. ', 'Lee '])}{draw.choice(LAST)}"
        if draw.random() < 0.3:
            name = f"{draw.choice(LAST)}, {draw.choice(FIRST)}"
        if draw.random() < 0.3:
            name = f"{draw.choice(FIRMS)} {draw.choice(['Inc', 'LLC', 'Chicago', 'Company'])}"
        texts.append(name if draw.random() < 0.8 else f"{name} and {draw.choice(FIRST)}")
    return texts


def sentences(n: int, words: Sequence[str] = WORDS, join: str | None = None) -> list[Any]:
    draw = random.Random(3)
    chosen = [[draw.choice(words) for _ in range(draw.randrange(1, 25))] for _ in range(n)]
    return chosen if join is None else [join.join(sentence) for sentence in chosen]


def tagged(n: int) -> list[list[tuple[str, str]]]:
    kinds = {word: "VNDAP"[k * 5 // len(WORDS)] for k, word in enumerate(WORDS)}
    draw = random.Random(4)
    return [
        [(w, kinds[w] if draw.random() < 0.95 else "N") for w in sentence]
        for sentence in sentences(n)
    ]


def of_tagger(tagger: Any, features: Any) -> list[float]:
    """The probability of the best labels, and of each of them."""
    labels = tagger.tag(features)
    return [tagger.probability(labels), *(tagger.marginal(y, t) for t, y in enumerate(labels))]


def of_crf(crf: Any, features: Any) -> list[float]:
    return [row[label] for row in crf.predict_marginals_single(features) for label in crf.classes_]


def usaddress(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import usaddress

    def numbers(text: str) -> list[float]:
        tokens = usaddress.tokenize(text)
        return of_tagger(usaddress.TAGGER, usaddress.tokens2features(tokens))

    yield "parse", Case(addresses(n), usaddress.parse, numbers)


def probablepeople(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import probablepeople

    for kind in ("generic", "person", "company"):
        tagger = probablepeople.TAGGERS[kind]

        def numbers(text: str, tagger: Any = tagger) -> list[float]:
            tokens = probablepeople.tokenize(text)
            return of_tagger(tagger, probablepeople.tokens2features(tokens))

        def answer(text: str, kind: str = kind) -> Any:
            return probablepeople.parse(text, type=kind)

        yield f"parse, {kind}", Case(people(n), answer, numbers)


def parserator(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import pycrfsuite
    from parserator import training

    class module:
        @staticmethod
        def tokens2features(tokens: Sequence[str]) -> list[dict[str, Any]]:
            return [
                {"word": w.lower(), "end": w[-2:], "digits": w.isdigit(), "first": t == 0}
                for t, w in enumerate(tokens)
            ]

    data = [("", sentence) for sentence in tagged(2000)]
    paths = {name: str(folder / f"parserator-{name}.crfsuite") for name in ("theirs", "ours")}
    own = paths["ours" if ours else "theirs"]
    yield "training", Case([data], lambda d: training.trainModel(d, module, own))
    tagger = pycrfsuite.Tagger()
    tagger.open(paths["theirs"])

    def features(words: Sequence[str]) -> Any:
        return module.tokens2features(words)

    yield (
        "tagging",
        Case(
            sentences(n),
            lambda words: tagger.tag(features(words)),
            lambda words: of_tagger(tagger, features(words)),
        ),
    )
    mine = pycrfsuite.Tagger()
    mine.open(own)
    yield "tagging, each by its own model", Case(sentences(n), lambda w: mine.tag(features(w)))


def nltk(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import nltk
    from nltk.tag import CRFTagger

    nltk.data.path.append(str(folder))  # it opens files of its data folders alone
    paths = {name: str(folder / f"nltk-{name}.crfsuite") for name in ("theirs", "ours")}
    own = paths["ours" if ours else "theirs"]
    yield "CRFTagger.train", Case([tagged(2000)], lambda d: CRFTagger().train(d, own))
    tagger = CRFTagger()
    tagger.set_model_file(paths["theirs"])

    def numbers(words: Sequence[str]) -> list[float]:
        features = [tagger._feature_func(words, t) for t in range(len(words))]
        return of_tagger(tagger._tagger, features)

    yield "CRFTagger.tag", Case(sentences(n), tagger.tag, numbers)


def eli5(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import eli5
    import sklearn_crfsuite
    from eli5.formatters import format_as_dict

    data = tagged(500)
    X = [[{"w": w, "end": w[-1], "len": len(w) / 8} for w, _ in s] for s in data]
    y = [[label for _, label in s] for s in data]
    path = folder / "eli5.pickle"
    if not ours:
        crf = sklearn_crfsuite.CRF(c1=0.1, c2=0.1, max_iterations=50).fit(X, y)
        path.write_bytes(pickle.dumps(crf))
    crf = pickle.loads(path.read_bytes())
    found = format_as_dict(eli5.explain_weights(crf, top=100))

    def leaves(value: Any) -> Iterable[Any]:
        if isinstance(value, (dict, list)):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from leaves(inner)
        else:
            yield value

    def explain(top: int) -> Any:
        eli5.explain_weights(crf, top=top)
        return [v for v in leaves(found) if isinstance(v, str)]

    yield (
        "explain_weights of a pickle",
        Case(
            list(range(5, 25)),
            explain,
            lambda top: [float(v) for v in leaves(found) if isinstance(v, float)],
            1e-6,  # python-crfsuite reads weights from text with six decimals
        ),
    )
    yield (
        "marginals of a pickle",
        Case(X[:n], lambda x: list(crf.predict([x])[0]), lambda x: of_crf(crf, x)),
    )


def pythainlp(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    from pythainlp.corpus import thai_words
    from pythainlp.tokenize import crfcut, han_solo

    words = sorted(thai_words())[::50]
    yield "crfcut", Case(sentences(n, words, " "), crfcut.segment)
    yield "han_solo", Case(sentences(n, words, ""), han_solo.segment)
    from pythainlp.chunk.crfchunk import CRFChunkParser

    parser = CRFChunkParser()
    draw = random.Random(5)
    pairs = [
        [(w, draw.choice(["NCMN", "VACT", "RPRE"])) for w in sentence]
        for sentence in sentences(n, words)
    ]
    yield "crfchunk", Case(pairs, parser.parse)


def ssg(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import ssg

    consonants = [chr(c) for c in range(0x0E01, 0x0E2F)]
    vowels = [chr(c) for c in (0x0E30, 0x0E32, 0x0E34, 0x0E35, 0x0E40, 0x0E41, 0x0E48)]
    texts = sentences(n, [c + v for c in consonants for v in vowels], "")

    def numbers(text: str) -> list[float]:
        features = ssg.FEATURIZER.featurize(text, return_type="list", padding=True, indiv_char=True)
        return of_tagger(ssg.TAGGER, features["X"])

    yield "syllable_tokenize", Case(texts, ssg.syllable_tokenize, numbers)


def gruut(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import gruut_lang_en
    from gruut.g2p import GraphemesToPhonemes
    from gruut.pos import PartOfSpeechTagger

    home = Path(gruut_lang_en.__file__).parent
    tagger = PartOfSpeechTagger(str(home / "pos" / "model.crf"))
    yield (
        "part of speech",
        Case(
            sentences(n),
            lambda words: list(tagger(words)),
            lambda words: of_tagger(tagger.crf_tagger, tagger.sent2features(words)),
        ),
    )
    sounds = GraphemesToPhonemes(str(home / "g2p" / "model.crf"))
    letters = sentences(n, "abcdefghijklmnoprstuvwy", "")
    yield "graphemes to phonemes", Case(letters, lambda word: list(sounds(word)))


def pyvi(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import pyvi
    from pyvi import ViPosTagger, ViTokenizer, ViUtils

    text = (Path(pyvi.__file__).parent / "models" / "words.txt").read_text("utf-8")
    words = sorted({w for line in text.split("\n") for w in line.split()})[::20]
    texts = sentences(n, words, " ")

    def accented(text: str) -> Any:
        return ViUtils.add_accents(ViUtils.remove_accents(text).decode())

    yield "tokenize (a pickle)", Case(texts, ViTokenizer.tokenize)
    tagger = ViPosTagger.ViPosTagger

    def tie(text: str, other: Any) -> bool:
        tokens, labels = tagger.postagging(text)
        tagger.model.tagger_.set(tagger.sent2features(tokens, False))
        mine, theirs = (tagger.model.tagger_.probability(y) for y in (list(labels), other[1]))
        return other[0] == tokens and abs(mine - theirs) <= 1e-12 * mine

    yield "postagging (a pickle)", Case(texts, tagger.postagging, tie=tie)
    yield "add_accents", Case(texts[: n // 4], accented)


def khmernltk(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import khmernltk

    consonants = [chr(c) for c in range(0x1780, 0x17A2)]
    vowels = [chr(c) for c in range(0x17B6, 0x17C6)]
    texts = sentences(n, [c + v for c in consonants for v in vowels], "")
    yield "word_tokenize (a pickle)", Case(texts, khmernltk.word_tokenize)
    yield "pos_tag (a pickle)", Case(texts, khmernltk.pos_tag)


def gecco(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    from gecco.crf import ClusterCRF

    model = ClusterCRF.trained().model
    domains = sorted(model.attributes_)
    draw = random.Random(6)
    inputs = [
        [dict.fromkeys(draw.sample(domains, draw.randrange(4)), True) for _ in range(20)]
        for _ in range(n)
    ]
    yield (
        "predictions (a pickle)",
        Case(inputs, lambda x: list(model.predict_single(x)), lambda x: of_crf(model, x)),
    )


def ingredient_parser(n: int, ours: bool, folder: Path) -> Iterable[tuple[str, Case]]:
    import nltk

    try:
        nltk.data.find("taggers/averaged_perceptron_tagger_eng")
    except LookupError:
        if not nltk.download("averaged_perceptron_tagger_eng", quiet=True):
            raise Skip("NLTK's tagger data cannot be downloaded") from None
    from ingredient_parser import parse_ingredient

    draw = random.Random(7)
    foods = listed("flour sugar butter onions tomatoes garlic basil milk eggs rice")
    texts = [
        f"{draw.randrange(1, 9)} {draw.choice(['cups', 'tbsp', 'oz', 'g', 'large'])} "
        f"{draw.choice(['', 'chopped ', 'fresh '])}{draw.choice(foods)}, {draw.choice(foods)}"
        for _ in range(n)
    ]
    yield "parse_ingredient", Case(texts, lambda text: repr(parse_ingredient(text)))


PROJECTS = {
    "usaddress": usaddress,
    "probablepeople": probablepeople,
    "parserator": parserator,
    "ingredient-parser-nlp<2.8": ingredient_parser,
    "eli5": eli5,
    "nltk": nltk,
    "pythainlp": pythainlp,
    "ssg": ssg,
    "gruut": gruut,
    "pyvi": pyvi,
    "khmer-nltk": khmernltk,
    "gecco": gecco,
}


def plain(value: Any) -> Any:
    """Arrays as lists, everything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def answered(case: Case, x: Any) -> Any:
    """The answer, or the project's error: that must be the same, too."""
    try:
        return case.answer(x)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        return f"{FAILED}{type(error).__name__}: {error}"


def main(project: str, which: str, n: int, folder: Path) -> None:
    """Write one JSON line per case: its name, seconds, answers and numbers."""
    ours = which == "ours"
    if ours:
        import chordal.compat

        chordal.compat.install()
    theirs = (folder / "theirs.jsonl").read_text("utf-8").splitlines() if ours else []
    out = (folder / f"{which}.jsonl").open("w", encoding="utf-8")
    try:
        for name, case in PROJECTS[project](n, ours, folder):
            if len(case.inputs) > 1:
                answered(case, case.inputs[0])  # the first call may load something
            began = time.perf_counter()
            answers = [answered(case, x) for x in case.inputs]
            seconds = time.perf_counter() - began
            failures = [a for a in answers if isinstance(a, str) and a.startswith(FAILED)]
            if len(failures) == len(answers):
                raise RuntimeError(failures[0])
            numbers = [list(case.numbers(x)) for x in case.inputs] if case.numbers else None
            ties = 0
            if ours and case.tie is not None:
                old = next(known for known in map(json.loads, theirs) if known["case"] == name)
                answers = json.loads(json.dumps(answers, default=plain))
                both = zip(case.inputs, answers, old["answers"], strict=True)
                ties = sum(case.tie(x, there) for x, here, there in both if here != there)
            line = {
                "case": name,
                "ties": ties,
                "seconds": seconds,
                "answers": answers,
                "numbers": numbers,
                "tolerance": case.tolerance,
            }
            out.write(json.dumps(line, default=plain) + "\n")
            out.flush()
        used = [sys.modules[m] for m in ("pycrfsuite", "sklearn_crfsuite") if m in sys.modules]
        if not used or any(m.__name__.startswith("chordal") != ours for m in used):
            raise RuntimeError(f"the project used {used}")
    except (Skip, FileNotFoundError) as error:
        out.write(json.dumps({"skip": str(error).partition("\n")[0]}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
