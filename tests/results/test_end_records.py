"""What a record says of the end of a trial: anyone may have written it, and a trial that deviates takes part in nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import recorded_trials

from steelyard.errors import UserError
from steelyard.results import record, round_results, trials
from steelyard_worker import protocol

CERTIFIED = {
    "losses": [1.0, 1 / 2],
    "loss_limits": [1e-6, 1e-6],  # those of `recorded_trials.write`
    "updates": {"w": [1.0, -1.0, 2.0]},
    "update_limits": {"w": 1e-3},
}
ID = recorded_trials.case("fake").id


def recorded(folder: Path, **again: Any) -> trials.Trial:
    *before, done = recorded_trials.events()
    event = {"v": protocol.VERSION, "t_ns": 99, "event": "end-check", **again}
    recorded_trials.write(folder, recorded_trials.job(folder), [*before, event, done])
    return trials.read(folder)


@pytest.mark.parametrize(
    ("again", "words"),
    [
        ({"losses": [1.0, 0.5], "changes": {"w": [1.001, -1.001, 2.0]}}, ""),
        ({"losses": [], "not_checked": "the trainer cannot be set back"}, ""),
        ({"losses": [1.0, 0.6], "changes": {"w": [1.0, -1.0, 2.0]}}, "the loss of certified step 2 is 0.6"),
        ({"losses": [1.0, 0.5], "changes": {"w": [1.1, -1.1, 2.0]}}, "certified steps change the tensor 'w'"),
        ({"losses": [1.0, 0.5], "changes": {}}, "certified steps change the tensor 'w'"),
        ({"losses": [1.0, 0.5], "changes": {"w": [1.0, -1.0, 2.0]}, "unequal": "w"}, "'w' differently in its ranks"),
    ],
)
def test_a_trial_that_ends_otherwise_than_certified_has_failed(
    tmp_path: Path, again: dict[str, Any], words: str
) -> None:
    results = round_results.collect([recorded(tmp_path / "r01.0-fake", **again)], {ID: CERTIFIED})
    assert results.has(ID, 1) is not bool(words)
    if words:
        error = results.failed[ID].error
        assert error
        assert error[0] == "deviation"
        assert words in error[1]


@pytest.mark.parametrize(
    "again",
    [
        {"losses": "none"},
        {"losses": [None]},
        {"changes": {"w": ["x"]}},
        {"changes": []},
        {"unequal": 3},
        {"outputs": {"a": "b"}},
    ],
)
def test_a_damaged_end_is_named(tmp_path: Path, again: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"events\.jsonl, line 8: end-check\."):
        recorded(tmp_path / "r01.0-fake", **again)


def test_changes_without_limits_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / record.CERTIFICATES
    path.write_text(json.dumps({ID: {"passed": True, "sentence": "", **CERTIFIED}}))
    assert record.read_certificates(tmp_path)[ID]["updates"] == CERTIFIED["updates"]
    path.write_text(json.dumps({ID: {"passed": True, "sentence": "", **CERTIFIED, "update_limits": {}}}))
    with pytest.raises(UserError, match="has updates without limits"):
        record.read_certificates(tmp_path)
