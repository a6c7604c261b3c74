"""Two studies at their quick size with two real frameworks each, from the command line to the page.

The other studies are planned in all sizes, and their pages made from scripted runs, in `report/test_studies.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import decides
import pytest
from decides import Sources

pytestmark = pytest.mark.conformance

PAIR = ("-f", "pytorch", "-f", "mxnet")


def decided(*workloads: str) -> Sources:
    """Return what decides a study of the pair; TensorFlow is the other reference. Pages of scripted runs are made in every run of the tests."""
    data = ("src/steelyard/plan/studies", "src/steelyard/published/data")
    return Sources(workloads[0], ("mxnet", "pytorch", "tensorflow"), workloads, modules=decides.RUN, files=data)


def run(folder: Path, study: str, *more: str) -> tuple[dict[str, Any], str]:
    """Run a study; return its results and the text of its page."""
    options = ("--size", "Q", "--json", "--plain", "--no-guard", "--fresh", "--runs", str(folder), *PAIR, *more)
    command = [sys.executable, "-m", "steelyard", "run", study, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    return found, (Path(found["folder"]) / "report.html").read_text(encoding="utf-8")


@pytest.mark.decided(by=lambda: decided("deepspeech2"))
def test_three_forms_of_an_lstm_are_certified_measured_and_held_against_the_document(tmp_path: Path) -> None:
    # Few steps: how long the study's own protocol measures is tested with scripted frameworks.
    found, page = run(tmp_path, "lstm-kernels", "-w", "deepspeech2:tiny", "--rounds", "2", "--protocol", "fixed:3+10")
    assert [each["group"] for each in found["comparisons"]] == ["deepspeech2:tiny"]
    for comparison in found["comparisons"]:
        assert len(comparison["contenders"]) == 6
        assert {each["certificate"] for each in comparison["contenders"]} == {"certified"}
        assert all(each["speeds"] for each in comparison["contenders"])
    rows = [row for entry in found["published"] for row in entry["rows"] if row["group"] == "deepspeech2:tiny"]
    assert rows
    for row in rows:
        assert row["measured"]["low"] < row["measured"]["value"] < row["measured"]["high"]
        assert row["judgement"] is None, "the document measured GPUs"
        assert "device" in " ".join(row["differences"]), row["differences"]
    assert "4.14×" in page, "what the document says of PyTorch's fused LSTM"


@pytest.mark.decided(by=lambda: decided("resnet18", "lstm-imdb"))
def test_trainings_of_two_frameworks_learn_alike_and_reach_the_thresholds(tmp_path: Path) -> None:
    found, page = run(tmp_path, "time-to-accuracy", "--seed", "1")
    (comparison, *_) = found["comparisons"]
    assert {each["certificate"] for each in comparison["contenders"]} == {"certified"}
    scores = [each["evaluation"]["scores"]["accuracy"] for each in comparison["contenders"]]
    # Rounding parts the curves of certified frameworks after some hundred steps; three epochs of digits bring 0.95 or more.
    assert min(scores) > 0.9
    assert max(scores) - min(scores) < 0.03
    assert "90 %" in page
