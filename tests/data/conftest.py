"""Every data test has an empty cache. Tests on real data run only if STEELYARD_TEST_DATA names a folder."""

import os
from pathlib import Path

import pytest
from own_data import write_clips, write_photos

import steelyard


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("STEELYARD_CACHE", str(folder))
    return folder


@pytest.fixture
def real_data() -> Path:
    folder = os.environ.get("STEELYARD_TEST_DATA")
    if not folder:
        pytest.skip("STEELYARD_TEST_DATA does not name a folder with real data in official layouts")
    return Path(folder)


@pytest.fixture
def environment() -> dict[str, str]:
    """Return the variables for a child process that must import the code under test, not an installed copy."""
    return {**os.environ, "PYTHONPATH": str(Path(steelyard.__file__).parents[1])}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of two pictures for each split."""
    return write_photos(tmp_path)


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Eight recordings with their table."""
    return write_clips(tmp_path)
