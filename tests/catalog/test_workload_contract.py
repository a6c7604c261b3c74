"""A workload that was written for another contract gets a sentence that says what was renamed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tomllib

from steelyard.catalog import scaffold, workload_contract, workloads
from steelyard.errors import UserError
from steelyard_worker import network

LINE = Path(__file__).parents[1] / "workloads" / "line"


def older(tmp_path: Path, old: str, new: str, contract: str = "") -> workloads.Workload:
    folder = shutil.copytree(LINE, tmp_path / "line")
    code = (folder / "network.py").read_text()
    assert old in code
    (folder / "network.py").write_text(code.replace(old, new))
    (folder / "spec.toml").write_text(contract + (folder / "spec.toml").read_text())
    return workloads.parse(folder / "spec.toml")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"constant:0")', '"constant:0", idle=True)'),
        ("features * classes)", "features * classes, answers=None)"),
        ("return Network", "print(parameters[0].idle)\n    return Network"),
    ],
)
@pytest.mark.parametrize("contract", ["", "contract = 1\n"])
def test_an_old_name_is_explained(old: str, new: str, contract: str, tmp_path: Path) -> None:
    found = older(tmp_path, old, new, contract)
    with pytest.raises(UserError) as refused:
        found.networks()
    message = str(refused.value)
    assert "'idle' of a Parameter is called 'zero_gradient' since contract 2" in message
    assert "'answers' of a Network is called 'predictions' since contract 2" in message
    assert message.endswith("write contract = 2 into spec.toml.") and "\n" not in message


@pytest.mark.parametrize(("new", "contract"), [("mistake", ""), ("idle", "contract = 2\n")])
def test_other_errors_are_not(new: str, contract: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        older(tmp_path, '"constant:0")', f'"constant:0", {new}=True)', contract).networks()
    assert "contract" not in str(refused.value)


def test_a_contract_of_a_later_steelyard_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"spec\.toml, line 1: contract = 3 is not known: this steelyard has the contracts 1 to 2"
    ):
        older(tmp_path, "features", "features", "contract = 3\n")


def test_the_new_names_exist_and_the_old_ones_do_not() -> None:
    for names in workload_contract.RENAMED.values():
        for kind, old, new in names:
            fields = getattr(network, kind).__dataclass_fields__
            assert new in fields and old not in fields


def test_new_workloads_state_the_contract(tmp_path: Path) -> None:
    folders = [scaffold.write("new", tmp_path, ["pytorch"]), scaffold.copy("copied", tmp_path, "vit", [], [])]
    folders += [scaffold.copy("other", tmp_path, "bert", [], [])]
    for folder in folders:
        assert tomllib.loads((folder / "spec.toml").read_text())["contract"] == workload_contract.VERSION
