"""Arrays of a user's own: found by the names of the network's inputs, checked, and written in its dtypes."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from own_data import error

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, check, inspect, prepare
from steelyard_worker import tensors
from steelyard_worker.network import Input

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = (Input("series", (6, 2), "float32"), Input("label", (), "int32", high=3))
COUNT = 20


def series(count: int = COUNT, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.arange(count * 12, dtype=dtype).reshape(count, 6, 2)


def labels(count: int = COUNT) -> np.ndarray[Any, Any]:
    return np.arange(count) % 3


def save(folder: Path, **arrays: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


def request(folder: Path, **options: Any) -> DataRequest:
    return DataRequest("arrays", folder, options, INPUTS)


def prepared(folder: Path, **options: Any) -> dict[str, np.ndarray[Any, Any]]:
    return tensors.read(prepare(request(folder, **options)).folder)


def test_arrays_of_both_splits_are_written_as_they_are(tmp_path: Path) -> None:
    save(tmp_path / "train", series=series(), label=labels())
    save(tmp_path / "test", series=series(5) + 1, label=labels(5))
    found = prepared(tmp_path)
    assert found["train/series"].dtype == np.float32 and found["train/label"].dtype == np.int32
    np.testing.assert_array_equal(found["train/series"], series())
    np.testing.assert_array_equal(found["test/series"], series(5) + 1)
    np.testing.assert_array_equal(found["train/label"], labels())
    np.testing.assert_array_equal(found["position/test"], np.arange(5))


def test_without_splits_a_fifth_of_the_samples_is_for_testing_by_the_seed(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels())
    found, again, other = prepared(tmp_path), prepared(tmp_path), prepared(tmp_path, seed=7)
    positions = {name: found[f"position/{name}"] for name in ("train", "test")}
    assert len(positions["test"]) == 4
    assert sorted(np.concatenate(list(positions.values()))) == list(range(COUNT))
    for name, rows in positions.items():
        np.testing.assert_array_equal(found[f"{name}/series"], series()[rows])
    np.testing.assert_array_equal(positions["test"], again["position/test"])
    assert set(positions["test"]) != set(other["position/test"])


def test_limits_shorten_the_splits(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels())
    found = prepared(tmp_path, train_limit=6, test_limit=2)
    assert (len(found["train/label"]), len(found["test/label"])) == (6, 2)


def test_an_archive_holds_the_arrays_by_name(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "all.npz", series=series(), label=labels())
    folder, file = prepared(tmp_path), prepared(tmp_path / "all.npz")
    for found in (folder, file):
        np.testing.assert_array_equal(found["train/series"], series()[found["position/train"]])


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        pytest.param(series(dtype=np.float64), "arrays whose numbers are rounded to float32", id="float64"),
        pytest.param(series(dtype=np.int64), "arrays whose numbers are converted to float32", id="int64"),
        pytest.param(series(dtype=">f4"), "", id="big-endian"),
        pytest.param(np.asfortranarray(series()), "", id="Fortran order"),
    ],
)
def test_numbers_of_other_kinds_are_converted_and_counted(tmp_path: Path, array: Any, reason: str) -> None:
    save(tmp_path, series=array, label=labels())
    done = prepare(request(tmp_path))
    found = tensors.read(done.folder)
    np.testing.assert_array_equal(found["train/series"], series()[found["position/train"]])
    assert list(done.meta["changed"]) == ([reason] if reason else [])


def test_what_is_no_input_is_counted(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels(), weight=np.ones(3))
    (tmp_path / "notes.txt").write_text("of another kind")
    save(tmp_path / "older", series=series(3))
    left_out = prepare(request(tmp_path)).meta["left_out"]
    assert {reason: tally["count"] for reason, tally in left_out.items()} == {
        "arrays that are no input of the network": 1,
        "files that are not part of the layout": 2,
    }


def test_an_array_that_is_no_input_does_not_decide_the_number_of_samples(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels(), a=np.ones(3))
    assert prepare(request(tmp_path)).meta["train_count"] == 16


def test_a_split_without_files_is_named(tmp_path: Path) -> None:
    save(tmp_path / "train", series=series(), label=labels())
    (tmp_path / "test").mkdir()
    assert f"{tmp_path / 'test'} holds no .npy or .npz file" in error(prepare, request(tmp_path))


def test_the_plan_says_how_many_samples_there_are(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels())
    sentences, known = inspect(request(tmp_path), 50)
    assert (sentences, known.train, known.test) == ([], 16, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"label": None}, "holds no array 'label', which the network reads as int32 () per sample", id="missing"
        ),
        pytest.param({"series": np.zeros((COUNT, 6, 3), "f4")}, "the network reads (6, 2) per sample", id="shape"),
        pytest.param({"series": np.float32(1)}, "so it must be (samples, 6, 2)", id="a number"),
        pytest.param({"label": labels(19)}, "different numbers of samples ('series' 20, 'label' 19)", id="count"),
        pytest.param(
            {"label": labels().astype("f4")}, "holds float32, but the network reads whole numbers", id="float"
        ),
        pytest.param({"label": labels() + 1}, "a number that is not from 0 to 2: 3 in sample 5", id="above"),
        pytest.param({"label": labels() - 1}, "a number that is not from 0 to 2: -1 in sample", id="below"),
        pytest.param(
            {"series": np.full((COUNT, 6, 2), np.nan, "f4")}, "not finite in float32: nan in sample", id="nan"
        ),
        pytest.param({"series": np.full((COUNT, 6, 2), 1e300)}, "not finite in float32: 1e+300", id="too large"),
        pytest.param({"series": series(0), "label": labels(0)}, "the arrays have no samples", id="empty"),
        pytest.param({"series": series(1), "label": labels(1)}, "the train split has no samples", id="one sample"),
        pytest.param(
            {"label": np.array([str(n) for n in labels()])}, "but the network reads whole numbers", id="texts"
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    arrays = {"series": series(), "label": labels()} | change
    save(tmp_path, **{name: array for name, array in arrays.items() if array is not None})
    assert message in error(prepare, request(tmp_path))


@pytest.mark.parametrize("name", ["series.npy", "more.npz"])
def test_files_that_are_no_arrays_are_refused_by_name(tmp_path: Path, name: str) -> None:
    save(tmp_path, label=labels())
    for content in (b"", b"nothing", b"\x93NUMPY\x01\x00v\x00{'descr'", b"PK\x03\x04nothing"):
        (tmp_path / name).write_bytes(content)
        assert f"{tmp_path / name} cannot be read as a file of arrays" in error(prepare, request(tmp_path))


def test_a_truncated_array_is_refused(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels())
    path = tmp_path / "series.npy"
    path.write_bytes(path.read_bytes()[:-40])
    assert f"{path} cannot be read" in error(prepare, request(tmp_path))


def test_python_objects_are_never_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("an object of the file was loaded",))

    trap = np.array([Trap() for _ in range(COUNT)], dtype=object)
    save(tmp_path, series=series(), label=trap)
    assert "label.npy cannot be read as a file of arrays" in error(prepare, request(tmp_path))
    (tmp_path / "label.npy").unlink()
    np.savez(tmp_path / "label.npz", label=trap)
    assert "'label' holds Python objects" in error(prepare, request(tmp_path))


def test_an_archive_that_unpacks_to_more_than_memory_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.npz", "w") as archive:
        archive.writestr("series.npy", b"")
        archive.filelist[0].file_size = 1 << 40
    assert "has 1,099,511,627,776 bytes" in error(prepare, request(tmp_path))


def test_a_name_in_two_files_is_refused(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels())
    np.savez(tmp_path / "all.npz", series=series())
    assert "both hold 'series'" in error(prepare, request(tmp_path))


def test_all_files_that_do_not_fit_are_named_at_once(tmp_path: Path) -> None:
    save(tmp_path, series=np.zeros((COUNT, 5)), label=np.zeros((COUNT, 2), "i4"))
    message = error(lambda place: inspect(request(place), 50), tmp_path)
    assert "2 files, folders or lines are refused" in message
    assert "series.npy" in message and "label.npy" in message


def test_another_network_has_prepared_data_of_its_own(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels())
    one = prepare(request(tmp_path)).folder
    other = prepare(DataRequest("arrays", tmp_path, {}, (Input("series", (6, 2), "float64"), INPUTS[1]))).folder
    assert one != other and tensors.read(other)["train/series"].dtype == np.float64


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    save(tmp_path, series=series(), label=labels())
    before = prepare(request(tmp_path)).folder
    save(tmp_path, series=series() + 1)
    assert prepare(request(tmp_path)).folder != before


def test_a_folder_without_arrays_says_what_belongs_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not hold 'arrays' in a known layout"):
        check(request(tmp_path))
    with pytest.raises(UserError, match="name that folder with --data"):
        check(DataRequest("arrays", None, {}, INPUTS))
