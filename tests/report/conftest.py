"""Views of hand-written runs, each made once."""

from __future__ import annotations

import io
from functools import partial

import pytest
from jinja2 import BytecodeCache, Environment
from recorded import Script, view_of, write_run
from rich.console import Console

from steelyard.report import page, terminal


class Compiled(BytecodeCache):
    """Templates that this process has compiled, by a hash of their text: to compile them takes longer than to make a small page."""

    def __init__(self):
        self._known = {}

    def load_bytecode(self, bucket):
        if bucket.key in self._known:
            bucket.bytecode_from_string(self._known[bucket.key])

    def dump_bytecode(self, bucket):
        self._known[bucket.key] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def _templates_are_compiled_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "Environment", partial(Environment, bytecode_cache=Compiled()))
        yield


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
