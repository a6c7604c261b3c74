"""Atomic files and tensors folders: complete or absent, also after a failure."""

import errno
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard_worker import tensors


def test_a_failed_write_leaves_no_folder(tmp_path: Path):
    def fail(partial: Path) -> None:
        tensors.write(partial, {"x": np.zeros(3)})
        raise UserError("stop")

    with pytest.raises(UserError, match="stop"):
        atomic.place(tmp_path / "thing", fail)
    assert not (tmp_path / "thing").exists()
    assert not (tmp_path / "thing.partial").exists()


def test_a_partial_folder_of_a_killed_process_is_removed(tmp_path: Path):
    (tmp_path / "thing.partial").mkdir()
    (tmp_path / "thing.partial" / "junk").write_text("half")
    folder = atomic.place(tmp_path / "thing", lambda partial: _fill(partial))
    assert sorted(path.name for path in folder.iterdir()) == [tensors.INDEX, tensors.BYTES]
    assert atomic.is_intact(folder)


@pytest.mark.parametrize("damage", ["truncate", "index"])
def test_a_damaged_folder_is_rebuilt(tmp_path: Path, damage: str):
    folder = atomic.place(tmp_path / "thing", _fill)
    if damage == "truncate":
        (folder / tensors.BYTES).write_bytes(b"\0" * 8)
    else:
        (folder / tensors.INDEX).write_text('{"format": 2}')
    assert not atomic.is_whole(folder)
    atomic.place(folder, _fill)
    np.testing.assert_array_equal(tensors.read(folder)["x"], np.arange(3))


@pytest.mark.parametrize(
    "index",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        '{"format": 2, "sha256": "", "meta_sha256": "", "meta": {}, "tensors": []}',
        '{"format": 2, "sha256": "", "meta_sha256": "", "meta": {}, "tensors": {"x": []}}',
        '{"format": 2, "sha256": "", "meta_sha256": "", "meta": {}, "tensors": {"x": {"dtype": "O", "shape": [3], "offset": 0}}}',
        '{"format": 2, "sha256": "", "meta_sha256": "", "meta": {}, "tensors": {"x": {"dtype": "x", "shape": [3], "offset": 0}}}',
        '{"format": 2, "sha256": "", "meta_sha256": "", "meta": {}, "tensors": {"x": {"dtype": "<i8", "shape": [-1], "offset": 0}}}',
        '{"format": 2, "sha256": "", "meta_sha256": "", "meta": {}, "tensors": {"x": {"dtype": "<i8", "shape": ["3"], "offset": 0}}}',
        '{"format": 2, "sha256": "", "meta_sha256": "", "meta": {}, "tensors": {"x": {"dtype": "<i8", "shape": [3], "offset": 99}}}',
    ],
)
def test_an_index_that_is_none_makes_the_folder_damaged(tmp_path: Path, index: str):
    folder = atomic.place(tmp_path / "thing", _fill)
    (folder / tensors.INDEX).write_text(index)
    assert not atomic.is_intact(folder)
    atomic.place(folder, _fill)
    np.testing.assert_array_equal(tensors.read(folder)["x"], np.arange(3))


def test_a_damaged_note_of_the_last_check_is_replaced(tmp_path: Path):
    folder = atomic.place(tmp_path / "thing", _fill)
    (folder / atomic.VERIFIED).write_bytes(b"\xff\xfe")
    assert atomic.is_intact(folder)
    assert atomic.is_intact(folder)


def _flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("checked_before", [False, True])
def test_a_flipped_bit_is_found_and_the_folder_is_made_again(
    tmp_path: Path, checked_before: bool, capsys: pytest.CaptureFixture[str]
):
    folder = atomic.place(tmp_path / "thing", _fill)
    before = tensors.identity(folder)
    if checked_before:
        assert atomic.is_intact(folder)
    _flip(folder / tensors.BYTES, 0)
    assert atomic.is_whole(folder)
    assert not atomic.is_intact(folder)
    assert f"{folder} was changed or damaged" in capsys.readouterr().err
    atomic.place(folder, _fill)
    np.testing.assert_array_equal(tensors.read(folder)["x"], np.arange(3))
    assert tensors.identity(folder) == before


@pytest.mark.parametrize(("old", "new"), [('"<i8"', '"<f8"'), ('"seed": 1', '"seed": 2')])
def test_a_changed_index_is_found(tmp_path: Path, old: str, new: str):
    folder = tensors.write(tmp_path / "thing", {"x": np.arange(3)}, {"seed": 1})
    assert atomic.is_intact(folder)
    index = folder / tensors.INDEX
    index.write_text(index.read_text().replace(old, new))
    assert not atomic.is_intact(folder)


def test_a_checked_folder_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = atomic.place(tmp_path / "thing", _fill)
    assert atomic.is_intact(folder)
    monkeypatch.setattr(tensors, "is_unchanged", lambda folder: pytest.fail("read again"))
    assert atomic.is_intact(folder)


def test_the_identity_depends_on_the_arrays_and_not_on_the_remarks_about_them(tmp_path: Path):
    arrays = {"x": np.arange(6)}
    first = tensors.identity(tensors.write(tmp_path / "a", arrays, {"made": "today"}))
    assert first == tensors.identity(tensors.write(tmp_path / "b", arrays, {"made": "tomorrow"}))
    assert first != tensors.identity(tensors.write(tmp_path / "c", {"x": np.arange(6).reshape(2, 3)}))


def test_a_full_disk_is_reported_in_one_sentence(tmp_path: Path):
    def fail(partial: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match=r"disk is full while writing .*thing.*STEELYARD_CACHE"):
        atomic.place(tmp_path / "thing", fail)


def test_a_folder_that_another_process_replaces_while_it_is_checked_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = atomic.place(tmp_path / "thing", _fill)

    def removed_meanwhile(checked: Path) -> bool:
        monkeypatch.undo()
        shutil.rmtree(checked)
        return True

    monkeypatch.setattr(atomic, "is_whole", removed_meanwhile)
    np.testing.assert_array_equal(tensors.read(atomic.place(folder, _fill))["x"], np.arange(3))


def _fill(partial: Path) -> None:
    tensors.write(partial, {"x": np.arange(3)})


def test_a_file_is_written_and_replaced_without_leftovers(tmp_path: Path):
    path = tmp_path / "record.json"
    assert atomic.write_text(path, "old\r\n") == path
    assert path.read_bytes() == b"old\r\n"
    atomic.write_text(path, "n\u00e4u\n")
    assert path.read_bytes() == b"n\xc3\xa4u\n"
    atomic.write_bytes(path, b"\0\xff")
    assert path.read_bytes() == b"\0\xff"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("method", ["write_bytes", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str):
    path = tmp_path / "record.json"
    atomic.write_text(path, "old")

    def fail(self: Path, *_: object) -> None:
        self.open("wb").close()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, method, fail)
        with pytest.raises(OSError, match="No space left"):
            atomic.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_concurrent_writers_leave_one_complete_file(tmp_path: Path):
    path = tmp_path / "record.json"
    contents = [str(number) * 100_000 for number in range(4)]

    def write_often(content: str) -> None:
        for _ in range(50):
            atomic.write_text(path, content)

    threads = [threading.Thread(target=write_often, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert not path.exists() or path.read_text() in contents
    for thread in threads:
        thread.join()
    assert path.read_text() in contents
    assert list(tmp_path.iterdir()) == [path]
