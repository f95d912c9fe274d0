"""``chordal info``: this installation, a model, or a prepared data set."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from chordal._opening import columns_of, kind_of
from chordal.cli import _options as options
from chordal.cli._models import (
    file_size,
    open_any,
    report,
    sizes,
    template_of,
)
from chordal.cli._output import print_facts, print_json, say


def command(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="A model file, or a folder of `chordal prepare`."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Describe this installation, a model, or a prepared data set.

    Of a model: parameters, sizes, template and fit report. Of a data set: sizes, labels, template.
    """
    if model is None:
        facts = installation()
    else:
        facts = of_dataset(model) if os.path.isdir(model) else of_model(model)
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        if value is None and model is not None:
            continue
        if isinstance(value, dict):
            say(f"{name}:")
            print_facts(value, "  ")
        elif name == "feature_template" and value is not None:
            from chordal.text.feature_template import lines_of

            say("feature template:")
            say("\n".join(f"  {line}" for line in lines_of(str(value))))
        else:
            print_facts({name: ", ".join(value) if isinstance(value, list) else value})


def installation() -> dict[str, Any]:
    """Versions, instruction set, and what there is to choose from."""
    import platform

    import chordal
    from chordal import _kernels

    registries = ("solvers", "objectives", "inference", "execution", "formats")
    return {
        "version": chordal.__version__,
        "python": platform.python_version(),
        "instruction set": _kernels.instruction_set(),
        **{name: options.names_in(f"chordal.{name}") for name in registries},
    }


def of_dataset(path: str) -> dict[str, Any]:
    """Everything about a prepared data set but its rows."""
    from chordal.prepared import Dataset

    data = Dataset(path)
    templates = data.facts["templates"]
    rows = [own["rows"] for own in templates if own["rows"] is not None]
    program = next((own for own in rows if own["kind"] == "template"), None)
    names = {
        name.removesuffix(".name_offsets"): len(offsets) - 1
        for name, offsets in data.vocabulary.items()
        if name.endswith(".name_offsets")
    }
    return {
        "data set": path,
        "for": data.facts["class"],
        "labels": [str(label) for label in data.facts["labels"]["labels"]],
        "sizes": {
            "examples": data.n_examples,
            "variables": data.n_variables,
            **({"attributes": sum(names.values())} if names else {}),
            "parts": data.n_parts,
            "bytes": data.n_bytes,
            "writes": data.generation,
        },
        "dialect": None if program is None else program["dialect"],
        "feature_template": None if program is None else program["template"],
    }


def of_model(path: str) -> dict[str, Any]:
    """Everything about a model but its weights."""
    from chordal import ChainCRF
    from chordal.model_file import metadata_of

    crf = open_any(path)
    fitted = report(crf)
    # A model that another tool has fitted has parameters that nobody asked for.
    parameters = {} if fitted is None else crf.get_params(deep=False)
    chain = crf if isinstance(crf, ChainCRF) else None
    template = None if chain is None else template_of(chain)
    parameters.pop("feature_template", None)
    if template is not None:
        parameters["dialect"] = template.dialect
    plain = {
        name: value if isinstance(value, (int, float, str, bool)) else str(value)
        for name, value in parameters.items()
        if value is not None
    }
    metadata = metadata_of(path) if kind_of(path) == "chordal" else {}
    return {
        "model": path,
        "class": type(crf).__name__,
        "written by": kind_of(path) or "chordal",
        "bytes": file_size(path),
        "labels": [str(label) for label in crf.classes_],
        **({"metadata": metadata} if metadata else {}),
        "sizes": sizes(crf),
        "columns": None if chain is None else columns_of(chain) or None,
        "parameters": plain or None,
        "fit": fitted,
        "feature_template": None if template is None else template.text,
    }
