"""The command line: runs and unused files of the cache are removed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from finished_runs import Finished

if TYPE_CHECKING:
    from finished_runs import CommandLine

pytestmark = pytest.mark.end_to_end


def test_runs_are_removed_by_their_names(copied: Finished, cli: CommandLine) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    assert json.loads(cli("runs", "list", "--json")[1]) == json.loads(cli("list", "runs", "--json")[1])
    assert "Did you mean '20200101-000000-first-look'?" in cli.error("runs", "remove", "20200101-000000-first")
    assert "Name the runs to remove." in cli.error("runs", "remove")
    assert "takes no name" in cli.error("runs", "list", "x")
    code, out, _ = cli("runs", "remove", other.name)
    assert code == 0
    assert out.startswith(f"Removed {other.name} (")
    assert [row["run"] for row in json.loads(cli("runs", "list", "--json")[1])] == [copied.folder.name]
    cli("runs", "remove", copied.folder.name)
    assert cli("runs", "list")[1] == "There are no runs yet. Start with: steelyard run\n"


def test_the_cache_is_listed_and_pruned(
    copied: Finished, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own-cache"
    unused = own / "weights" / ("0" * 20)
    unused.mkdir(parents=True)
    (unused / "tensors.bin").write_bytes(b"x" * 2**20)
    monkeypatch.setenv("STEELYARD_CACHE", str(own))
    listed = {row["kind"]: row for row in json.loads(cli("cache", "--json")[1])}
    assert (listed["inputs"]["size_bytes"], listed["inputs"]["unused_bytes"]) == (2**20, 2**20)
    assert "1.0 MiB" in cli("cache")[1]
    assert cli("cache", "prune")[1] == "Removed 1 of inputs (1.0 MiB).\nFreed 1.0 MiB.\n"
    assert cli("cache", "prune")[1] == "Freed 0.0 MiB.\n"
