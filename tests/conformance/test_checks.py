"""The checks of each framework (`checks/<framework>/`), run by its own interpreter; every check is one test."""

from __future__ import annotations

import ast
import json
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from decides import ALL, Sources

from steelyard.catalog.frameworks import WORKER
from steelyard.environments import clean_environ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).parent / "checks"
CONCURRENT_PROCESSES = 2
RECOMPUTATION = "recomputation.check_recomputation_changes_nothing_but_memory"
# These frameworks compile for a minute or more. All others are checked by `make test`, and so is the effect of the setting.
SLOW = {("jax", RECOMPUTATION), ("mindspore", RECOMPUTATION)}

pytestmark = pytest.mark.conformance


def checks() -> list[Any]:
    """Return (framework, module.function) of every check, as parameters of a test."""
    found = list[tuple[str, str]]()
    for path in sorted(FOLDER.glob("*/*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [
            node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
        ]
        found += [(path.parent.name, f"{path.stem}.{name}") for name in names]
    assert set(found) >= SLOW
    return [pytest.param(*each, marks=pytest.mark.slow if each in SLOW else ()) for each in found]


def decided(framework: str, check: str) -> Sources:
    """Return what decides a check: its framework, and the modules of the checks, without those of other frameworks and other checks."""
    own = [f"{framework}/{name}.py" for name in ("__init__", "shared", check.partition(".")[0])]
    files = tuple(f"tests/conformance/checks/{each}" for each in ("*.py", *own))
    return Sources(framework, (framework,), ALL, files=files)


def results(framework: str, python: Path, left_out: list[str]) -> dict[str, str]:
    """Run the checks of one framework in one process; returns {module.check: traceback}, an empty text if it passed."""
    # The checks import TensorFlow before its adapter can switch oneDNN on, which is off by default without AVX-512.
    environ = clean_environ(python) | {"TF_ENABLE_ONEDNN_OPTS": "1"}
    done = subprocess.run(
        [str(python), "-I", str(FOLDER / "run.py"), str(WORKER), framework, *left_out],
        capture_output=True,
        text=True,
        env=environ,
        check=False,
        timeout=900,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"check"')]
    found = {(message := json.loads(line))["check"]: message["error"] for line in lines}
    return found or {"": done.stderr[-2000:]}


@pytest.fixture(scope="module")
def checked(
    request: pytest.FixtureRequest, environment: Callable[[str], Path]
) -> Iterator[dict[str, Future[dict[str, str]]]]:
    """The results of the checks of every selected framework; two frameworks run at a time."""
    chosen = {
        (item.callspec.params["framework"], item.callspec.params["check"])
        for item in request.session.items
        if "checked" in getattr(item, "fixturenames", ())
    }
    every = {each.values for each in checks()}
    with ThreadPoolExecutor(CONCURRENT_PROCESSES) as pool:
        yield {
            name: pool.submit(
                results, name, environment(name), sorted(check for known, check in every - chosen if known == name)
            )
            for name in sorted({framework for framework, _ in chosen})
        }


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize(("framework", "check"), checks())
def test_the_framework_has_the_behaviour_that_its_adapter_needs(
    checked: dict[str, Future[dict[str, str]]], framework: str, check: str
) -> None:
    found = checked[framework].result()
    assert check in found, found.get(
        "", f"The process ended before this check, or MODULES of checks.{framework} lacks it."
    )
    assert found[check] == "", found[check]
