"""Profiles and graphs are those of single processes: a training over several ranks is refused, and the reason is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from measure.scripted_session import session
from steelyard.errors import UserError
from steelyard.measure import graphs, profiles
from steelyard.plan import spreading
from steelyard.profiles import graphs as counted
from steelyard.profiles import recorded

if TYPE_CHECKING:
    from pathlib import Path


def test_a_training_over_ranks_is_neither_profiled_nor_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "usable_cores", lambda: 8)
    run = session(
        tmp_path / "run", lambda *_: 10.0, frameworks=("fake",), strategies=("single:1", "copies:2"), threads=(1,)
    )
    monkeypatch.setattr(profiles, "_check_environment", lambda *_: None)
    profiles.take(run, run.plan.variants)
    assert [job.case.strategy for job in run.started] == ["single:1"]
    (spread,) = [each for each in run.plan.variants if each.case.strategy == "copies:2"]
    with pytest.raises(UserError, match=r"^A training over several ranks is not profiled\."):
        recorded.read(run.folder, spread.file_name)
    assert any(profiles.SPREAD in message for message in run.messages)
    for each in run.plan.variants:
        graphs._count(run, each)
    assert [job.case.strategy for job in run.started] == ["single:1", "single:1"]
    with pytest.raises(UserError, match=r"The graph of a training over several ranks is not counted\."):
        counted.read(run.folder, spread.file_name)
