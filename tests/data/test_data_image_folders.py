"""Images in class folders, resizing and cropping, and augmentation: random crops, shifts, mirroring."""

from __future__ import annotations

import dataclasses
import io
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import official_layouts as layouts
import pytest
from PIL import Image

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, Prepared, image_folders, preparation, prepare, transforms
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.options import ImageOptions
from steelyard.inputs.data.transforms import random_crop_box, scaled_size
from steelyard_worker.tensors import read

CLASSES = ("n02000000", "n01000000", "n03000000")
OPTIONS: dict[str, Any] = {"resize": 20, "crop": 16}
SHIFT = {"colour_shift": 1.0}


def photograph(number: int, width: int = 30, height: int = 24, mode: str = "RGB") -> Image.Image:
    """Return a smooth image that is different for every number and that JPEG changes little."""
    rows, columns = np.mgrid[0:height, 0:width]
    planes = [(rows * (3 + number) + columns * (2 + c)) % 200 + 7 * c for c in range(3)]
    return Image.fromarray(np.stack(planes, -1).astype(np.uint8)).convert(mode)


def write_folders(root: Path, train: int = 4, val: int = 2, ending: str = "JPEG", **size: Any) -> Path:
    """Write class folders below `root`; the images of a class are different."""
    for split, count in (("train", train), ("val", val)):
        for label, name in enumerate(sorted(CLASSES)):
            folder = root / split / name
            folder.mkdir(parents=True)
            for number in range(count):
                image = photograph(10 * label + number + (5 if split == "val" else 0), **size)
                image.save(folder / f"{name}_{number}.{ending}", quality=95)
    return root


