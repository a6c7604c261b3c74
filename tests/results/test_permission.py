"""What a record may have executed: which parts of it the mark covers, and what the user's own words allow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_run_folders import PLAN

from steelyard.errors import UserError
from steelyard.files import paths, user_key
from steelyard.plan.options import Options
from steelyard.plan.run_plan import RunPlan
from steelyard.results import permission, record
from steelyard.results.record import RunRecord

FOLDER = "/someone/workloads/line"


def of(plan: RunPlan, machine: str = "m", allowed: str = "") -> RunRecord:
    """Return a record of a plan."""
    return RunRecord(plan, "2026-01-01T00:00:00+00:00", "complete", "steelyard run", machine=machine, allowed=allowed)


@pytest.fixture
def plan() -> RunPlan:
    """A plan with a workload, a framework and an interpreter of somebody's own."""
    options = replace(PLAN.options, framework_folders=("/someone/frameworks",), external={"fake": "/someone/python"})
    return replace(
        PLAN,
        options=options,
        workload_folders={"line": FOLDER},
        workload_hashes={"line": "1" * 16},
        framework_hashes={"own": "2" * 16},
    )


def test_a_marked_record_is_allowed_on_its_machine_only(plan: RunPlan) -> None:
    allowed = permission.mark(plan, "m")
    permission.check("r", of(plan, "m", allowed), Options())
    for known in (of(plan, "n", allowed), of(plan, "", allowed), of(plan, "m", ""), of(plan, "m", allowed[:-1])):
        with pytest.raises(UserError, match=r"^Run r would execute the workload line in /someone/workloads/line, the "):
            permission.check("r", known, Options())


def test_what_comes_with_steelyard_needs_no_mark_and_no_key(
    plan: RunPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path))
    own = str(permission.workloads.BUILT_IN / "resnet18")
    built_in = replace(plan, options=PLAN.options, workload_folders={"resnet18": own})
    assert record.new(built_in, "steelyard run", "").allowed == ""
    assert not (paths.state_folder() / user_key.FILE).exists()
    permission.check("r", of(built_in), Options())


@pytest.mark.parametrize("name", ["..", ".", "", "\0", "resnet18/..", "resnet18/../../workloads/nothing", "nothing"])
def test_a_path_that_only_begins_as_those_of_steelyard_is_foreign(name: str, plan: RunPlan) -> None:
    folder = f"{permission.workloads.BUILT_IN}/{name}"
    odd = replace(plan, workload_folders={"line": folder})
    assert permission.foreign(odd).workloads
    with pytest.raises(UserError, match=r"^Run r would execute the workload line in"):
        permission.check("r", of(odd), Options())


@pytest.mark.parametrize("named", [FOLDER, "/someone/workloads", "/someone/other/../workloads"])
def test_a_workload_is_named_by_its_folder_or_the_one_that_holds_it(named: str, plan: RunPlan) -> None:
    options = Options(
        workload_folders=(named,), framework_folders=("/someone/frameworks",), external={"fake": "/someone/python"}
    )
    permission.check("r", of(plan), options)


@pytest.mark.parametrize("named", ["/someone", "/", "/someone/workloads/line/inner"])
def test_no_other_folder_names_it(named: str, plan: RunPlan) -> None:
    with pytest.raises(UserError, match=f"^--workloads {named} is not in this run"):
        permission.check("r", of(plan), Options(workload_folders=(named,)))


def test_an_interpreter_is_named_with_its_environment(plan: RunPlan) -> None:
    folders = Options(workload_folders=(FOLDER,), framework_folders=("/someone/frameworks",))
    for external in ({"dummy": "/someone/python"}, {"fake": "/usr/bin/python"}):
        with pytest.raises(UserError, match=r"^--env .* is not in this run"):
            permission.check("r", of(plan), replace(folders, external=external))
    with pytest.raises(
        UserError, match=r"would execute the interpreter /someone/python of fake, .* add: --env fake=/som"
    ):
        permission.check("r", of(plan), folders)


def test_a_folder_that_the_run_was_given_and_did_not_use_may_be_named(plan: RunPlan) -> None:
    plan = replace(plan, options=replace(plan.options, workload_folders=("/someone/more",)))
    permission.check("r", of(plan, "m", permission.mark(plan, "m")), Options(workload_folders=("/someone/more",)))


def test_what_is_to_be_added_can_be_typed_as_it_is(plan: RunPlan) -> None:
    plan = replace(plan, options=PLAN.options, workload_folders={"line": "/some one/it's"})
    with pytest.raises(UserError, match=r"add: --workloads '/some one/it'\"'\"'s'$"):
        permission.check("r", of(plan), Options())
