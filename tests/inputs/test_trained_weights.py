"""Given weights are what a case computes with, exactly, and a file that does not fit is refused before anything is created."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.catalog import given_weights
from steelyard.cli.main import main
from steelyard.console import Screen
from steelyard.environments.pending import already
from steelyard.errors import UserError
from steelyard.inputs import case_inputs, trained_weights
from steelyard.measure import checkpoints
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard_worker import tensors
from steelyard_worker.network import Network, Parameter

if TYPE_CHECKING:
    from steelyard.inputs.case_inputs import CaseInputs
    from steelyard.plan.run_plan import RunPlan

WORKLOADS = Path(__file__).parents[1] / "workloads"
WEIGHT = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
BIAS = np.array([0.5, 0.0, -0.5], np.float32)
GIVEN = {"head.weight": WEIGHT, "head.bias": BIAS}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


def planned(weights: str | Path = "", **options: Any) -> RunPlan:
    given = {"workloads": ("line",), "frameworks": ("fake",), "workload_folders": (str(WORKLOADS),), **options}
    return resolve.plan(Options(weights=str(weights), **given))


def prepared(plan: RunPlan) -> CaseInputs:
    case_inputs.check(plan)
    (found,) = case_inputs.prepare(plan, lambda _: None, checkpoints.reader(plan, already({}), Screen())).values()
    return found


def saved(path: Path, **arrays: Any) -> Path:
    with path.open("wb") as file:
        np.savez(file, **(arrays or GIVEN))
    return path


def fake_file(path: Path, **arrays: Any) -> Path:
    """Write the made-up format of the framework `fake`."""
    return saved(path, **{name.replace(".", "/"): array.T for name, array in (arrays or GIVEN).items()})


@pytest.mark.parametrize("task", ["training", "inference"])
def test_the_weights_are_those_of_the_file_in_a_training_and_an_inference(task: str, tmp_path: Path) -> None:
    """Drawn weights of an inference are moved away from their constants; given ones must not be."""
    found = tensors.read(prepared(planned(saved(tmp_path / "w.npz"), tasks=(task,))).weights)
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in GIVEN.items()
    }


def test_a_framework_reads_its_own_file_in_a_process_and_hands_over_canonical_tensors(tmp_path: Path) -> None:
    own = prepared(planned(fake_file(tmp_path / "w.fake")))
    assert np.array_equal(tensors.read(own.weights)["head.weight"], WEIGHT)
    arrays = prepared(planned(saved(tmp_path / "w.npz")))
    assert own.identity == arrays.identity  # equal weights are equal inputs, whatever file they come from


def test_weights_decide_a_case_its_recipe_and_its_inputs(tmp_path: Path) -> None:
    plans = [
        planned(),
        planned(saved(tmp_path / "a.npz")),
        planned(saved(tmp_path / "b.npz", **GIVEN | {"head.bias": BIAS + 1})),
    ]
    cases = [plan.variants[0].case for plan in plans]
    for ids in (
        [case.id for case in cases],
        [case_inputs.recipe(case) for case in cases],
        [prepared(plan).identity for plan in plans],
    ):
        assert len(set(ids)) == 3


def test_without_given_weights_nothing_about_a_case_is_another_one() -> None:
    """Ids and recipes of before there was such a field; a change would part histories and make caches anew."""
    case = planned().variants[0].case
    fixed = replace(case, settings=replace(case.settings, threads=2, knobs={}), specification="0" * 16)
    assert (fixed.id, case_inputs.recipe(fixed)) == ("876e08615e718840", "46f7187f4a7bfa8b225b")


def test_the_file_is_needed_once_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "w.npz")
    plan = planned(path)
    identity = prepared(plan).identity
    saved(path, **GIVEN | {"head.bias": BIAS + 1})
    with pytest.raises(UserError, match=r"w\.npz has changed since this run began, so it cannot be continued"):
        case_inputs.check(plan)
    path.unlink()
    assert prepared(plan).identity == identity
    with pytest.raises(UserError, match=r"The weights of this run are in .*w\.npz, which is gone\. Put it back"):
        case_inputs.check(_as_of_another_file(plan))


def _as_of_another_file(plan: RunPlan) -> RunPlan:
    """Return the plan as if its file had another digest, of which the cache has nothing."""
    (group,) = plan.groups
    variants = tuple(replace(each, case=replace(each.case, weights="0" * 16)) for each in group.variants)
    return replace(plan, groups=(replace(group, variants=variants),))


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (
            {"head.weight": WEIGHT, "head.bais": BIAS},
            (
                "w.npz does not fit line:small. It lacks 'head.bias' (nearest: 'head.bais'). "
                "It has 'head.bais', which the network does not have; rename it."
            ),
        ),
        (
            {"head.weight": WEIGHT.T, "head.bias": BIAS},
            (
                "w.npz does not fit line:small. 'head.weight' has the shape (8, 3) instead of (3, 8) "
                "(it lies as (in, out), as in some frameworks; save array.T)."
            ),
        ),
        (
            {"head.weight": WEIGHT, "head.bias": np.arange(3)},
            "w.npz does not fit line:small. 'head.bias' (int64) is of no floating type; save float32.",
        ),
        (
            {"head.weight": WEIGHT, "head.bias": np.array([1, np.inf, 2], np.float32)},
            "w.npz: 'head.bias' has a value that is not finite (NaN or infinite); the training has failed.",
        ),
    ],
)
def test_a_dry_run_names_what_does_not_fit_and_creates_nothing(
    arrays: dict[str, Any], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path / "w.npz", **arrays)
    line = ["run", "--workloads", str(WORKLOADS), "-w", "line", "-f", "fake", "--dry-run", "--weights", str(path)]
    assert main(line) == 2
    assert capsys.readouterr().err.splitlines() == [f"steelyard: {sentence}"]
    assert not (tmp_path / "cache").exists()


def test_one_file_is_that_of_one_network(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"w\.npz: one file holds the weights of one network, and this run has 2 \(.*\)"
    ):
        planned(saved(tmp_path / "w.npz"), set=("classes=3,4",))
    assert len(planned(tmp_path / "w.npz", batches=(4, 8)).variants) == 2  # the same tensors


def zipped(path: Path, name: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"x" * 99)


FORMATS = {
    "text.npz": (lambda path: path.write_text("epoch,loss\n1,0.5\n"), "text.npz is a text file and holds no weights."),
    "empty.pt": (Path.touch, "empty.pt is an empty file and holds no weights."),
    "torch.npz": (
        lambda path: zipped(path, "torch/data.pkl"),
        "torch.npz is a file of PyTorch, not a NumPy archive; rename it to torch.pt.",
    ),
    "lightning.ckpt": (
        lambda path: zipped(path, "archive/data.pkl"),
        "lightning.ckpt is a file of PyTorch, not of MindSpore; rename it to lightning.pt.",
    ),
    "keras.pt": (
        lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99)),
        (
            "keras.pt is an HDF5 file of Keras, not of PyTorch; write the arrays under the names of network.py: "
            "numpy.savez(FILE, **{name: array})."
        ),
    ),
    "list.pth": (
        lambda path: path.write_bytes(b"\x12\x01" + bytes(99)),
        "list.pth is a file of MXNet, not of PyTorch; rename it to list.params.",
    ),
    "arrays.params": (
        saved,
        "arrays.params is a NumPy archive; give it the ending .npz, so that it is read without a framework.",
    ),
    "noise.safetensors": (
        lambda path: path.write_bytes(bytes([200, 3, 7]) * 99),
        "noise.safetensors is damaged or truncated, or not a safetensors file; write it again, or copy it again.",
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_not_what_it_is_called_is_recognised(name: str, tmp_path: Path) -> None:
    write, sentence = FORMATS[name]
    write(tmp_path / name)
    with pytest.raises(UserError) as refused:
        case_inputs.check(planned(tmp_path / name))
    assert str(refused.value) == sentence


def test_a_framework_without_the_workload_cannot_read_its_file(tmp_path: Path) -> None:
    zipped(tmp_path / "w.pt", "archive/data.pkl")
    with pytest.raises(
        UserError, match=r"w\.pt is read by PyTorch, which has no implementation of line that could load it"
    ):
        case_inputs.check(planned(tmp_path / "w.pt"))


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"head.weight": WEIGHT}, r"w\.fake does not fit the implementation in Fake\. It lacks 'head/bias'\."),
        ({"head.weight": WEIGHT.T, "head.bias": BIAS}, r"'head/weight' has the shape \(3, 8\) instead of \(8, 3\)\."),
    ],
)
def test_a_file_that_does_not_fit_the_implementation_is_refused_by_its_process(
    arrays: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=sentence):
        prepared(planned(fake_file(tmp_path / "w.fake", **arrays)))


def test_a_damaged_file_of_a_framework_gets_one_sentence(tmp_path: Path) -> None:
    path = fake_file(tmp_path / "w.fake")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(UserError, match=r"^w\.fake cannot be read \(.*\); it is damaged, truncated or no such file\.$"):
        prepared(planned(path))


@pytest.mark.parametrize(
    ("kind", "shape", "held", "undone"),
    [
        ("dense", (4, 3), (3, 4), "array.T"),
        ("conv", (8, 3, 5, 5), (5, 5, 3, 8), "array.transpose(3, 2, 0, 1)"),
        ("conv", (8, 3, 5, 5), (8, 5, 5, 3), "array.transpose(0, 3, 1, 2)"),
        ("conv1d", (8, 3, 5), (5, 3, 8), "array.transpose(2, 1, 0)"),
        ("lstm_w_ih", (8, 3), (3, 8), "array.T"),
        ("embedding", (9, 3), (3, 9), "array.T"),
    ],
)
def test_the_layout_of_another_framework_is_named_and_the_advice_undoes_it(
    kind: str, shape: tuple[int, ...], held: tuple[int, ...], undone: str, tmp_path: Path
) -> None:
    array = np.arange(np.prod(held), dtype=np.float32).reshape(held)
    given = given_weights.parsed(str(saved(tmp_path / "w.npz", x=array)))
    case = planned(tmp_path / "w.npz").variants[0].case
    network = Network((Parameter("x", shape, kind, "normal:1"),), (), 0)
    with pytest.raises(UserError) as refused:
        trained_weights.check(given, case, network, WORKLOADS / "line")
    assert f"save {undone})" in str(refused.value)
    assert eval(undone, {"array": array}).shape == shape
