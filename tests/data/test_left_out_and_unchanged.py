"""Where it is said what is left out of data, and official data whose arrays stay as they were."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import hostile
import pytest
from own_data import PICTURE_OPTIONS, error, images, spoken

from steelyard.cli.main import main
from steelyard.inputs import data
from steelyard.inputs.data import DataRequest, inspect, pictures, prepare
from steelyard.inputs.data.work import READINGS, Known
from steelyard_worker import tensors

if TYPE_CHECKING:
    from pathlib import Path


def test_a_plan_opens_a_sample_and_says_what_is_left_out(photos: Path, monkeypatch) -> None:
    (photos / "train/cat/3.webp").write_bytes(hostile.picture(form="WEBP"))
    opened = []
    decode = pictures.decode_picture
    monkeypatch.setattr(
        "steelyard.inputs.data.transforms.decode_picture", lambda *given: opened.append(given[2]) or decode(*given)
    )
    found, known = inspect(DataRequest("imagenet", photos, PICTURE_OPTIONS), 2)
    sentence = "Left out: .webp files, as only .jpg, .jpeg and .png are read: 1 (train/cat/3.webp)."
    assert found == [sentence]
    assert known == Known(4, 4, 2)
    assert len(opened) == 4
    images(photos)
    opened.clear()
    assert inspect(DataRequest("imagenet", photos, PICTURE_OPTIONS), 2) == ([sentence], known)
    assert not opened
    (photos / "val/cat/0.png").write_bytes(hostile.picture("I;16"))
    assert inspect(DataRequest("imagenet", photos, PICTURE_OPTIONS), 2)[0] == [
        sentence,
        f"Not used as it is: {pictures.SCALED}: 1 (val/cat/0.png). Of each split, at most 2 files were opened for this.",
    ]


def test_the_plan_shows_it_in_text_and_json(photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    (photos / "train/cat/3.webp").write_bytes(hostile.picture(form="WEBP"))
    command = ["run", "-w", "resnet50:imagenet", "-f", "pytorch", "--data", str(photos), "--dry-run"]
    assert main(command) == 0
    assert (
        "Data imagenet. Left out: .webp files, as only .jpg, .jpeg and .png are read: 1 (train/cat/3.webp)."
        in capsys.readouterr().out
    )
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"][0].startswith("Data imagenet. Left out: .webp files")
    (photos / "val/cat/0.png").write_bytes(b"nothing")
    assert main(command) == 2
    assert "val/cat/0.png is damaged or not an image" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "certify"])
def test_damaged_data_is_refused_before_the_wait_for_the_machine(
    photos: Path, monkeypatch, command: str, tmp_path: Path, capsys
) -> None:
    def wait(*_: object) -> None:
        raise AssertionError("waited for the machine")

    monkeypatch.setattr("steelyard.host.exclusive.use", wait)
    monkeypatch.setenv("STEELYARD_RUNS", str(tmp_path / "runs"))
    (photos / "val/cat/0.png").write_bytes(b"nothing")
    assert main([command, "-w", "resnet50:imagenet", "-f", "pytorch", "--data", str(photos)]) == 2
    assert "val/cat/0.png is damaged or not an image" in capsys.readouterr().err


def test_only_official_files_are_to_be_downloaded_again(tmp_path: Path, clips: Path) -> None:
    for name in ("aclImdb_v1.tar.gz", "mnist_5k.csv.gz", "imdb.npz"):
        (tmp_path / name).write_bytes(b"\x1f\x8b nothing")
    for name in ("aclimdb", "mnist-5k", "imdb-keras"):
        assert error(prepare, DataRequest(name, tmp_path)).endswith("; download it again.")
    (clips / "wavs/0.wav").write_bytes(b"RIFF")
    assert error(spoken, clips).endswith("; replace it, or remove it.")


KNOWN = {
    "cifar10": "2875afc5708b10fc933641000e05b6fdfa7df9029cba559e0ca9f7234e0b301e",
    "imagenet": "3789f8f087af59018d41daee9f1683d3c045623d0f1cbbab6809d99de6044027",
    "aclimdb": "3b42aefb379d605766b8d2974b0739693cae97634ee5bdb1b72e319eabc40087",
    "ljspeech": "71f6ccd4ea21b1ca50bf5b3afcb8299ff812ae94527defc18a6750c1fe236567",
    "librispeech": "d811769344022af7f42b2083ec67b91c3fa6a18dee2f305783991f4453de6a52",
    "clips-16k": "778ee2dfb74f0eb56408dd6c844f2e1c2f87335eb489d23bb2e717c7a4928ae2",
    "wmt16-en-de": "8ffd564436f029a4a1bd84d1a4d3ae20ed277c5840b83701f4138d3f5ed0b1e6",
    "wikitext-103-raw": "a81fa9680e785bb832c5dadb705ed148549ba4545bbf35f787df17e4133f8c19",
    "cn-wiki": "fc7be36b52b40a6ebb5dd089a44867af3ac86aa2395c2ee8a25bb3b0314c69ac",
}
"""Data set -> identity of the arrays of real data, as before anything was left out or counted."""
LIMITED = {"vocabulary": 4000, "length": 64, "masked": 10, "train_limit": 400, "test_limit": 100}
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "cifar10": ("", {"mean": [0.5] * 3, "std": [0.5] * 3}),
    "imagenet": ("", {"resize": 64, "crop": 64, "train_limit": 400, "test_limit": 100}),
    "aclimdb": ("", {"vocabulary": 5000, "length": 100}),
    "ljspeech": ("", {"characters": 100, "frames": 566}),
    "librispeech": ("", {"train_split": "test-clean", "test_split": "dev-clean"}),
    "clips-16k": ("allison-16k", {"frames": 560, "transcript": 80}),
    "wmt16-en-de": ("wmt-style-en-de", {"vocabulary": 8000, "source": 50, "target": 50}),
    "wikitext-103-raw": ("wikitext-2", LIMITED | {"train_split": "valid"}),
    "cn-wiki": ("zhwiki-paragraphs.txt", LIMITED),
}


@pytest.mark.parametrize("name", KNOWN)
def test_real_data_in_official_layouts_has_the_arrays_that_it_had(real_data: Path, name: str) -> None:
    place, options = PLACES[name]
    assert tensors.identity(prepare(DataRequest(name, real_data / place, options)).folder) == KNOWN[name]


@pytest.mark.parametrize(
    ("name", "options", "folder"),
    [
        ("mnist-5k", {}, "mnist-5k-2bf4b71c25c3fe5a710e"),
        ("movie-reviews", {"vocabulary": 5000, "length": 100}, "movie-reviews-d8a8941073ec29dd5cd9"),
    ],
)
def test_data_with_a_known_checksum_keeps_its_place_in_the_cache(
    name: str, options: dict[str, Any], folder: str
) -> None:
    from steelyard.inputs.data import preparation
    from steelyard.inputs.data.fetch import possible_sources
    from steelyard.inputs.data.options import parse_options

    found, request = data.find(name), DataRequest(name, None, options)
    (source,) = possible_sources(found)
    assert preparation._prepared_folder(source, parse_options(found, options), request).name == folder


def test_data_without_a_checksum_is_read_anew_where_its_reader_reads_otherwise(photos: Path, monkeypatch) -> None:
    first = images(photos)
    monkeypatch.setitem(READINGS, "folders", 99)
    assert images(photos).folder != first.folder
