"""Paths below a folder that somebody else may have filled."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from steelyard.errors import UserError
from steelyard.files import json_lines, within


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder beside another one, `outside`, which holds a file."""
    (tmp_path / "root" / "inner").mkdir(parents=True)
    (tmp_path / "outside" / "kept").mkdir(parents=True)
    (tmp_path / "outside" / "kept" / "file").write_text("kept")
    return tmp_path / "root"


def outside(root: Path) -> list[str]:
    """Return everything in the other folder."""
    return sorted(str(path.relative_to(root.parent)) for path in (root.parent / "outside").rglob("*"))


UNTOUCHED = ["outside/kept", "outside/kept/file"]


@pytest.mark.parametrize("path", ["kept", "inner", "inner/kept", "a/b/c"])
@pytest.mark.parametrize("through", ["", "link"])
def test_a_path_that_stays_inside_is_returned(path: str, through: str, root: Path) -> None:
    if through:
        (root.parent / through).symlink_to(root)
        root = root.parent / through
    assert within.check(root, root / path) == root / path
    assert within.make(root, root / path) == root / path
    assert (root / path).is_dir()
    within.remove(root, root / path)
    assert not (root / path).exists()
    within.remove(root, root / path)


@pytest.mark.parametrize("path", ["link", "link/kept", "inner/link/kept", "link/new/folder", "nowhere", "nowhere/x"])
@pytest.mark.parametrize("checked", [True, False], ids=["checked", "changed after the check"])
def test_a_link_is_refused_wherever_it_is(
    path: str, checked: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (root, root / "inner"):
        (place / "link").symlink_to(root.parent / "outside")
    (root / "nowhere").symlink_to(root.parent / "outside" / "nowhere")
    if checked:
        with pytest.raises(
            UserError, match="is a link, and what steelyard writes or deletes in a run's folder must lie"
        ):
            within.check(root, root / path)
        with pytest.raises(UserError, match="is a link"):
            within.remove(root, root / path)
    else:
        monkeypatch.setattr(within, "check", lambda root, path: path)
        with suppress(UserError, OSError):
            within.remove(root, root / path)
    with pytest.raises(UserError, match="is a link"):
        within.make(root, root / path)
    assert outside(root) == UNTOUCHED
    assert os.path.lexists(root / "link")


def test_a_file_in_the_place_of_a_folder_is_named(root: Path) -> None:
    (root / "inner" / "file").write_text("")
    for work in (within.check, within.remove, within.make):
        with pytest.raises(
            UserError, match=r"inner/file is not a folder, where a run's folder has a folder: remove it"
        ):
            work(root, root / "inner" / "file" / "x")


def test_links_in_what_is_deleted_are_not_followed(root: Path) -> None:
    (root / "inner" / "link").symlink_to(root.parent / "outside")
    within.remove(root, root / "inner")
    assert not (root / "inner").exists()
    assert outside(root) == UNTOUCHED


def test_nothing_but_a_file_is_at_the_place_of_a_file(root: Path) -> None:
    within.check_file(root / "none")
    (root / "file").write_text("")
    within.check_file(root / "file")
    (root / "link").symlink_to(root / "file")
    os.mkfifo(root / "pipe")
    for name, what in (
        ("link", "is a link"),
        ("inner", "is a folder, where"),
        ("pipe", "is a pipe, a socket or a device"),
    ):
        with pytest.raises(UserError, match=what):
            within.check_file(root / name)


@pytest.mark.parametrize("target", ["kept/file", "new"])
def test_no_line_is_appended_through_a_link(target: str, root: Path) -> None:
    (root / "notes.jsonl").symlink_to(root.parent / "outside" / target)
    with pytest.raises(UserError, match=r"notes\.jsonl is a link"):
        json_lines.append(root / "notes.jsonl", number=1)
    assert outside(root) == UNTOUCHED
    assert (root.parent / "outside" / "kept" / "file").read_text() == "kept"
