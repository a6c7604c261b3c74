"""Small files that would fill the memory, the disk or the patience: each ends soon with one sentence."""

from __future__ import annotations

import gzip
import io
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING

import numpy as np
import official_layouts as layouts
import pytest
from PIL import Image

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, check, pictures, preparation, prepare
from steelyard.inputs.data.pictures import decode_image
from steelyard.inputs.data.transforms import ImageTransform

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no pipes with names and no resource limits"
)

SIZE = 1_200_000_000
LIMIT_BYTES = 1_500_000_000  # less than any of these files needs when it is unpacked in memory
PATIENCE_S = 60
# Print the message of a request in a process with limited memory, which ends with a traceback if it is anything else.
PREPARE = f"""\
import resource, sys
from pathlib import Path
from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, prepare
resource.setrlimit(resource.RLIMIT_AS, ({LIMIT_BYTES}, {LIMIT_BYTES}))
try:
    prepare(DataRequest(sys.argv[1], Path(sys.argv[2]), eval(sys.argv[3])))
except UserError as error:
    print(error)
"""
PHOTOGRAPHS = {"resize": 20, "crop": 16}


def message(environment: dict[str, str], name: str, folder: Path, options: dict[str, object] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PREPARE, name, str(folder), repr(options or {})],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    return line


