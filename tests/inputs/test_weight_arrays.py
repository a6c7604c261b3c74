"""Files of named arrays: what they hold is read exactly, and a damaged or dangerous one gets one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UserError
from steelyard.inputs import weight_arrays

ARRAYS = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "a.bias": np.array([0.5, -1.0], np.float32)}


def safetensors(path: Path, entries: dict[str, tuple[str, tuple[int, ...], bytes]], **more: Any) -> Path:
    """Write a file by the description of the format: the length of the header, the header, the values."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    values = b""
    for name, (kind, shape, raw) in entries.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(values), len(values) + len(raw)]}
        values += raw
    text = json.dumps(header | more).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + values)
    return path


def plain(path: Path) -> Path:
    return safetensors(path, {name: ("F32", each.shape, each.tobytes()) for name, each in ARRAYS.items()})


def read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    opened = weight_arrays.opened(path)
    return {name: weight_arrays.as_float32(name, opened.values(name), path.name) for name in opened.tensors}


def test_both_formats_hold_the_same(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", **ARRAYS)
    for path in (tmp_path / "w.npz", plain(tmp_path / "w.safetensors")):
        found = read(path)
        assert {name: each.shape for name, each in weight_arrays.opened(path).tensors.items()} == {
            "a.weight": (2, 3),
            "a.bias": (2,),
        }
        assert all(np.array_equal(found[name], array) and found[name].dtype == "f4" for name, array in ARRAYS.items())


@given(bits=st.lists(st.integers(0, 2**16 - 1).filter(lambda bits: bits >> 7 & 0xFF != 0xFF), min_size=1, max_size=9))
def test_bfloat16_is_the_upper_half_of_float32(bits: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    raw = np.array(bits, "<u2")
    path = tmp_path_factory.mktemp("b") / "w.safetensors"
    found = read(safetensors(path, {"x": ("BF16", raw.shape, raw.tobytes())}))["x"]
    assert np.array_equal(found.view(np.uint32) >> 16, raw)
    assert not (found.view(np.uint32) & 0xFFFF).any()


def test_float16_is_exact_and_float64_only_where_float32_can_hold_it(tmp_path: Path) -> None:
    half = np.array([0.1, -65504.0, 6e-8], np.float16)
    np.savez(tmp_path / "half.npz", x=half)
    assert np.array_equal(read(tmp_path / "half.npz")["x"], half.astype(np.float64))
    np.savez(tmp_path / "double.npz", x=np.array([0.5, 2.0**-30], np.float64))
    assert read(tmp_path / "double.npz")["x"].tolist() == [0.5, 2.0**-30]
    np.savez(tmp_path / "digits.npz", x=np.array([0.1], np.float64))
    with pytest.raises(UserError, match=r"digits.npz: 'x' is float64 with values that float32 cannot hold; round them"):
        read(tmp_path / "digits.npz")


@pytest.mark.parametrize(
    ("value", "sentence"), [(np.nan, "a value that is not finite"), (1e300, "too large for float32")]
)
def test_values_that_are_not_finite_are_refused(value: float, sentence: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", x=np.array([1.0, value]))
    with pytest.raises(UserError, match=sentence):
        read(tmp_path / "w.npz")


class Dangerous:
    """What runs when a pickle is read."""

    def __reduce__(self) -> Any:
        return (Path("/nonexistent").touch, ())


def test_a_pickled_object_is_named_and_never_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", x=np.array([Dangerous()], object))
    with pytest.raises(UserError, match=r"w.npz: 'x' is a pickled object, which could run code and is not read"):
        weight_arrays.opened(tmp_path / "w.npz")


def test_a_type_that_holds_no_weights_is_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", x=np.array([1, 2]), y=np.array([1.0], np.float32))
    assert weight_arrays.wrong_types(weight_arrays.opened(tmp_path / "w.npz").tensors) == ["'x' (int64)"]


@pytest.mark.parametrize("name", ["w.npz", "w.safetensors"])
@given(share=st.floats(0, 0.999))
def test_a_file_that_was_cut_anywhere_gets_one_sentence(
    name: str, share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / name
    np.savez(path, **ARRAYS) if name.endswith("npz") else plain(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(UserError, match=r"^w\.\w+ is damaged or truncated \(.+\); write it again, or copy it again\.$"):
        read(path)


@given(place=st.integers(0, 400), byte=st.integers(0, 255))
@pytest.mark.parametrize("name", ["w.npz", "w.safetensors"])
def test_a_changed_byte_raises_nothing_but_a_sentence(
    name: str, place: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("changed") / name
    np.savez(path, **ARRAYS) if name.endswith("npz") else plain(path)
    changed = bytearray(path.read_bytes())
    changed[place % len(changed)] = byte
    path.write_bytes(changed)
    try:
        opened = weight_arrays.opened(path)
        for each in set(opened.tensors) & set(ARRAYS):
            if opened.tensors[each].dtype in weight_arrays.FLOATING:
                weight_arrays.as_float32(each, opened.values(each), path.name)
    except UserError as error:
        assert "w." in str(error)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, "the values of 'x' do not lie in it"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "the values of 'x' do not lie in it"),
        ({"x": {"dtype": "F32", "shape": "ab", "data_offsets": [0, 8]}}, "the entry of 'x' is no tensor"),
        ({"x": 3}, "the entry of 'x' is no tensor"),
    ],
)
def test_a_header_that_contradicts_its_file_is_refused(entry: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        weight_arrays.opened(safetensors(tmp_path / "w.safetensors", {}, **entry))
