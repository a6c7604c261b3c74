"""The graph of a step on page, terminal and as JSON: its operations, what passes remove, and what they bring."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, view_of, write_run
from recorded_trials import write_graph

from steelyard import report
from steelyard.analysis import graphs
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.profiles.graphs import COSTS, Counted
from steelyard.report import as_json
from steelyard.report.blocks import Table
from steelyard.report.sections import graphs as section
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.results.events import GraphStage

RULES = [
    {"class": "matrix product", "names": ["^MatMul$"]},
    {"class": "elementwise", "names": ["^Mul$"]},
    {"class": "dispatch", "names": ["^Const$"]},
]
WANTED = Options(
    workloads=("resnet18:tiny",), frameworks=("tensorflow", "pytorch"), knobs=("tensorflow.passes=all,others",)
)
STAGES = [
    {"stage": "traced", "kinds": {"MatMul": 10, "Mul": 30, "Const": 60}},
    {"stage": "optimised", "kinds": {"MatMul": 10, "Mul": 20, "Const": 20}},
    *(
        {"stage": "optimised", "passes": passes, "kinds": {"MatMul": 10, "Mul": 30, "Const": constants}}
        for passes, constants in {
            "none": 60,
            "a": 50,
            "b": 70,
            "a+b": 55,
            "a+b+c": 30,
            "b+c": 40,
            "a+c": 35,
            "others": 58,
        }.items()
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    quick = {"scatter": 0.0, "process_scatter": 0.0}
    scripts = {"passes=all": Script(10.0, **quick), "passes=others": Script(20.0, **quick), "pytorch": Script()}
    found = write_run(tmp_path_factory.mktemp("runs"), scripts, WANTED)
    names = {each.name: each.file_name for each in resolve.plan(WANTED).variants}
    write_graph(found / "graphs" / names["tensorflow/graph,passes=all"], STAGES, RULES)
    write_graph(found / "graphs" / names["tensorflow/graph,passes=others"], STAGES[:2], RULES)
    write_graph(found / "graphs" / names["pytorch/eager"], [], RULES, error="Eager PyTorch makes no graph.")
    return found


@pytest.fixture(scope="module")
def comparison(folder):
    (found,) = view_of(folder).comparisons
    return found


def tables(comparison):
    """Return the tables of the section by their captions; none without the section."""
    shown = section.blocks(Subject(comparison, [comparison], styles([comparison])))
    return {block.caption: block for panel in shown for block in panel.blocks if isinstance(block, Table)}


def rows_of(table):
    """Return the texts of a table's rows."""
    return [[cell.value for cell in (row.title, *row.cells)] for row in table.rows]


def test_the_page_shows_the_graph_before_and_after(folder) -> None:
    page = Page(report.write(view_of(folder)).read_text(encoding="utf-8"))
    words = " ".join(each.words for each in page.all("h3") + page.all("h4") + page.all("td") + page.all("p"))
    for expected in (
        "The graph of a step",
        "What passes remove: TensorFlow",
        "What passes bring",
        "100 nodes",
        "b: -5",
    ):
        assert expected in words
    assert "Eager PyTorch makes no graph." in words


def test_stages_have_their_share_of_the_first(comparison) -> None:
    rows = rows_of(tables(comparison)[section.HEADING])
    assert ["TensorFlow, passes all", "traced", "100 nodes", "10", "30", "60", "0", ""] in rows
    assert ["TensorFlow, passes all", "optimised", "50 nodes", "10", "20", "20", "0", "50.0%"] in rows
    assert len(rows) == 4


def test_what_is_counted_in_another_unit_has_no_share(folder, comparison) -> None:
    contender = next(each for each in comparison.contenders if each.graphs)
    kernels = Counted(GraphStage("run", "kernels", {"Mul": 5}), dict.fromkeys(COSTS, 1))
    assert section._stages(replace(contender, graphs=(contender.graphs[0], kernels)))[1][-1] == ""


def test_what_passes_remove_is_counted_from_the_graph_without_any(comparison) -> None:
    rows = {row[0]: row[1:] for row in rows_of(tables(comparison)[section.REMOVE])}
    assert rows["none"][0] == "100"
    assert rows["a"] == ["90", "10", "10.0%", "0", "0", "10", "0", ""]
    assert rows["b"][1:3] == ["-10", "-10.0%"]
    assert rows["all"] == ["50", "50", "50.0%", "0", "10", "40", "0", ""]


def test_a_pass_alone_is_told_from_what_it_adds_to_the_others(comparison) -> None:
    added = {row[0]: row[-1] for row in rows_of(tables(comparison)[section.REMOVE])}
    assert added["a + b"] == "b: -5; c to the others: 25"
    assert added["a + b + c"] == "c: 25"
    assert added["b + c"] == "a to the others: 10"
    assert added["a + c"] == "b to the others: 5"


def test_half_the_speed_is_twice_the_time(comparison) -> None:
    (row,) = rows_of(tables(comparison)[section.BRING])
    assert row[:3] == ["TensorFlow, passes others", "TensorFlow, passes all", "+50.0 %"]
    assert row[4] == "+100.0 %"


def test_the_counts_are_in_the_json(folder, capsys) -> None:
    as_json.show(view_of(folder))
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    found = {each["case"].partition("/")[2]: each.get("graph") for each in comparison["contenders"]}
    stage = found["tensorflow/graph,passes=all"]["stages"][1]
    assert (stage["total"], stage["costs"]["cheap"], stage["kinds"]["Const"]) == (50, 20, 20)
    assert found["pytorch/eager"] == {"stages": [], "reason": "Eager PyTorch makes no graph."}


def test_a_document_is_held_against_the_counts(folder, comparison) -> None:
    (group,) = view_of(folder).record.plan.groups
    found = graphs.beside(comparison, group)
    keys = {each.settings["passes"]: each.key for each in found.contenders}
    assert found.ratio(keys["a"], keys["none"]).value == pytest.approx(100 / 90)
    assert keys.keys() == {"none", "a", "b", "a+b", "a+b+c", "b+c", "a+c", "others", "all"}
    assert found.missing == {"pytorch": "Eager PyTorch makes no graph."}


def test_a_run_without_counts_has_no_such_section(tmp_path) -> None:
    (found,) = view_of(write_run(tmp_path, {"fake": Script(), "dummy": Script()})).comparisons
    assert tables(found) == {}


def test_without_a_choice_of_passes_nothing_is_compared() -> None:
    assert graphs.by_passes([Counted(GraphStage("traced", "nodes", {"Mul": 1}), {})]) == {}
