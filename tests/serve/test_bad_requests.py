"""A thousand requests that are wrong in some way: each hears what, and none breaks anything."""

import copy
import json
import random
import re
import socket

import pytest

httpx = pytest.importorskip("httpx")

GOOD = {
    "words": [
        {"text": "Ana lives in Rome.", "probabilities": True},
        {"tokens": ["Ana", "lives"], "k_best": 2, "method": "mpm"},
        {"inputs": [{"text": "Rome"}, {"tokens": ["New", "York"]}], "constrain": "bio"},
        {"rows": [["Ana"], ["Bell"]], "marginals": True, "spans": False},
    ],
    "columns": [{"rows": [["Rome", "R"], ["x", "y"]]}],
    "attributes": [{"rows": [{"word": "Rome", "size": 4, "more": {"a": 1.5}}, ["word:sees"]]}],
    "vectors": [{"rows": [{"word": "Rome", "vec": [4, 1.0]}]}],
    "arrays": [{"rows": [[0.1, 0.2, -1], [3, 4, 5]]}],
}
# Of no place of a request, these are good; keys that take what is here are dealt with below.
WRONG = [None, [], {}, [None], {"x": None}, [[[]]], -1, 1.5, "\x1b[2J", [{}], {"text": 1}]
JSON = {"content-type": "application/json"}


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*path, name))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from places(item, (*path, k))


def put(value, path, new):
    out = copy.deepcopy(value)
    if not path:
        return new
    inner = out
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return out


def is_good(name, path, new):
    """Whether the new value may stand there after all."""
    if name in ("attributes", "vectors"):  # which take nearly everything but these
        return new not in (None, [None], {"x": None}, [[[]]])
    key = next((step for step in reversed(path) if isinstance(step, str)), None)
    if key == "text":
        return isinstance(new, str)
    if path and path[-1] in ("tokens", "rows", "inputs"):
        return new == []
    if key == "tokens" or (key == "rows" and len(path) == 3):
        return isinstance(new, (int, float) if name == "arrays" else str)
    return key in ("method", "constrain") and new is None


def mutated(rng):
    """A request with one wrong value: (name of the model, body)."""
    while True:
        name = rng.choice(list(GOOD))
        body = rng.choice(GOOD[name])
        path = rng.choice(list(places(body)))
        new = rng.choice(WRONG)
        if not is_good(name, path, new):
            return name, json.dumps(put(body, path, new)).encode()


def with_wrong_keys(rng):
    name = rng.choice(list(GOOD))
    body = copy.deepcopy(rng.choice(GOOD[name]))
    kind = rng.randrange(4)
    if kind == 0:
        body[rng.choice(["Text", "token", "", "k-best", "\u202e", "é" * 500])] = 1
    elif kind == 1:
        body = {k: v for k, v in body.items() if k not in ("text", "tokens", "rows", "inputs")}
    elif kind == 2:
        body |= {"text": "a", "tokens": ["a"]}
    else:
        body["k_best"] = rng.choice([-1, 101, 10**30, 1e3, True, "2", 2.5])
    return name, json.dumps(body).encode()


def broken(rng):
    """Bytes that are not JSON."""
    name = rng.choice(list(GOOD))
    good = json.dumps(rng.choice(GOOD[name])).encode()
    kinds = [
        lambda: good[: rng.randrange(len(good))],
        lambda: good + rng.choice([b"}", b",", b"\0", b"[]"]),
        lambda: bytes(rng.randrange(256) for _ in range(rng.randrange(1, 60))) + b"\xff",
        lambda: good.replace(b'"', b"'", 1),
        lambda: json.dumps(rng.choice(GOOD[name])).encode("utf-16"),
        lambda: b"\xef\xbb\xbf" + good,
        lambda: b"[" * rng.choice([10, 1000, 200_000]),
        lambda: b'{"rows":' + b"[" * 5000 + b"]" * 5000 + b"}",
        lambda: b'{"rows":' + b'{"a":' * 3000 + b"1" + b"}" * 3001,
        lambda: b'{"rows": [[NaN]]}',
        lambda: b'{"rows": [[' + rng.choice([b"Infinity", b"1e999", b"-1e999"]) + b", 1, 1]]}",
        lambda: b'{"rows": [[' + b"9" * rng.choice([400, 5000]) + b", 1, 1]]}",
        lambda: b'{"text": "\\ud800"}',
        lambda: b'{"tokens": ["a", "\\udfff\\ud800"]}',
        lambda: b'{"rows": [{"\\ud800": 1}]}',
        lambda: b'{"text": "a\nb"}',
        lambda: b'{"text": "a" "b"}',
        lambda: b'{"text": "' + b"x" * 20_000,
    ]
    return name, rng.choice(kinds)()


