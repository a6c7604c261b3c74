"""A helper beside the workload's folder that an implementation imports: once it changes, nothing that rests on it is used."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from finished_runs import WORKLOADS, finished

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end

IMPORTING = """import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import helper
"""


@pytest.fixture
def helper(tmp_path: Path) -> Path:
    """Return the helper of a copy of the smallest workload, whose implementation for Fake multiplies its outputs by a number in it."""
    shutil.copytree(WORKLOADS / "line", tmp_path / "mine" / "line")
    own = tmp_path / "mine" / "line" / "fake.py"
    text = own.read_text(encoding="utf-8").replace('{"logits": ', '{"logits": helper.FACTOR * (', 1)
    own.write_text(
        IMPORTING + text.replace('parameters["head.bias"]}', 'parameters["head.bias"])}', 1), encoding="utf-8"
    )
    path = tmp_path / "mine" / "helper.py"
    path.write_text("FACTOR = 1\n", encoding="utf-8")
    return path


def test_a_certificate_and_a_run_are_of_the_helper_that_was_there(
    helper: Path, steelyard: Steelyard, data_folder: Path
) -> None:
    own = ("--workloads", str(helper.parent), "-w", "line", "-f", "fake", "-f", "dummy", "--no-guard", "--plain")
    done = finished(data_folder, steelyard("run", *own, "--rounds", "2", "--json"))
    certificates = json.loads((done.folder / "certificates.json").read_text(encoding="utf-8")).values()
    assert all(each["passed"] for each in certificates)
    (fake,) = [each for each in certificates if each["framework"] == "fake"]
    assert list(fake["imported"]) == [str(helper)]

    helper.write_text("FACTOR = 2\n", encoding="utf-8")
    again = steelyard("run", "--resume", done.folder.name, "--plain")
    assert again.returncode == 2
    assert (
        f"{helper}, which its processes imported, has changed since run {done.folder.name} was started" in again.stderr
    )
    certified = steelyard("certify", *own[:4], "-f", "fake", "-f", "dummy", "--plain")
    assert certified.returncode == 1
    assert "Different computation" in certified.stdout or "disagree" in certified.stdout
