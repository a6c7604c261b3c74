"""Fixtures for tests of launched workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from measure.staged_workers import Clock, Stage
from steelyard.measure import launch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A worker without a script yet, and a launcher whose clock tests can hurry."""
    found = Stage(tmp_path, Clock(tmp_path / "trials" / "r01.0-fake" / "hurry"))
    monkeypatch.setattr(launch, "time", found.clock)
    return found