def cases(n):
    """n requests: (method, path, headers, body)."""
    rng = random.Random(0)
    for _ in range(n):
        kind = rng.randrange(20)
        name, body = (
            mutated(rng) if kind < 9 else with_wrong_keys(rng) if kind < 12 else broken(rng)
        )
        method, path, headers = "POST", f"/models/{name}/tag", dict(JSON)
        if kind == 16:
            headers = rng.choice([{}, {"content-type": "text/plain"}, {"content-type": "\x7f"}])
        elif kind == 17:
            headers["content-encoding"] = rng.choice(["gzip", "br", "x"])
        elif kind == 18:
            path = rng.choice(["/models/none/tag", "/models//tag", "/tag/", "/models/a%2Fb/tag"])
        elif kind == 19:
            method = rng.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "NONSENSE"])
        yield method, path, headers, body


@pytest.fixture
def server(serve, all_models, tmp_path):
    import chordal

    named = []
    for name in GOOD:
        chordal.save(all_models[name], tmp_path / f"{name}.model")
        named.append(tmp_path / f"{name}.model")
    return serve(*named, "--max-body", 30_000)


def test_a_thousand_bad_requests(server):
    with httpx.Client(base_url=server.url) as client:
        for name, bodies in GOOD.items():
            for body in bodies:
                assert client.post(f"/models/{name}/tag", json=body).status_code == 200
        seen = {}
        for method, path, headers, body in cases(1000):
            found = client.request(method, path, headers=headers, content=body)
            what = (method, path, headers, body[:300], found.text[:300])
            assert 400 <= found.status_code < 500, what
            error = found.json()["error"]
            assert error["status"] == found.status_code, what
            assert error["message"], what
            assert error["message"].isprintable(), what
            seen[found.status_code] = seen.get(found.status_code, 0) + 1
        assert {400, 404, 405, 413, 415, 422} <= seen.keys(), seen
        assert client.post("/tag", json={"text": "Rome"}).status_code == 200
        metrics = client.get("/metrics").text
    assert not re.search(r'code="5', metrics)
    log = server.log
    assert "Traceback" not in log
    assert "\x1b" not in log
    assert "lives" not in log  # no text of users


RAW = [
    b"nonsense\r\n\r\n",
    b"POST /tag HTTP/1.1\r\nhost: a\r\ncontent-length: -5\r\n\r\n",
    b"POST /tag HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
    b"POST /tag HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\n: no name\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: a\r\nlong: " + b"x" * 200_000 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
    b"\0" * 1000,
]


