"""The interpreters of the frameworks, an empty cache for each module, and the plan of one certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import subjects
from planned import REFERENCES

from steelyard.certificates.plan import CertificationPlan, plan_certification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.certificates.plan import Candidate


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


@pytest.fixture
def candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Candidate:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    return subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path)


@pytest.fixture
def plan(candidate: Candidate, tmp_path: Path) -> CertificationPlan:
    return plan_certification(candidate, REFERENCES, tmp_path / "references")
