"""A case's id depends on every field, and on nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import recorded_trials
from hypothesis import given
from hypothesis import strategies as st

from steelyard_worker import records
from steelyard_worker.case import Case, Optimizer, RateSchedule, Settings, TensorGroup, differences

CASE = recorded_trials.case()
CHANGES = {
    "workload": "other",
    "preset": "large",
    "sizes": {**CASE.sizes, "batch": 17},
    "specification": "fedcba9876543210",
    "data": {"name": "digits"},
    "optimizer": replace(CASE.optimizer, learning_rate=0.2),
    "framework": "dummy",
    "settings": replace(CASE.settings, threads=2),
    "version": "1.0",
    "task": "inference",
    "strategy": "ddp",
    "seed": 5,
    "loader_workers": 1,
    "memory_limit": 10**9,
    "weights": "0123",
    "inputs": "0011",
}


def test_every_field_is_covered_by_these_tests() -> None:
    assert CHANGES.keys() == {field.name for field in fields(Case)}


@pytest.mark.parametrize("name", CHANGES)
def test_every_field_is_part_of_the_id(name: str) -> None:
    changed = replace(CASE, **{name: CHANGES[name]})
    assert changed.id != CASE.id
    assert {each.partition(".")[0] for each in differences(CASE, changed)} == {name}


@pytest.mark.parametrize("part", ["settings", "optimizer"])
def test_every_setting_and_every_constant_is_part_of_the_id(part: str) -> None:
    changed_schedule = RateSchedule("step", factor=0.1, every=3)
    other = {str: "x", int: 7, float: 0.7, bool: True, tuple: ("x",), dict: {"x": 1}, RateSchedule: changed_schedule}
    record = getattr(CASE, part)
    for field in fields(record):
        changed = replace(CASE, **{part: replace(record, **{field.name: other[type(getattr(record, field.name))]})})
        assert changed.id != CASE.id, field.name
        assert all(name.startswith(f"{part}.{field.name}") for name in differences(CASE, changed))


def test_a_case_that_does_not_use_a_later_field_has_the_id_and_the_record_of_before_there_was_one() -> None:
    scheduled = Optimizer(
        "adamw",
        0.001,
        weight_decay=0.05,
        decay=("a", "b"),
        clip=1.0,
        schedule=RateSchedule("step", factor=0.9, every=10),
    )
    assert CASE.id == "e9509ecb1ce2097e"
    assert replace(CASE, optimizer=scheduled).id == "8ebd063adbebc9bc"
    assert "groups" not in records.to_line(CASE)


def test_tensor_groups_are_recorded_read_again_and_told_apart() -> None:
    groups = (TensorGroup(("head.weight",), 0.1, 0.0), TensorGroup(("b",), 2.0))
    case = replace(CASE, optimizer=replace(CASE.optimizer, groups=groups))
    assert records.build(Case, _plain(case)) == case
    assert list(differences(CASE, case)) == ["optimizer.groups"]


def test_a_group_multiplies_rate_and_decay_of_its_own_tensors_only() -> None:
    rule = Optimizer("sgd", 0.5, weight_decay=0.2, decay=("a", "c"), groups=(TensorGroup(("a", "b"), 4.0, 0.5),))
    assert [rule.rate_of(name) for name in "abc"] == [4, 4, 1]
    assert [rule.decay_of(name) for name in "abc"] == [0.1, 0, 0.2]
    assert [rule.of_tensor(name).learning_rate for name in "abc"] == [2, 2, 0.5]


def test_equal_cases_have_no_differences_and_equal_ids() -> None:
    again = records.build(Case, {**_plain(CASE)})
    assert again == CASE
    assert again.id == CASE.id
    assert differences(CASE, again) == {}


def test_the_order_of_keys_does_not_matter() -> None:
    reordered = replace(CASE, sizes=dict(reversed(CASE.sizes.items())))
    assert reordered.id == CASE.id


@given(batch=st.integers(1, 9), threads=st.integers(0, 3), rate=st.floats(1e-6, 1), knob=st.text(max_size=5))
def test_a_case_is_the_same_after_writing_and_reading_json(batch: int, threads: int, rate: float, knob: str) -> None:
    case = replace(
        CASE,
        sizes={"batch": batch},
        settings=Settings("m", threads=threads, knobs={"k": knob}),
        optimizer=Optimizer("adam", rate, decay=("a",)),
    )
    again = records.build(Case, _plain(case))
    assert again == case
    assert again.id == case.id


def _plain(case: Case) -> dict[str, object]:
    import json

    found: dict[str, object] = json.loads(records.to_line(case))
    return found
