"""Operations of a graph: how much work they are, and the record of them."""

from __future__ import annotations

import pytest
from recorded_trials import write_graph

from steelyard.errors import UserError
from steelyard.profiles import classes, graphs

RULES = [
    {"class": "dispatch", "names": ["^Const$", "^Identity$"]},
    {"class": "copies and layout", "names": ["^Shape$"]},
    {"class": "convolution, forward", "names": ["^Conv2D$"]},
    {"class": "matrix product", "names": ["MatMul"]},
    {"class": "elementwise", "names": ["^Mul$"]},
    {"class": "fused", "names": ["^Fusion$"]},
]


def test_operations_are_told_apart_by_their_work() -> None:
    kinds = {"Const": 5, "Shape": 2, "Conv2D": 3, "BatchMatMul": 4, "Mul": 7, "Fusion": 11, "Strange": 13}
    found = graphs.costs(kinds, classes.table(RULES))
    assert found == {"expensive": 7, "cheap": 7, "none": 7, "not known": 24}


def test_every_class_has_one_cost() -> None:
    """A new class must not become cheap by chance."""
    known = {name: graphs._cost(name) for name in classes.CLASSES}
    assert {name for name, cost in known.items() if cost == "expensive"} == {
        "convolution",
        "convolution, forward",
        "convolution, backward to data",
        "convolution, backward to weights",
        "convolution, backward",
        "matrix product",
        "recurrent",
        "attention",
    }
    assert {name for name, cost in known.items() if cost == "none"} == {
        "copies and layout",
        "dispatch",
        "input pipeline",
    }
    assert {name for name, cost in known.items() if cost == "not known"} == {"fused", "host gap", "unattributed"}


def test_a_variant_that_was_not_counted_has_no_stages(tmp_path) -> None:
    assert graphs.read(tmp_path, "tensorflow_graph") == ()


def test_the_stages_of_a_graph_are_read_with_their_work(tmp_path) -> None:
    stages = [
        {"stage": "traced", "kinds": {"Conv2D": 1, "Const": 9}},
        {"stage": "optimised", "kinds": {"Conv2D": 1}, "passes": "none"},
    ]
    write_graph(tmp_path / "graphs" / "one", stages, RULES)
    traced, optimised = graphs.read(tmp_path, "one")
    assert (traced.stage.stage, traced.total, traced.costs["none"]) == ("traced", 10, 9)
    assert (optimised.stage.passes, optimised.total, optimised.costs["expensive"]) == ("none", 1, 1)


def test_a_process_that_failed_says_why(tmp_path) -> None:
    write_graph(tmp_path / "graphs" / "one", [], RULES, error="Eager makes no graph.")
    with pytest.raises(UserError, match=r"^Eager makes no graph\.$"):
        graphs.read(tmp_path, "one")


def test_the_counts_of_a_process_that_was_killed_are_not_whole(tmp_path) -> None:
    write_graph(tmp_path / "graphs" / "one", [{"stage": "traced", "kinds": {"Mul": 2}}], RULES, done=False)
    assert graphs.read(tmp_path, "one") == ()


def test_a_damaged_table_of_operations_is_named(tmp_path) -> None:
    folder = write_graph(
        tmp_path / "graphs" / "one", [{"stage": "traced", "kinds": {"Mul": 2}}], [{"class": "nonsense", "names": []}]
    )
    with pytest.raises(UserError, match=r"rules\.json is damaged .*nonsense.* resume the run"):
        graphs.read(tmp_path, folder.name)
