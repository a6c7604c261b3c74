"""Interpreters that hold a framework, a cache of its own for every session, and certify jobs on small synthetic data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def interpreter() -> Callable[[str], Path]:
    """Return the interpreter of a framework, as STEELYARD_TEST_PYTHON_<NAME> names it."""

    def find(name: str) -> Path:
        variable = f"STEELYARD_TEST_PYTHON_{name.upper()}"
        python = os.environ.get(variable)
        if not python:
            pytest.skip(f"{variable} names no interpreter that holds {name}")
        return Path(python)

    return find


@pytest.fixture(scope="session", autouse=True)
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
