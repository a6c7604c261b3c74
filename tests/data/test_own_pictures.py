"""What folders of pictures have lost in silence: it is read, refused with the right advice, or counted."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

import hostile
import numpy as np
import pytest
from own_data import PICTURE_OPTIONS, error, images, left_out
from PIL import Image

from steelyard.errors import UserError
from steelyard.inputs import case_inputs
from steelyard.inputs.data import DataRequest, inspect, pictures, prepare
from steelyard.inputs.data.inventory import refuse
from steelyard_worker import tensors

if TYPE_CHECKING:
    from pathlib import Path


def test_grey_of_16_bits_is_scaled_and_counted(photos: Path) -> None:
    values = np.linspace(30_000, 50_000, 24 * 20).reshape(20, 24).astype(np.uint16)
    Image.fromarray(values).save(photos / "train/cat/0.png")
    found = images(photos)
    arrays = tensors.read(found.folder)
    row = int(np.flatnonzero(arrays["position/train"] == 0)[0])
    assert 116 <= arrays["train/image"][row].min() <= arrays["train/image"][row].max() <= 195
    assert hostile.changed(found.meta) == {pictures.SCALED: 1}
    exact, _ = pictures.decode_picture((photos / "train/cat/0.png").read_bytes(), "L", "here")
    np.testing.assert_array_equal(np.asarray(exact), np.round(values / 257))


def test_pictures_that_are_not_read_are_counted_by_reason(photos: Path) -> None:
    (photos / "train/cat/2.bmp").write_bytes(hostile.picture(form="BMP"))
    (photos / "train/cat/3.webp").write_bytes(hostile.picture(form="WEBP"))
    (photos / "train/dog/studio").mkdir()
    (photos / "train/dog/studio/9.png").write_bytes(hostile.picture())
    (photos / "train/9.png").write_bytes(hostile.picture())
    (photos / "notes.txt").write_text("mine")
    found = images(photos)
    only = "as only .jpg, .jpeg and .png are read"
    assert left_out(found) == {
        f".bmp files, {only}": 1,
        f".webp files, {only}": 1,
        "files in subfolders of class folders": 1,
        "files outside of class folders": 1,
        "files that are not part of the layout": 1,
    }
    assert found.meta["train_count"] == 4
    assert (
        f"Left out: files that are not part of the layout: 1 (notes.txt); files outside of class folders: 1 (train/9.png); .bmp files, {only}: 1 (train/cat/2.bmp)"
        in case_inputs._origin(found.meta)
    )


def test_files_that_come_later_are_counted_though_the_arrays_are_reused(photos: Path) -> None:
    first = images(photos)
    (photos / "train/cat/3.webp").write_bytes(hostile.picture(form="WEBP"))
    second = images(photos)
    assert second.folder == first.folder
    assert (sum(left_out(first).values()), sum(left_out(second).values())) == (0, 1)


def test_a_class_without_any_picture_that_is_read_is_refused(photos: Path) -> None:
    for split in ("train", "val"):
        (photos / split / "bird").mkdir()
        (photos / split / "bird/0.webp").write_bytes(hostile.picture(form="WEBP"))
    (photos / "train/empty").mkdir()
    found = error(images, photos)
    assert found.startswith("3 files, folders or lines are refused.")
    assert (
        "train/bird has no .jpg, .jpeg or .png (1 of its files are of other kinds or in subfolders, such as train/bird/0.webp)"
        in found
    )
    assert "train/empty has no .jpg, .jpeg or .png (it is empty)" in found


def test_a_class_of_other_pictures_is_refused_also_where_the_arrays_are_there(photos: Path) -> None:
    images(photos)
    (photos / "train/bird").mkdir()
    (photos / "train/bird/0.webp").write_bytes(hostile.picture(form="WEBP"))
    assert "train/bird has no .jpg" in error(images, photos)


def test_hidden_folders_are_no_classes_and_hidden_files_no_pictures(photos: Path) -> None:
    before = tensors.identity(images(photos).folder)
    for split in ("train", "val"):
        (photos / split / ".ipynb_checkpoints").mkdir()
        (photos / split / ".ipynb_checkpoints/0-checkpoint.png").write_bytes(hostile.picture())
    (photos / "train/cat/._0.png").write_bytes(b"\0\5\x16\7")
    found = images(photos)
    assert tensors.identity(found.folder) == before
    assert left_out(found) == {"hidden files and folders": 3}


def test_transparency_and_a_rotation_are_counted_and_change_no_pixel(photos: Path) -> None:
    before = tensors.read(images(photos).folder)
    exif = Image.Exif()
    exif[pictures.ORIENTATION] = 6
    plain = Image.open(io.BytesIO(hostile.picture()))
    plain.save(photos / "val/cat/0.png", exif=exif)
    plain.putalpha(100)
    plain.save(photos / "val/cat/1.png")
    opaque = plain.copy()
    opaque.putalpha(255)
    opaque.save(photos / "val/dog/0.png")
    found = images(photos)
    assert hostile.changed(found.meta) == {pictures.ROTATED: 1, pictures.TRANSPARENT: 1}
    np.testing.assert_array_equal(tensors.read(found.folder)["test/image"], before["test/image"])


def test_damaged_notes_of_a_camera_do_not_matter(photos: Path) -> None:
    Image.open(io.BytesIO(hostile.picture())).save(photos / "val/cat/0.png", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert images(photos).meta["test_count"] == 4


def test_a_picture_of_another_format_is_named_with_it_under_any_name(photos: Path) -> None:
    (photos / "val/dog/1.jpg").write_bytes(hostile.picture(form="WEBP"))
    assert error(images, photos) == (
        f"{photos}: val/dog/1.jpg is a picture in the format WebP; convert it to JPEG or PNG, or remove it."
    )


def test_all_bad_files_of_a_folder_are_refused_at_once(photos: Path) -> None:
    for number in range(5):
        (photos / f"train/dog/bad{number}.png").write_bytes(hostile.picture()[:60])
    for found in (
        error(lambda place: inspect(DataRequest("imagenet", place, PICTURE_OPTIONS), 50), photos),
        error(images, photos),
    ):
        assert found.startswith("5 files, folders or lines are refused.")
        assert found.count(".png is damaged or not an image") == 3
        assert found.endswith("2 more are refused for reasons like these.")
        assert "download" not in found


def test_one_refusal_is_said_as_it_is_and_none_is_no_error() -> None:
    refuse([])
    with pytest.raises(UserError, match=r"^only this$"):
        refuse([UserError("only this")])


def test_an_encrypted_member_of_an_archive_is_refused_by_name(photos: Path, tmp_path: Path) -> None:
    path = shutil.make_archive(str(tmp_path / "imagenet-own"), "zip", photos)
    content = bytearray((tmp_path / "imagenet-own.zip").read_bytes())
    for mark, place in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        at = -1
        while (at := content.find(mark, at + 1)) >= 0:
            content[at + place] |= 1  # the flag of encryption
    (tmp_path / "imagenet-own.zip").write_bytes(content)
    shutil.rmtree(photos)
    assert "encrypted" in error(lambda place: prepare(DataRequest("imagenet", place, PICTURE_OPTIONS)), tmp_path)
    assert path.endswith(".zip")
