"""A run in a store of MLflow, read back by its own client. Skipped where it is not installed: it needs 27 further packages."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import pytest

import steelyard
from steelyard.analysis import tidy
from steelyard.cli.main import main
from steelyard.errors import UserError

REASON = "MLflow is not installed: pip install -e '.[mlflow]'"
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import alembic  # noqa: F401
        import mlflow.tracking
        import sqlalchemy  # noqa: F401
except ImportError:
    pytest.skip(REASON, allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("default")


def runs_of(database):
    """Return the client of a store, and its runs by the name of the contender."""
    client = mlflow.tracking.MlflowClient(tracking_uri=f"sqlite:///{database}")
    experiments = [each.experiment_id for each in client.search_experiments()]
    return client, {each.data.tags["steelyard.contender"]: each for each in client.search_runs(experiments)}


def test_every_contender_is_a_run_with_its_case_its_versions_and_its_machine(recorded, tmp_path):
    recorded("training")
    run = steelyard.load("training")
    files = run.export("mlflow", tmp_path / "store")
    client, runs = runs_of(tmp_path / "store" / "mlflow.db")
    comparison = run.comparisons[0].measured
    assert runs.keys() == {each.variant for each in comparison.contenders}
    for contender in comparison.contenders:
        found = runs[contender.variant]
        params, tags = found.data.params, found.data.tags
        for name, value in tidy.fields(contender.case).items():
            assert params.get(name, "") == ("" if value in ("", None) else str(value)), name
        assert params["version"] == contender.version
        assert params["machine"] == run.view().record.machine
        assert params["machine.cpu_model"] == run.view().record.host["cpu_model"]
        assert params["steelyard"] == run.view().record.steelyard
        assert tags["steelyard.certificate"] == contender.proof.state
        assert tags["steelyard.method"] == str(run.view().record.method)
        assert tags["steelyard.run"] == "training"
        assert tags["steelyard.verdict"] == "Fake is the fastest."
        assert found.info.status == "FINISHED"
        assert found.info.run_name == f"training, {comparison.group}, {contender.title}"
        assert found.info.start_time == int(run.view().record.started.timestamp() * 1000)
        folder = client.download_artifacts(found.info.run_id, "", str(tmp_path))
        assert json.loads(Path(folder, "case.json").read_text())["workload"] == contender.case.workload
        assert "| framework | version, mode |" in Path(folder, "verdicts.md").read_text()
    assert files[0] == tmp_path / "store" / "mlflow.db"
    assert all(path.is_file() and path.is_relative_to(tmp_path / "store") for path in files)
    assert len(files) == 1 + 2 * len(runs)


def test_values_have_their_intervals_and_ratios(recorded, tmp_path):
    recorded("training")
    run = steelyard.load("training")
    run.export("mlflow", tmp_path / "store")
    _, runs = runs_of(tmp_path / "store" / "mlflow.db")
    comparison = run.comparisons[0].measured
    for contender in comparison.contenders:
        metrics, tags = runs[contender.variant].data.metrics, runs[contender.variant].data.tags
        for source, standing in contender.standings.items():
            ends = [metrics[f"step time/{source}/{end}"] for end in ("mean", "low", "high")]
            assert ends == pytest.approx([standing.value, standing.low, standing.high])
            if standing.ratio:
                assert metrics[f"ratio/{source}/value"] == pytest.approx(standing.ratio.value)
                assert metrics[f"ratio/{source}/high"] == pytest.approx(standing.ratio.high)
        assert tags["unit.step time"] == "ns"
        assert all(map(math.isfinite, metrics.values()))


def test_learning_curves_have_steps_and_epochs(recorded, tmp_path):
    recorded("learning")
    run = steelyard.load("learning")
    run.export("mlflow", tmp_path / "store")
    client, runs = runs_of(tmp_path / "store" / "mlflow.db")
    contender = run.comparisons[0].measured.contenders[0]
    trial, known = contender.trials[0], runs[contender.variant].info.run_id

    def curve(name):
        return sorted((each.step, each.value) for each in client.get_metric_history(known, name))

    source = trial.blocks[0].input
    losses = trial.losses(source).tolist()
    assert curve(f"loss/{source}") == [(step, pytest.approx(value)) for step, value in enumerate(losses, 1)]
    epochs = [epoch for epoch, _ in curve("epoch/loss")]
    assert epochs == list(range(1, len(trial.epochs) + 1))
    name = next(iter(trial.evaluations[0].scores))
    assert curve(f"epoch/{name}") == [
        (each.epoch, pytest.approx(each.scores[name])) for each in trial.evaluations if each.epoch
    ]


def test_a_store_keeps_other_runs_and_a_run_that_is_exported_again_is_replaced(recorded, tmp_path, capfd):
    address = f"sqlite:///{tmp_path / 'mine.db'}"
    for kind in ("training", "uncertified", "training"):
        recorded(kind)
        assert main(["export", kind, "--format", "mlflow", "-o", address, "--json"]) == 0
        out, err = capfd.readouterr()
        assert err == ""
        assert json.loads(out)["files"][0] == str(tmp_path / "mine.db")
    client, _ = runs_of(tmp_path / "mine.db")
    found = [each for one in client.search_experiments() for each in client.search_runs([one.experiment_id])]
    assert sorted(each.data.tags["steelyard.run"] for each in found) == ["training"] * 2 + ["uncertified"] * 2
    assert {each.data.tags["steelyard.certificate"] for each in found} == {"certified", "none"}


def test_a_failed_contender_is_a_failed_run(recorded, tmp_path):
    recorded("faults")
    run = steelyard.load("faults")
    run.export("mlflow", tmp_path / "store")
    _, runs = runs_of(tmp_path / "store" / "mlflow.db")
    states = {each.variant: each.failure for part in run.comparisons for each in part.measured.contenders}
    assert any(states.values())
    for variant, failure in states.items():
        assert runs[variant].info.status == ("FAILED" if failure else "FINISHED")


@pytest.mark.parametrize("address", ["postgresql://x/y", "sqlite:///", "sqlite:///a?b", "http://localhost:5000"])
def test_other_addresses_are_refused(address, recorded):
    recorded("training")
    with pytest.raises(
        UserError, match=r"is no store that the format mlflow writes to: name a folder, or sqlite:///FILE\."
    ):
        steelyard.load("training").export("mlflow", address)


def test_a_file_that_is_no_store_and_a_store_inside_the_run_are_sentences(recorded, tmp_path):
    folder = recorded("training") / "training"
    run = steelyard.load("training")
    (tmp_path / "mine.db").write_text("no database" * 1000)
    with pytest.raises(UserError, match=r"^The store .*mine\.db cannot be used \("):
        run.export("mlflow", f"sqlite:///{tmp_path / 'mine.db'}")
    assert (tmp_path / "mine.db").read_text() == "no database" * 1000
    with pytest.raises(UserError, match="inside the folder of the run"):
        run.export("mlflow", f"sqlite:///{folder / 'x.db'}")
    assert not (folder / "x.db").exists()


@pytest.mark.parametrize("kind", ["damaged", "older", "strategies", "largest-batches", "inference", "many", "nothing"])
def test_every_kind_of_run_can_be_exported(kind, readable, tmp_path):
    for run in readable(kind):
        run.export("mlflow", tmp_path / "store")
        contenders = [each for part in run.comparisons for each in part.measured.contenders]
        assert len(runs_of(tmp_path / "store" / "mlflow.db")[1]) >= len({each.variant for each in contenders})
