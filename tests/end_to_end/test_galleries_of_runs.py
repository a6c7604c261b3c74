"""`steelyard gallery` on a measured run, its bundle and a run of other settings, as a user gives the commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE

if TYPE_CHECKING:
    from finished_runs import Finished, Steelyard

pytestmark = pytest.mark.end_to_end


def test_a_run_its_bundle_and_a_run_of_other_settings_become_a_site(
    measured: Finished, uncertified: Finished, steelyard: Steelyard, tmp_path: Path
) -> None:
    everything, site = tmp_path / "everything", tmp_path / "site"
    shutil.copytree(uncertified.folder, everything / "somebody" / "uncertified")
    shutil.copytree(measured.folder, everything / "somebody" / "measured")
    damaged = Path(shutil.copytree(measured.folder, everything / "damaged"))
    (damaged / "run.json").write_text("{")
    made = steelyard("bundle", measured.folder, "-o", everything / "else" / "measured-bundle")
    assert made.returncode == 0, made.stderr
    done = steelyard("gallery", everything, "-o", site, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert sorted(each["run"] for each in found["runs"]) == ["measured-bundle", "uncertified"]
    (copy,) = found["copies"]
    assert copy.startswith(
        f"{everything / 'somebody' / 'measured'} is a copy of {everything / 'else' / 'measured-bundle'}"
    )
    assert f"steelyard: {damaged} was left out: {damaged / 'run.json'} is damaged" in done.stderr
    index = (site / "index.html").read_text()
    assert all(f'href="runs/{Path(each["page"]).name}"' in index for each in found["runs"])
    assert "Not comparable with the first table of this size: " in index
    shutil.rmtree(damaged)
    again = steelyard("gallery", everything, "-o", site)
    assert again.returncode == 0, again.stderr
    assert again.stdout == f"{site / 'index.html'}\n"


def test_nothing_is_measured_or_written_elsewhere(measured: Finished, steelyard: Steelyard, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in measured.data_folder.rglob("*")}
    done = steelyard("gallery", measured.data_folder / "runs", "-o", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in measured.data_folder.rglob("*")} == before
    assert LINE[1] not in (tmp_path / "site" / "index.html").read_text()
