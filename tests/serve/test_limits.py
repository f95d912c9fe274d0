"""Limits of size, time and number, and requests that share a call."""

import asyncio
import threading

import pytest

httpx = pytest.importorskip("httpx")
serve = pytest.importorskip("chordal.serve")


def together(application, bodies, path="/tag"):
    """Responses to requests that come at the same time."""

    async def run():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await asyncio.gather(*(client.post(path, json=body) for body in bodies))

    return asyncio.run(run())


@pytest.fixture
def held(all_models):
    """An application whose model answers only when told; the sizes of its batches."""
    may, sizes = threading.Event(), []

    def make(**limits):
        application = serve.app({"words": all_models["words"]}, serve.Limits(**limits))
        queue = application.state.service.queue
        answer = queue._answer

        def later(jobs, seconds):
            sizes.append(len(jobs))
            assert may.wait(60)
            return answer(jobs, seconds)

        queue._answer = later
        return application

    yield make, may, sizes
    may.set()


LONG = {"tokens": ["Rome"] * 300}  # too long to be answered in the event loop


def test_too_many_bytes(all_models, ask):
    application = serve.app(all_models, serve.Limits(max_body=100))
    good = b'{"text": "Rome"}'.ljust(100)
    send = {"headers": {"content-type": "application/json"}}
    found = ask(
        application,
        ("POST", "/tag", {"content": good, **send}),
        ("POST", "/tag", {"content": good + b" ", **send}),
    )
    assert [own.status_code for own in found] == [200, 413]
    assert "at most 100 bytes" in found[1].json()["error"]["message"]

    async def pieces(n):
        for _ in range(n):
            yield b" " * 10

    async def chunked(n):
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/tag", content=pieces(n), **send)

    assert asyncio.run(chunked(10)).status_code == 400  # blanks are not JSON
    assert asyncio.run(chunked(11)).status_code == 413


def test_a_body_far_too_large(serve_process):
    """A real client hears why, though it has not sent everything."""
    with httpx.Client(base_url=serve_process.url, timeout=60) as client:
        head = {"content-type": "application/json"}
        found = client.post("/tag", content=b"x" * 5_000_000, headers=head)
        assert found.status_code == 413
        assert client.post("/tag", json={"text": "Rome"}).status_code == 200


@pytest.fixture
def serve_process(serve, model_file):
    return serve(model_file)


def test_too_many_tokens(all_models, tag):
    application = serve.app(all_models, serve.Limits(max_tokens=5))
    assert tag(application, {"text": "a b c d e"})[0] == 200
    status, found = tag(application, {"inputs": [{"text": "a b c"}, {"tokens": ["a"] * 3}]})
    assert status == 413
    assert "6 tokens" in found["error"]["message"]


def test_too_many_numbers(all_models, tag):
    application = serve.app(all_models, serve.Limits(max_cells=100))  # and five labels
    tokens = ["a"] * 20
    assert tag(application, {"tokens": tokens, "marginals": True, "k_best": 1})[0] == 200
    assert tag(application, {"tokens": tokens * 2, "probabilities": True})[0] == 200
    for wrong in ({"marginals": True}, {"k_best": 1}):
        status, found = tag(application, {"tokens": ["a"] * 21, **wrong})
        assert status == 413
        assert found["error"]["where"] == next(iter(wrong))
    assert tag(application, {"tokens": ["a"] * 11, "k_best": 2})[0] == 413


def test_a_full_queue(held):
    make, may, _ = held
    application = make(max_queue=3)

    async def run():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            tasks = [asyncio.create_task(client.post("/tag", json=LONG)) for _ in range(5)]
            done, waiting = await asyncio.wait(tasks, timeout=60, return_when="FIRST_COMPLETED")
            while len(done) < 2:
                more, waiting = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
                done |= more
            health = (await client.get("/health")).json()
            metrics = (await client.get("/metrics")).text
            may.set()
            return [task.result() for task in done], health, metrics, await asyncio.gather(*tasks)

    refused, health, metrics, found = asyncio.run(run())
    assert [own.status_code for own in refused] == [429, 429]
    assert all(own.headers["retry-after"] == "1" for own in refused)
    assert health["queue"] == 3
    assert "chordal_queue_length 3\n" in metrics
    assert sorted(own.status_code for own in found) == [200, 200, 200, 429, 429]


def test_no_answer_in_time(held):
    make, may, _ = held
    application = make(timeout=0.2)
    found = together(application, [LONG, LONG])
    assert [own.status_code for own in found] == [503, 503]
    assert "no answer within 0.2 s" in found[0].json()["error"]["message"]
    may.set()
    assert len(application.state.service.queue) in (0, 2)  # the thread may still be at it


