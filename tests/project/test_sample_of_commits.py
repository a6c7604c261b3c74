"""Which tests of real frameworks run whatever the record says: another tenth at each commit."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import proved
import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("count", [1, 2, 9, 10, 11, 57])
def test_ten_commits_in_a_row_have_every_place(count: int) -> None:
    parts = proved.parts_of((f"test_{number % 7}.py", f"{number}") for number in range(count))
    assert len(parts) == count
    for first in (0, 1, 7, 95, 12_345):
        drawn = [place for commit in range(first, first + 10) for place, part in parts.items() if part == commit % 10]
        assert sorted(drawn) == sorted(parts)
    sizes = [[*parts.values()].count(part) for part in range(10)]
    assert max(sizes) - min(sizes) <= 1


def git(folder: Path, *words: str) -> None:
    own = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "protocol.file.allow=always",
    )
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def commits(tmp_path: Path) -> Path:
    """A repository of twelve commits."""
    folder = tmp_path / "repository"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main", ".")
    for number in range(12):
        (folder / "src" / "code.py").write_text(f"{number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"{number}")
    return folder


def test_each_commit_has_the_next_part(commits: Path) -> None:
    drawn = []
    for back in range(11, -1, -1):
        git(commits, "checkout", "--quiet", f"main~{back}")
        drawn.append(proved.part_of_commit(commits))
    assert drawn == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]


def test_without_history_the_sources_decide(commits: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{commits}", "shallow")
    shallow = tmp_path / "shallow"
    exported = commits / "exported"  # inside of another repository
    (exported / "src").mkdir(parents=True)
    parts = set()
    for text in map(str, range(11, 40)):
        for folder in (shallow, exported):
            (folder / "src" / "code.py").write_text(f"{text}\n")
        found = {proved.part_of_commit(folder) for folder in (shallow, exported)}
        assert len(found) == 1, "the same sources have the same part"
        parts |= found
    assert len(parts) > 5, "29 states of the sources draw at least six of ten parts"
