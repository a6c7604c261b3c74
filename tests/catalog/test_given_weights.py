"""What `--weights` names: whose file it is, and what identifies its content."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import given_weights
from steelyard.catalog.given_weights import GivenWeights
from steelyard.cli import values
from steelyard.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("a.npz", ""),
        ("a.SAFETENSORS", ""),
        ("a.pt", "pytorch"),
        ("a.pth", "pytorch"),
        ("a.bin", "pytorch"),
        ("a.index", "tensorflow"),
        ("a.ckpt", "mindspore"),
        ("a.params", "mxnet"),
        ("a.fake", "fake"),
    ],
)
def test_the_ending_tells_whose_file_it_is(name: str, framework: str, tmp_path: Path) -> None:
    found = given_weights.parsed(str(tmp_path / name))
    assert found == GivenWeights(tmp_path / name, framework)
    assert given_weights.parsed(found.text) == found


def test_a_named_framework_reads_a_file_with_any_ending(tmp_path: Path) -> None:
    assert given_weights.parsed(f"pytorch:{tmp_path / 'a.ckpt'}") == GivenWeights(tmp_path / "a.ckpt", "pytorch")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("/x/a.msgpack", r"a \.msgpack of JAX is not read: JAX's implementations are functions over named arrays"),
        ("jax:/x/a.anything", r"JAX reads no file of weights \(JAX's implementations are functions over named arrays"),
        ("/x/a.weights.h5", r"a \.h5 of TensorFlow is not read: Keras keeps weights by the layers of a model"),
        (
            "/x/a.fakes",
            r"a \.fakes of Fake is not read: the script says .*\. Write the arrays under the names of network\.py",
        ),
        ("dummy:/x/a.bin", "Dummy reads no file of weights"),
        ("pytorch:/x/a.npz", r"pytorch:a\.npz: this is read without a framework"),
        ("/x/a.dat", r"the ending does not say what this is \(known: \.npz, \.safetensors, .*Name the framework"),
        ("pytorhc:/x/a.dat", r"There is no framework 'pytorhc'\. Did you mean 'pytorch'\?"),
    ],
)
def test_a_file_that_nobody_reads_is_refused_with_what_to_do(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        given_weights.parsed(text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.npz: there is no such file\."):
        given_weights.checked(str(tmp_path / "a.npz"))
    (tmp_path / "b.npz").mkdir()
    with pytest.raises(UserError, match=r"b\.npz is a folder; name the file of weights in it\."):
        given_weights.checked(str(tmp_path / "b.npz"))
    (tmp_path / "c.index").touch()
    with pytest.raises(UserError, match=r"values of this checkpoint are missing; put c\.data-00000-of-00001 beside it"):
        given_weights.checked(str(tmp_path / "c.index"))


def test_the_digest_of_a_file_is_the_beginning_of_its_sha256(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"content")
    digest = given_weights.digest(GivenWeights(tmp_path / "a.npz"))
    assert digest == hashlib.sha256(b"content").hexdigest()[:16]


def test_the_digest_of_a_checkpoint_covers_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.index").write_bytes(b"index")
    (tmp_path / "a.data-00000-of-00001").write_bytes(b"values")
    (tmp_path / "ab.data-00000-of-00001").write_bytes(b"of another one")
    given = given_weights.checked(str(tmp_path / "a.index"))
    before = given_weights.digest(given)
    (tmp_path / "ab.data-00000-of-00001").write_bytes(b"changed")
    assert given_weights.digest(given) == before
    (tmp_path / "a.data-00000-of-00001").write_bytes(b"changed")
    assert given_weights.digest(given) != before


def test_the_path_becomes_absolute_and_a_file_with_a_colon_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert values.weights("a.pt") == str(tmp_path / "a.pt")
    assert values.weights("pytorch:a.ckpt") == f"pytorch:{tmp_path / 'a.ckpt'}"
    (tmp_path / "epoch:3.npz").touch()
    assert values.weights("epoch:3.npz") == str(tmp_path / "epoch:3.npz")
    with pytest.raises(UserError, match=r"--weights must be FILE or FRAMEWORK:FILE, not 'pytorch:'\."):
        values.weights("pytorch:")
