"""The interpreters of the frameworks, and an empty cache for each module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def interpreter(environment: Callable[[str], Path]) -> Callable[[str], Path]:
    """Return the interpreter of a framework's environment."""
    return environment


@pytest.fixture(scope="module", autouse=True)
def _empty_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Only for the tests of this folder: the setting must not reach those that run after them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
