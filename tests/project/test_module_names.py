"""Every module of the tests has a name of its own: Python imports the first of two with one name in place of the other."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


def _sharing_a_name(folder: Path) -> list[list[str]]:
    """Return the files below a folder that pytest would import under one name; it looks conftest.py up by path.

    The files of a workload, and the sides of a port, are not imported by pytest.
    """
    files = defaultdict(list)
    for file in folder.rglob("*.py"):
        if file.name in {"conftest.py", "__init__.py"} or any(
            (file.parent / name).exists() for name in ("spec.toml", "port.toml")
        ):
            continue
        root = file.parent
        while (root / "__init__.py").exists():
            root = root.parent
        files[file.relative_to(root)].append(str(file.relative_to(folder)))
    return sorted(sorted(each) for each in files.values() if len(each) > 1)


def test_no_two_modules_of_the_tests_share_a_name() -> None:
    assert _sharing_a_name(TESTS) == []


@pytest.mark.parametrize(
    ("packages", "found"),
    [
        ((), [["a/test_one.py", "b/test_one.py"]]),
        (("a",), []),
        (("a", "b"), []),
    ],
)
def test_two_files_with_one_name_are_found(packages: tuple[str, ...], found: list[list[str]], tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for name in ("conftest.py", "test_one.py", f"test_{folder}.py"):
            (tmp_path / folder / name).touch()
    for folder in packages:
        (tmp_path / folder / "__init__.py").touch()
    assert _sharing_a_name(tmp_path) == found
