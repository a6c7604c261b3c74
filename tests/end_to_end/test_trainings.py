"""Whole trainings as a user runs them: epochs on data, evaluated one by one, with a learning rate that changes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.catalog import frameworks
from steelyard_worker import tensors

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Steelyard = Callable[..., subprocess.CompletedProcess[str]]

LINE = Path(__file__).resolve().parents[1] / "workloads" / "line"
PRESET = """
[presets.digits]
summary = "Digits"
optimizer = "sgd"
[presets.digits.sizes]
features = 784
classes = 10
batch = 16
[presets.digits.data]
name = "mnist-5k"
mean = [0.5]
std = [0.5]
"""
SCHEDULE = '\n[{}.schedule]\nkind = "step"\nfactor = 0.25\nevery = {}\nunit = "{}"\n'
SAMPLES, STEPS = 100, 5  # 80 for training

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """The workload `line` on images of digits."""
    folder = shutil.copytree(LINE, tmp_path / "own" / "line", ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in (
        ("network.py", 'Input("point", (features,)', 'Input("image", (1, 28, 28)'),
        ("fake.py", 'batch["point"]', 'batch["image"].reshape(len(batch["image"]), -1)'),
        ("dummy.py", 'batch["point"]', 'batch["image"].reshape(len(batch["image"]), -1)'),
    ):
        path = folder / name
        path.write_text(path.read_text().replace(old, new))
    return folder


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A hundred small pictures, each bright in one row of its own for its class."""
    generator = np.random.default_rng(3)
    pictures = generator.integers(0, 60, (SAMPLES, 28, 28))
    labels = np.arange(SAMPLES) % 10
    for picture, label in zip(pictures, labels, strict=True):
        picture[2 * label + 4] += 150
    (tmp_path / "digits").mkdir()
    rows = np.hstack([pictures.reshape(SAMPLES, -1), labels[:, None]])
    np.savetxt(tmp_path / "digits" / "mnist_5k.csv.gz", rows, fmt="%d", delimiter=",")
    return tmp_path / "digits"


def test_a_training_is_evaluated_after_each_epoch_and_its_times_can_be_ranked(
    workload: Path, digits: Path, data_folder: Path, steelyard: Steelyard
) -> None:
    spec = workload / "spec.toml"
    spec.write_text(spec.read_text() + PRESET + SCHEDULE.format("presets.digits", 1, "epochs"))
    knobs = ("--knob", "fake.step_us=10000", "--knob", "dummy.step_us=20000", "--no-guard", "--plain")
    chosen = (
        "-w",
        "line:digits",
        "--workloads",
        str(workload.parent),
        "-f",
        "fake",
        "-f",
        "dummy",
        "--data",
        str(digits),
    )
    done = steelyard("run", *chosen, *knobs, "--protocol", "total:3", "--rounds", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert {each["certificate"] for each in contenders(done)} == {"certified"}, done.stdout
    for quantity, value in (("total time", 30 * STEPS), ("second epoch", 10 * STEPS), ("evaluation time", 5)):
        ranked = steelyard("report", "latest", "--quantity", quantity, "--json")
        fake, dummy = (each["standings"]["process"]["value"] for each in contenders(ranked))
        assert (fake, dummy) == (pytest.approx(value * 1e6), pytest.approx(2 * value * 1e6))
    (shown,) = data_folder.glob("runs/*/report.html")
    assert "Learning rate: 0.1, x0.25 every 1 epochs." in shown.read_text(encoding="utf-8")
    for seconds, contender in zip((0.05, 0.1), contenders(done), strict=True):
        for training in contender["trainings"]:
            assert training["seconds"] == pytest.approx([seconds, 2 * seconds, 3 * seconds])
            assert len(training["losses"]) == len(training["scores"]["accuracy"]) == 3
    for folder in data_folder.glob("runs/*/trials/*"):
        events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        evaluated = [(each["epoch"], each["steps"]) for each in events if each["event"] == "evaluated"]
        assert evaluated == [(1, STEPS), (2, 2 * STEPS), (3, 3 * STEPS)]
        rates = tensors.read(Path(json.loads((folder / "job.json").read_text())["rates"]))["rates"]
        assert rates[: 3 * STEPS].tolist() == pytest.approx([0.1] * STEPS + [0.025] * STEPS + [0.00625] * STEPS)


def contenders(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    (comparison,) = json.loads(done.stdout)["comparisons"]
    found: list[dict[str, Any]] = comparison["contenders"]
    return found


def test_a_framework_that_ignores_the_rates_is_rejected_and_one_that_takes_none_is_refused(
    tmp_path: Path, steelyard: Steelyard
) -> None:
    own = shutil.copytree(LINE, tmp_path / "own" / "line", ignore=shutil.ignore_patterns("__pycache__"))
    spec = (own / "spec.toml").read_text() + SCHEDULE.format("optimizers.sgd", 2, "steps")
    (own / "spec.toml").write_text(spec)
    command = [
        "certify",
        "-w",
        "line",
        "--workloads",
        str(own.parent),
        "--plain",
        "--json",
        "-f",
        "fake",
        "-f",
        "dummy",
    ]
    signature = "optimizer: Optimizer,\n        rates: Array | None = None,"
    for name, old, new in (
        ("deaf", "np.dtype(self._settings.precision), rates)", "np.dtype(self._settings.precision), None)"),
        ("plain", signature, "optimizer: Optimizer,"),
    ):
        folder = shutil.copytree(frameworks.BUILT_IN / "fake", tmp_path / "mine" / name)
        text = (folder / "adapter.py").read_text()
        assert old in text
        text = text.replace(old, new) if name == "deaf" else text.replace(old, new, 1).replace(", rates)", ")")
        (folder / "adapter.py").write_text(text)
        facts = folder / "framework.toml"
        facts.write_text(facts.read_text().replace("reference = 1\n", ""))
        shutil.copy(own / "fake.py", own / f"{name}.py")
        command += ["-f", name, "--env", f"{name}={sys.executable}"]
    done = steelyard(*command, "--frameworks", str(tmp_path / "mine"))
    found = {key.split("/")[1]: each for key, each in json.loads(done.stdout).items()}
    assert (found["fake"]["passed"], found["dummy"]["passed"]) == (True, True), done.stdout
    assert not found["deaf"]["passed"]
    assert found["deaf"]["first"] == "the loss of step 4", found["deaf"]
    assert "The adapter of plain takes no learning rates per step" in found["plain"]["sentence"]
    assert len(found["fake"]["losses"]) == 3  # later steps have rates of their own
