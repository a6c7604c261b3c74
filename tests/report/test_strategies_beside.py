"""Published figures of several devices beside scripted runs: which strategies are paired, and what stands for no exchange."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from recorded import Script, options, unstated, view_of, write_run
from test_beside import contender, group, judged

from steelyard.analysis import no_exchange
from steelyard.analysis.matching import beside
from steelyard.errors import UserError
from steelyard.files import settings_files
from steelyard.published import gathering
from steelyard.published.gathering import gather
from steelyard.published.study_tables import StudyTable

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.analysis.matching import MeasuredContender, Row
    from steelyard.analysis.model import View
    from steelyard.analysis.published_tables import Table

CELL = "vgg16:imagenet"
OVERHEAD = StudyTable(
    "S1:table-7-overhead",
    where={"cell": CELL, "framework": "tensorflow", "devices": 2},
    sides={"tensorflow": "fake,strategy=copies"},
)
SINGLE, COPIES, ALONE = "strategy=single:1", "strategy=copies:2", "strategy=alone:2"


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.plan.spreading.usable_cores", lambda: 2)


def viewed(root: Path, held: StudyTable = OVERHEAD, **scripts: Script) -> View:
    """Return the view of a run with these scripts of `single`, `copies` and `alone`."""
    keys = {"single": SINGLE, "copies": COPIES, "alone": ALONE}
    named = {keys[name]: script for name, script in scripts.items()}
    wanted = options(frameworks=("fake",), strategies=("single:1", "copies:2", "alone:2"), threads=(1,))
    published = gather("multi-device-speed", (held,), "Q")
    return view_of(write_run(root, named, wanted, published=published, stands_for={"line:small": CELL}, stated=False))


def rows(root: Path, held: StudyTable = OVERHEAD, **scripts: Script) -> tuple[Row, ...]:
    """Return what such a run shows beside a published entry."""
    (table,) = viewed(root, held, **scripts).published
    assert isinstance(table.rows, tuple)
    return table.rows


def scripts(copies: float = 10.27, **alone: object) -> dict[str, Script]:
    """Return scripts whose exchange takes 2.6 % of a step, unless `copies` says otherwise; `alone` has no certificate."""
    return {
        "single": Script(18.0),
        "copies": Script(copies, process_scatter=0.002),
        "alone": Script(10.0, **{"passed": False, "process_scatter": 0.002, **alone}),  # type: ignore[arg-type]
    }


def test_an_overhead_stands_beside_ranks_that_exchange_nothing_without_a_word(tmp_path: Path) -> None:
    """They are another formula than the document's."""
    (row,) = rows(tmp_path, **scripts())
    assert row.sides == ("Fake, alone:2", "Fake, copies:2")
    assert row.judgement is None
    assert row.differences == ("another formula (ranks that exchange nothing instead of one device alone)",)
    assert row.measured is not None
    assert row.measured.value == pytest.approx(1.027, abs=0.005)
    assert row.values[0].startswith("10") and row.values[1].startswith("10")


def test_only_ranks_that_exchange_nothing_have_a_ratio_without_a_verdict(tmp_path: Path) -> None:
    (comparison,) = viewed(tmp_path, **scripts()).comparisons
    ids = {each.case.strategy: each.case.id for each in comparison.contenders}
    assert no_exchange.ratio(comparison, ids["single:1"], ids["copies:2"]) is None
    assert no_exchange.ratio(comparison, ids["alone:2"], ids["copies:2"]) is not None


WEAK = replace(OVERHEAD, quantity="weak scaling")


def weak_rows(root: Path, copies: float, held: StudyTable = WEAK, passed: bool = True) -> tuple[Row, ...]:
    """Return the rows of a run at two batches: a single process takes 10 ms for its share, and two `copies` ms for both."""
    scripts = {
        "batch=16/fake/scripted,strategy=single": Script(10.0, process_scatter=0.002),
        "batch=32/fake/scripted,strategy=copies": Script(copies, process_scatter=0.002, passed=passed),
        "fake": Script(20.0, passed=None),
    }
    wanted = options(frameworks=("fake",), strategies=("single:1", "copies:2"), threads=(1,), batches=(16, 32))
    published = gather("multi-device-speed", (held,), "Q")
    names = {f"line:small,batch={batch}": CELL for batch in (16, 32)}
    (table,) = view_of(write_run(root, scripts, wanted, published=published, stands_for=names, stated=False)).published
    return table.rows


