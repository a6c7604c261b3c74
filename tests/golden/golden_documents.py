"""Records of runs that are compared with published figures, written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import golden_archives
from golden_scripted import PAIR, QUICK, many_cores, written
from recorded import Script, options, unstated
from recorded_trials import write_graph
from test_graph_page import RULES as GRAPH_RULES
from test_graph_page import STAGES, WANTED

from steelyard.plan import resolve, studies
from steelyard.plan.options import Options
from steelyard.published.gathering import gather
from steelyard.published.study_tables import StudyTable
from steelyard.results import record
from steelyard.statistics import scores
from steelyard.statistics.conditions import Conditions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.published.gathering import Published

ARMS = {"mindspore": "fake", "pytorch": "dummy"}
HELD = (
    StudyTable("S0:table-2", where={"quantity": "training time"}, sides=ARMS, compare=("mindspore", "pytorch")),
    StudyTable("S0:table-2-ratios", where={"device": "V100"}, sides=ARMS),
    StudyTable("S0:table-2", where={"quantity": "accuracy"}, sides=ARMS),
    StudyTable("S0:claim-speed-and-accuracy", where={"quantity": "speed"}, sides=ARMS),
)
STANDS_FOR = {"line:small": "googlenet:cifar10"}


def _documents(root: Path, name: str, size: str, stated: bool, scripts: dict[str, Script] = PAIR) -> None:
    known: Published = gather("mindspore-training", HELD, size)
    written(root, name, scripts, published=known, stands_for=STANDS_FOR, stated=stated)


def documents(root: Path) -> None:
    """Published figures that are judged, at the full size of a study."""
    _documents(root, "documents", "C", stated=False)


def documents_quick(root: Path) -> None:
    """The same at the quick size, with the opposite order."""
    _documents(
        root,
        "documents-quick",
        "Q",
        stated=False,
        scripts={"fake": Script(14.0, **QUICK), "dummy": Script(12.0, **QUICK)},
    )


def documents_apart(root: Path) -> None:
    """Published figures of other settings: a ratio stands with what differs, without a word."""
    _documents(root, "documents-apart", "P", stated=True)


CELL = "vgg16:imagenet"
OVERHEAD = StudyTable(
    "S1:table-7-overhead",
    where={"cell": CELL, "framework": "tensorflow", "devices": 2},
    sides={"tensorflow": "fake,strategy=copies"},
)


def documents_of_strategies(root: Path) -> None:
    """Published overheads of several devices, beside ranks that exchange nothing and by weak scaling."""
    scripts = {
        "batch=16/fake/scripted,strategy=single": Script(10.0, **QUICK),
        "batch=32/fake/scripted,strategy=copies": Script(10.3, **QUICK),
        "batch=32/fake/scripted,strategy=alone": Script(10.0, passed=False, **QUICK),
        "fake": Script(20.0, passed=None, **QUICK),
    }
    wanted = options(
        frameworks=("fake",), strategies=("single:1", "copies:2", "alone:2"), threads=(1,), batches=(16, 32)
    )
    held = (OVERHEAD, replace(OVERHEAD, quantity="weak scaling"))
    names = {f"line:small,batch={batch}": CELL for batch in (16, 32)}
    with many_cores():
        written(
            root,
            "documents-of-strategies",
            scripts,
            wanted,
            published=gather("multi-device-speed", held, "Q"),
            stands_for=names,
            stated=False,
        )


def documents_of_profiles(root: Path) -> None:
    """Published shares and counts of operations, beside profiles of three processes."""
    scripts = {
        f"{group}/{name}": Script(step_ms, rounds=2, operations=operations)
        for group, operations in (("vgg16:tiny", 10), ("tacotron2:tiny", 100))
        for name, step_ms in (("pytorch", 10.0), ("tensorflow", 12.0))
    }
    wanted = Options(study="gpu-share", size="Q", frameworks=("pytorch", "tensorflow"))
    written(root, "documents-of-profiles", scripts, wanted, stated=False)


def documents_of_scores(root: Path) -> None:
    """Published claims on accuracy, beside what the trainings of three seeds reached."""
    golden_archives.unpack("learning", root)
    folder = (root / "runs" / "learning").rename(root / "runs" / "documents-of-scores")
    plan = record.read(folder).plan
    sides = {"mindspore": "fake", "pytorch": "dummy", "tensorflow": "fake"}
    held = (
        *(
            StudyTable("S0:claim-speed-and-accuracy", quantity, where={"quantity": "accuracy"}, sides=sides)
            for quantity in (scores.SCORE, scores.BEST, scores.CONVERGENCE, scores.LOSS)
        ),
        StudyTable("S3:claim-equal-results", "score", sides=sides),
    )
    known = unstated(gather("mindspore-training", held, "P"))
    tables = tuple(
        replace(table, statements=tuple(replace(each, cell="", optimizer="") for each in table.statements))
        for table in known.tables
    )
    record.update(folder, plan=replace(plan, published=replace(known, tables=tables)))


def documents_of_batches(root: Path) -> None:
    """A published mean and maximum over batches, beside a run at three, and one claim at several."""
    known = gather("conv-algorithms", studies.study("conv-algorithms").published, "P")
    (table, *_) = (each for each in known.tables if any(one.statistic for one in each.statements))
    statements = tuple(
        replace(
            each,
            cell="",
            optimizer="",
            conditions=(Conditions(),),
            first=replace(each.first, framework="dummy", mode="", settings={}),
            second=replace(each.second, framework="fake", mode="", settings={}) if each.second else None,
        )
        for each in table.statements
    )
    scripts = {"batch=32/fake": Script(20.0, **QUICK), "fake": Script(10.0, **QUICK), "dummy": Script(15.0, **QUICK)}
    written(
        root,
        "documents-of-batches",
        scripts,
        options(batches=(16, 32, 64)),
        published=replace(known, tables=(replace(table, statements=statements),)),
        stated=False,
    )


def documents_of_graphs(root: Path) -> None:
    """Published counts of operations, beside those of graphs that were counted here."""
    published = studies.study("graph-optimizations").published
    folder = written(
        root,
        "documents-of-graphs",
        {"tensorflow": Script(10.0, **QUICK), "pytorch": Script(9.0, **QUICK)},
        WANTED,
        published=gather("graph-optimizations", published, "P"),
        stands_for={"resnet18:tiny": "resnet50:imagenet"},
        stated=False,
    )
    names = {each.name: each.file_name for each in resolve.plan(WANTED).variants}
    write_graph(folder / "graphs" / names["tensorflow/graph,passes=all"], STAGES, GRAPH_RULES)
    write_graph(folder / "graphs" / names["tensorflow/graph,passes=others"], STAGES[:2], GRAPH_RULES, done=False)
    write_graph(folder / "graphs" / names["pytorch/eager"], [], GRAPH_RULES, error="Eager PyTorch makes no graph.")


def without_numbers(root: Path) -> None:
    """A study whose documents print no number that could be compared."""
    known = gather("onnx-exchange", studies.study("onnx-exchange").published, "P")
    written(root, "without-numbers", PAIR, published=known, stands_for=STANDS_FOR)


MAKERS: dict[str, Callable[[Path], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        documents,
        documents_quick,
        documents_apart,
        documents_of_strategies,
        documents_of_profiles,
        documents_of_scores,
        documents_of_batches,
        documents_of_graphs,
        without_numbers,
    )
}
