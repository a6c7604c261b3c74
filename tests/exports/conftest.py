"""Recorded runs of all kinds, and the folder of runs that they are found in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "golden"))

import golden_archives

import steelyard
from steelyard.errors import UserError


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Return a function that unpacks the recorded runs of a kind, and makes their folder the usual one."""

    def unpacked(kind: str) -> Path:
        golden_archives.unpack(kind, tmp_path / kind)
        monkeypatch.setenv("STEELYARD_RUNS", str(tmp_path / kind))
        return tmp_path / kind / "runs"

    return unpacked


@pytest.fixture
def readable(recorded):
    """Return a function that unpacks a kind and returns its readable runs."""

    def runs(kind: str) -> list[steelyard.Run]:
        found = []
        for path in sorted(recorded(kind).glob("*/run.json")):
            run = steelyard.load(path.parent)
            try:
                run.view()
            except UserError:
                assert kind == "unreadable"
                continue
            found.append(run)
        assert found or kind == "unreadable"
        return found

    return runs
