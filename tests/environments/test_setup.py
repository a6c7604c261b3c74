"""The environments of a plan: what the user is told, and how long an import may take."""

from pathlib import Path
from typing import Any

import pytest

from steelyard.console import Screen
from steelyard.environments import Environment, setup
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.plan.run_plan import RunPlan

PYTHON = Path("/mine/python")


class Recorded(Screen):
    """Collects the sentences."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments with which external interpreters are examined."""
    calls: list[Any] = []

    def external(name: Any, python: Path, report: Any, limit_s: float) -> Environment:
        calls.append((str(name), python, limit_s))
        return Environment(str(name), name.framework, "1", python, "3.11.0", {}, contents="abc")

    monkeypatch.setattr(setup.made, "external_environment", external)
    return calls


def plan(**options: Any) -> RunPlan:
    wanted = Options(workloads=("resnet18:tiny",), frameworks=("pytorch", "jax"), **options)
    return resolve.plan(wanted)


def test_the_users_variables_that_have_no_effect_are_named_once(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XLA_FLAGS", "ONEDNN_DEFAULT_FPMATH_MODE"):
        monkeypatch.setenv(name, "x")
    screen = Recorded()
    external = {"pytorch": str(PYTHON), "jax": str(PYTHON)}
    setup.begin(plan(external=external), screen).failures()
    (sentence,) = [each for each in screen.said if "not passed on" in each]
    assert sentence.startswith("These environment variables are not passed on to the frameworks")
    assert {"XLA_FLAGS", "ONEDNN_DEFAULT_FPMATH_MODE"} <= set(sentence.rstrip(".").replace(",", "").split())


@pytest.mark.parametrize(("silence_s", "limit_s"), [(20.0, 20.0), (3600.0, 300.0)])
def test_an_import_may_take_as_long_as_silence_allows_and_five_minutes_at_most(
    asked: list[Any], silence_s: float, limit_s: float
) -> None:
    external = {"pytorch": str(PYTHON), "jax": str(PYTHON)}
    setup.begin(plan(external=external, silence_s=silence_s), Recorded()).failures()
    assert sorted(asked, reverse=True) == [("pytorch", PYTHON, limit_s), ("jax", PYTHON, limit_s)]


def test_the_record_of_a_run_holds_the_contents_and_where_libraries_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    facts = setup.facts(Environment("jax", "jax", "1", PYTHON, "3.11.0", {}, contents="abc"))
    assert facts["contents"] == "abc"
    assert facts["variables"]["LD_LIBRARY_PATH"] == "/opt/lib"
