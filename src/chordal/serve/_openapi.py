"""The description of the interface, OpenAPI 3.1."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from chordal.serve._questions import CONSTRAINTS, FLAGS, METHODS
from chordal.serve.limits import Limits

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_PLACE: Schema = {"type": "integer", "minimum": 0}


def document(limits: Limits) -> dict[str, Any]:
    """The whole description."""
    name = {"name": "name", "in": "path", "required": True, "schema": _STRING}
    tag = _operation("Label text, tokens or rows", "Answer", 200, _TAG_ERRORS)
    tag["requestBody"] = {"required": True, "content": _content(_ref("Request"))}
    reload = _operation("Look at the model file now", "Reloaded", 200, {404: "", 409: ""})
    return {
        "openapi": "3.1.0",
        "info": {"title": "chordal serve", "version": version("chordal")},
        "paths": {
            "/tag": {"post": {**tag, "operationId": "tag"}},
            "/models/{name}/tag": {
                "parameters": [name],
                "post": {**tag, "operationId": "tagWithModel"},
            },
            "/models/{name}/reload": {
                "parameters": [name],
                "post": {**reload, "operationId": "reload"},
            },
            "/models": {"get": _operation("All models", "Models", 200, {})},
            "/models/{name}": {
                "parameters": [name],
                "get": _operation("One model", "Model", 200, {404: ""}),
            },
            "/health": {"get": _operation("Whether it works", "Health", 200, {503: ""})},
            "/metrics": {"get": _text("Figures in the format of Prometheus", "text/plain")},
            "/openapi.json": {"get": _text("This description", "application/json")},
            "/": {"get": _text("A page to try the models", "text/html")},
        },
        "components": {"schemas": _schemas(limits)},
    }


_TAG_ERRORS = {
    400: "The body is not JSON",
    404: "There is no such model",
    408: "The body did not arrive in time",
    413: "Too many bytes or tokens",
    415: "The content type is not application/json",
    422: "The JSON is not what the model reads; `where` says the place",
    429: "Too many requests wait; see Retry-After",
    503: "Out of time, or the server is stopping; see Retry-After",
}


def _schemas(limits: Limits) -> dict[str, Schema]:
    row = {"anyOf": [_array(_STRING), _array(_NUMBER), {"type": "object"}]}
    one = {"text": _STRING, "tokens": _array(_STRING), "rows": _array(row)}
    kinds = [{"required": [kind]} for kind in one]
    options: dict[str, Schema] = {
        "method": {"enum": [*METHODS, None]},
        "constrain": {"enum": [*CONSTRAINTS, None], "default": "auto"},
        **{name: {"type": "boolean", "default": value} for name, value in FLAGS.items()},
        "k_best": {"type": "integer", "minimum": 0, "maximum": limits.max_k_best, "default": 0},
    }
    request = {**one, "inputs": _array(_ref("Input")), **options}
    result: dict[str, Schema] = {
        "labels": _array({}),
        "probabilities": _array(_NUMBER),
        "marginals": _array(_array(_NUMBER)),
        "spans": _array(_ref("Span")),
        "k_best": _array(_object({"labels": _array({}), "log_probability": _NUMBER})),
        "tokens": _array(_STRING),
        "offsets": _array(_array(_PLACE)),
    }
    of_input = {**result, "sentences": _array(_ref("Sequence"))}
    answer = {"model": _STRING, "version": _STRING, "classes": _array({})}
    error = _object({"status": _PLACE, "message": _STRING, "where": _STRING}, ["status", "message"])
    return {
        "Input": {**_object(one), "oneOf": kinds, "additionalProperties": False},
        "Request": {
            **_object(request),
            "oneOf": [*kinds, {"required": ["inputs"]}],
            "additionalProperties": False,
        },
        "Span": _object(
            {
                "label": _STRING,
                "tokens": {**_array(_PLACE), "minItems": 2, "maxItems": 2},
                "probability": {"type": ["number", "null"]},
                "start": _PLACE,
                "end": _PLACE,
                "text": _STRING,
            },
            ["label", "tokens"],
        ),
        "Sequence": _object(result, ["labels"]),
        "Result": _object(of_input),
        "Answer": _object(
            {**answer, **of_input, "results": _array(_ref("Result"))}, ["model", "version"]
        ),
        "Model": _object(
            {
                "name": _STRING,
                "version": _STRING,
                "labels": _array({}),
                "scheme": {"type": ["string", "null"]},
                "inputs": _array(_STRING),
                "rows": {"enum": ["columns", "attributes", "numbers"]},
                "columns": {"type": ["integer", "null"]},
                "loaded": _NUMBER,
            },
            ["name", "version", "labels", "inputs", "rows"],
        ),
        "Models": _object({"models": _array(_ref("Model"))}, ["models"]),
        "Reloaded": _object(
            {"model": _STRING, "version": _STRING, "exchanged": {"type": "boolean"}}
        ),
        "Health": _object(
            {
                "status": {"enum": ["ok", "stale", "stopping"]},
                "queue": _PLACE,
                "models": _array({"type": "object"}),
            },
            ["status"],
        ),
        "Error": _object({"error": error}, ["error"]),
    }


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(properties: dict[str, Schema], required: list[str] | None = None) -> Schema:
    out: Schema = {"type": "object", "properties": properties}
    return out if required is None else {**out, "required": required}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _operation(summary: str, schema: str, code: int, errors: dict[int, str]) -> dict[str, Any]:
    good = {"description": summary, "content": _content(_ref(schema))}
    bad = {
        str(status): {"description": text or "Refused", "content": _content(_ref("Error"))}
        for status, text in errors.items()
    }
    return {"summary": summary, "responses": {str(code): good, **bad}}


def _text(summary: str, kind: str) -> dict[str, Any]:
    good = {"description": summary, "content": {kind: {"schema": _STRING}}}
    return {"summary": summary, "responses": {"200": good}}
