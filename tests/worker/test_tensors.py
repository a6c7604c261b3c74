"""Named arrays are exchanged bit for bit, and damaged folders are refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from steelyard_worker import tensors

DTYPES = st.sampled_from(["<f4", "<f8", "<i4", "u1", "<i8"])


@given(
    contents=st.dictionaries(
        st.text("abc./_", min_size=1, max_size=8),
        DTYPES.flatmap(lambda d: arrays.arrays(d, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))),
        max_size=4,
    )
)
def test_arrays_are_the_same_after_writing_and_reading(tmp_path_factory, contents):
    folder = tensors.write(tmp_path_factory.mktemp("tensors"), contents, {"seed": 3})
    found = tensors.read(folder)
    assert list(found) == list(contents)
    for name, array in contents.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
    assert tensors.read_meta(folder) == {"seed": 3}


@given(shape=st.tuples(st.integers(1, 300), st.integers(1, 600)), dtype=st.sampled_from(["", "<f8"]))
def test_a_transposed_matrix_is_contiguous_and_aligned(shape, dtype):
    matrix = np.arange(np.prod(shape), dtype="<f4").reshape(shape)
    found = tensors.transposed(matrix, dtype)
    assert found.dtype == (dtype or "<f4")
    assert found.flags.c_contiguous
    assert found.ctypes.data % tensors.ALIGNMENT == 0
    assert (found == matrix.T).all()


def test_rows_can_be_appended_without_the_whole_array_in_memory(tmp_path):
    writer = tensors.Writer(tmp_path)
    writer.begin("rows", "<i4", (4, 2))
    for start in (0, 2):
        writer.extend(np.arange(start * 2, start * 2 + 4, dtype="<i4").reshape(2, 2))
    assert tensors.read(writer.close())["rows"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_big_endian_arrays_are_stored_little_endian(tmp_path):
    found = tensors.read(tensors.write(tmp_path, {"a": np.array([1, 2], ">i4")}))
    assert found["a"].dtype.str == "<i4"
    assert found["a"].tolist() == [1, 2]


def test_a_folder_without_an_index_is_an_error_that_names_it(tmp_path):
    writer = tensors.Writer(tmp_path)
    writer.add("a", np.zeros(3))
    writer.abandon()
    with pytest.raises(ValueError, match=str(tmp_path)):
        tensors.read(tmp_path)


def test_another_format_is_refused(tmp_path):
    tensors.write(tmp_path, {"a": np.zeros(3)})
    index = json.loads((tmp_path / tensors.INDEX).read_text())
    (tmp_path / tensors.INDEX).write_text(json.dumps({**index, "format": 99}))
    with pytest.raises(ValueError, match="format 99"):
        tensors.read(tmp_path)