def test_requests_out_of_time_are_not_predicted(held):
    make, may, sizes = held
    application = make(timeout=0.3, batch_tokens=300)

    async def run():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            found = await asyncio.gather(*(client.post("/tag", json=LONG) for _ in range(6)))
            may.set()
            application.state.service.limits.__dict__["timeout"] = 60.0
            last = await client.post("/tag", json=LONG)
            return found, last

    found, last = asyncio.run(run())
    assert {own.status_code for own in found} == {503}
    assert last.status_code == 200
    assert len(sizes) <= 3  # one call was under way, and one for the last


def test_what_comes_together_is_predicted_together(held):
    make, may, sizes = held
    application = make()
    may.set()
    found = together(application, [LONG] * 20)
    assert {own.status_code for own in found} == {200}
    assert sum(sizes) == 20
    assert len(sizes) < 10
    assert len({own.text for own in found}) == 1


def test_batches_are_not_larger_than_asked(held):
    make, may, sizes = held
    application = make(batch_tokens=650)
    may.set()
    together(application, [LONG] * 9)
    assert sum(sizes) == 9
    assert max(sizes) <= 2


@pytest.mark.parametrize("workers", [1, 3])
def test_answers_go_to_those_who_asked(all_models, workers):
    application = serve.app(
        {"words": all_models["words"]}, serve.Limits(workers=workers, batch_tokens=200)
    )
    bodies = [{"tokens": ["Rome", "sees"] * k, "k_best": k % 3} for k in range(1, 60)]
    found = together(application, bodies)
    for body, own in zip(bodies, found, strict=True):
        answer = own.json()
        assert len(answer["labels"]) == len(body["tokens"])
        assert len(answer.get("k_best", [])) == body["k_best"]


def test_a_request_that_the_kernels_cannot_finish_in_time(all_models):
    """The deadline reaches the kernels, so that no thread is lost to a giant request."""
    application = serve.app(
        {"words": all_models["words"]}, serve.Limits(timeout=0.05, max_cells=10**9)
    )
    body = {"tokens": ["Rome"] * 40_000, "k_best": 100}
    (found,) = together(application, [body])
    assert found.status_code == 503
    queue = application.state.service.queue
    queue.close()
    queue._pool and queue._pool.shutdown(wait=True)  # returns


def test_a_slow_body(all_models):
    application = serve.app(all_models, serve.Limits(timeout=0.1))

    async def slowly():
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    async def run():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            head = {"content-type": "application/json"}
            return await client.post("/tag", content=slowly(), headers=head)

    assert asyncio.run(run()).status_code == 408


@pytest.fixture
def unread(all_models):
    """An application that reads long requests only when told."""
    may = threading.Event()

    def make(**limits):
        application = serve.app({"words": all_models["words"]}, serve.Limits(**limits))
        queue = application.state.service.queue
        queue._reader.submit(may.wait, 60)
        return application

    yield make, may
    may.set()


MANY = {"text": "Rome " * 5_000}  # too long to be read in the event loop


def test_requests_that_are_read_too_late(unread):
    make, _ = unread
    application = make(timeout=0.3)
    found = together(application, [MANY, {"text": "Rome"}, MANY])
    assert [own.status_code for own in found] == [503, 200, 503]
    assert "no answer within 0.3 s" in found[0].json()["error"]["message"]
    assert len(application.state.service.queue) == 0


def test_requests_that_are_read_take_room_in_the_queue(unread):
    make, may = unread
    application = make(max_queue=2)

    async def run():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            tasks = [asyncio.create_task(client.post("/tag", json=MANY)) for _ in range(3)]
            done, _ = await asyncio.wait(tasks, timeout=60, return_when="FIRST_COMPLETED")
            health = (await client.get("/health")).json()
            may.set()
            return done, health, await asyncio.gather(*tasks)

    done, health, found = asyncio.run(run())
    assert [task.result().status_code for task in done] == [429]
    assert health["queue"] == 2
    assert sorted(own.status_code for own in found) == [200, 200, 429]


def test_requests_that_are_read_hear_that_the_server_stops(unread):
    make, _ = unread
    application = make(drain=0.2)

    async def run():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            task = asyncio.create_task(client.post("/tag", json=MANY))
            while not len(application.state.service.queue):
                await asyncio.sleep(0.01)
            application.state.service.stop()
            return await task

    found = asyncio.run(run())
    assert found.status_code == 503
    assert "the server is stopping" in found.json()["error"]["message"]
