"""`--accumulate`: parts of a batch, certified as the same step as the whole batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end

FRAMEWORKS = ("-f", "fake", "-f", "dummy")


def test_a_step_in_parts_is_certified_as_the_whole_one(shared_steelyard: Steelyard, tmp_path: Path) -> None:
    done = shared_steelyard(tmp_path, "certify", *LINE[:4], *FRAMEWORKS, "--accumulate", "1,4", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {key.rpartition("line:small/")[2] for key in found} == {
        "fake/scripted",
        "fake/scripted,accumulate=4",
        "dummy/scripted",
    }
    assert [each["sentence"] for each in found.values() if not each["passed"]] == []
    assert {each["settings"]["knobs"].get("accumulate") for each in found.values()} == {None, 4}


def test_a_batch_that_cannot_be_divided_gets_one_sentence(shared_steelyard: Steelyard, tmp_path: Path) -> None:
    done = shared_steelyard(tmp_path, "run", *LINE, "-f", "fake", "--accumulate", "3")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "A batch of 16 cannot be divided into 3 equal parts whose gradients are added." in line
    done = shared_steelyard(tmp_path, "run", *LINE, "-f", "fake", "--accumulate", "0")
    assert done.returncode == 2
    assert "--accumulate must be a number of parts of a batch from 1 to" in done.stderr
