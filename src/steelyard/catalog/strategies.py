"""The strategies of a framework: how it spreads a computation, what it lacks, and when that computes something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from steelyard.files import settings_files
from steelyard_worker.strategy import OWN_LAUNCHER, Spread
from steelyard_worker.strategy_kinds import KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard_worker.network import Network

PROOFS = "proofs"
"""Folder, beside `framework.toml`, of the scripts that show what a framework cannot do."""
STILL_SO = 7
"""Exit code of such a script while the framework cannot do it; 0: it can do it now."""


@dataclass(frozen=True)
class Without:
    """Why a framework has no strategy of a kind. `script`: the smallest that shows it; `source`: page of the framework's own."""

    reason: str
    script: str
    source: str


def read_spreads(path: Path, tables: dict[str, Any], modes: dict[str, str]) -> dict[str, Spread]:
    """Return the strategies in `[strategies.NAME]` of a framework.toml; UserError: one is not as it must be."""
    return {name: _spread(path, name, table, modes) for name, table in tables.items()}


def _spread(path: Path, name: str, table: Any, modes: dict[str, str]) -> Spread:
    where = f"strategies.{name}"
    spread: Spread = settings_files.build(path, table, where, Spread)
    settings_files.check_one_of(path, "kind", spread.kind, KINDS, where)
    settings_files.check_one_of(path, "shares", spread.shares, ("batch", "network"), where)
    for key in ("statistics", "loss"):
        settings_files.check_one_of(path, key, getattr(spread, key), ("share", "batch"), where)
    for mode in spread.unsupported:
        settings_files.check_one_of(path, mode, mode, modes, f"{where}.unsupported")
    if name in KINDS:
        raise settings_files.wrong(path, "", where, f"[{where}]: '{name}' is the name of a kind. Choose another name.")
    if spread.launcher.split("+")[0] != OWN_LAUNCHER and "+" in spread.launcher.split(" ", 1)[0]:
        raise settings_files.wrong(path, "launcher", where, f"Roles follow '{OWN_LAUNCHER}', as in 'ranks+server'.")
    return spread


def read_without(path: Path, tables: dict[str, Any]) -> dict[str, Without]:
    """Return what `[without.KIND]` says; UserError: a table is not as it must be, or its script is missing."""
    found = {}
    for kind, table in tables.items():
        where = f"without.{kind}"
        settings_files.check_one_of(path, kind, kind, KINDS, "without")
        found[kind] = settings_files.build(path, table, where, Without)
        if not (path.parent / PROOFS / found[kind].script).is_file():
            sentence = f"There is no {PROOFS}/{found[kind].script} beside this file."
            raise settings_files.wrong(path, "script", where, sentence)
    return found


def exchanges(spread: Spread | None) -> TypeGuard[Spread]:
    """Return whether the ranks of such a strategy are processes that average something, or train asynchronously."""
    return spread is not None and spread.several_processes and spread.does.connects and not spread.does.cuts


def otherwise(spread: Spread | None, network: Network) -> str:
    """Return what a strategy computes instead of the training of one process; empty where it computes the same."""
    if spread is None:
        return ""
    if reason := spread.does.otherwise:
        return reason
    if spread.statistics == "share" and any(each.kind == "running_var" for each in network.parameters):
        return "batch normalisation computes with the statistics of each rank's share, not of the whole batch"
    if spread.loss == "share" and network.mean_over != "samples":
        return f"the loss is a mean over {network.mean_over}, and every rank's share has another number of them"
    return ""
