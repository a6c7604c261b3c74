"""Imports run one way, and each check is seen to fail."""

from __future__ import annotations

from pathlib import Path

import layers
import pytest

import steelyard

PACKAGE = Path(steelyard.__file__).parent


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert rooms - {"__init__", "__pycache__", "py.typed"} == set(layers.ORDER)


def test_imports_run_one_way() -> None:
    assert layers.violations(PACKAGE) == []


def test_no_modules_import_each_other() -> None:
    assert layers.circles(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "planted"),
    [
        ("statistics/a.py", "from steelyard.catalog import frameworks"),
        ("plan/a.py", "import steelyard.results.record"),
        ("report/a.py", "from steelyard.plan.run_plan import RunPlan"),
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


def test_a_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "steelyard"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from steelyard import b\n")
    (package / "b.py").write_text("from steelyard import c\n")
    (package / "c.py").write_text("import steelyard.a\n")
    assert layers.circles(package) == ["steelyard.a -> steelyard.b -> steelyard.c -> steelyard.a"]
    (package / "c.py").write_text("if TYPE_CHECKING:\n    import steelyard.a\ndef late():\n    import steelyard.b\n")
    assert layers.circles(package) == []
