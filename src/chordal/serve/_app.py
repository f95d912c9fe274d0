"""The application: its routes, and what is not about labelling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from chordal.serve._hosts import Hosts
from chordal.serve._json import encoded
from chordal.serve._metrics import CONTENT
from chordal.serve._observing import Observing
from chordal.serve._openapi import document
from chordal.serve._page import HEADERS, PAGE
from chordal.serve._refusal import Refusal
from chordal.serve._service import Service
from chordal.serve._tagging import Tagging
from chordal.serve.limits import Limits

if TYPE_CHECKING:
    from chordal.serve._shelf import Source

    Endpoint = Callable[[Request], Awaitable[Response]]


def app(
    models: Mapping[str, Source] | Source,
    limits: Limits | None = None,
    hosts: Collection[str] | None = None,
) -> Starlette:
    """An ASGI application that labels sequences.

    Run it with any ASGI server, or mount it in another application. Replaced model files are loaded
    while it runs.

    Parameters
    ----------
    models : dict of str to model, or a model
        Models by name: the path of a model file, or a fitted `ChainCRF`. A single model is named
        "model".
    limits : Limits, optional
        Limits on sizes, times and waiting requests; see `Limits`.
    hosts : list of str, optional
        Host names that requests may use, such as "localhost"; by default any.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> crf = ChainCRF(feature_template="U:%x[0,0]", l2=0.1)
    >>> crf = crf.fit([[["in"], ["Rome"]]], [["O", "B-LOC"]])
    >>> application = app({"places": crf})  # for example: uvicorn.run(application)
    >>> application.state.service.health()["status"]
    'ok'
    """
    named = models if isinstance(models, Mapping) else {"model": models}
    service = Service(named, limits or Limits())
    gets = {
        "/": _page,
        "/health": _health(service),
        "/metrics": _metrics(service),
        "/models": _models(service),
        "/models/{name}": _model(service),
        "/openapi.json": _openapi(service),
    }
    tagging, reload = Tagging(service), _reload(service)
    paths: dict[object, str] = {endpoint: path for path, endpoint in gets.items()}
    paths |= {tagging: "/models/{name}/tag", reload: "/models/{name}/reload"}
    found = Starlette(
        routes=[
            Route("/models/{name}/tag", tagging, methods=["POST"]),
            Route("/tag", tagging, methods=["POST"]),
            *(Route(path, endpoint, methods=["GET"]) for path, endpoint in gets.items()),
            Route("/models/{name}/reload", reload, methods=["POST"]),
        ],
        middleware=[
            Middleware(Observing, service=service, paths=paths),
            *([] if hosts is None else [Middleware(Hosts, hosts=hosts)]),
        ],
        exception_handlers={HTTPException: _refused, Refusal: _refused, Exception: _failed},
        lifespan=_lifespan,
    )
    found.router.redirect_slashes = False  # a wrong path is wrong
    found.state.service = service
    return found


@asynccontextmanager
async def _lifespan(application: Starlette) -> AsyncIterator[None]:
    service: Service = application.state.service
    service.start()
    yield
    service.close()


def _json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    own = {"content-type": "application/json", **(headers or {})}
    return Response(encoded(value), status, own)


async def _page(request: Request) -> Response:
    return Response(PAGE, headers=HEADERS)


def _health(service: Service) -> Endpoint:
    async def health(request: Request) -> Response:
        return _json(service.health(), 503 if service.is_stopping else 200)

    return health


def _metrics(service: Service) -> Endpoint:
    async def metrics(request: Request) -> Response:
        return Response(service.metrics.text(service.shelf), headers={"content-type": CONTENT})

    return metrics


def _models(service: Service) -> Endpoint:
    async def models(request: Request) -> Response:
        return _json({"models": [slot.current.facts() for slot in service.shelf]})

    return models


def _model(service: Service) -> Endpoint:
    async def model(request: Request) -> Response:
        return _json(service.slot(request.path_params["name"]).current.facts())

    return model


def _reload(service: Service) -> Endpoint:
    async def reload(request: Request) -> Response:
        slot = service.slot(request.path_params["name"])
        loop = asyncio.get_running_loop()
        exchanged = await loop.run_in_executor(None, slot.check)
        if slot.error is not None:
            raise Refusal(409, f"version {slot.current.version} stays in use: {slot.error}")
        facts = {"model": slot.name, "version": slot.current.version, "exchanged": exchanged}
        return _json(facts)

    return reload


def _openapi(service: Service) -> Endpoint:
    body = encoded(document(service.limits))

    async def openapi(request: Request) -> Response:
        return Response(body, headers={"content-type": "application/json"})

    return openapi


async def _refused(request: Request, error: Exception) -> Response:
    """A refusal of ours, or one of the router's, as JSON."""
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        message = {
            404: "there is no such path; /openapi.json lists all",
            405: f"not a method of this path, which takes {headers.get('Allow', 'others')}",
        }.get(error.status_code, error.detail)
        return _json(Refusal(error.status_code, message).body(), error.status_code, headers)
    assert isinstance(error, Refusal)
    return _json(error.body(), error.status, error.headers())


async def _failed(request: Request, error: Exception) -> Response:
    return _json(Refusal(500, "an error inside the server; its log has more").body(), 500)
