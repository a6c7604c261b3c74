"""What is checked of a plan's inputs before anything is created, and after its data was prepared."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.inputs import case_inputs, data
from steelyard.measure import jobs
from steelyard.plan import protocols, resolve
from steelyard.plan.options import Options
from steelyard_worker import batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.plan.run_plan import RunPlan

LINE = Path(__file__).parents[1] / "workloads" / "line"
DATA = '\n[presets.small.data]\nname = "{}"\n'


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., Path]:
    """Return a copy of the workload `line` with replacements in its network.py and text added to its spec.toml."""

    def copy(*replacements: tuple[str, str], spec: str = "") -> Path:
        folder = shutil.copytree(LINE, tmp_path / "own" / "line", ignore=shutil.ignore_patterns("__pycache__"))
        text = (folder / "network.py").read_text()
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (folder / "network.py").write_text(text)
        (folder / "spec.toml").write_text((folder / "spec.toml").read_text() + spec)
        return tmp_path / "own"

    return copy


def planned(folder: Path, **options: Any) -> RunPlan:
    return resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(folder),), **options))


def test_a_metric_that_does_not_fit_is_refused_by_the_plan_and_none_needs_nothing(own: Callable[..., Path]) -> None:
    change = (('"point", (features,)', '"image", (1, 28, 28)'), ('"label", ()', '"label", (4,)'))
    folder = own(*change, spec=DATA.format("mnist-5k"))
    with pytest.raises(UserError, match=r"line:small: the metric 'accuracy' .* declares label int32 \(4,\)"):
        case_inputs.check(planned(folder))
    spec = folder / "line" / "spec.toml"
    spec.write_text(spec.read_text().replace('metric = "accuracy"', 'metric = "none"'))
    with pytest.raises(UserError, match=r"the input 'label' is label int32 \(\) in the data"):
        case_inputs.check(planned(folder))


def test_a_network_without_a_metric_reaches_no_threshold(own: Callable[..., Path]) -> None:
    folder = own(spec=DATA.format("mnist-5k"))
    spec = folder / "line" / "spec.toml"
    spec.write_text(spec.read_text().replace('metric = "accuracy"', 'metric = "none"'))
    with pytest.raises(UserError, match=r"line has no metric .*, so it reaches no threshold"):
        planned(folder, protocol="total:2", thresholds=(0.9,))


DRAWN = (
    "return Network(parameters, inputs, features * classes)",
    "return Network(parameters, inputs, features * classes, draw=lambda generator, batch: {})",
)


@pytest.mark.parametrize(
    ("replacement", "spec", "sentence"),
    [
        (('"float32"', '"bool"'), "", "The input 'point' of type bool and bound 0 cannot be generated"),
        (('"float32"', '"float33"'), "", "The input 'point' of type float33 and bound 0 cannot be generated"),
        (("high=classes", "high=0"), "", "The input 'label' of type int32 and bound 0 cannot be generated"),
        (('"glorot_uniform"', '"glorot"'), "", "Parameter 'head.weight' has unknown initial value 'glorot'."),
        (('"head.bias"', '"head.weight"'), "", "The parameter 'head.weight' is declared twice"),
        (DRAWN, "", "The network generates 'point' as float64 (0,), but declares it as float32 (16, 8)"),
        (("classes", "classes"), DATA.format("mnist"), "There is no data set 'mnist'. Did you mean 'mnist-5k'?"),
        (
            ("classes", "classes"),
            DATA.format("mnist-5k") + "size = 3\n",
            "The data set 'mnist-5k' has no option 'size'.",
        ),
        (
            ("classes", "classes"),
            DATA.format("wmt16-en-de"),
            "The data set 'wmt16-en-de' is not downloaded by steelyard: put",
        ),
    ],
)
def test_wrong_inputs_of_an_own_preset_are_found_by_a_dry_run_which_creates_nothing(
    replacement: tuple[str, str],
    spec: str,
    sentence: str,
    own: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    folder = own(replacement, spec=spec)
    assert main(["run", "--workloads", str(folder), "-w", "line", "-f", "fake", "--dry-run"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
    assert not (tmp_path / "cache").exists()


def test_data_whose_samples_do_not_fit_the_network_is_refused_by_the_first_input(
    own: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    rows = np.zeros((50, 785), np.uint8)
    rows[:, -1] = np.arange(50) % 10
    (tmp_path / "digits").mkdir()
    np.savetxt(tmp_path / "digits" / "mnist_5k.csv.gz", rows, fmt="%d", delimiter=",")
    options = {"data": str(tmp_path / "digits")}
    with pytest.raises(
        UserError, match=r"line:small: the input 'point' is missing in the data 'mnist-5k', but the network"
    ):
        case_inputs.check(planned(own(spec=DATA.format("mnist-5k")), **options))
    shutil.rmtree(tmp_path / "own")
    plan = planned(own(('"point", (features,)', '"image", (1, features)'), spec=DATA.format("mnist-5k")), **options)
    with pytest.raises(
        UserError, match=r"the input 'image' is image float32 \(1, 28, 28\) in the data 'mnist-5k', but the network"
    ):
        case_inputs.check(plan)
    shutil.rmtree(tmp_path / "own")
    plan = planned(own(('"point", (features,)', '"image", (1, 28, 28)'), spec=DATA.format("mnist-5k")), **options)
    case_inputs.check(plan)
    with pytest.raises(
        UserError, match=r"the input 'label' has values up to 9 in the data 'mnist-5k', .* values below 3;"
    ):
        case_inputs.prepare(plan, data.silent)


@pytest.mark.parametrize("limit", [16, 40, 41])
def test_a_run_on_more_training_samples_than_there_are_is_refused(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that is named after 41 samples and trains on 40 would be wrong on the page."""
    import numpy as np

    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    rows = np.zeros((50, 785), np.uint8)
    rows[:, -1] = np.arange(50) % 10
    (tmp_path / "digits").mkdir()
    np.savetxt(tmp_path / "digits" / "mnist_5k.csv.gz", rows, fmt="%d", delimiter=",")
    plan = resolve.plan(
        Options(
            workloads=("resnet18:digits",),
            frameworks=("pytorch",),
            data=str(tmp_path / "digits"),
            batches=(4,),
            train_limits=(limit,),
        )
    )
    if limit > 40:
        with pytest.raises(
            UserError, match=r"resnet18:digits is to train on 41 samples .* the data has 40 that fit\. Ask"
        ):
            case_inputs.prepare(plan, data.silent)
        return
    (inputs,) = case_inputs.prepare(plan, data.silent).values()
    assert (inputs.meta["train_count"], inputs.steps_per_epoch) == (limit, limit // 4)


SPEECH = ("deepspeech2:tiny-lengths",)


def speech(*sizes: str, workloads: tuple[str, ...] = SPEECH) -> RunPlan:
    return resolve.plan(Options(workloads=workloads, frameworks=("pytorch",), set=sizes, protocol="epochs:2"))


def test_a_synthetic_data_set_has_samples_of_different_lengths_which_batches_are_cut_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    plan = speech("buckets=1,20")
    case_inputs.check(plan)
    found = case_inputs.prepare(plan, data.silent)
    one, twenty = (found[case_inputs.recipe(each.case)] for each in plan.variants)
    assert (one.steps_per_epoch, one.meta["test_count"]) == (20, 0)
    assert one.origin.startswith("80 synthetic training samples. Lengths of the training samples: frames 16 to 63, ")
    assert one.data.cut == {"spectrogram": ((2, "frames"),)}
    assert one.origin.endswith(" Every batch is cut to its longest sample.")
    assert " Batches are drawn from 20 buckets of samples of like length." in twenty.origin
    assert one.identity != twenty.identity
    epochs = [
        [len(batches.open_source(each.data).shapes(range(start, start + 20))) for start in (0, 20)]
        for each in (one, twenty)
    ]
    assert min(*epochs[0], *epochs[1]) > 5
    source = batches.open_source(twenty.data)
    assert source.shapes(range(20)) == source.shapes(range(20, 40))
    (padded,) = case_inputs.prepare(speech("lengths=padded"), data.silent).values()
    assert padded.data.cut == {}
    assert "cut" not in padded.origin


def test_a_network_is_not_evaluated_on_a_synthetic_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    plan = speech()
    (found,) = case_inputs.prepare(plan, data.silent).values()
    schedules = [
        jobs.measuring(plan, plan.variants[0], replace(found, meta=meta), 1, 0, tmp_path).schedule
        for meta in (found.meta, {"test_count": 1}, {})
    ]
    assert [each.evaluate for each in schedules] == [False, True, True]


@pytest.mark.parametrize(
    ("workload", "size", "sentence"),
    [
        (
            "deepspeech2:tiny-lengths",
            "lengths=long",
            "The size 'lengths' of deepspeech2:tiny-lengths is 'padded' or 'own', not 'long'.",
        ),
        ("deepspeech2:tiny-lengths", "buckets=21", "20 batches cannot be divided into 21 buckets; choose at most 20."),
    ],
)
def test_impossible_lengths_and_buckets_are_refused(
    workload: str, size: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    plan = speech(size, workloads=(workload,))
    with pytest.raises(UserError, match=re.escape(sentence)):
        case_inputs.check(plan)
        case_inputs.prepare(plan, data.silent)


def test_lengths_need_a_network_that_declares_them(own: Callable[..., Path]) -> None:
    folder = own()
    spec = folder / "line" / "spec.toml"
    spec.write_text(spec.read_text().replace("batch = 16", 'batch = 16\nlengths = "own"', 1))
    with pytest.raises(
        UserError, match=r"line:small cannot cut or sort batches by length: none of its inputs has 'leng"
    ):
        case_inputs.check(planned(folder))


def test_the_order_covers_all_epochs_of_a_training(own: Callable[..., Path]) -> None:
    folder = own(spec=DATA.format("mnist-5k"))
    for protocol, epochs in (("total:5", 5), ("epochs:5", 5), ("epochs:5-first", 5), ("second-epoch", 2)):
        plan = planned(folder, protocol=protocol)
        case = plan.variants[0].case
        assert case_inputs._steps(plan, case, 3000) == epochs * 3000
        assert case_inputs._steps(plan, case, 10) == case_inputs.FEWEST_ORDERED_STEPS


def test_epochs_of_another_group_do_not_lengthen_the_order(own: Callable[..., Path]) -> None:
    plan = planned(own(spec=DATA.format("mnist-5k")), protocol="total:5", seeds=(1, 2))
    first, second = plan.groups
    short = replace(plan, groups=(replace(first, protocol=protocols.protocol("total:2")), second))
    steps = [case_inputs._steps(short, group.variants[0].case, 3000) for group in short.groups]
    assert steps == [2 * 3000, 5 * 3000]


def test_weights_that_do_not_fit_the_disk_are_not_begun(
    own: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(200, 100, 100))
    with pytest.raises(UserError, match=r"The file of initial weights needs 0\.0 GB, but .* on a larger disk"):
        case_inputs.prepare(planned(own()), data.silent)
    assert not list((tmp_path / "cache" / "weights").glob("*/tensors.bin"))


@given(st.sampled_from(["layout", "official", "pinned"]), st.integers(1, 10**7), st.sampled_from(data.list_data()))
def test_only_checksums_make_data_the_official_data(verified: str, count: int, known: data.DataSet) -> None:
    meta = {"title": known.title, "layout": "sentences", "verified": verified, "train_count": count, "test_count": 7}
    origin = case_inputs._origin(meta)
    assert "subset" not in origin
    assert f"{count:,} training and 7 test samples" in origin
    if verified == "layout":
        assert origin.startswith(f"your data in the layout of {known.title.partition(':')[0]} (sentences): ")
        assert origin.endswith("; no checksum shows that it is the official data.")
    else:
        assert origin.startswith(known.title)
        assert "checksums agree" in origin


def test_every_data_set_has_a_short_name_before_a_colon() -> None:
    for known in data.list_data():
        name, colon, _ = known.title.partition(":")
        assert colon
        assert 5 <= len(name) <= 40, known.title
