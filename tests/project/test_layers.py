"""Tests that imports follow the order of the packages, and that each check finds a planted violation."""

from __future__ import annotations

from pathlib import Path

import layers
import pytest
import source_rules

import steelyard

PACKAGE = Path(steelyard.__file__).parent
DRAWING = {"plotly", "rich", "jinja2", "markupsafe", "matplotlib"}


def test_every_package_is_in_the_order() -> None:
    names = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert names - {"__init__", "__pycache__", "py.typed"} == set(layers.ORDER)


def test_imports_follow_the_order() -> None:
    assert layers.violations(PACKAGE) == []


def test_what_is_true_is_found_without_a_library_that_draws() -> None:
    assert drawing_in(PACKAGE) == []


def test_a_library_that_draws_is_found_where_nothing_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "analysis" / "a.py"
    path.parent.mkdir()
    path.write_text("def late():\n    from rich.text import Text\nimport plotly.offline\n")
    assert drawing_in(tmp_path) == [f"{path.relative_to(tmp_path)} imports {name}" for name in ("plotly", "rich")]


def drawing_in(package: Path) -> list[str]:
    """Return the libraries for pages and terminals that the rooms below `report` import."""
    return [
        f"{path.relative_to(package)} imports {name}"
        for room in ("analysis", "wording", "statistics", "results", "profiles", "published")
        for path in sorted((package / room).rglob("*.py"))
        for name in sorted(
            {module.partition(".")[0] for _, module in source_rules.imported(path.read_text("utf-8"))} & DRAWING
        )
    ]


def test_what_a_package_takes_from_another_it_does_not_hand_on() -> None:
    assert layers.handed_on(PACKAGE) == []


def test_a_name_that_is_handed_on_is_found(tmp_path: Path) -> None:
    package = tmp_path / "steelyard"
    for name, text in {
        "plan/a.py": "class Plan:\n    pass\n",
        "results/b.py": "if TYPE_CHECKING:\n    from steelyard.plan.a import Plan\n",
        "results/c.py": "def late():\n    from steelyard.results.b import Plan\n",
        "results/d.py": "from steelyard.plan.a import Plan\nfrom steelyard.results.e import Own\n",
        "results/e.py": "class Own:\n    pass\n",
        "results/f.py": "from steelyard.results.d import Own\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    sentence = "steelyard.results.c imports Plan from steelyard.results.b, which has it from steelyard.plan.a"
    assert layers.handed_on(package) == [sentence]


def test_there_are_no_import_cycles() -> None:
    cycles = layers.import_cycles(PACKAGE)
    assert [each for each in cycles if layers.room_of(each) not in layers.CYCLES_LEFT] == []
    assert {layers.room_of(each) for each in cycles} == set(layers.CYCLES_LEFT)


@pytest.mark.parametrize(
    ("file", "planted"),
    [
        ("statistics/a.py", "from steelyard.catalog import frameworks"),
        ("plan/a.py", "import steelyard.results.record"),
        ("report/a.py", "from steelyard.plan.resolve import plan"),
        ("report/a.py", "from steelyard.plan import run_plan, resolve"),
        ("analysis/a.py", "from steelyard.report import figures"),
        ("analysis/a.py", "from steelyard.published.documents import documents"),
        ("wording/a.py", "from steelyard.results import record"),
        ("report/a.py", "def late():\n    from steelyard.catalog import workloads"),
        ("measure/a.py", "from steelyard import certificates"),
        ("measure/a.py", "if TYPE_CHECKING:\n    from steelyard.cli import live"),
        ("files/a.py", "from steelyard.console import Screen"),
    ],
)
def test_an_import_against_the_order_is_found(file: str, planted: str, tmp_path: Path) -> None:
    path = tmp_path / "steelyard" / file
    path.parent.mkdir(parents=True)
    path.write_text(f"from steelyard import errors\n{planted}\n")
    assert len(layers.violations(tmp_path / "steelyard")) == (0 if file.startswith("errors") else 1)


def test_what_defines_a_record_may_be_imported_where_records_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "steelyard" / "analysis" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text("from steelyard.plan.run_plan import RunPlan\nfrom steelyard.published.study_tables import Side\n")
    assert layers.violations(tmp_path / "steelyard") == []


def test_an_import_cycle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "steelyard"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from steelyard import b\n")
    (package / "b.py").write_text("from steelyard import c\n")
    (package / "c.py").write_text("import steelyard.a\n")
    assert layers.import_cycles(package) == ["steelyard.a -> steelyard.b -> steelyard.c -> steelyard.a"]
    (package / "c.py").write_text("import json\n")
    assert layers.import_cycles(package) == []


@pytest.mark.parametrize(
    "planted",
    [
        "if TYPE_CHECKING:\n    import steelyard.a",
        "def late():\n    from steelyard.a import anything",
        "from steelyard import a",
    ],
)
def test_an_import_cycle_is_found_inside_of_functions_and_for_type_checking(planted: str, tmp_path: Path) -> None:
    package = tmp_path / "steelyard"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from steelyard import b\n")
    (package / "b.py").write_text(f"{planted}\n")
    assert layers.import_cycles(package) == ["steelyard.a -> steelyard.b -> steelyard.a"]
