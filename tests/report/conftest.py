"""Views of hand-written runs, each made once."""

from __future__ import annotations

import io

import pytest
from recorded import Script, view_of, write_run
from rich.console import Console

from steelyard.report import terminal


@pytest.fixture(scope="session")
def recorded_view(tmp_path_factory):
    """Fake is faster than Dummy by a fifth, on both inputs; both are certified."""
    return view_of(write_run(tmp_path_factory.mktemp("runs"), {"fake": Script(10.0), "dummy": Script(12.0, spike=4.0)}))


@pytest.fixture(scope="session")
def uncertified_view(tmp_path_factory):
    """Dummy is rejected, so there is no other contender to compare Fake with."""
    scripts = {
        "fake": Script(10.0),
        "dummy": Script(8.0, passed=False, sentence="head.bias after 1 step is off by 3.1e-02."),
    }
    return view_of(write_run(tmp_path_factory.mktemp("runs"), scripts))


@pytest.fixture(scope="session")
def printed():
    """Return a function that prints a view for a terminal of a given width."""

    def show(view, width):
        file = io.StringIO()
        terminal.print_view(Console(file=file, width=width, highlight=False), view)
        return file.getvalue()

    return show
