"""The notebook in examples/ runs from its first cell to its last, in a kernel of its own, on a recorded run."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "read-a-run.ipynb"


def test_the_notebook_shows_the_recorded_run(recorded, tmp_path, monkeypatch):
    recorded("training")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), (
        "what a notebook shows is of the machine that runs it"
    )
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    html = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert "<strong>Fake is the fastest.</strong>" in html[0]
    assert "310 MiB" in html[1]
    assert "".join(output["text"] for output in shown if output["output_type"] == "stream").startswith(
        "Fake is 1.21x [1.17, 1.25] faster"
    )
    assert "dummy/scripted" in html[-1]
