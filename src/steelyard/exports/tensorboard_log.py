"""Learning curves, values and verdict tables as event files of TensorBoard: one folder for each process, one for the tables."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from steelyard.exports import extras, markdown
from steelyard.results.learning import by_step, course

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.analysis.model import View
    from steelyard.results.trials import Trial

TEXT_PLUGIN = "text"


def write(view: View, folder: Path) -> list[Path]:
    """Write the event files and return them. UserError: tensorboard is not installed."""
    files = extras.needed(
        "tensorboard.summary.writer.event_file_writer", "tensorboard", "tensorboard", "The format tensorboard"
    )
    before = set(folder.rglob("events.*"))
    started = view.record.started.timestamp()
    for name, trial in _processes(view):
        _written(files, folder / name, started, list(_scalars(trial)))
    _written(files, folder / "verdicts", started, [_text("verdicts", markdown.text(view))])
    return sorted(set(folder.rglob("events.*")) - before)


def _processes(view: View) -> Iterator[tuple[str, Trial]]:
    """Yield (name of a folder, process) of all contenders."""
    for comparison in view.comparisons:
        for contender in comparison.contenders:
            for trial in contender.trials:
                yield f"{_word(comparison.group)}/{_word(contender.variant)}/{_word(trial.folder.name)}", trial


def _scalars(trial: Trial) -> Iterator[tuple[int, Any]]:
    """Yield (step, summary) of the losses on each input, of the scores of the test metric, and of each epoch."""
    for source in dict.fromkeys(block.input for block in trial.blocks):
        losses = by_step(trial, source)[1]
        yield from (_scalar(f"loss/{source}", step, value) for step, value in enumerate(losses.tolist(), 1))
    for evaluation in trial.evaluations:
        yield from (_scalar(f"test/{name}", evaluation.steps, value) for name, value in evaluation.scores.items())
    if trained := course(trial):
        for step, seconds, loss in zip(trained.steps, trained.seconds, trained.losses, strict=True):
            yield _scalar("epoch/loss", int(step), loss)
            yield _scalar("epoch/seconds of training", int(step), seconds)


def _scalar(tag: str, step: int, value: float) -> tuple[int, Any]:
    from tensorboard.compat.proto.summary_pb2 import Summary

    return step, Summary(value=[Summary.Value(tag=tag, simple_value=value if math.isfinite(value) else math.nan)])


def _text(tag: str, text: str) -> tuple[int, Any]:
    """Return a text, which TensorBoard shows as Markdown."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING

    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode()], tensor_shape=shape)
    plugin = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=TEXT_PLUGIN))
    return 0, Summary(value=[Summary.Value(tag=tag, metadata=plugin, tensor=tensor)])


def _written(files: Any, folder: Path, started: float, summaries: list[tuple[int, Any]]) -> None:
    """Write an event file; no event has a time of its own, so all have that of the start of the run."""
    from tensorboard.compat.proto.event_pb2 import Event

    if not summaries:
        return
    writer = files.EventFileWriter(str(folder))
    for step, summary in summaries:
        writer.add_event(Event(wall_time=started, step=step, summary=summary))
    writer.close()


def _word(name: str) -> str:
    """Return a name that can be that of a folder everywhere, and leads nowhere else."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", name).strip(".-") or "unnamed"
