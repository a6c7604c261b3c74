"""`steelyard list strategies`: what each strategy does, where it cannot run, where it is certified, and what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from test_records import CERTIFICATE

from steelyard.catalog import frameworks, workloads
from steelyard.catalog.strategies import Without
from steelyard.certificates import record, strategy_table
from steelyard.certificates.sources import implementation_of
from steelyard.cli.main import main
from steelyard_worker.strategy import Spread

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = Without("Its servers always wait.", "asynchronous.py", "https://example.org/servers")


@pytest.fixture(autouse=True)
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> frameworks.Framework:
    """An empty cache, and one framework: the scripted one, with two strategies and one that it has not."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    fake = frameworks.all_frameworks()["fake"]
    spreads = {
        "copies": replace(
            fake.strategies["copies"], unsupported={"slow": "it does not wait"}, workloads={"bert": "it is too large"}
        ),
        "drifting": Spread("local", "Averages the weights every ten steps"),
    }
    found = replace(fake, strategies=spreads, without={"asynchronous": WITHOUT})
    monkeypatch.setattr(frameworks, "contenders", lambda: {"fake": found})
    return found


def certificate(strategy: str = "copies:2", preset: str = "tiny", **more: object) -> None:
    """Save a certificate of a strategy on ResNet-18, made with the current files unless `more` says otherwise."""
    workload = workloads.find()["resnet18"]
    known = {
        "framework": "fake",
        "workload": "resnet18",
        "preset": preset,
        "strategy": strategy,
        "implementation": implementation_of(str(more.get("framework", "fake")), workload.folder, "resnet18"),
    }
    key = f"{strategy}-{preset}-{'-'.join(map(str, more.values()))}".replace(":", "_")
    record.save(replace(CERTIFICATE, key=key, **{**known, **more}))


def certified() -> dict[str, dict[str, tuple[int, ...]]]:
    """Return strategy -> where it is certified."""
    return {each.strategy: each.certified for each in strategy_table.rows(workloads.find().values())}


def test_a_strategy_is_certified_where_a_certificate_of_the_current_files_says_so() -> None:
    certificate()
    certificate("copies:3")
    certificate(preset="digits")
    assert certified() == {"copies": {"resnet18:digits": (2,), "resnet18:tiny": (2, 3)}, "drifting": {}}


@pytest.mark.parametrize(
    "more", [{"implementation": "of other files"}, {"passed": False}, {"workload": "unknown"}, {"framework": "dummy"}]
)
def test_other_certificates_do_not_count(more: dict[str, object]) -> None:
    certificate(**more)
    assert certified() == {"copies": {}, "drifting": {}}


def test_the_certificate_of_a_single_process_is_of_no_strategy() -> None:
    certificate("single")
    certificate("single:1")
    assert certified() == {"copies": {}, "drifting": {}}


def test_the_list_as_json_has_what_a_framework_has_and_what_it_has_not(
    known: frameworks.Framework, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate()
    assert main(["list", "strategies", "--json"]) == 0
    copies, drifting, missing = json.loads(capsys.readouterr().out)
    assert (copies["framework"], copies["strategy"], copies["kind"]) == ("fake", "copies", "processes")
    assert (copies["available"], copies["other_algorithm"]) == (True, "")
    assert (copies["not_in_modes"], copies["not_for_workloads"]) == (
        {"slow": "it does not wait"},
        {"bert": "it is too large"},
    )
    assert copies["certified"] == {"resnet18:tiny": [2]}
    assert drifting["other_algorithm"].startswith("weights are averaged every few steps")
    assert (missing["kind"], missing["available"], missing["reason"]) == ("asynchronous", False, WITHOUT.reason)
    assert missing["script"] == str(known.folder / "proofs" / "asynchronous.py")
    assert missing["source"] == WITHOUT.source


def test_the_list_as_a_table_says_the_same(
    known: frameworks.Framework, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    certificate()
    assert main(["list", "strategies"]) == 0
    text = capsys.readouterr().out
    for line in (
        f"{known.title} (fake)",
        "copies (processes)",
        known.strategies["copies"].help,
        "Not in mode slow: it does not wait.",
        "Not for bert: it is too large.",
        "Certified: resnet18:tiny (2 parts)",
        "Another algorithm, so it has no certificate",
        "no asynchronous",
        WITHOUT.reason,
        "proofs/asynchronous.py",
        WITHOUT.source,
        "single:1",
        "alone:PARTS",
    ):
        assert line in text, line
    assert "nothing yet" not in text, "the strategy of another algorithm is never certified"


def test_a_framework_without_strategies_says_what_it_has_not(
    known: frameworks.Framework, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(frameworks, "contenders", lambda: {"fake": replace(known, strategies={})})
    assert main(["list", "strategies", "--json"]) == 0
    assert [row["kind"] for row in json.loads(capsys.readouterr().out)] == ["asynchronous"]
