"""Every test of data has a cache of its own; real subsets are used only where the environment names them."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("STEELYARD_CACHE", str(folder))
    return folder


@pytest.fixture
def real_data() -> Path:
    folder = os.environ.get("STEELYARD_TEST_DATA")
    if not folder:
        pytest.skip("STEELYARD_TEST_DATA names no folder with real data in official layouts")
    return Path(folder)
