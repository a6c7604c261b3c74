"""A run on pictures of a user: what of the folder is not used stands beside the numbers of samples, wherever these are shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

if TYPE_CHECKING:
    from finished_runs import Steelyard

LINE = Path(__file__).resolve().parents[1] / "workloads" / "line"
PRESET = """
[presets.photos]
summary = "Photographs"
optimizer = "sgd"
[presets.photos.sizes]
features = 768
classes = 3
batch = 4
[presets.photos.data]
name = "imagenet"
resize = 16
crop = 16
"""
SENTENCE = "Left out: hidden files and folders: 1 (train/.ipynb_checkpoints/); .webp files, as only .jpg, .jpeg and .png are read: 1 (train/cat/6.webp)."
ROTATED = "Not used as it is: pictures with transparency, which is dropped: 1 (val/dog/0.png)."

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """The folder of workloads with `line` on pictures of 16 x 16."""
    folder = shutil.copytree(LINE, tmp_path / "own" / "line", ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in (
        ("network.py", 'Input("point", (features,)', 'Input("image", (3, 16, 16)'),
        ("fake.py", 'batch["point"]', 'batch["image"].reshape(len(batch["image"]), -1)'),
        ("spec.toml", "\n[presets.small]", f"{PRESET}\n[presets.small]"),
    ):
        path = folder / name
        path.write_text(path.read_text().replace(old, new))
    return folder.parent


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for split in ("train", "val"):
        for name in ("cat", "dog", "owl"):
            (tmp_path / "photos" / split / name).mkdir(parents=True)
            for number in range(6):
                _save(tmp_path / "photos" / split / name / f"{number}.png")
    (tmp_path / "photos/train/.ipynb_checkpoints").mkdir()
    _save(tmp_path / "photos/train/.ipynb_checkpoints/0-checkpoint.png")
    _save(tmp_path / "photos/train/cat/6.webp")
    _save(tmp_path / "photos/val/dog/0.png", channels=4)
    return tmp_path / "photos"


def _save(path: Path, channels: int = 3) -> None:
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (20, 20, channels), dtype=np.uint8)).save(path)


def test_counts_are_in_the_plan_the_terminal_the_page_and_the_record(
    workload: Path, photos: Path, data_folder: Path, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    command = (
        "run",
        "-w",
        "line:photos",
        "--workloads",
        str(workload),
        "-f",
        "fake",
        "--data",
        str(photos),
        "--no-guard",
        "--plain",
    )
    plan = steelyard(*command, "--dry-run")
    assert f"Data imagenet. {SENTENCE}" in plan.stdout
    assert f"Data imagenet. {ROTATED} Of each split, at most 50 files were opened for this." in plan.stdout
    done = steelyard(*command, "--protocol", "fixed:1+2:pipeline", "--rounds", "1", "--no-certify")
    assert done.returncode == 0, done.stderr
    shown = f"18 training and 18 test samples; no checksum shows that it is the official data. {SENTENCE} {ROTATED}"
    assert f"   {SENTENCE}\n" in done.stderr
    assert shown in " ".join(done.stdout.split())
    (page,) = data_folder.glob("runs/*/report.html")
    assert shown in page.read_text(encoding="utf-8")
    (inputs,) = json.loads((page.parent / "run.json").read_text())["inputs"].values()
    assert inputs["meta"]["left_out"]["hidden files and folders"] == {
        "count": 1,
        "first": ["train/.ipynb_checkpoints/"],
    }


def test_damaged_pictures_are_named_together_and_leave_no_run(
    workload: Path, photos: Path, data_folder: Path, steelyard: Steelyard
) -> None:
    for number in range(4):
        (photos / f"train/owl/{number}.png").write_bytes(b"nothing")
    done = steelyard(
        "run", "-w", "line:photos", "--workloads", str(workload), "-f", "fake", "--data", str(photos), "--plain"
    )
    assert done.returncode == 2
    assert "4 files, folders or lines are refused." in done.stderr
    assert done.stderr.count("is damaged or not an image") == 3
    assert "1 more are refused for reasons like these." in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(data_folder.glob("runs/*/run.json"))
