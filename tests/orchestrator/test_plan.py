"""A plan names every cell once, in the order asked for; what cannot be measured is a gap with its reason."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.plan import resolve as plan
from steelyard.plan.options import Options
from steelyard.statistics.orders import round_order

WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"
FRAMEWORKS = ("fake", "dummy", "pytorch", "tensorflow", "jax")
GROUPS = ("line:small", "resnet18:tiny", "lstm-imdb:tiny")

CHOICES = st.builds(
    lambda groups, names, steps, noises: Options(
        workloads=tuple(groups), frameworks=tuple(names), workload_folders=(str(WORKLOADS),),
        knobs=(f"fake.step_us={','.join(map(str, steps))}", f"fake.noise={','.join(map(str, noises))}"),
    ),
    st.lists(st.sampled_from(GROUPS), min_size=1, max_size=4),
    st.lists(st.sampled_from(FRAMEWORKS), min_size=0, max_size=4).map(lambda names: ["fake", *names]),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.lists(st.sampled_from([0.0, 0.1]), min_size=1, max_size=2),
)  # fmt: skip


def _planned(options: Options) -> plan.RunPlan | None:
    try:
        return plan.plan(options)
    except UserError as error:
        assert str(error).startswith("Nothing is left to measure")
        return None


@given(options=CHOICES)
def test_cells_and_gaps_cover_every_pair_that_was_asked_for_and_no_cell_comes_twice(options: Options) -> None:
    planned = _planned(options)
    if planned is None:
        return
    keys = [cell.key for cell in planned.cells]
    assert len(keys) == len(set(keys))
    pairs = {(cell.group, cell.environment) for cell in planned.cells} | {
        (gap.group, gap.environment) for gap in planned.gaps
    }
    assert pairs == set(itertools.product(options.workloads, options.frameworks))
    assert not {(c.group, c.environment) for c in planned.cells} & {(g.group, g.environment) for g in planned.gaps}
    assert len(set(planned.gaps)) == len(planned.gaps)
    assert all(gap.reason for gap in planned.gaps)


@given(options=CHOICES)
def test_every_combination_of_knobs_is_there_once(options: Options) -> None:
    planned = _planned(options)
    if planned is None:
        return
    steps, noises = ({*text.partition("=")[2].split(",")} for text in options.knobs)
    for group in {cell.group for cell in planned.cells if cell.framework == "fake"}:
        found = [tuple(c.settings.knobs.values()) for c in planned.groups[group] if c.framework == "fake"]
        assert sorted(found) == sorted(itertools.product(map(int, steps), map(float, noises)))


@given(options=CHOICES)
def test_planning_twice_gives_the_same_plan_in_the_same_order(options: Options) -> None:
    first, second = _planned(options), _planned(options)
    assert (first and first.cells) == (second and second.cells)
    if first:
        asked = list(dict.fromkeys(options.frameworks))
        for cells in first.groups.values():
            places = [asked.index(cell.environment) for cell in cells]
            assert places == sorted(places)


@given(options=CHOICES, names=st.sets(st.sampled_from(FRAMEWORKS)))
def test_leaving_environments_out_turns_their_cells_into_gaps(options: Options, names: set[str]) -> None:
    planned = _planned(options)
    if planned is None:
        return
    rest = planned.without(dict.fromkeys(names, "It could not be made."))
    assert list(rest.cells) == [cell for cell in planned.cells if cell.environment not in names]
    lost = {(cell.group, cell.environment) for cell in planned.cells if cell.environment in names}
    assert {(gap.group, gap.environment) for gap in rest.gaps} >= lost


@given(count=st.integers(1, 8), number=st.integers(1, 12), seed=st.integers(0, 99))
def test_every_round_runs_every_contender_once_in_an_order_that_its_seed_decides(
    count: int, number: int, seed: int
) -> None:
    keys = [f"cell{place}" for place in range(count)]
    order = list(round_order(keys, number, seed))
    assert sorted(order) == keys
    assert order == list(round_order(keys, number, seed))


def test_all_modes_that_are_named_take_part() -> None:
    known = workloads.find()
    assert known
    asked = Options(
        workloads=("resnet18:tiny",), frameworks=("pytorch",), modes=("pytorch=eager", "pytorch=compiled,eager")
    )
    assert [cell.settings.mode for cell in plan.plan(asked).cells] == ["eager", "compiled"]


@pytest.mark.parametrize("name", ["tensorflow@2.20.0", "pytorch@2.9"])
def test_a_version_may_be_addressed_though_it_holds_dots(name: str) -> None:
    framework = name.partition("@")[0]
    mode = next(iter(plan.frameworks.framework(framework).modes))
    asked = Options(workloads=("resnet18:tiny",), frameworks=(framework, name), modes=(f"{name}={mode}",))
    assert {cell.environment for cell in plan.plan(asked).cells} == {framework, name}


def test_titles_and_file_names_tell_cells_apart() -> None:
    asked = Options(
        workloads=("line",),
        frameworks=("fake",),
        workload_folders=(str(WORKLOADS),),
        knobs=("fake.step_us=1,2", "fake.noise=0.1,0.2"),
    )
    cells = plan.plan(asked).cells
    assert len({cell.slug for cell in cells}) == len({cell.title for cell in cells}) == 4
    assert all("/" not in cell.slug and ":" not in cell.slug for cell in cells)


def test_a_precision_that_a_framework_lacks_for_one_workload_alone_is_a_gap_with_its_reason() -> None:
    asked = Options(
        workloads=("deepspeech2:tiny",), frameworks=("pytorch", "mxnet"), protocol="fixed:1+1", synthetic=True
    )
    assert plan.plan(asked).gaps == ()
    exact = plan.plan(replace(asked, precision="float64"))
    assert [cell.framework for cell in exact.cells] == ["pytorch"]
    assert [gap.environment for gap in exact.gaps] == ["mxnet"]
    assert exact.gaps[0].reason.startswith("MXNet cannot run deepspeech2 in float64: CTCLoss of MXNet")
