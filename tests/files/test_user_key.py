"""The key with which a user marks texts: secret, made once, and never needed for anything to go on."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from steelyard.files import paths, user_key


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the key, in a folder that does not exist yet."""
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state" / "steelyard"))
    return paths.state_folder() / user_key.FILE


def test_a_mark_is_that_of_one_text_and_one_key(key: Path) -> None:
    assert not user_key.is_marked("text", "")
    assert not key.exists(), "nothing is made to look at a mark"
    mark = user_key.mark("text")
    assert len(mark) == 64
    assert user_key.mark("text") == mark
    assert user_key.is_marked("text", mark)
    assert not user_key.is_marked("other text", mark)
    assert not user_key.is_marked("text", "")
    assert not user_key.is_marked("text", "Ä" * 64), "a mark is what anybody may have written"
    key.unlink()
    assert not user_key.is_marked("text", mark)
    assert user_key.mark("text") != mark


def test_only_its_user_can_read_it(key: Path) -> None:
    before = os.umask(0)
    try:
        user_key.mark("text")
    finally:
        os.umask(before)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert [path.name for path in key.parent.iterdir()] == [key.name]


def test_a_key_that_others_could_read_is_replaced(key: Path) -> None:
    mark = user_key.mark("text")
    key.chmod(0o644)
    assert not user_key.is_marked("text", mark)
    assert user_key.mark("text") != mark
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"long" * 100])
def test_a_damaged_key_is_replaced(content: bytes, key: Path) -> None:
    user_key.mark("text")
    key.write_bytes(content)
    assert user_key.is_marked("text", user_key.mark("text"))


def test_a_link_is_no_key_and_what_it_leads_to_stays(key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"k" * user_key.BYTES)
    other.chmod(0o600)
    key.parent.mkdir(parents=True)
    key.symlink_to(other)
    assert user_key.is_marked("text", user_key.mark("text"))
    assert not key.is_symlink()
    assert other.read_bytes() == b"k" * user_key.BYTES


def test_where_no_key_can_be_kept_there_is_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "file" / "state"))
    assert user_key.mark("text") == ""
    assert not user_key.is_marked("text", "")


def test_those_that_begin_at_once_have_one_key(key: Path) -> None:
    together = Barrier(8)

    def mark(_: int) -> str:
        together.wait()
        return user_key.mark("text")

    with ThreadPoolExecutor(8) as pool:
        marks = list(pool.map(mark, range(8)))
    assert len({*marks}) == 1
    assert user_key.is_marked("text", marks[0])
    assert [path.name for path in key.parent.iterdir()] == [key.name]
