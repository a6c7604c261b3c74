"""What a run's record says, without what must differ between two runs of one plan: times, and the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard import analysis
from steelyard.results import record, trials

if TYPE_CHECKING:
    from pathlib import Path


def only_run(data_folder: Path) -> Path:
    """Return the folder of the only run."""
    (folder,) = (path.parent for path in data_folder.glob("runs/*/run.json"))
    return folder


def finished(run: Path) -> dict[str, bytes]:
    """Return {name of a finished trial: the events that its process wrote}.

    Those that follow are the launcher's: a node may have written them when nobody was there to receive them.
    """
    found = {path.parent.name: path.read_bytes().splitlines() for path in run.glob("trials/*/events.jsonl")}
    ends = {name: [b'"event": "done"' in line for line in lines] for name, lines in found.items()}
    return {name: b"\n".join(found[name][: done.index(True) + 1]) for name, done in ends.items() if any(done)}


def counted(run: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Return what a run has measured, without times and nodes: (case, round) -> facts of the trial that counts."""
    lost = {(note["group"], note["round"], note["attempt"]) for note in record.read_rounds(run)[0] if not note["kept"]}
    groups = {variant.case.id: variant.group for variant in record.read(run).plan.variants}
    found, damaged = trials.read_all(run)
    # A process that met a full disk may leave a file cut short; its round is repeated.
    repeated = [f"/r{number:02d}.{attempt}-" for _, number, attempt in lost]
    assert not [sentence for sentence in damaged if not any(name in sentence for name in repeated)]
    return {
        (trial.job.case.id, trial.job.round): {
            "losses": trial.first_losses(20),
            "applied": trial.applied,
            "outputs": trial.outputs,
            "inputs": [(block.input, block.phase) for block in trial.blocks][:1],
        }
        for trial in found
        if trial.done and (groups[trial.job.case.id], trial.job.round, trial.job.attempt) not in lost
    }


def certificates(run: Path) -> dict[str, Any]:
    """Return the certificates of a run without the time at which they were made."""
    return {key: {**each, "created": ""} for key, each in record.read_certificates(run).items()}


def verdicts(run: Path) -> dict[tuple[str, str], str]:
    """Return what a run says of each pair."""
    (comparison,) = analysis.view(run).comparisons
    return {(pair.a, pair.b): pair.kind for pair in comparison.rankings["cached"].verdicts}


def kept_nodes(run: Path) -> set[str]:
    """Return the nodes whose rounds count."""
    return {note["node"] for note in record.read_rounds(run)[0] if note["kept"]}