def test_what_is_not_even_http(server):
    for data in RAW:
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while part := raw.recv(65536):
                    answer += part
            except ConnectionResetError:
                pass
        assert not answer or re.match(rb"HTTP/1\.1 4\d\d ", answer), (data[:50], answer[:200])
    # Clients that leave in the middle of a request.
    for data in (b"POST /tag HTTP/1.1\r\n", b"POST /tag HTTP/1.1\r\nhost: a\r\ncontent-length: 9"):
        for end in (b"", b"\r\ncontent-type: application/json\r\n\r\n{"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
                raw.sendall(data + end)
    assert httpx.post(f"{server.url}/tag", json={"text": "Rome"}).status_code == 200
    figures = httpx.get(f"{server.url}/metrics").text
    assert 'code="5' not in figures, server.log + figures
    assert "Traceback" not in server.log, server.log


@pytest.mark.parametrize(
    ("body", "where", "words"),
    [
        ([], None, "the body must be an object, got an array"),
        ({"text": 3}, "text", "text must be a string, got a number"),
        ({"tokens": ["a", None]}, "tokens[1]", "must be a string, got null"),
        ({"inputs": [{"tokens": ["a"]}, 4]}, "inputs[1]", "must be an object with text, tokens"),
        ({"inputs": [{"tokens": [{}]}]}, "inputs[0].tokens[0]", "a string, got an object"),
        ({"inputs": [{"text": "a", "rows": []}]}, "inputs[0]", "exactly one of text, tokens, rows"),
        ({"inputs": [{"txt": "a"}]}, "inputs[0]", "unknown key 'txt' in inputs[0]"),
        ({"inputs": [], "text": "a"}, None, "give text or inputs, not both"),
        ({"rows": [["a"], ["a", "b"]]}, "rows[1]", "must have 1 column, as in training, got 2"),
        ({"text": "a", "constrain": "iobes"}, None, "iobes is not the scheme of the labels"),
        ({"text": "a", "constrain": "x"}, "constrain", "one of auto, none, bio"),
        ({"text": "a", "k_best": 1000}, "k_best", "k_best must be a whole number from 0 to 100"),
        ({"text": "a", "k_best": 0.5}, "k_best", "k_best must be a whole number from 0 to 100"),
        ({"text": "a", "spans": 1}, "spans", "spans must be a boolean, got a number"),
    ],
)
def test_the_message_says_what_and_where(all_models, tag, body, where, words):
    from chordal.serve import app

    status, found = tag(app(all_models), body)
    assert status == 422
    assert words in found["error"]["message"]
    if where is not None:
        assert found["error"]["where"] == where


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"text": NaN}', "the body is not JSON: NaN is not a number in JSON"),
        (b'{"text": ' + b"1" * 5000 + b"}", "the body has a number with thousands of digits"),
        (b"", "the body is not JSON"),
        (b'\xef\xbb\xbf{"text": "Rome"}', "the body begins with a byte order mark"),
    ],
)
def test_what_is_no_json(all_models, ask, body, words):
    from chordal.serve import app

    head = {"content-type": "application/json"}
    (found,) = ask(app(all_models), ("POST", "/tag", {"content": body, "headers": head}))
    assert found.status_code == 400
    assert found.json()["error"]["message"].startswith(words)


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("columns", [["a"]], "rows[0] must have 2 columns"),
        ("attributes", ["word:a"], "rows[0] must be an array of strings or an object"),
        ("attributes", [{"a": None}], "rows[0]['a'] must be a string, a number"),
        ("attributes", [{"a": [1.0, 2.0]}], "rows[0]['a'][0] must be a string"),
        ("attributes", [{"a": 10**400}], "rows[0]['a'] must be a finite number"),
        ("vectors", [{"vec": [1.0]}], "rows[0]['vec'] must have 2 numbers, got 1"),
        ("vectors", [{"vec": "a"}], ""),
        ("arrays", [[1, 2]], "rows[0] must have 3 numbers, got 2"),
        ("arrays", [[1, 2, True]], "rows[0][2] must be a number, got a boolean"),
        ("arrays", [[1, 2, 10**400]], "rows[0][2] must be a finite number"),
    ],
)
def test_rows_that_the_model_does_not_read(all_models, tag, name, rows, words):
    from chordal.serve import app

    status, found = tag(app(all_models), {"rows": rows}, name)
    if words:
        assert status == 422
        assert words in found["error"]["message"]
    else:
        assert status == 200  # a name like any other


def test_models_of_rows_take_no_text(all_models, tag):
    from chordal.serve import app

    status, found = tag(app(all_models), {"text": "a"}, "columns")
    assert status == 422
    assert "the model reads rows of 2 strings" in found["error"]["message"]


def test_one_bad_sequence_harms_nobody_else(all_models):
    """An error inside a call for several requests: each is tried alone."""
    import asyncio

    from chordal.serve import app

    application = app(all_models)
    model = application.state.service.shelf.slots["words"].current.model
    calls, whole = [], type(model).predict_codes

    def poisoned(X, **options):
        calls.append(len(X))
        if any(x[0][0] == "poison" for x in X):
            raise ValueError("this is the poison")
        return whole(model, X, **options)

    model.predict_codes = poisoned

    async def together():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            bodies = [{"tokens": ["Rome"] * 50}] * 5 + [{"tokens": ["poison"] * 50}]
            posts = [client.post("/models/words/tag", json=body) for body in bodies]
            return await asyncio.gather(*posts)

    found = asyncio.run(together())
    assert [r.status_code for r in found] == [200] * 5 + [422]
    assert found[-1].json()["error"]["message"] == "this is the poison"
    assert max(calls) > 1
