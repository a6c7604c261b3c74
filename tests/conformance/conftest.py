"""Certificates, weights and data are created once for this state of the code; environments are those of the user's cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(scope="module", autouse=True)
def _framework_cache(framework_cache: Path) -> Iterator[None]:
    """Set the cache for all tests of a module. A fixture of the session would be made before, and use the cache of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_CACHE", str(framework_cache))
        patch.setenv("PYTHONPATH", str(SOURCES))
        yield
