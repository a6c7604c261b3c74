"""Certificates, weights and data are made once in a test session, in the framework environments of the user's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module", autouse=True)
def _framework_cache(framework_cache: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_CACHE", str(framework_cache))
        yield