def zeros(count: int) -> bytes:
    """Return a gzip file that unpacks to `count` zeros, as a sequence of equal parts: quick to write, 1/1000 of the size."""
    part = 50_000_000
    return gzip.compress(bytes(part)) * (count // part)


def header(name: str, kind: bytes, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_an_archive_that_unpacks_to_more_than_its_layout_is_refused(
    kind: bytes, tmp_path: Path, environment: dict[str, str]
) -> None:
    size = 250_000_000 if kind == tarfile.REGTYPE else SIZE  # a member has a limit of its own
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(gzip.compress(header("unread", kind, size)) + zeros(size))
    assert archive.stat().st_size < 2_000_000
    found = message(environment, "cifar10", tmp_path)
    assert found.startswith(f"{archive} unpacks to more than 200,000,000 bytes, far more than the official file does")


def test_a_table_that_unpacks_to_one_endless_line_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "mnist_5k.csv.gz"
    path.write_bytes(zeros(SIZE))
    assert message(environment, "mnist-5k", tmp_path).startswith(f"{path} unpacks to more than 20,000,000 bytes")


def test_an_array_or_a_member_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch) -> None:
    layouts.write_ranks(tmp_path / "imdb.npz", [[1, 2]] * 50, [[1]] * 50)
    small = layouts.with_layout("imdb-keras", 0, unpacked=300)
    monkeypatch.setattr(preparation, "find", lambda name: small)
    with pytest.raises(UserError, match=r"imdb\.npz \(x_train\) has [\d,]+ bytes; no official file .* more than 300\."):
        prepare(DataRequest("imdb-keras", tmp_path))


def test_a_pickle_of_very_many_small_objects_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = layouts.write_cifar_python(tmp_path / "cifar-10-batches-py")
    (folder / "data_batch_1").write_bytes(b"(" + b"]" * 60_000_000 + b"l.")
    found = message(environment, "cifar10", tmp_path)
    assert "data_batch_1 has 60,000,003 bytes; no official file of this kind has more than 40,000,000." in found


def black(width: int, height: int) -> bytes:
    """Return a PNG of one bit per pixel."""
    lines = zlib.compress(bytes((1 + (width + 7) // 8) * height), 1)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)), (b"IDAT", lines), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


@pytest.mark.parametrize(
    ("width", "height", "shown"),
    [
        (32_000, 32_000, "32,000 x 32,000"),
        (12_000, 12_500, "12,000 x 12,500"),
        (65_000, 1, "130,000,000 x 2,000"),  # small as it is, but not with the short side enlarged
    ],
)
def test_a_picture_that_is_far_larger_decoded_is_refused(
    width: int, height: int, shown: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    for split in ("train", "val"):
        (tmp_path / split / "n1").mkdir(parents=True)
        (tmp_path / split / "n1" / "a.png").write_bytes(black(width, height))
    assert (tmp_path / "val" / "n1" / "a.png").stat().st_size < 600_000
    found = message(environment, "imagenet", tmp_path, {"resize": 2000, "crop": 16})
    assert f"train/n1/a.png has {shown} pixels when decoded and resized; at most 100,000,000 are read." in found


def test_only_the_two_formats_of_photographs_are_decoded() -> None:
    for kind in ("BMP", "GIF", "TIFF", "WebP", "PPM"):
        content = io.BytesIO()
        Image.new("RGB", (8, 8)).save(content, kind)
        named = (
            "damaged or not an image" if kind == "PPM" else f"a picture in the format {kind}; convert it to JPEG or PNG"
        )
        with pytest.raises(UserError, match=f"here is {named}"):
            decode_image(content.getvalue(), "RGB", "here")


def test_the_largest_picture_that_is_read_is_decoded_without_a_warning(monkeypatch) -> None:
    monkeypatch.setattr(pictures, "MAX_PIXELS", 64)
    content = io.BytesIO()
    Image.new("RGB", (8, 8)).save(content, "PNG")
    assert decode_image(content.getvalue(), "RGB", "here").size == (8, 8)
    assert Image.MAX_IMAGE_PIXELS is None
    assert ImageTransform(3, (), preparation.parse_options(preparation.find("imagenet"), PHOTOGRAPHS)).shape == (
        3,
        16,
        16,
    )


def test_a_file_that_is_too_large_to_be_a_photograph_or_a_batch_is_not_read(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    _photographs(tmp_path)
    batches = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    for path in (tmp_path / "train" / "n1" / "a.png", batches / "data_batch_1.bin"):
        os.truncate(path, 400_000_000)  # most of it takes no space on the disk
    for name, options in (("imagenet", PHOTOGRAPHS), ("cifar10", {})):
        found = message(environment, name, tmp_path, options)
        assert "has 400,000,000 bytes; no official file of this kind has more than" in found


def test_a_member_of_an_archive_of_photographs_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch) -> None:
    with zipfile.ZipFile(tmp_path / "imagenet.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train/n1/a.png", bytes(70_000_000))
    assert (tmp_path / "imagenet.zip").stat().st_size < 100_000
    with pytest.raises(UserError, match=r"imagenet\.zip: train/n1/a\.png has 70,000,000 bytes; no official file"):
        prepare(DataRequest("imagenet", tmp_path, PHOTOGRAPHS))


def _parallel(folder: Path) -> None:
    for stem in ("train", "test"):
        for language in ("en", "de"):
            (folder / f"{stem}.{language}").write_text("a red house\n" * 40)


def _photographs(folder: Path) -> None:
    for split in ("train", "val"):
        (folder / split / "n1").mkdir(parents=True)
        (folder / split / "n1" / "a.png").write_bytes(layouts.write_png(np.zeros((30, 30, 3), np.uint8), [0] * 30))


def _reviews(folder: Path) -> None:
    layouts.write_reviews(folder, ["a good film"] * 4, ["a film"] * 4)


def _clips(folder: Path) -> None:
    (folder / "wavs").mkdir()
    (folder / "metadata.csv").write_text("one|hello\n")


PIPES: list[tuple[str, Callable[[Path], None], str, dict[str, object]]] = [
    ("wmt16-en-de", _parallel, "train.de", {"vocabulary": 60}),
    ("cifar10", lambda folder: layouts.write_cifar_binary(folder / "x") and None, "cifar-10-binary.tar.gz", {}),
    ("imagenet", _photographs, "train/n1/a.png", PHOTOGRAPHS),
    ("aclimdb", _reviews, "test/pos/1_1.txt", {"vocabulary": 20, "length": 8}),
    ("imdb-keras", lambda folder: None, "imdb.npz", {}),
    ("ljspeech", _clips, "wavs/one.wav", {}),
    ("mnist-5k", lambda folder: None, "mnist_5k.csv.gz", {}),
]


@pytest.mark.parametrize(("name", "fill", "pipe", "options"), PIPES)
def test_a_pipe_or_a_device_in_place_of_a_file_is_refused_without_opening_it(
    name: str,
    fill: Callable[[Path], None],
    pipe: str,
    options: dict[str, object],
    tmp_path: Path,
    environment: dict[str, str],
) -> None:
    fill(tmp_path)
    path = tmp_path / pipe
    path.unlink(missing_ok=True)
    for make in (os.mkfifo, lambda place: place.symlink_to("/dev/zero")):
        make(path)
        found = message(environment, name, tmp_path, options)
        assert found.startswith(f"{path} is a folder, a pipe or a device where a file is expected")
        path.unlink()


def test_a_pipe_as_the_data_folder_and_a_link_to_nothing_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=r"pipe is a folder, a pipe or a device where a file is expected"):
        check(DataRequest("cifar10", tmp_path / "pipe"))
    batches = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    (batches / "data_batch_3.bin").unlink()
    (batches / "data_batch_3.bin").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"data_batch_3\.bin cannot be read \(No such file or directory\)"):
        prepare(DataRequest("cifar10", tmp_path))
