"""Model files that are replaced while requests come."""

import asyncio
import hashlib
import os
import shutil
import time

import pytest

import chordal

httpx = pytest.importorskip("httpx")
serve_module = pytest.importorskip("chordal.serve")


def version_of(path):
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()


@pytest.fixture(scope="module")
def versions(tmp_path_factory, new_model):
    """Two files of models with other labels, and what each says of a text."""
    from chordal import ChainCRF

    folder = tmp_path_factory.mktemp("versions")
    old = new_model()
    X = [[["Ana"], ["lives"], ["in"], ["Rome"]], [["New"], ["York"]]]
    y = [["B-P", "O", "O", "B-L"], ["B-L", "I-L"]]
    new = ChainCRF(feature_template=old.feature_template, l2=0.1).fit(X, y)
    for name, model in (("old", old), ("new", new)):
        chordal.save(model, folder / name)
    return folder / "old", folder / "new"


def replace(source, target):
    """As a careful deployment does it."""
    beside = target.with_suffix(".tmp")
    shutil.copy(source, beside)
    os.replace(beside, target)


def labels_in(answer):
    found = answer.get("results", [answer])
    return {label for own in found for label in own["labels"]} | {
        span["label"] for own in found for span in own["spans"]
    }


def test_requests_while_the_file_is_replaced(serve, versions, tmp_path):
    """500 requests, 10 replacements: none fails, and no answer is of two models."""
    path = tmp_path / "words.model"
    shutil.copy(versions[0], path)
    known = {version_of(file): file.name for file in versions}
    server = serve(path, "--poll", "0.01", "--no-access-log")
    body = {"inputs": [{"tokens": ["Ana", "lives", "in", "Rome"]}] * 20 + [{"tokens": ["New"]}]}
    seen = []

    async def client(http, stop):
        while not stop.is_set():
            found = await http.post("/tag", json=body)
            assert found.status_code == 200, found.text
            answer = found.json()
            which = known[answer["version"]]
            labels = labels_in(answer) - {"O"}
            short = {label for label in labels if len(label.rpartition("-")[2]) == 1}
            assert short == (labels if which == "new" else set()), (which, labels)
            seen.append(which)

    async def everything():
        stop = asyncio.Event()
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            clients = [asyncio.create_task(client(http, stop)) for _ in range(4)]
            for k in range(10):
                replace(versions[(k + 1) % 2], path)
                want, before = versions[(k + 1) % 2].name, len(seen)
                end = time.monotonic() + 60
                while want not in seen[before:] or len(seen) < 50 * (k + 1):
                    assert time.monotonic() < end, (k, want, server.log)
                    assert not any(task.done() for task in clients)
                    await asyncio.sleep(0.01)
            stop.set()
            await asyncio.gather(*clients)

    asyncio.run(everything())
    assert len(seen) >= 500
    assert {"old", "new"} == set(seen)
    assert "ERROR" not in server.log
    metrics = httpx.get(f"{server.url}/metrics").text
    assert 'chordal_model_loads_total{model="words"} 11\n' in metrics


def test_a_damaged_file_changes_nothing_but_the_health(serve, versions, tmp_path):
    path = tmp_path / "words.model"
    shutil.copy(versions[0], path)
    server = serve(path, "--poll", "600")
    old, new = (version_of(file) for file in versions)
    content = versions[1].read_bytes()
    with httpx.Client(base_url=server.url) as client:
        for damaged, reason in [
            (content[: len(content) // 2], "truncated"),
            (content[:-9] + bytes(9), ""),
            (b"", "empty"),
            (b"nonsense" * 100, "not a chordal model"),
        ]:
            path.write_bytes(damaged)  # in place: the mapped model must not care
            found = client.post("/models/words/reload")
            assert found.status_code == 409
            message = found.json()["error"]["message"]
            assert f"version {old} stays in use" in message
            assert reason in message
            health = client.get("/health").json()
            assert health["status"] == "stale"
            assert health["models"][0]["version"] == old
            assert health["models"][0]["error"]
            assert 'chordal_model_stale{model="words"} 1.0' in client.get("/metrics").text
            answer = client.post("/tag", json={"text": "Rome"})
            assert answer.json()["version"] == old
            assert answer.json()["sentences"][0]["labels"] == ["B-LOC"]
        path.unlink()
        assert "No such file" in client.post("/models/words/reload").json()["error"]["message"]
        shutil.copy(versions[1], path)
        found = client.post("/models/words/reload").json()
        assert found == {"model": "words", "version": new, "exchanged": True}
        assert client.get("/health").json()["status"] == "ok"
        assert client.post("/tag", json={"text": "Rome"}).json()["version"] == new
        again = client.post("/models/words/reload").json()
        assert again["exchanged"] is False
    assert server.log.count(f"version {old} stays in use") == 5
    assert f"version {new} in use" in server.log


def test_a_file_of_another_kind_is_refused_later_too(all_models, tmp_path):
    """A good model that cannot be served keeps the old one."""
    from chordal.serve._shelf import Slot

    path = tmp_path / "m"
    chordal.save(all_models["words"], path)
    slot = Slot("m", path)
    before = slot.current
    import numpy as np

    from chordal import GridCRF

    image = np.zeros((3, 3, 1))
    chordal.save(GridCRF(l2=1.0).fit([image], [np.eye(3, dtype=int)]), path)
    assert slot.check() is False
    assert slot.current is before
    assert "GridCRF" in slot.error
    assert str(tmp_path) in slot.error  # the name that users know, and not that of the copy


def test_the_same_content_is_no_other_model(all_models, tmp_path):
    from chordal.serve._shelf import Slot

    path = tmp_path / "m"
    chordal.save(all_models["words"], path)
    slot = Slot("m", path)
    os.utime(path, ns=(1, 1))
    assert slot.check() is False
    assert slot.loads == 1


def test_models_of_other_tools(all_models, tmp_path, tag):
    from chordal.compat.pycrfsuite import Trainer

    trainer = Trainer(verbose=False)
    trainer.append([["w=a"], ["w=b"]], ["A", "B"])
    trainer.train(str(tmp_path / "x.crfsuite"))
    application = serve_module.app({"x": tmp_path / "x.crfsuite"})
    assert tag(application, {"rows": [["w=b"], ["w=a"]]})[1]["labels"] == ["B", "A"]
