"""Sentences with a tag for every word: chunks of CoNLL-2000, parts of speech of UD English."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from chordal._validate import check_choice
from chordal.datasets._files import Official, found, sentences_of

CONLL2000 = {
    "train": "8ad5afd689a11666cb741b4300a632389615285cc358cb90ee1cad4fda7684ac",
    "test": "2099a3de22c4fa19c9633eb8dbe1c2187b4c205629c9336f605633f0769c4082",
}
UD_ENGLISH = {
    "train": "34731d23bafeeff233fdcee18ffc0254b1aa0e28",
    "dev": "a994b6990643429070ecc6e236d26ad6a04bfefb",
    "test": "c59667960ae967636606f47bc35f132a5557ad39",
}
UD_ADDRESS = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.16"


@dataclass(frozen=True)
class TaggedText:
    """Sentences and their tags.

    Attributes
    ----------
    X : list of lists of rows
        The columns of every token, as templates take them.
    y : list of lists of str
        The tag of every token.
    """

    X: list[list[list[str]]]
    y: list[list[str]]


def load_conll2000(part: str = "train", path: str | PathLike[str] | None = None) -> TaggedText:
    """Chunks of the CoNLL-2000 shared task: words and parts of speech, and BIO tags of chunks.

    Parameters
    ----------
    part : {"train", "test"}
        8,936 and 2,012 sentences.
    path : str or Path, optional
        The file train.txt.gz or test.txt.gz as it is distributed (or unpacked), or its folder.
        Otherwise it is looked for in the folder $CHORDAL_DATA/conll2000 and in the user's cache,
        and downloaded.
    """
    check_choice("part", part, ["train", "test"])
    names = (f"{part}.txt.gz", f"{part}.txt")
    url = f"https://www.cnts.ua.ac.be/conll2000/chunking/{part}.txt.gz"
    official = {names[0]: Official(url, CONLL2000[part])}
    file = found(path, "conll2000", names, "the CoNLL-2000 shared task", official)
    sentences = sentences_of(file, 3)
    return TaggedText(
        [[row[:2] for row in sentence] for sentence in sentences],
        [[row[2] for row in sentence] for sentence in sentences],
    )


def load_ud_english(part: str = "train", path: str | PathLike[str] | None = None) -> TaggedText:
    """Universal parts of speech of the English Web Treebank, as of UD 2.16.

    Parameters
    ----------
    part : {"train", "dev", "test"}
        12,544, 2,001 and 2,077 sentences.
    path : str or Path, optional
        The file en_ewt-ud-train.conllu and so on as it is distributed, or ud_ewt_train.tsv.gz,
        made of it (form, UPOS, XPOS, head, relation); or the folder. Otherwise it is looked for
        in the folder $CHORDAL_DATA/pos and in the user's cache, and downloaded.
    """
    check_choice("part", part, ["train", "dev", "test"])
    official_name = f"en_ewt-ud-{part}.conllu"
    names = (f"ud_ewt_{part}.tsv.gz", f"ud_ewt_{part}.tsv", official_name)
    url = f"{UD_ADDRESS}/{official_name}"
    official = {official_name: Official(url, UD_ENGLISH[part])}
    file = found(path, "pos", names, "Universal Dependencies, English EWT", official)
    if file.suffix == ".conllu":
        # Rows are words, but for those of several words together ("1-2") and of none ("1.1").
        rows = sentences_of(file, 10, "\t", comment="#")
        sentences = [[[row[1], row[3]] for row in s if row[0].isdigit()] for s in rows]
    else:
        sentences = sentences_of(file, 5, "\t")
    return TaggedText(
        [[row[:1] for row in sentence] for sentence in sentences],
        [[row[1] for row in sentence] for sentence in sentences],
    )
