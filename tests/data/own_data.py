"""What tests of a person's own data share: small folders, how they are prepared, and what is left out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hostile
import pytest

from steelyard.errors import UserError
from steelyard.inputs import data
from steelyard.inputs.data import DataRequest, prepare

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


PICTURE_OPTIONS = {"resize": 20, "crop": 16}
SMALL_TEXT = {"vocabulary": 20, "length": 8}
SMALL_LANGUAGE = {"vocabulary": 100, "length": 16, "masked": 2}


def write_photos(tmp_path: Path) -> Path:
    """Write two classes of two pictures for each split; returns the folder."""
    for split in ("train", "val"):
        for name in ("cat", "dog"):
            (tmp_path / "imagenet" / split / name).mkdir(parents=True)
            for number in range(2):
                (tmp_path / "imagenet" / split / name / f"{number}.png").write_bytes(hostile.picture())
    return tmp_path / "imagenet"


def write_clips(tmp_path: Path) -> Path:
    """Write eight recordings with their table; returns the folder."""
    root = tmp_path / "LJSpeech-1.1"
    (root / "wavs").mkdir(parents=True)
    for number in range(8):
        (root / "wavs" / f"{number}.wav").write_bytes(hostile.sound(22_050))
    (root / "metadata.csv").write_text("".join(f"{number}|raw|Hello there.\n" for number in range(8)), encoding="utf-8")
    return root


def images(root: Path) -> data.Prepared:
    return prepare(DataRequest("imagenet", root, PICTURE_OPTIONS))


def spoken(root: Path) -> data.Prepared:
    return prepare(DataRequest("ljspeech", root, {"frames": 100, "mels": 16}))


def left_out(prepared: data.Prepared) -> dict[str, int]:
    return {reason: tally["count"] for reason, tally in prepared.meta["left_out"].items()}


def error(make: Callable[[Any], object], place: Any) -> str:
    with pytest.raises(UserError) as found:
        make(place)
    return str(found.value)
