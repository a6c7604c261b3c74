"""What documents say of strategies: which variants their words mean, and what an overhead of communication is a ratio of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.plan import studies
from steelyard.published import gathering
from steelyard.published.documents import find
from steelyard.published.statements import Statement, statements
from steelyard.published.study_tables import Side, StudyTable, read_side


def stated(held: StudyTable) -> list[Statement]:
    """Return what an entry says with these sides."""
    return list(statements(held, *find(held.entry)))


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("strategy=ddp", {"strategy": "ddp"}),
        ("strategy=ddp:2", {"strategy": "ddp", "devices": "2"}),
        ("strategy=ddp,layout=channels-first", {"strategy": "ddp", "layout": "channels-first"}),
    ],
)
def test_an_arm_names_a_strategy_with_or_without_its_parts(text: str, settings: dict[str, str]) -> None:
    assert read_side("w", text) == Side("w", settings=settings)


def test_an_overhead_is_the_ratio_of_ranks_that_exchange_nothing_over_the_strategy() -> None:
    held = StudyTable(
        "S1:table-7-overhead",
        where={"cell": "vgg16:imagenet"},
        sides={"tensorflow": "tensorflow/graph,strategy=mirrored", "pytorch": "pytorch/eager,strategy=ddp"},
    )
    found = {(each.first.framework, each.first.settings["devices"]): each for each in stated(held)}
    assert found.keys() == {(framework, parts) for framework in ("tensorflow", "pytorch") for parts in ("2", "4")}
    two = found["tensorflow", "2"]
    assert two.first == Side(
        "tensorflow 2 devices without exchange", "tensorflow", "graph", {"strategy": "alone", "devices": "2"}
    )
    assert two.second == Side("tensorflow 2 devices", "tensorflow", "graph", {"strategy": "mirrored", "devices": "2"})
    assert (two.said.low, two.said.high, two.said.ordered) == (pytest.approx(1 / (1 - 0.02638)), two.said.low, True)
    doubtful = found["pytorch", "4"]
    assert doubtful.said.low == pytest.approx(1 / (1 - 0.07196))
    assert doubtful.remark == "recomputed, printed 6.737%"


def test_a_list_allows_each_of_its_values() -> None:
    sides = {"tensorflow": "tensorflow,strategy=mirrored", "pytorch": "pytorch,strategy=ddp"}
    words = ("tensorflow", "pytorch")
    both = stated(
        StudyTable("S1:table-7-speed", where={"devices": [2, 4], "cell": "vgg16:imagenet"}, sides=sides, compare=words)
    )
    assert [each.first.settings for each in both] == [{"strategy": "mirrored", "devices": each} for each in ("2", "4")]
    assert [each.second.settings for each in both] == [{"strategy": "ddp", "devices": each} for each in ("2", "4")]
    assert both[0].said.low == pytest.approx(474.35 / 431.794)
    (one,) = stated(
        StudyTable("S1:table-7-speed", where={"devices": 4, "cell": "vgg16:imagenet"}, sides=sides, compare=words)
    )
    assert one == both[1]


def test_values_that_differ_in_framework_and_strategy_are_compared_by_both_words() -> None:
    held = StudyTable(
        "S3:comparison-table",
        where={"quantity": "epoch time"},
        sides={"mirrored": "strategy=mirrored", "ddp": "strategy=ddp"},
        compare=("tensorflow mirrored", "pytorch ddp"),
    )
    (found,) = stated(held)
    assert found.first == Side(
        "tensorflow mirrored 2 devices", "tensorflow", "", {"strategy": "mirrored", "devices": "2"}
    )
    assert found.second == Side("pytorch ddp 2 devices", "pytorch", "", {"strategy": "ddp", "devices": "2"})
    assert found.said.low == pytest.approx(51.1 / 48.9)
    assert found.printed == "48.9 seconds against 51.1 seconds"


def test_a_single_device_is_no_number_of_parts() -> None:
    held = StudyTable(
        "S3:claim-data-parallel", sides={word: f"strategy={word}" for word in ("mirrored", "ddp", "single")}
    )
    found = [(each.first.framework, each.first.settings, each.second) for each in stated(held)]
    assert found == [
        (framework, {"strategy": word}, Side(f"{framework} single", framework, "", {"strategy": "single"}))
        for framework, word in (("tensorflow", "mirrored"), ("pytorch", "ddp"))
    ]


def test_the_number_of_devices_is_not_that_of_the_single_process_beside_them() -> None:
    document, entry = find("S3:claim-data-parallel")
    made = replace(entry, values=(replace(entry.values[0], devices=2),))
    held = StudyTable("S3:claim-data-parallel", sides={word: f"strategy={word}" for word in ("mirrored", "single")})
    (found,) = statements(held, document, made)
    assert found.second is not None
    assert (found.first.settings["devices"], found.second.settings) == ("2", {"strategy": "single"})


def test_two_devices_are_better_as_copies_and_worse_as_halves() -> None:
    study = studies.study("standalone-distributed")
    tables = {each.entry: each for each in gathering.gather(study.name, study.published, "Q").tables}
    said = {
        name: {
            (each.first.settings["strategy"], each.second.settings["strategy"])
            for each in tables[f"S3:{name}"].statements
        }
        for name in ("claim-data-parallel", "claim-model-parallel")
    }
    assert said["claim-data-parallel"] == {("mirrored", "single"), ("ddp", "single")}
    assert said["claim-model-parallel"] == {("single", "split")}
