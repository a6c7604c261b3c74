"""`steelyard new workload` creates a complete workload and never overwrites anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import frameworks, scaffold, workloads
from steelyard.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_is_a_workload_that_every_command_finds(tmp_path: Path) -> None:
    every = list(frameworks.contenders())
    assert set(scaffold.default_frameworks()) <= set(every)
    folder = scaffold.write("my-net", tmp_path, every)
    found = workloads.find((tmp_path,))["my-net"]
    assert found.folder == folder
    assert all(found.implemented_by(name) for name in every)
    assert found.network(found.preset("tiny")).trainable_count == 64 * 16 + 16 + 16 * 10 + 10
    assert found.network(found.preset("digits")).macs == 1024 * 64 + 64 * 10


def test_files_are_written_only_for_the_requested_frameworks(tmp_path: Path) -> None:
    folder = scaffold.write("mine", tmp_path, ["pytorch"])
    assert {path.name for path in folder.iterdir()} == {"spec.toml", "network.py", "pytorch.py"}
    assert len(scaffold.default_frameworks()) == 2


@pytest.mark.parametrize("like", ["bert", "gnmt", "resnet18", "vit", "gpt"])
def test_a_workload_begins_as_a_copy_of_another(like: str, tmp_path: Path) -> None:
    folder = scaffold.copy("mine", tmp_path, like, [], [])
    found = workloads.find((tmp_path,))["mine"]
    model = {**workloads.find(scaffold.examples()), **workloads.find()}[like]
    assert (found.folder, found.title, found.presets) == (folder, model.title, model.presets)
    assert (folder / "network.py").read_bytes() == (model.folder / "network.py").read_bytes()
    implemented = [name for name in frameworks.contenders() if model.implemented_by(name)]
    assert [name for name in frameworks.contenders() if found.implemented_by(name)] == implemented != []


def test_a_copy_has_the_files_of_the_requested_frameworks(tmp_path: Path) -> None:
    folder = scaffold.copy("mine", tmp_path, "resnet18", [], ["jax"])
    assert {path.name for path in folder.iterdir()} == {"spec.toml", "network.py", "jax.py"}
    copied = scaffold.copy("again", tmp_path, "mine", [str(tmp_path)], [])
    assert {path.name for path in copied.iterdir()} == {"spec.toml", "network.py", "jax.py"}
    with pytest.raises(UserError, match=r"The workload 'vit' has no tensorflow\.py to copy"):
        scaffold.copy("third", tmp_path, "vit", [], ["tensorflow"])
    with pytest.raises(UserError, match=r"There is no workload 'resnt18' to copy. Did you mean 'resnet18'"):
        scaffold.copy("third", tmp_path, "resnt18", [], [])
    assert not (tmp_path / "third").exists()


def test_a_folder_that_is_not_empty_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("my notes")
    with pytest.raises(UserError, match="already exists; nothing was written"):
        scaffold.write("mine", tmp_path, ["pytorch"])
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


@pytest.mark.parametrize("name", ["My Net", "../net", "", "-net"])
def test_an_invalid_name_is_rejected(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a valid name of a workload"):
        scaffold.write(name, tmp_path, ["pytorch"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "sentence"), [("pytorhc", "Did you mean 'pytorch'"), ("fake", "no template for 'fake'")]
)
def test_a_framework_without_a_template_is_rejected(name: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=sentence):
        scaffold.write("mine", tmp_path, [name])
    assert not list(tmp_path.iterdir())
