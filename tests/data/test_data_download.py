"""Downloads: verified, resumed after an interruption, removed if they are wrong; error messages."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import official_layouts as layouts
import pytest

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, Progress, fetch, preparation, prepare, silent
from steelyard.inputs.data.catalogue import Layout
from steelyard.inputs.data.download import download


class _Server(http.server.BaseHTTPRequestHandler):
    """Serves `content`, from the start of a requested range; `cut` ends the connection after that many bytes."""

    content: ClassVar[bytes] = b""
    cut: ClassVar[int] = 0
    ranges: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-") or 0)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        self.wfile.write(self.content[start : self.cut or None])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    _Server.content, _Server.cut, _Server.ranges = bytes(range(256)) * 4000, 0, []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/file.bin"
        listening.shutdown()
        thread.join()


def _layout(url: str, content: bytes) -> Layout:
    digest = hashlib.sha256(content).hexdigest()
    return Layout("file", "file.bin", bytes=len(content), algorithm="sha256", digest=digest, url=url)


def test_a_download_is_verified_and_reused(tmp_path: Path, server: str):
    reported: list[Progress] = []
    layout = _layout(server, _Server.content)
    path = download(layout, tmp_path, reported.append)
    assert path.read_bytes() == _Server.content
    assert reported[-1] == Progress(f"Downloading {server}", layout.bytes, layout.bytes)
    assert download(layout, tmp_path, silent) == path
    assert _Server.ranges == [""]


def test_an_interrupted_download_is_resumed(tmp_path: Path, server: str):
    layout = _layout(server, _Server.content)
    _Server.cut = 300_000
    with pytest.raises(UserError, match=r"download of .*file\.bin stopped after 300,000 of 1,024,000"):
        download(layout, tmp_path, silent)
    _Server.cut = 0
    assert download(layout, tmp_path, silent).read_bytes() == _Server.content
    assert _Server.ranges[0] == ""
    assert _Server.ranges[1].startswith("bytes=")


def test_a_download_with_another_checksum_is_removed_and_reported(tmp_path: Path, server: str):
    layout = _layout(server, _Server.content[:-1] + b"!")
    with pytest.raises(UserError, match=r"file\.bin returned 1,024,000 bytes with sha256 .* not the official"):
        download(layout, tmp_path, silent)
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_address_is_reported(tmp_path: Path):
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:9/x could not be downloaded \(.*refused"):
        download(_layout("http://127.0.0.1:9/x", b"x"), tmp_path, silent)


def test_a_missing_page_is_reported(tmp_path: Path, server: str, monkeypatch):
    monkeypatch.setattr(_Server, "do_GET", lambda self: self.send_error(404))
    with pytest.raises(UserError, match=r"could not be downloaded \(HTTPError: Not Found"):
        download(_layout(server, b"x"), tmp_path, silent)


def test_a_data_set_without_a_folder_is_downloaded(tmp_path: Path, server: str, monkeypatch):
    content = layouts.write_ranks(tmp_path / "imdb.npz", [[1, 2]], [[1]]).read_bytes()
    _Server.content = content
    digest = hashlib.sha256(content).hexdigest()
    official = layouts.with_layout("imdb-keras", 0, url=server, bytes=len(content), digest=digest)
    monkeypatch.setattr(preparation, "find", lambda name: official)
    options = {"vocabulary": 10, "length": 4}
    first = prepare(DataRequest("imdb-keras", options=options))
    assert (first.meta["origin"], first.meta["verified"]) == ("download", "official")
    assert prepare(DataRequest("imdb-keras", options=options)) == first
    assert prepare(DataRequest("imdb-keras", tmp_path, options)).folder == first.folder
    assert len(_Server.ranges) == 1


def test_a_failing_npm_leaves_no_file_under_the_final_name(tmp_path: Path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\nfor last; do :; done\necho half > "$last/mirror-1.tgz"\necho broken >&2\nexit 1\n')
    npm.chmod(0o755)
    monkeypatch.setattr(fetch.shutil, "which", lambda name: str(npm))
    target = tmp_path / "downloads" / "mirror-1.tgz"
    with pytest.raises(UserError, match=r"mirror@1 could not be downloaded with npm \(broken\)"):
        fetch._npm_pack("mirror@1", target, silent)
    assert list(target.parent.iterdir()) == []
    npm.write_text(npm.read_text().replace("exit 1", "exit 0"))
    fetch._npm_pack("mirror@1", target, silent)
    assert target.read_text() == "half\n"
    assert list(target.parent.iterdir()) == [target]
