"""Parsed JSON is checked against annotations: types, bounds, missing fields, and numbers that are none."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard_worker import records
from steelyard_worker.records import Count, Positive


class Facts(TypedDict, total=False):
    size: Count


class Named(Facts):
    name: str


@dataclass(frozen=True)
class Part:
    steps: Positive
    share: float = 0.0


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    facts: Named
    words: list[str] = field(default_factory=list)
    sizes: dict[str, Count] = field(default_factory=dict)
    anything: Any = None
    limit: Count | None = None


GOOD: dict[str, Any] = {"parts": [{"steps": 1}], "facts": {"name": "x", "size": 0, "more": [1]}}


def test_what_fits_is_built_and_keys_that_nobody_declared_are_kept_in_dictionaries_only() -> None:
    found = records.build(Whole, {**GOOD, "later": 1, "limit": 3, "words": ["a"]})
    assert found == Whole((Part(1),), {"name": "x", "size": 0, "more": [1]}, ["a"], limit=3)  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"parts": [{"steps": 0}]}, r"Whole\.parts\[0\]\.steps must be at least 1, but it is '0'"),
        ({"parts": [{"steps": True}]}, r"steps must be a whole number"),
        ({"parts": [{"steps": 2**63}]}, r"steps must be at most 9223372036854775807"),
        ({"parts": [{"steps": 1, "share": float("nan")}]}, r"share must be a finite number"),
        ({"parts": [{"steps": 1, "share": 10**400}]}, r"share must be at most"),
        ({"facts": {"size": 1}}, r"Whole\.facts lacks the field 'name'"),
        ({"facts": {"name": "x", "size": -1}}, r"Whole\.facts\.size must be at least 0"),
        ({"facts": []}, r"Whole\.facts must be an object"),
        ({"words": "text"}, r"Whole\.words must be a list"),
        ({"words": [1]}, r"Whole\.words\[0\] must be a string"),
        ({"sizes": {"a": -1}}, r"Whole\.sizes\.a must be at least 0"),
        ({"limit": -1}, r"Whole\.limit must be at least 0"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        records.build(Whole, {**GOOD, **change})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
)


@given(value=JSON, key=st.sampled_from(["parts", "facts", "words", "sizes", "limit"]))
def test_anything_else_is_a_value_error(value: Any, key: str) -> None:
    try:
        records.build(Whole, {**GOOD, key: value})
    except ValueError as error:
        assert "Whole." in str(error)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '"\\ud800"', '{"\\uDFFF": 1}', "1" * 5000])
def test_a_text_that_cannot_be_used_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        records.parse(text)


def test_characters_beyond_the_basic_plane_are_read() -> None:
    assert records.parse(json.dumps("\U0001f600")) == "\U0001f600"