def write_zip(root: Path, path: Path, prefix: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for each in sorted(root.rglob("*.*"), reverse=True):
            archive.write(each, prefix + each.relative_to(root).as_posix())
    return path


def arrays(prepared: Prepared) -> dict[str, np.ndarray]:
    return read(prepared.folder)


def in_order(found: dict[str, np.ndarray], split: str) -> np.ndarray:
    """Return the images of a split in official order."""
    return found[f"{split}/image"][np.argsort(found[f"position/{split}"])]


def test_labels_are_indices_of_sorted_classes_and_positions_of_sorted_images(tmp_path: Path):
    prepared = prepare(DataRequest("imagenet", write_folders(tmp_path / "imagenet"), OPTIONS))
    found = arrays(prepared)
    np.testing.assert_array_equal(found["train/label"], found["position/train"] // 4)
    np.testing.assert_array_equal(found["test/label"], found["position/test"] // 2)
    assert found["train/image"].shape == (12, 3, 16, 16)
    assert prepared.meta["verified"] == "layout"
    assert (prepared.meta["train_count"], prepared.meta["test_count"]) == (12, 6)


def test_images_sorted_by_class_are_shuffled(tmp_path: Path):
    labels = arrays(prepare(DataRequest("imagenet", write_folders(tmp_path, 12), OPTIONS)))["train/label"]
    assert (np.diff(labels) < 0).any()


def test_a_test_image_is_the_centre_of_the_resized_photograph(tmp_path: Path):
    write_folders(tmp_path, ending="png")
    found = in_order(arrays(prepare(DataRequest("imagenet", tmp_path, OPTIONS))), "test")
    whole = photograph(5).resize((25, 20), Image.Resampling.BILINEAR)  # 30x24: the short side becomes 20
    expected = np.asarray(whole)[2:18, 4:20].transpose(2, 0, 1)
    np.testing.assert_array_equal(found[0], expected)


def test_a_photograph_smaller_than_the_crop_is_enlarged(tmp_path: Path):
    write_folders(tmp_path, width=9, height=12)
    assert arrays(prepare(DataRequest("imagenet", tmp_path, OPTIONS)))["test/image"].shape == (6, 3, 16, 16)


@pytest.mark.parametrize("mode", ["L", "CMYK", "RGBA", "P", "1"])
def test_every_pixel_format_is_converted_to_rgb(tmp_path: Path, mode: str):
    write_folders(tmp_path, ending="png")
    image = photograph(0, mode=mode)
    target = tmp_path / "val" / min(CLASSES) / f"{min(CLASSES)}_0.png"
    image.save(target, format="JPEG" if mode == "CMYK" else "PNG")
    with Image.open(target) as stored:
        whole = stored.convert("RGB").resize((25, 20), Image.Resampling.BILINEAR)
    found = in_order(arrays(prepare(DataRequest("imagenet", tmp_path, OPTIONS))), "test")
    np.testing.assert_array_equal(found[0], np.asarray(whole)[2:18, 4:20].transpose(2, 0, 1))


@pytest.mark.parametrize("prefix", ["", "ILSVRC/"])
def test_an_archive_gives_the_same_arrays_as_its_folder(tmp_path: Path, prefix: str):
    write_folders(tmp_path / "imagenet")
    write_zip(tmp_path / "imagenet", tmp_path / "imagenet-small.zip", prefix)
    options = {**OPTIONS, "augment": True}
    folder = prepare(DataRequest("imagenet", tmp_path / "imagenet", options))
    archive = prepare(DataRequest("imagenet", tmp_path / "imagenet-small.zip", options))
    assert folder.folder != archive.folder
    one, other = arrays(folder), arrays(archive)
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_a_changed_folder_is_prepared_again(tmp_path: Path):
    write_folders(tmp_path)
    first = prepare(DataRequest("imagenet", tmp_path, OPTIONS))
    assert prepare(DataRequest("imagenet", tmp_path, OPTIONS)).folder == first.folder
    photograph(99).save(tmp_path / "val" / CLASSES[0] / "new.JPEG")
    assert prepare(DataRequest("imagenet", tmp_path, OPTIONS)).meta["test_count"] == 7
    place = tmp_path / "val" / CLASSES[0] / "new.JPEG"
    white = Image.new("RGB", (30, 24), "white")
    white.save(place)
    found = arrays(prepare(DataRequest("imagenet", tmp_path, OPTIONS)))
    assert found["test/image"].min((1, 2, 3)).max() == 255


def test_augmentation_depends_only_on_seed_and_image_and_spares_test_images(tmp_path: Path):
    write_folders(tmp_path)
    plain, augmented, other, part = (
        arrays(prepare(DataRequest("imagenet", tmp_path, {**OPTIONS, **more})))
        for more in ({}, {"augment": True}, {"augment": True, "seed": 1}, {"augment": True, "train_limit": 6})
    )
    np.testing.assert_array_equal(in_order(plain, "test"), in_order(augmented, "test"))
    changed = [(in_order(augmented, "train") != in_order(each, "train")).any((1, 2, 3)) for each in (plain, other)]
    assert np.mean(changed) > 0.9
    of_part = {int(place): image for place, image in zip(part["position/train"], part["train/image"], strict=True)}
    whole = in_order(augmented, "train")
    assert len(of_part) == 6
    for place, image in of_part.items():
        np.testing.assert_array_equal(image, whole[place])


def test_colours_are_shifted_once_as_a_whole_and_in_training_images_alone(tmp_path: Path):
    write_folders(tmp_path, ending="png")
    plain, shifted, again, cropped = (
        arrays(prepare(DataRequest("imagenet", tmp_path, {**OPTIONS, **more})))
        for more in ({}, SHIFT, {**SHIFT, "test_limit": 5}, {**SHIFT, "augment": True})
    )
    np.testing.assert_array_equal(in_order(plain, "test"), in_order(shifted, "test"))
    np.testing.assert_array_equal(in_order(shifted, "train"), in_order(again, "train"))
    assert (in_order(cropped, "train") != in_order(shifted, "train")).any((1, 2, 3)).mean() > 0.9
    moved = in_order(shifted, "train").astype(int) - in_order(plain, "train")
    inside = (in_order(shifted, "train") % 255 != 0) & (in_order(plain, "train") % 255 != 0)
    amounts = [
        [set(image[channel][seen[channel]].tolist()) for channel in range(3)]
        for image, seen in zip(moved, inside, strict=True)
    ]
    # One shift for a channel of an image, but for pixels that reach an end of the scale; another in every image.
    assert all(len(each) <= 1 for channels in amounts for each in channels)
    assert len({str(channels) for channels in amounts}) > 0.8 * len(amounts)


def test_colours_move_along_the_principal_components():
    """By hand: 255 * 0.1 * 0.2175 = 5.55 along the first component, nearly grey; the second parts red and blue."""
    grey = np.full((1, 1, 3), 100, np.uint8)
    assert transforms.shifted(grey, np.array([0.1, 0, 0])).ravel().tolist() == [97, 97, 97]
    assert transforms.shifted(grey, np.array([0, 1.0, 0])).ravel().tolist() == [103, 100, 97]
    assert transforms.shifted(grey, np.array([-90.0, 0, 0])).ravel().tolist() == [255, 255, 255]


def test_data_that_was_prepared_before_there_were_shifts_of_colours_stays_known():
    options = ImageOptions(resize=256, crop=224)
    assert "colour_shift" not in options.key
    assert dataclasses.replace(options, colour_shift=0.1).key == {**options.key, "colour_shift": 0.1}


def test_half_of_the_augmented_images_are_mirrored(tmp_path: Path):
    ramp = np.broadcast_to(np.arange(120, dtype=np.uint8)[None, :, None] * 2, (120, 120, 3))
    for split in ("train", "val"):
        (tmp_path / split / "n1").mkdir(parents=True)
        for number in range(40):
            Image.fromarray(np.ascontiguousarray(ramp)).save(tmp_path / split / "n1" / f"{number}.png")
    found = arrays(prepare(DataRequest("imagenet", tmp_path, {**OPTIONS, "augment": True})))["train/image"]
    rising = found[:, 0, 8, -1] > found[:, 0, 8, 0]
    assert 10 <= rising.sum() <= 30


@pytest.mark.parametrize("extent", [(500, 375), (1, 900), (2000, 3), (64, 64)])
def test_a_random_crop_lies_inside_the_image_and_has_the_configured_shape(extent: tuple[int, int]):
    boxes = [random_crop_box(*extent, np.random.default_rng(seed)) for seed in range(300)]
    shapes = np.array([(right - left, lower - upper) for left, upper, right, lower in boxes])
    corners = np.array(boxes)
    assert corners.min() >= 0
    assert (corners[:, [2, 3]] <= extent).all()
    assert (shapes >= 1).all()
    if min(extent) > 60:
        shares = shapes.prod(1) / np.prod(extent)
        ratios = shapes[:, 0] / shapes[:, 1]
        assert 0.075 < shares.min() < 0.2 < 0.8 < shares.max() <= 1
        assert 0.7 < ratios.min() < 0.8 < 1.25 < ratios.max() < 1.4


def test_the_short_side_is_scaled_exactly_and_the_long_side_rounded_down():
    assert scaled_size(375, 500, 256) == (256, 341)
    assert scaled_size(500, 375, 256) == (341, 256)
    assert scaled_size(300, 300, 80) == (80, 80)
    assert scaled_size(30, 20, 0) == (30, 20)


@pytest.mark.parametrize(
    ("split", "words"),
    [("train", r"holds no training images; put them in train/<class>/"), ("val", "holds no validation images")],
)
def test_a_split_without_images_is_reported(tmp_path: Path, split: str, words: str, cache: Path):
    write_folders(tmp_path / "imagenet")
    shutil.rmtree(tmp_path / "imagenet" / split)
    (tmp_path / "imagenet" / split).mkdir()
    with pytest.raises(UserError, match=words):
        prepare(DataRequest("imagenet", tmp_path, OPTIONS))
    with pytest.raises(UserError, match=words):
        archive = write_zip(tmp_path / "imagenet", tmp_path / "imagenet.zip")
        prepare(DataRequest("imagenet", archive, OPTIONS))
    assert [path for path in (cache / "data" / "prepared").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("archived", [False, True])
def test_validation_images_outside_class_folders_are_reported(tmp_path: Path, archived: bool):
    root = write_folders(tmp_path / "imagenet")
    shutil.rmtree(root / "val")
    (root / "val").mkdir()
    photograph(0).save(root / "val" / "ILSVRC2012_val_00000001.JPEG")
    home = write_zip(root, tmp_path / "imagenet.zip") if archived else root
    with pytest.raises(
        UserError, match=r"val/ILSVRC2012_val_00000001\.JPEG is not in a class folder\. Sort .* val/<class>/<image>"
    ):
        prepare(DataRequest("imagenet", home, OPTIONS))


def test_a_validation_class_without_training_images_is_reported(tmp_path: Path):
    write_folders(tmp_path)
    (tmp_path / "val" / CLASSES[0]).rename(tmp_path / "val" / "n09999999")
    with pytest.raises(
        UserError, match=r"n02000000_0\.JPEG belongs to the class 'n09999999', which is missing in train/"
    ):
        prepare(DataRequest("imagenet", tmp_path, OPTIONS))


def test_too_many_classes_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparation, "find", lambda name: dataclasses.replace(find(name), classes=2))
    with pytest.raises(UserError, match="has 3 training classes; imagenet has 2"):
        prepare(DataRequest("imagenet", write_folders(tmp_path), OPTIONS))


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("JPEG", _cut),
        ("png", _cut),
        ("JPEG", lambda _: b""),
        ("JPEG", lambda _: b"<html>not found</html>"),
        ("JPEG", lambda content: content[:20]),
        ("png", lambda content: content[:60] + bytes(9) + content[69:]),
    ],
)
def test_a_damaged_image_is_reported_and_leaves_no_files(tmp_path: Path, cache: Path, ending: str, damage: Any):
    write_folders(tmp_path, ending=ending)
    bad = tmp_path / "train" / CLASSES[1] / f"{CLASSES[1]}_2.{ending}"
    bad.write_bytes(damage(bad.read_bytes()))
    with pytest.raises(
        UserError, match=rf"train/{CLASSES[1]}/{CLASSES[1]}_2\.{ending} is damaged or not an image \(.+\)"
    ):
        prepare(DataRequest("imagenet", tmp_path, OPTIONS))
    assert [path for path in (cache / "data" / "prepared").iterdir() if path.is_dir()] == []


def test_a_truncated_archive_or_damaged_member_is_reported(tmp_path: Path):
    write_folders(tmp_path / "imagenet")
    path = write_zip(tmp_path / "imagenet", tmp_path / "imagenet.zip")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"imagenet\.zip is damaged or truncated"):
        prepare(DataRequest("imagenet", path, OPTIONS))
    path.write_bytes(whole[:200] + bytes(20) + whole[220:])
    with pytest.raises(UserError, match=r"imagenet\.zip: .*_1\.JPEG is damaged or cannot be unpacked \(Bad CRC-32"):
        prepare(DataRequest("imagenet", path, OPTIONS))


