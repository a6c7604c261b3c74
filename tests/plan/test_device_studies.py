"""Studies of several devices: what they measure beside each strategy, and what two cores can do."""

from __future__ import annotations

import pytest

from steelyard.plan import studies
from steelyard_worker.strategy import SINGLE, name_of, parts_of
from steelyard_worker.strategy_kinds import KINDS

NAMES = ("multi-device-speed", "standalone-distributed", "pipeline-vs-model-parallel", "async-vs-sync")
SPREAD = [
    (study.name, number, cells)
    for study in studies.all_studies().values()
    for number, cells in enumerate(study.cells)
    if any(":" in each for each in cells.strategies)
]


def test_the_four_studies_have_tables_with_strategies_at_every_size() -> None:
    for name in NAMES:
        found = {size for study, _, cells in SPREAD if study == name for size in cells.sizes}
        assert found == {"P", "C", "Q"}


@pytest.mark.parametrize(("name", "number", "cells"), SPREAD, ids=lambda each: str(each)[:30])
def test_a_single_process_stands_beside_every_strategy(name: str, number: int, cells: studies.Cells) -> None:
    assert SINGLE in {name_of(each) for each in cells.strategies}, (name, number)


@pytest.mark.parametrize(("name", "number", "cells"), SPREAD, ids=lambda each: str(each)[:30])
def test_strategies_are_kinds_so_that_every_framework_has_its_own(name: str, number: int, cells: studies.Cells) -> None:
    assert {name_of(each) for each in cells.strategies} <= {SINGLE, *KINDS}, (name, number)
    several = any(parts_of(each) > 1 for each in cells.strategies)
    assert not several or not {*cells.sizes} & {"C", "Q"} or cells.threads == (1,), (name, number)
    if {*cells.sizes} & {"C", "Q"}:
        assert max(map(parts_of, cells.strategies)) <= 2, (name, number)


def test_work_that_grows_with_the_devices_has_the_share_of_one_device_beside_it() -> None:
    cells = studies.study("multi-device-speed").cells
    alone = {(each.workloads, each.sizes, each.batches) for each in cells if each.strategies == ("single:1",)}
    for each in cells:
        parts = max(map(parts_of, each.strategies))
        if parts > 1:
            share = tuple(batch // parts for batch in each.batches)
            assert (each.workloads, each.sizes, share) in alone
            assert f"alone:{parts}" in each.strategies
