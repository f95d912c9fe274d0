"""Data files: where they are looked for, and how they are brought from a server."""

import gzip
import hashlib
import http.server
import threading

import pytest

from chordal.datasets._files import Official, found

CONTENT = b"a\tb\n" * 1000


@pytest.fixture
def server(tmp_path):
    """A server of the files in a folder; gives the folder and its address."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CHORDAL_DATA", raising=False)
    return tmp_path / "cache" / "chordal"


def official(address, content=CONTENT):
    return {"text.gz": Official(f"{address}/text.gz", hashlib.sha256(content).hexdigest())}


def test_a_file_is_brought_once_into_the_cache(server, cache):
    folder, address = server
    (folder / "text.gz").write_bytes(gzip.compress(CONTENT))
    place = found(None, "texts", ["text.gz"], "a test", official(address))
    assert place == cache / "texts" / "text.gz"
    assert gzip.decompress(place.read_bytes()) == CONTENT
    (folder / "text.gz").unlink()
    assert found(None, "texts", ["text.gz"], "a test", official(address)) == place


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"another"), b"plain", gzip.compress(CONTENT)[:-6]],
    ids=["another", "plain", "cut off"],
)
def test_another_content_is_refused(server, cache, data):
    folder, address = server
    (folder / "text.gz").write_bytes(data)
    with pytest.raises(FileNotFoundError, match=r"could not be read .*(expected|damaged)"):
        found(None, "texts", ["text.gz"], "a test", official(address))
    assert not (cache / "texts" / "text.gz").exists()


def test_without_a_network_the_message_says_which_file_goes_where(server):
    _, address = server
    with pytest.raises(FileNotFoundError) as refused:
        found(None, "texts", ["text.gz", "text"], "the texts of a test", official(address))
    message = str(refused.value)
    for part in ("text.gz or text", address, "the texts of a test", "'texts'", "CHORDAL_DATA"):
        assert part in message


def test_the_order_of_places(tmp_path, cache, monkeypatch):
    names = ["text"]
    in_cache = cache / "texts" / "text"
    in_data = tmp_path / "data" / "texts" / "text"
    given = tmp_path / "given" / "text"
    for place in (in_cache, in_data, given):
        place.parent.mkdir(parents=True)
        place.write_bytes(b"")
    assert found(None, "texts", names, "") == in_cache
    monkeypatch.setenv("CHORDAL_DATA", str(tmp_path / "data"))
    assert found(None, "texts", names, "") == in_data
    assert found(given, "texts", names, "") == given
    assert found(given.parent, "texts", names, "") == given
    with pytest.raises(FileNotFoundError, match="there is no text in"):
        found(tmp_path, "texts", names, "a test")
