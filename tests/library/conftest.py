"""Recorded runs, and the folder of runs that they are found in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "golden"))

import golden_archives


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Return a function that unpacks the recorded runs of a kind, and makes their folder the usual one."""

    def unpacked(kind: str) -> Path:
        golden_archives.unpack(kind, tmp_path)
        monkeypatch.setenv("STEELYARD_RUNS", str(tmp_path))
        return tmp_path / "runs"

    return unpacked
