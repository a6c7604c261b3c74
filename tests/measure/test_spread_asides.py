"""Which trainings over several ranks are profiled, and that no graph of them is counted: the reason is recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from measure.scripted_session import ScriptedSession, session
from steelyard.catalog import frameworks
from steelyard.errors import UserError
from steelyard.measure import graphs, profiles
from steelyard.plan import spreading
from steelyard.profiles import graphs as counted
from steelyard.profiles import recorded

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.plan.run_plan import Variant


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedSession:
    """A session of one process and of two ranks."""
    monkeypatch.setattr(spreading, "usable_cores", lambda: 8)
    monkeypatch.setattr(profiles, "_check_environment", lambda *_: None)
    return session(
        tmp_path / "run", lambda *_: 10.0, frameworks=("fake",), strategies=("single:1", "copies:2"), threads=(1,)
    )


def test_ranks_that_share_batches_are_profiled(run: ScriptedSession) -> None:
    profiles.take(run, profiles.missing(run.folder, run.plan.variants, run.plan.seed))
    assert sorted(job.case.strategy for job in run.started) == ["copies:2", "single:1"]


@pytest.mark.parametrize("change", [{"shares": "network"}, {"launcher": ""}])
def test_other_parts_are_not_profiled(
    run: ScriptedSession, change: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = frameworks.framework("fake")
    spread = known.spread("copies:2")
    assert spread
    other = replace(known, strategies={"copies": replace(spread, **change)})  # type: ignore[arg-type]
    monkeypatch.setattr(frameworks, "framework", lambda name: other)
    profiles.take(run, profiles.missing(run.folder, run.plan.variants, run.plan.seed))
    assert [job.case.strategy for job in run.started] == ["single:1"]
    with pytest.raises(UserError, match=r"^Of trainings over several parts, only those are profiled whose ranks"):
        recorded.read(run.folder, _spread(run).file_name)
    assert any(profiles.SPREAD in message for message in run.messages)


def test_a_graph_of_ranks_is_not_counted(run: ScriptedSession) -> None:
    for each in run.plan.variants:
        graphs._count(run, each)
    assert [job.case.strategy for job in run.started] == ["single:1"]
    with pytest.raises(UserError, match=r"The graph of a training over several ranks is not counted\."):
        counted.read(run.folder, _spread(run).file_name)


def _spread(run: ScriptedSession) -> Variant:
    (found,) = [each for each in run.plan.variants if each.case.strategy == "copies:2"]
    return found
