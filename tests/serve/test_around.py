"""The page, the description, the figures and the log."""

import base64
import hashlib
import json
import logging
import re

import pytest

serving = pytest.importorskip("chordal.serve")


def test_the_page_is_closed_to_hostile_text(all_models, ask):
    (found,) = ask(serving.app(all_models), ("GET", "/", {}))
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    page = found.text
    for tag in ("script", "style"):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    # Only text nodes: nothing that parses markup or code, nothing from elsewhere.
    for never in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "//cdn"):
        assert never not in page
    assert not re.search(r"(src|href)=.?https?:", page)
    assert "style=" not in page


def test_wrong_paths_and_methods_say_what_is_right(all_models, ask):
    application = serving.app(all_models)
    path, method = ask(application, ("GET", "/tags", {}), ("GET", "/tag", {}))
    assert (path.status_code, method.status_code) == (404, 405)
    assert "/openapi.json" in path.json()["error"]["message"]
    assert method.json()["error"]["message"] == "not a method of this path, which takes POST"


def test_the_description_is_openapi(all_models, ask):
    (found,) = ask(serving.app(all_models), ("GET", "/openapi.json", {}))
    described = found.json()
    assert described["openapi"].startswith("3.1")
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described)))
    assert references <= described["components"]["schemas"].keys()
    routes = {route.path for route in serving.app(all_models).routes}
    assert set(described["paths"]) == routes
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(described)


def test_requests_and_answers_are_as_described(all_models, ask):
    jsonschema = pytest.importorskip("jsonschema")
    application = serving.app(all_models)
    asked = [
        {"text": "Ana lives in Rome.", "probabilities": True, "marginals": True, "k_best": 2},
        {"inputs": [{"tokens": ["a"]}, {"rows": [["a"]]}]},
        {"text": "a", "method": None, "constrain": None, "k_best": 2.0},
    ]
    wrong = [{}, {"text": 1}, {"text": "a", "tokens": []}, {"text": "a", "k_best": 2.5}]
    wrong += [{"text": "a", "x": 1}, {"text": "a", "spans": None}]
    (found,) = ask(application, ("GET", "/openapi.json", {}))
    described = found.json()

    def check(value, name):
        schema = {"$ref": f"#/components/schemas/{name}", **described}
        jsonschema.Draft202012Validator(schema).validate(value)

    for body in (*asked, *wrong):
        (found,) = ask(application, ("POST", "/tag", {"json": body}))
        good = found.status_code == 200
        assert good == (body in asked)
        check(found.json(), "Answer" if good else "Error")
        if good:
            check(body, "Request")
        else:
            with pytest.raises(jsonschema.ValidationError):
                check(body, "Request")
    for path, name in (("/models", "Models"), ("/models/words", "Model"), ("/health", "Health")):
        (found,) = ask(application, ("GET", path, {}))
        check(found.json(), name)


LINE = re.compile(
    r'([a-zA-Z_:][\w:]*)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*\})? (-?[\d.e+-]+|\+Inf)$'
)


def test_the_figures_are_prometheus(all_models, ask, tag):
    application = serving.app(all_models)
    for body in ({"text": "Ana lives in Rome."}, {"tokens": ["a"] * 100}, {"text": 1}):
        tag(application, body)
    (_, found) = ask(application, ("GET", "/nowhere", {}), ("GET", "/metrics", {}))
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = found.text
    assert text.endswith("\n")
    kinds, values = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            parts = LINE.match(line)
            assert parts, line
            family = re.sub("_(bucket|sum|count)$", "", parts[1])
            assert kinds.get(parts[1]) or kinds[family] == "histogram"
            values[parts[1] + (parts[2] or "")] = float(parts[3])
    ok = 'chordal_requests_total{path="/models/{name}/tag",model="words",code="200"}'
    assert values[ok] == 2
    assert values[ok.replace("200", "422")] == 1
    assert values['chordal_requests_total{path="other",model="",code="404"}'] == 1
    assert values['chordal_tokens_total{model="words"}'] == 105
    buckets = [v for name, v in values.items() if name.startswith("chordal_request_seconds_bucket")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == values['chordal_request_seconds_count{model="words"}'] == 3
    assert values["chordal_batch_tokens_sum"] == 105
    assert values["chordal_queue_length"] == 0


def test_names_that_clients_invent_are_no_labels(all_models, ask):
    """Else anybody could fill the memory of whoever collects the figures."""
    application = serving.app(all_models)
    invented = [("POST", f"/models/x{k}/tag", {"json": {"text": "a"}}) for k in range(20)]
    *_, found = ask(application, *invented, ("GET", "/metrics", {}))
    assert "x7" not in found.text
    assert 'path="/models/{name}/tag",model="",code="404"} 20' in found.text


def test_the_access_log_has_no_text_and_no_escapes(all_models, ask, caplog):
    caplog.set_level(logging.INFO, "chordal.serve.access")
    ask(
        serving.app(all_models),
        ("POST", "/tag", {"json": {"text": "Rome is secret"}}),
        ("POST", "/tag?text=secret", {"json": {"text": 1}}),
        ("GET", "/%1b%5B2J%0Asecond%20line", {}),
    )
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert "POST /tag 200" in lines[0]
    assert lines[0].endswith(" 3 tokens")
    assert not any("secret" in line or "\x1b" in line or "\n" in line for line in lines)
    assert "/\\x1b[2J\\x0asecond\\x20line 404" in lines[2]


def test_health_while_stopping(all_models, ask):
    application = serving.app(all_models)
    (good,) = ask(application, ("GET", "/health", {}))
    assert (good.status_code, good.json()["status"]) == (200, "ok")
    application.state.service.close()
    (bad, late) = ask(
        application, ("GET", "/health", {}), ("POST", "/tag", {"json": {"text": "a"}})
    )
    assert (bad.status_code, bad.json()["status"]) == (503, "stopping")
    assert late.status_code == 503


def test_names_that_the_server_does_not_go_by(serve, model_file):
    """A page that gives its own name the address 127.0.0.1 gets nothing."""
    import httpx

    server = serve(model_file, "--allow-host", "Ner.example.org")
    for host, status in [
        ("localhost", 200),
        (f"127.0.0.1:{server.port}", 200),
        ("[::1]:8000", 200),
        ("ner.example.org:443", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("", 421),
    ]:
        found = httpx.get(f"{server.url}/health", headers={"host": host})
        assert found.status_code == status, host


def test_limits_are_checked():
    with pytest.raises(ValueError, match="max_body must be an integer of at least 1"):
        serving.Limits(max_body=0)
    with pytest.raises(ValueError, match="timeout must be a number above 0"):
        serving.Limits(timeout=0)
