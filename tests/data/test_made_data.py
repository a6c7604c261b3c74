"""Data that `prepare` in data.py of a workload's folder makes, in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from own_data import error

from steelyard.inputs.data import DataRequest, OwnCode, check, prepare
from steelyard_worker import tensors
from steelyard_worker.network import Input

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = (Input("point", (2,), "float32"), Input("label", (), "int32", high=4))
RETURNS = """
import numpy as np

def prepare(folder, sizes):
    count = sizes["samples"]
    return {"point": np.arange(2 * count).reshape(count, 2), "label": np.arange(count) % 4}
"""
YIELDS = """
import numpy as np

def prepare(folder, sizes):
    numbers = np.loadtxt(folder / "numbers.csv", delimiter=",")
    for split, rows in (("train", numbers[:8]), ("test", numbers[8:])):
        yield f"{split}/point", rows[:, :2]
        yield f"{split}/label", rows[:, 2].astype(int)
"""


def request(tmp_path: Path, code: str, folder: Path | None = None, **sizes: Any) -> DataRequest:
    mine = tmp_path / "mine"
    mine.mkdir(exist_ok=True)
    (mine / "data.py").write_text(code)
    return DataRequest("own", folder, {}, INPUTS, OwnCode(mine, {"samples": 20, **sizes}, folder))


def numbers(tmp_path: Path) -> Path:
    folder = tmp_path / "numbers"
    folder.mkdir(exist_ok=True)
    table = np.column_stack([np.arange(20).reshape(10, 2), np.arange(10) % 4])
    np.savetxt(folder / "numbers.csv", table, delimiter=",")
    return folder


def test_arrays_that_are_returned_are_split_and_written(tmp_path: Path) -> None:
    done = prepare(request(tmp_path, RETURNS))
    found = tensors.read(done.folder)
    rows = found["position/train"]
    assert (len(rows), done.meta["test_count"]) == (16, 4)
    np.testing.assert_array_equal(found["train/point"], np.arange(40).reshape(20, 2)[rows].astype(np.float32))
    assert found["train/label"].dtype == np.int32


def test_arrays_may_be_yielded_by_split_and_read_the_users_folder(tmp_path: Path) -> None:
    found = tensors.read(prepare(request(tmp_path, YIELDS, numbers(tmp_path))).folder)
    np.testing.assert_array_equal(found["train/point"], np.arange(16).reshape(8, 2))
    np.testing.assert_array_equal(found["test/label"], [0, 1])


def test_the_code_the_sizes_and_the_folder_decide_whether_it_runs_again(tmp_path: Path) -> None:
    folder = numbers(tmp_path)
    first = prepare(request(tmp_path, YIELDS, folder)).folder
    assert prepare(request(tmp_path, YIELDS, folder)).folder == first
    changed = [
        prepare(request(tmp_path, YIELDS + "\n# changed", folder)).folder,
        prepare(request(tmp_path, YIELDS, folder, samples=21)).folder,
    ]
    (folder / "more.csv").write_text("1")
    changed.append(prepare(request(tmp_path, YIELDS, folder)).folder)
    assert len({first, *changed}) == 4


PLACE = "data.py cannot prepare the data at these sizes"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(
            "def prepare(folder, sizes):\n    return {}['x']", f"{PLACE}: KeyError: 'x' (line 2).", id="raises"
        ),
        pytest.param("import sys\nsys.exit(0)", "it called sys.exit(0) (line 2)", id="exits"),
        pytest.param("import os\nos._exit(0)", "its process ended with exit code 0 before", id="ends"),
        pytest.param("def prepare(folder):\n    return {}", f"{PLACE}: TypeError", id="arguments"),
        pytest.param("prepare = lambda *_: {'../x': [1]}", "'../x' is no name of an array", id="outside"),
        pytest.param("prepare = lambda *_: {'point': [object()]}", "Object arrays cannot be saved", id="objects"),
        pytest.param("prepare = lambda *_: 7", "TypeError: 'int' object is not iterable", id="no arrays"),
        pytest.param("prepare = lambda *_: {}", "data.py: the train split has no arrays", id="nothing"),
        pytest.param("prepare = lambda *_: {'point': [[1, 2]] * 9}", "data.py holds no array 'label'", id="missing"),
        pytest.param(
            "prepare = lambda *_: {'train/point': [[1, 2]], 'train/label': [1]}",
            "data.py: the test split",
            id="no test",
        ),
        pytest.param(
            RETURNS.replace("% 4", "% 5"), "data.py: label.npy has a number that is not from 0 to 3", id="high"
        ),
    ],
)
def test_code_that_gives_no_data_is_reported_in_a_sentence(tmp_path: Path, code: str, message: str) -> None:
    found = error(prepare, request(tmp_path, code))
    assert message in found
    assert "scratch" not in found and "\n" not in found


def test_what_the_code_prints_goes_to_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    prepare(request(tmp_path, "print('reading')" + RETURNS))
    out, err = capfd.readouterr()
    assert "reading" not in out and "reading" in err


def test_a_workload_without_the_code_is_refused_at_planning(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    wanted = DataRequest("own", None, {}, INPUTS, OwnCode(tmp_path / "mine", {}))
    assert "mine has no data.py" in error(check, wanted)
    assert "There is no data.py" in error(check, DataRequest("own", None, {}, INPUTS))


def test_a_folder_that_does_not_exist_is_refused_at_planning(tmp_path: Path) -> None:
    assert "does not exist" in error(check, request(tmp_path, YIELDS, tmp_path / "nowhere"))
