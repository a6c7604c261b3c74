"""The cache for tests of real frameworks: certificates are never reused, and what other code has made neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from caches_of_tests import free_cache, renew

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache that a session of some code has filled, with a link to environments."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "jax").touch()
    found = tmp_path / "cache-1"
    renew(found, "code", tmp_path / "environments")
    for name in ("certificates", "weights", "data"):
        (found / name / "more").mkdir(parents=True)
    return found


def test_the_same_code_uses_all_but_certificates(folder: Path, tmp_path: Path) -> None:
    renew(folder, "code", tmp_path / "environments")
    assert sorted(each.name for each in folder.iterdir()) == ["code", "data", "environments", "weights"]
    assert (tmp_path / "environments" / "jax").exists(), "environments are the user's, and only linked"


def test_other_code_uses_nothing_but_environments(folder: Path, tmp_path: Path) -> None:
    renew(folder, "other code", tmp_path / "environments")
    assert sorted(each.name for each in folder.iterdir()) == ["code", "environments"]
    assert (folder / "environments" / "jax").exists()


def test_two_sessions_have_two_caches_and_the_next_has_the_first(tmp_path: Path) -> None:
    first, lock = free_cache(tmp_path)
    second, other = free_cache(tmp_path)
    lock.release()
    third, again = free_cache(tmp_path)
    other.release()
    again.release()
    assert (first.name, second.name, third.name) == ("cache-1", "cache-2", "cache-1")
