"""Pages of the gallery, from the folder that `chordal reproduce all --out report` wrote.

    python docs/make_gallery.py report [docs/gallery]
    python docs/make_gallery.py --code [docs/gallery]

Figures, pictures and samples are those of the run. The code is that of the experiments now;
`--code` renews it alone, without a run.
"""

import inspect
import json
import shutil
import sys
import textwrap
from collections import Counter
from pathlib import Path

from chordal.experiments import EXPERIMENTS, Row

SOURCE = "../../src/chordal/experiments"
FACTS = {"data": "Data", "split": "Split", "model": "Model", "source": "Published in"}
CODE = "## Code\n\n"
QUICK = "> A quick run: less data and fewer steps. Its figures show that everything works.\n\n"


def main(report: Path, gallery: Path) -> None:
    results = json.loads((report / "results.json").read_text(encoding="utf-8"))
    images = gallery / "images"
    shutil.rmtree(gallery, ignore_errors=True)
    images.mkdir(parents=True)
    note = QUICK if results["quick"] else ""
    found = {n: f for n, f in results["experiments"].items() if not f["problem"]}
    for name, experiment in found.items():
        for picture in experiment["pictures"]:
            shutil.copy(report / picture["file"], images)
        write(gallery / f"{name}.md", page(name, experiment, note))
    write(gallery / "README.md", index(found, note))


def page(name: str, experiment: dict, note: str) -> str:
    facts = [f"- **{head}**: {experiment[key]}" for key, head in FACTS.items()]
    facts.append(f"- **Seed**: {experiment['seed']}")
    parts = [
        f"# {experiment['title']}\n\n{note}{experiment['about']}",
        "\n".join(facts),
        figures([("", row(r)) for r in experiment["rows"]]),
        *experiment["notes"],
        *(picture(p) for p in experiment["pictures"]),
        *(samples(s) for s in experiment["samples"]),
        *(table(t) for t in experiment["tables"]),
        code(name),
    ]
    return "\n\n".join(parts)


def index(found: dict[str, dict], note: str) -> str:
    """Thumbnails first, then all figures."""
    thumbnails = [thumbnail(name, experiment) for name, experiment in found.items()]
    rows = [
        (f"[{name}]({name}.md)" if k == 0 else "", row(r))
        for name, experiment in found.items()
        for k, r in enumerate(experiment["rows"])
    ]
    counts = Counter(r.verdict for _, r in rows if r.verdict)
    said = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    return (
        "# Gallery: published experiments, run again\n\n"
        f"{note}Made by `make gallery` from one run of `chordal reproduce all`; every page has the "
        "figures, the pictures and the code of one experiment. A figure is beaten when ours is "
        "better than the published one, met when it reaches what was asked, and not met "
        f"otherwise{f': {said}' if said else ''}.\n\n"
        "| | | |\n|---|---|---|\n"
        + "\n".join(thumbnails)
        + "\n\n## All figures\n\n"
        + figures(rows)
        + contents(found)
    )


def contents(found: dict[str, dict]) -> str:
    """The pages of the site below this one."""
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(found) + "\n```"


def thumbnail(name: str, experiment: dict) -> str:
    image = ""
    if experiment["pictures"]:
        first = experiment["pictures"][0]
        file = Path(first["file"]).name
        image = f'<img src="images/{file}" width="240" alt="{plain(first["title"])}">'
    counts = Counter(r["verdict"] for r in experiment["rows"] if r["verdict"])
    said = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    link = f"[**{name}**]({name}.md)<br>{plain(experiment['title'])}"
    return f"| {image} | {link} | {said} |"


def row(stored: dict) -> Row:
    fields = {key: stored[key] for key in ("what", "ours", "published", "must", "spread", "digits")}
    judged = bool(stored["verdict"])
    if fields["ours"] is None:  # never reached
        fields["ours"] = float("inf" if stored["better"] == "lower" else "-inf")
    return Row(**fields, lower=stored["better"] == "lower", why=stored["why"], judged=judged)


def figures(rows: list[tuple[str, Row]]) -> str:
    """A line per row; the first column only where something stands in it."""
    named = any(name for name, _ in rows)
    head = ["experiment"] * named + ["", "published", "ours", "verdict"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, r in rows:
        what = plain(r.what) + (f"<br><sub>{plain(r.reason)}</sub>" if r.reason else "")
        verdict = f"**{r.verdict}**" if r.verdict == "not met" else r.verdict
        cells = [name] * named + [what, r.shown(r.published), r.ours_shown, verdict]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(stored: dict) -> str:
    alt = plain(stored["alt"] or stored["title"]).replace("[", "(").replace("]", ")")
    file = Path(stored["file"]).name
    return f"![{alt}](images/{file})\n\n**{stored['title']}.** {stored['caption']}".rstrip()


def samples(stored: dict) -> str:
    """Sequences as text; a wrong label stands behind its word."""
    lines = [f"**{stored['title']}.** {stored['caption']}".rstrip(), ""]
    for tokens in stored["sequences"]:
        words = []
        for token in tokens:
            wrong = ", ".join(f"{name}: {label}" for name, label in token["wrong"].items())
            told = f" ({token['true']}; {wrong})" if wrong else ""
            words.append(
                f"**{plain(token['text'])}**{plain(told)}" if wrong else plain(token["text"])
            )
        lines.append(f"- {' '.join(words)}")
    return "\n".join(lines)


def table(stored: dict) -> str:
    head = [plain(str(name)) for name in stored["head"]]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for cells in stored["rows"]:
        texts = [f"{c:.3f}" if isinstance(c, float) else plain(str(c)) for c in cells]
        lines.append("| " + " | ".join(texts) + " |")
    body = "\n".join(lines)
    title = plain(stored["title"])
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def renew_code(gallery: Path) -> None:
    """The code of every page as it is now."""
    for path in gallery.glob("*.md"):
        before, found, _ = path.read_text(encoding="utf-8").partition(CODE)
        if found:
            write(path, before + code(path.stem))


def code(name: str) -> str:
    module = name.replace("-", "_")
    run = textwrap.dedent(inspect.getsource(EXPERIMENTS.get(module).run))
    return (
        f"{CODE}`chordal reproduce {name}` runs "
        f"[{module}.py]({SOURCE}/{module}.py), whose main part is:\n\n```python\n{run}```"
    )


def plain(text: str) -> str:
    """Text in a cell of Markdown: no letter of it is a mark."""
    for mark in "\\|*_<>`":
        text = text.replace(mark, {"<": "&lt;", ">": "&gt;"}.get(mark, "\\" + mark))
    return text


def write(path: Path, text: str) -> None:
    path.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    arguments = [Path(argument) for argument in sys.argv[1:]]
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    folder = arguments[1] if len(arguments) == 2 else Path(__file__).parent / "gallery"
    if str(arguments[0]) == "--code":
        renew_code(folder)
    else:
        main(arguments[0], folder)