def test_an_oversized_archive_member_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(image_folders, "MAX_IMAGE_BYTES", 100)
    write_folders(tmp_path / "imagenet")
    path = write_zip(tmp_path / "imagenet", tmp_path / "imagenet.zip")
    with pytest.raises(
        UserError, match=r"imagenet\.zip: .*JPEG has [\d,]+ bytes; no official file of this kind has more than 100"
    ):
        prepare(DataRequest("imagenet", path, OPTIONS))


def test_a_full_disk_is_reported_before_any_image_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparation.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(2e9, 1e9, 1e9))
    monkeypatch.setattr(transforms, "decode_picture", None)
    with pytest.raises(UserError, match=r"needs 3\.5 GB, but .* has only 1\.0 GB free; set STEELYARD_CACHE"):
        prepare(DataRequest("imagenet", write_folders(tmp_path), {"resize": 8000, "crop": 8000}))


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ("imagenet", {}, "crop must be at least 1"),
        ("imagenet", {"resize": 100, "crop": 224}, "resize, the short side, must not be below crop"),
        ("imagenet", {"resize": 256, "crop": 224, "pad_to": 300}, "pad_to is for images of one size"),
        ("imagenet", {"resize": 256, "crop": 224, "colour_shift": 1.5}, "colour_shift must be from 0 to 1."),
        ("mnist-5k", {"colour_shift": 0.1}, "colour_shift is for images of three colours."),
        ("imagenet", {"resize": 256, "crop": 224, "augment": 1}, "augment = 1; use a value of the same type as False"),
        ("cifar10", {"crop": 24}, "crop is for images of different sizes; these are all 32x32"),
        ("cifar10", {"resize": -1}, "must be at least 0"),
        ("cifar10", {"resize": True}, "resize = True; use a value of the same type as 0"),
        ("cifar10", {"resize": 64, "pad_to": 40}, "pad_to is below the image size, 64x64"),
    ],
)
def test_options_that_do_not_fit_the_images_are_rejected(
    tmp_path: Path, data: str, options: dict[str, Any], words: str
):
    with pytest.raises(UserError, match=words):
        prepare(DataRequest(data, tmp_path, options))


