"""Plots as SVG and PDF, and event files of TensorBoard, read back; a missing library is one sentence."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import steelyard
from steelyard.errors import UserError
from steelyard.exports import plots, tensorboard_log
from steelyard.report import sections
from steelyard.report.figures import Figure, axis, frame

POINT = 72 / 25.4
# Kinds that have all kinds of plots between them.
KINDS = ("alone", "training", "diverged", "documents-of-profiles", "link-speed", "exported", "limits")


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_becomes_a_drawing_of_the_width_of_a_column(kind, readable):
    for run in readable(kind)[:1]:
        drawn = sections.figures_of(run.view())
        assert drawn
        for figure in {each.name.partition("/")[0]: each for each in drawn}.values():
            root = ET.fromstring(plots.content(figure, "svg"))
            assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(85 * POINT, abs=0.1)


def test_files_are_named_like_the_figures_and_have_captions(recorded, tmp_path):
    recorded("alone")
    run = steelyard.load("alone")
    files = run.export("svg", tmp_path / "figures")
    names = [each.name for each in sections.figures_of(run.view())]
    assert len(files) == len(names) + 1
    assert files[0].name.startswith("01-")
    captions = files[-1].read_text().splitlines()
    assert [re.match(r"\d\d-[\w-]+: ", line) is not None for line in captions] == [True] * len(names)


def test_a_pdf_is_one_page_and_the_same_bytes_each_time(recorded):
    recorded("training")
    figure = sections.figures_of(steelyard.load("training").view())[0]
    first, again = plots.content(figure, "pdf"), plots.content(figure, "pdf")
    assert first == again
    assert first.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", first)) == 1
    width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", first)[1])
    assert width == pytest.approx(85 * POINT, abs=0.1)


def test_points_are_where_the_data_is():
    layout = frame(300, xaxis=axis("x", range=[0, 10]), yaxis=axis("a <b>", range=[0, 4]))
    data = [
        {"x": [0, 5, 10], "y": [0, 2, 4], "mode": "lines", "line": {"color": "#123456", "dash": "dot"}, "name": "_a"}
    ]
    text = plots.content(Figure("f", "t", "c", data, layout), "svg").decode()
    assert "a &lt;b&gt;" in text
    path = re.search(
        r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) \n"[^>]*stroke: #123456', text
    )
    x0, y0, x1, y1, x2, y2 = map(float, path.groups())
    assert (x1 - x0, y0 - y1) == (pytest.approx(x2 - x1, abs=0.01), pytest.approx(y1 - y2, abs=0.01))
    assert x2 > x0
    assert y2 < y0


def test_hostile_names_are_texts_of_the_drawing():
    data = [
        {
            "x": [1],
            "y": [1],
            "mode": "markers",
            "name": "</text><script>$x^2$ \\input",
            "marker": {"symbol": "star-open"},
        }
    ]
    content = plots.content(Figure("f", "t", "c", data, frame(200, legend={"x": 0})), "svg")
    assert b"<script" not in content
    ET.fromstring(content)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("svg", "matplotlib", "plots"), ("pdf", "matplotlib", "plots"), ("tensorboard", "tensorboard", "tensorboard")],
)
def test_a_missing_library_is_one_sentence(name, module, extra, recorded, tmp_path, monkeypatch):
    recorded("training")
    for known in [each for each in sys.modules if each.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, known, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        UserError, match=rf"^The format {name} needs the package {module}: pip install 'steelyard\[{extra}\]'$"
    ):
        steelyard.load("training").export(name, tmp_path / "out")


def test_tensorboard_reads_the_learning_curves_and_the_table(recorded, tmp_path):
    recorded("learning")
    run = steelyard.load("learning")
    files = run.export("tensorboard", tmp_path / "log")
    contender = run.comparisons[0].measured.contenders[0]
    trial = contender.trials[0]
    (folder,) = {path.parent for path in files if path.parent.name == tensorboard_log._word(trial.folder.name)}
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    source = trial.blocks[0].input
    losses = [event.value for event in events.Scalars(f"loss/{source}")]
    assert losses == pytest.approx(trial.losses(source).tolist())
    name, value = next(iter(trial.evaluations[0].scores.items()))
    assert events.Scalars(f"test/{name}")[0].value == pytest.approx(value)
    tables = EventAccumulator(str(tmp_path / "log" / "verdicts"))
    tables.Reload()
    (event,) = tables.Tensors("verdicts")
    assert "| framework | version, mode |" in event.tensor_proto.string_val[0].decode()


def test_names_of_folders_lead_nowhere_else():
    assert [tensorboard_log._word(name) for name in ("../x", "a/b:c", "..", "")] == ["x", "a-b-c", "unnamed", "unnamed"]
