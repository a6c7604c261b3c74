"""A workload of one's own begins as a folder that is whole: it parses, it is found, and nothing of anybody's is overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import scaffold, workloads
from steelyard.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_is_a_workload_that_every_command_finds(tmp_path: Path) -> None:
    every = scaffold.templates()
    assert set(scaffold.usual()) <= set(every)
    folder = scaffold.write("my-net", tmp_path, every)
    found = workloads.find((tmp_path,))["my-net"]
    assert found.folder == folder
    assert all(found.implemented_by(name) for name in every)
    assert found.network(found.preset("tiny")).trainable_count == 64 * 16 + 16 + 16 * 10 + 10
    assert found.network(found.preset("digits")).macs == 1024 * 64 + 64 * 10


def test_only_the_frameworks_asked_for_are_written(tmp_path: Path) -> None:
    folder = scaffold.write("mine", tmp_path, ["pytorch"])
    assert {path.name for path in folder.iterdir()} == {"spec.toml", "network.py", "pytorch.py"}
    assert len(scaffold.usual()) == 2


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("kept")
    with pytest.raises(UserError, match="exists already; nothing was written"):
        scaffold.write("mine", tmp_path, ["pytorch"])
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


@pytest.mark.parametrize("name", ["My Net", "../net", "", "9net"])
def test_a_name_that_cannot_be_a_folder_and_a_word_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot name a workload"):
        scaffold.write(name, tmp_path, ["pytorch"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "sentence"), [("pytorhc", "Did you mean 'pytorch'"), ("fake", "no template for 'fake'")]
)
def test_a_framework_without_a_template_is_refused(name: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=sentence):
        scaffold.write("mine", tmp_path, [name])
    assert not list(tmp_path.iterdir())