def test_images_of_one_size_are_resized_on_request(tmp_path: Path):
    layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin", count=3)
    plain, large = (arrays(prepare(DataRequest("cifar10", tmp_path, {"resize": size}))) for size in (0, 224))
    assert large["train/image"].shape == (15, 3, 224, 224)
    for small, found in zip(plain["test/image"], large["test/image"], strict=True):
        expected = Image.fromarray(small.transpose(1, 2, 0)).resize((224, 224), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(found, np.asarray(expected).transpose(2, 0, 1))


def test_small_images_are_shifted_by_up_to_4_pixels_and_half_are_mirrored(tmp_path: Path):
    layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin", count=40)
    plain, augmented = (arrays(prepare(DataRequest("cifar10", tmp_path, {"augment": each}))) for each in (False, True))
    np.testing.assert_array_equal(plain["test/image"], augmented["test/image"])
    seen = []
    for original, found in zip(plain["train/image"], augmented["train/image"], strict=True):
        wide = np.pad(original, ((0, 0), (4, 4), (4, 4)))
        views = {(i, j): wide[:, i : i + 32, j : j + 32] for i in range(9) for j in range(9)}
        matches = [
            (*place, mirrored)
            for place, view in views.items()
            for mirrored in (False, True)
            if (found == (view[:, :, ::-1] if mirrored else view)).all()
        ]
        assert len(matches) == 1
        seen += matches
    rows, columns, mirrored = zip(*seen, strict=True)
    assert set(rows) == set(columns) == set(range(9))
    assert 70 <= sum(mirrored) <= 130


def test_grey_digits_are_shifted_resized_and_padded(tmp_path: Path):
    layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    options = {"augment": True, "resize": 56, "pad_to": 64}
    image = arrays(prepare(DataRequest("mnist-5k", tmp_path, options)))["train/image"]
    assert image.shape == (80, 1, 64, 64)
    assert image[:, :, :4].max() == 0


PREPARE = """\
import resource, sys
from pathlib import Path
from steelyard.inputs.data import DataRequest, prepare
prepare(DataRequest("imagenet", Path(sys.argv[1]), {"resize": 256, "crop": 224, "augment": True}))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_number_of_images(tmp_path: Path, environment: dict[str, str]):
    content = io.BytesIO()
    photograph(3, 320, 260).save(content, "JPEG")
    peaks_mb = []
    for count in (60, 600):
        root = tmp_path / str(count)
        for split in ("train", "val"):
            (root / split / "n1").mkdir(parents=True)
            for number in range(count):
                (root / split / "n1" / f"{number}.JPEG").write_bytes(content.getvalue())
        command = [sys.executable, "-c", PREPARE, str(root)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        peaks_mb.append(int(done.stdout) / 1024)
    # 1,080 images more are 163 MB of pixels.
    assert peaks_mb[1] - peaks_mb[0] < 20, peaks_mb


def test_real_photographs_in_an_archive_are_prepared_including_grey_ones(real_data: Path):
    options = {"resize": 64, "crop": 64, "train_limit": 400, "test_limit": 100}
    prepared = prepare(DataRequest("imagenet", real_data, options))
    found = arrays(prepared)
    assert np.bincount(found["train/label"]).tolist() == [20] * 20
    assert np.bincount(found["test/label"]).tolist() == [5] * 20
    grey = (np.ptp(found["train/image"].astype(int), axis=1) == 0).all((1, 2))
    assert 0 < grey.sum() < 40
    with zipfile.ZipFile(real_data / "imagenet-style-20.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.startswith("train/"))
        first = int(found["position/train"][0])
        with Image.open(io.BytesIO(archive.read(names[first]))) as image:
            expected = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    np.testing.assert_array_equal(found["train/image"][0], expected)
