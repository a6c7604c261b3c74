"""The program beside a profile of XLA: it tells the classes, and its loss is noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.profiles import recorded

if TYPE_CHECKING:
    from pathlib import Path

RULES = {
    "operations": [{"class": "elementwise", "names": ["^add"]}, {"class": "matrix product", "names": ["^dot"]}],
    "stack": [{"class": "optimizer", "names": ["update"]}],
}
PROGRAM = """HloModule jit_step, is_scheduled=true

ENTRY %main (a: f32[2,2]) -> f32[2,2] {
  %a = f32[2,2]{1,0} parameter(0)
  ROOT %add.1 = f32[2,2]{1,0} dot(%a, %a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / recorded.PROGRAM).write_text(PROGRAM)
    recorded.write_rules(tmp_path, RULES)
    return tmp_path


def test_instructions_of_the_step_are_looked_up_and_others_are_named_after_their_operation(folder: Path) -> None:
    class_of = recorded._class_of(folder, ("profile/program.txt",))
    assert class_of("jit_step/add.1") == "matrix product"
    assert class_of("jit_dot_general/add.1") == "matrix product"
    assert class_of("jit_step/add_1") == "matrix product"  # its kernel on a GPU
    assert class_of("jit_add/copy.1") == "elementwise"
    assert class_of("jit_other/what.1") == ""


def test_a_program_that_was_recorded_and_is_gone_is_an_error(folder: Path) -> None:
    (folder / "profile" / recorded.PROGRAM).unlink()
    with pytest.raises(OSError, match=recorded.PROGRAM):
        recorded._class_of(folder, ("profile/program.txt",))


def test_without_compilation_of_the_step_there_is_no_program(folder: Path) -> None:
    assert recorded._class_of(folder, ())("jit_add/add.1") == "elementwise"
