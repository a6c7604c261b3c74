"""Each framework's own checks (`<framework>_checks.py`), run by its own interpreter; every check is one test."""

from __future__ import annotations

import ast
import json
import subprocess
from functools import cache
from pathlib import Path

import pytest

from steelyard.environments import clean_environ
from steelyard.frameworks import WORKER

HERE = Path(__file__).parent
SUFFIX = "_checks.py"

pytestmark = pytest.mark.conformance


def checks() -> list[tuple[str, str]]:
    """Return (framework, function) of every check there is."""
    found = []
    for path in sorted(HERE.glob(f"*{SUFFIX}")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [
            node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
        ]
        found += [(path.name.removesuffix(SUFFIX), name) for name in names]
    return found


@cache
def results(framework: str, python: Path) -> dict[str, str]:
    """Run all checks of one framework in one process; returns what went wrong by name, empty when right."""
    script = HERE / f"{framework}{SUFFIX}"
    done = subprocess.run(
        [str(python), "-I", str(HERE / "run_checks.py"), str(WORKER), str(script)],
        capture_output=True, text=True, env=clean_environ(python), check=False, timeout=900,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"check"')]
    found = {(told := json.loads(line))["check"]: told["error"] for line in lines}
    return found or {"": done.stderr[-2000:]}


@pytest.mark.parametrize(("framework", "check"), checks())
def test_the_framework_behaves_as_its_adapter_relies_on(environment, framework, check):
    found = results(framework, environment(framework))
    assert check in found, found.get("", "The process ended before this check.")
    assert found[check] == "", found[check]