@pytest.mark.parametrize(("copies", "judgement"), [(10.27, "same size"), (14.0, "same order"), (8.0, "opposite order")])
def test_an_overhead_is_judged_by_the_documents_own_formula(tmp_path: Path, copies: float, judgement: str) -> None:
    """1 - multi / single, each device with the batch that the single one has."""
    found = [row for row in weak_rows(tmp_path, copies) if row.measured]
    assert [row.sides for row in found] == [("Fake, single:1", "Fake, copies:2")]
    assert found[0].measured is not None
    assert found[0].measured.value == pytest.approx(copies / 10, rel=0.005)
    assert found[0].judgement == judgement
    assert found[0].batch == 32


def test_what_is_not_certified_has_no_overhead_by_the_documents_formula(tmp_path: Path) -> None:
    assert not any(row.judgement or row.measured for row in weak_rows(tmp_path, 10.27, passed=False))


def test_weak_scaling_is_for_entries_that_state_an_overhead(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('[[published]]\nentry = "S1:table-2"\nquantity = "weak scaling"\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"line 3: S1:table-2 states no communication overhead"):
        gathering.read(path, settings_files.read(path)["published"])


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"copies": Script(10.27, passed=False)}, "Fake, copies:2 is not certified."),
        ({"alone": Script(10.0, passed=False, failure=("crash", "no"))}, "Fake, alone:2 failed."),
        ({"alone": Script(10.0, passed=False, rounds=1)}, "They have fewer than two rounds in common."),
    ],
)
def test_without_a_measurement_there_is_the_reason(tmp_path: Path, changed: dict[str, Script], reason: str) -> None:
    (row,) = rows(tmp_path, **{**scripts(), **changed})
    assert (row.judgement, row.reason) == (None, reason)


def test_a_spread_training_stands_beside_the_single_process_by_its_verdict(tmp_path: Path) -> None:
    claim = StudyTable(
        "S3:claim-data-parallel",
        sides={"mirrored": "fake,strategy=copies", "ddp": "dummy,strategy=copies", "single": "strategy=single"},
    )
    found = rows(tmp_path, claim, **scripts())
    assert judged(found)[0] == (("Fake, copies:2", "Fake, single:1"), "same order")
    assert found[1].reason


def variant(framework: str, strategy: str, devices: int) -> MeasuredContender:
    """Return a measured variant with a strategy."""
    return contender(f"{framework} {strategy}:{devices}", framework, "eager", strategy=strategy, devices=devices)


def held_in(held: StudyTable) -> Table:
    """Return the only table of a study that is held against an entry."""
    (table,) = unstated(gather("multi-device-speed", (held,))).tables
    return table  # type: ignore[return-value]


def test_variants_of_two_frameworks_are_compared_with_the_same_strategy_only() -> None:
    table = held_in(StudyTable("S3:claim-tensorflow-ahead"))
    sides = [
        (variant(framework, strategy, devices), speed)
        for framework, speed in (("tensorflow", 1.2), ("pytorch", 1.0))
        for strategy, devices in (("single", 1), ("split", 2), ("split", 4))
    ]
    found = beside(table, [group("resnet50:cifar10-tl", sides)])  # type: ignore[arg-type]
    assert [row.sides for row in found] == [
        ("tensorflow single:1", "pytorch single:1"),
        ("tensorflow split:2", "pytorch split:2"),
        ("tensorflow split:4", "pytorch split:4"),
    ]


def test_strategies_on_other_numbers_of_devices_are_not_compared() -> None:
    words = {"mirrored": "strategy=mirrored", "ddp": "strategy=ddp", "single": "strategy=single"}
    table = held_in(StudyTable("S3:claim-data-parallel", sides=words))
    sides = [
        (variant("pytorch", name, parts), 1.0) for name, parts in (("single", 1), ("ddp", 2), ("ddp", 4), ("fsdp", 2))
    ]
    found = beside(table, [group("resnet50:cifar10-tl", sides)])  # type: ignore[arg-type]
    pairs = [row.sides for row in found if row.group]
    assert pairs == [("pytorch ddp:2", "pytorch single:1"), ("pytorch ddp:4", "pytorch single:1")]


def test_what_is_missing_is_the_strategy_where_the_framework_is_there() -> None:
    words = {"mirrored": "strategy=mirrored", "ddp": "strategy=ddp", "single": "strategy=single"}
    table = held_in(StudyTable("S3:claim-data-parallel", sides=words))
    measured = group(
        "resnet50:cifar10-tl",
        [(variant("pytorch", "single", 1), 1.0)],
        missing={"pytorch": "It has none.", "tensorflow": "It is not here."},
    )
    assert [row.reason for row in beside(table, [measured])] == ["It is not here.", "'pytorch ddp' is not in this run."]  # type: ignore[arg-type]
