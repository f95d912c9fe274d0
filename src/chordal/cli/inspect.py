"""``chordal inspect``: what a model has learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chordal._opening import open_model
from chordal.cli import _options as options
from chordal.cli._models import sizes, template_of
from chordal.cli._output import print_facts, print_json, print_table, say

if TYPE_CHECKING:
    from chordal import ChainCRF


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model file.")],
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="Number of weights to show.")] = 10,
    label: Annotated[str | None, typer.Option(help="Show only weights of this label.")] = None,
    attribute: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show all weights of this attribute.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show the largest weights, the transitions and the size of a model.

    Attributes from a template are explained by their template line: the column, and how many tokens
    before or after.
    """
    crf = open_model(model)
    template = template_of(crf)

    def meaning(name: str) -> str:
        return "" if template is None else template.explain(name)

    if attribute is not None:
        found = weights_of(crf, attribute)
        if json:
            about = {"attribute": attribute, "meaning": meaning(attribute)}
            print_json({**about, "weights": dict(found)})
        else:
            about_it = meaning(attribute)
            title = f"{attribute} ({about_it})" if about_it else attribute
            print_table(title, ["label", "weight"], found)
        return
    names = [str(name) for name in crf.classes_]
    if label is not None and label not in names:
        raise ValueError(f"the model has no label {label!r}; it has {', '.join(names)}")
    chosen = names if label is None else [label]
    weights = {name: by_label(crf, name, top) for name in chosen}
    transitions = [
        (str(a), str(b), w) for a, b, w in crf.top_transitions(top if label is None else 10**9)
    ]
    if label is not None:
        transitions = [t for t in transitions if label in t[:2]][:top]
    if json:
        meanings = {name: meaning(name) for found in weights.values() for name, _ in found}
        facts = {"sizes": sizes(crf), "weights": weights, "transitions": transitions}
        print_json({**facts, **({} if template is None else {"meanings": meanings})})
        return
    if label is None:
        print_facts(sizes(crf))
        say()
    for name, found in weights.items():
        if template is None:
            print_table(f"{name}: for and against", ["attribute", "weight"], found)
        else:
            rows = [(attribute, weight, meaning(attribute)) for attribute, weight in found]
            print_table(f"{name}: for and against", ["attribute", "weight", "what it is"], rows)
    print_table("transitions", ["from", "to", "weight"], transitions)


def by_label(crf: ChainCRF, label: str, top: int) -> list[tuple[str, float]]:
    """The attributes that say most about a label, those for it first."""
    given = next(value for value in crf.classes_.tolist() if str(value) == label)
    ranked = [(name, weight) for name, _, weight in crf.top_features(10**9, given)]
    strongest = sorted(ranked, key=lambda item: -abs(item[1]))[:top]
    return sorted(strongest, key=lambda item: -item[1])


def weights_of(crf: ChainCRF, attribute: str) -> list[tuple[str, float]]:
    """Labels and weights of one attribute, the largest first."""
    every = crf.top_features(crf.layout_.n_weights)
    found = [(str(label), weight) for name, label, weight in every if name == attribute]
    if not found:
        raise ValueError(f"the model has no weight of attribute {attribute!r}")
    return sorted(found, key=lambda item: -item[1])
