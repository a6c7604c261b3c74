"""What a framework.toml says of strategies, and what they compute."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steelyard.catalog import frameworks, strategies
from steelyard.catalog.frameworks import BUILT_IN
from steelyard.catalog.strategies import STILL_SO
from steelyard.errors import UserError
from steelyard_worker.case import Settings
from steelyard_worker.strategy import SPREAD_ALONE, Spread
from steelyard_worker.strategy_kinds import KINDS

COPIES = '[strategies.copies]\nkind = "processes"\nhelp = "x"\nlauncher = "ranks"\n'


def read_with(folder: Path, text: str) -> frameworks.Framework:
    """Return the scripted framework, in a folder of its own, with this text at the end of its framework.toml."""
    own = folder / "scripted"
    shutil.copytree(BUILT_IN / "fake", own)
    file = own / frameworks.FILE
    kept = file.read_text().split("\n[strategies.")[0]
    file.write_text(f"{kept}\n{text}")
    frameworks.use([own])
    return frameworks.framework("scripted")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[strategies.copies]\nkind = "proceses"\nhelp = "x"\n', "'kind' must be one of"),
        ('[strategies.copies]\nhelp = "x"\n', r"lacks the key 'kind'"),
        (f'{COPIES}statistics = "all"\n', "'statistics' must be one of 'share', 'batch'"),
        (f'{COPIES}shares = "both"\n', "'shares' must be one of"),
        (f'{COPIES}[strategies.copies.unsupported]\nnone = "x"\n', "must be one of 'scripted'"),
        ('[strategies.server]\nkind = "server"\nhelp = "x"\n', "'server' is the name of a kind"),
        ('[without.pipeline]\nreason = "r"\nscript = "missing.py"\nsource = "s"\n', r"There is no proofs/missing\.py"),
        ('[without.nothing]\nreason = "r"\nscript = "missing.py"\nsource = "s"\n', "must be one of"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_with(tmp_path, text)


def test_ranks_that_exchange_nothing_exist_in_every_framework() -> None:
    known = frameworks.framework("fake")
    assert known.spread("alone:2") is SPREAD_ALONE
    assert known.spread("single") is known.spread("single:1") is None
    with pytest.raises(UserError, match="Fake has no strategy 'other'"):
        known.spread("other:2")


def test_a_strategy_sets_its_knobs(tmp_path: Path) -> None:
    known = read_with(tmp_path, f"{COPIES}knobs = {{ step_us = 5 }}\n")
    settings = Settings("scripted", knobs={"step_us": 7})
    assert known.complete(settings).knobs["step_us"] == 7
    assert known.complete(settings, "copies:2").knobs["step_us"] == 5


class Normalised:
    """Stands for a network with batch normalisation."""

    parameters = (type("P", (), {"kind": "running_var"})(),)
    mean_over = "samples"


class Plain:
    """Stands for a network without it."""

    parameters = (type("P", (), {"kind": "linear"})(),)
    mean_over = "samples"


class Worded(Plain):
    """Stands for a network whose loss is a mean over words."""

    mean_over = "words"


@pytest.mark.parametrize("kind", ["asynchronous", "local", "alone"])
def test_some_kinds_are_always_another_algorithm(kind: str) -> None:
    assert strategies.otherwise(Spread(kind, ""), Plain()) == KINDS[kind].otherwise != ""  # type: ignore[arg-type]


def test_statistics_of_shares_are_another_algorithm_where_there_are_any() -> None:
    share, batch = Spread("processes", ""), Spread("processes", "", statistics="batch")
    assert "batch normalisation" in strategies.otherwise(share, Normalised())  # type: ignore[arg-type]
    assert not strategies.otherwise(batch, Normalised())  # type: ignore[arg-type]
    assert not strategies.otherwise(share, Plain())  # type: ignore[arg-type]
    assert not strategies.otherwise(None, Normalised())  # type: ignore[arg-type]


def test_a_mean_over_words_is_another_one_where_it_is_taken_over_shares() -> None:
    share, batch = Spread("processes", ""), Spread("processes", "", loss="batch")
    assert "mean over words" in strategies.otherwise(share, Worded())  # type: ignore[arg-type]
    assert not strategies.otherwise(batch, Worded())  # type: ignore[arg-type]
    assert not strategies.otherwise(share, Plain())  # type: ignore[arg-type]


def test_every_proof_of_a_built_in_framework_can_fail() -> None:
    """A proof that has no way to say that the framework has learnt it proves nothing."""
    for known in frameworks.contenders().values():
        for kind, without in known.without.items():
            text = (known.folder / strategies.PROOFS / without.script).read_text()
            assert str(STILL_SO) in text, f"{known.name}: {kind}"
            assert without.source.startswith("https://")


def test_ranks_exchange_where_they_are_processes_that_average_or_train_asynchronously() -> None:
    exchanging = {kind for kind in KINDS if strategies.exchanges(Spread(kind, "", "ranks"))}
    assert exchanging == {"processes", "sharded", "server", "asynchronous", "library", "local"}
    assert not strategies.exchanges(Spread("processes", "", launcher=""))
    assert not strategies.exchanges(None)


def test_the_table_of_kinds_agrees_with_itself() -> None:
    """A part that computes some layers holds some of the weights; who averages or is asynchronous sends tensors."""
    assert all(does.divides for does in KINDS.values() if does.cuts)
    assert all(does.connects for does in KINDS.values() if does.averages)
    assert all(does.otherwise for does in KINDS.values() if not does.waits)
    assert [kind for kind, does in KINDS.items() if does.in_micro_batches] == ["pipeline"]


def test_nothing_is_said_of_a_kind_of_another_version() -> None:
    unknown = Spread("entangled", "", "ranks").does
    assert not any(
        (unknown.waits, unknown.connects, unknown.averages, unknown.cuts, unknown.divides, unknown.otherwise)
    )
