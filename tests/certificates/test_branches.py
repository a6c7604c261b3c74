"""The adversarial step of every network reaches the branches that docs/methods.md lists, in the float64 reference."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import subjects
from decides import ALL, Sources

from steelyard.catalog import frameworks, workloads
from steelyard.certificates.plan import plan_certification
from steelyard.environments import clean_environ
from steelyard_worker import protocol, tensors

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDER = Path(__file__).parent / "branch_recorder.py"
REFERENCE = "pytorch"
CONVOLUTIONAL = ("googlenet", "inceptionv3", "resnet18", "resnet50", "vgg16")
RECURRENT = ("deepspeech2", "gnmt", "lstm-imdb", "tacotron2")


def decided() -> Sources:
    """Return what decides what the reference's layers are given."""
    return Sources("branches", (REFERENCE,), ALL, computing=True)


@pytest.fixture(scope="module")
def recorded(environment: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return {workload: what its layers are given} for the tiny preset of every workload."""
    python, jobs = environment(REFERENCE), {}
    for name in workloads.find():
        found = subjects.candidate(REFERENCE, name, "tiny", tmp_path_factory.mktemp(name))
        plan = plan_certification(found, [subjects.installation(REFERENCE)], tmp_path_factory.mktemp("references"))
        jobs[name] = plan.reference_tasks[0].job
    done = subprocess.run(
        [str(python), "-I", str(RECORDER), str(frameworks.WORKER)],
        input="".join(protocol.to_line(job) + "\n" for job in jobs.values()),
        capture_output=True,
        text=True,
        env=clean_environ(python),
        check=False,
        timeout=600,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == len(jobs), done.stderr[-2000:]
    return dict(zip(jobs, map(json.loads, lines), strict=True))


def ranges(recorded: dict[str, Any], workload: str, operator: str, part: str = "adversarial") -> np.ndarray[Any, Any]:
    """Return (calls, 2): the smallest and the largest input of every call of an operator."""
    return np.array(recorded[workload][part]["ranges"][operator])


@pytest.mark.conformance
@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("workload", CONVOLUTIONAL)
def test_every_relu_gets_more_than_six(recorded: dict[str, Any], workload: str) -> None:
    assert ranges(recorded, workload, "relu")[:, 1].min() > 6


@pytest.mark.conformance
@pytest.mark.decided(by=decided)
def test_both_clips_of_deep_speech_are_reached_and_only_there(recorded: dict[str, Any]) -> None:
    assert ranges(recorded, "deepspeech2", "hardtanh", "usual")[:, 1].max() < 20
    assert ranges(recorded, "deepspeech2", "hardtanh")[:, 1].min() > 20


@pytest.mark.conformance
@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("workload", RECURRENT)
def test_gates_are_saturated_on_both_sides(recorded: dict[str, Any], workload: str) -> None:
    found = ranges(recorded, workload, "sigmoid")
    assert found[:, 0].min() < -8
    assert found[:, 1].max() > 8


@pytest.mark.conformance
@pytest.mark.decided(by=decided)
def test_both_tails_of_gelu_are_reached(recorded: dict[str, Any]) -> None:
    found = ranges(recorded, "bert", "gelu")
    assert found[:, 0].min() < -5
    assert found[:, 1].max() > 5


@pytest.mark.conformance
@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("workload", ["bert", "gnmt", "tacotron2"])
def test_attention_ignores_some_positions_completely(recorded: dict[str, Any], workload: str) -> None:
    found = ranges(recorded, workload, "_softmax")
    assert (found[:, 1] - found[:, 0]).max() > 20


@pytest.mark.conformance
@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("workload", ["bert", "deepspeech2", "gnmt", "tacotron2"])
def test_gradients_are_clipped_in_one_part_of_the_certificate(recorded: dict[str, Any], workload: str) -> None:
    known = workloads.find()[workload]
    preset = known.preset("tiny")
    rule = known.optimizer(preset)
    limits = {"usual": rule.clip, "adversarial": known.network(preset).adversarial.rule(rule).clip}
    clipped = {part: recorded[workload][part]["norm"] > limit for part, limit in limits.items()}
    assert sorted(clipped.values()) == [False, True], {part: recorded[workload][part]["norm"] for part in limits}


@pytest.mark.conformance
@pytest.mark.decided(by=decided)
def test_losses_and_gradients_are_finite(recorded: dict[str, Any]) -> None:
    assert all(part["finite"] for found in recorded.values() for part in found.values())


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, np.ndarray[Any, Any]]]:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))

    def read(workload: str) -> dict[str, np.ndarray[Any, Any]]:
        found = subjects.candidate("fake", workload, "tiny", tmp_path)
        return tensors.read(Path(found.job.data.adversarial))

    return read


Batch = "Callable[[str], dict[str, np.ndarray[Any, Any]]]"


def test_transcripts_repeat_letters_and_two_of_four_cannot_be_aligned(batch: Batch) -> None:
    found = batch("deepspeech2")
    letters, frames = found["transcript_length"], (found["frames"] + 1) // 2
    doubled = letters - 1
    assert all(len(set(row[:count])) == 1 for row, count in zip(found["transcript"], letters, strict=True))
    needs = [
        "aligned" if a + b <= f else "blanks" if a <= f else "letters"
        for a, b, f in zip(letters, doubled, frames, strict=True)
    ]
    assert needs == ["aligned", "blanks", "letters", "aligned"]
    assert sorted(found["frames"])[::3] == [1, 64]


def test_sentences_of_both_lengths_meet_in_translation(batch: Batch) -> None:
    found = batch("gnmt")
    words = (found["target"] > 0).sum(axis=1)
    assert list(zip(found["source_length"], words, strict=True)) == [(2, 2), (12, 12), (12, 2), (2, 12)]
    assert len(set(found["source"][1, 1:-1])) == 1
    assert {1, 199} < set(found["source"][2])
    inside = np.arange(12) < found["source_length"][:, None]
    assert ((found["source"] > 0) == inside).all()


def test_bert_masks_one_place_again_and_again_and_in_one_sample_none(batch: Batch) -> None:
    found = batch("bert")
    assert list(found["input_mask"].sum(axis=1))[:2] == [32, 2]
    assert set(found["input_ids"][0]) == {999}
    assert set(found["masked_lm_positions"][1]) == {1}
    assert list(found["masked_lm_weights"].sum(axis=1))[1:3] == [5, 0]
    assert not found["input_ids"][found["input_mask"] == 0].any()


def test_speech_is_synthesised_from_and_to_both_lengths(batch: Batch) -> None:
    found = batch("tacotron2")
    assert list(zip(found["text_length"], found["mel_length"], strict=True)) == [(1, 1), (1, 24), (12, 1), (12, 24)]
    assert ((found["text"] > 0) == (np.arange(12) < found["text_length"][:, None])).all()
    assert ((found["mel"] != 0).any(axis=1) == (np.arange(24) < found["mel_length"][:, None])).all()


def test_reviews_have_no_word_one_word_and_the_last_word(batch: Batch) -> None:
    tokens = batch("lstm-imdb")["tokens"]
    assert not tokens[0].any()
    assert len(set(tokens[1])) == 1
    assert tokens.max() == 199


def test_images_are_large_and_labels_are_the_first_and_the_last_class(batch: Batch) -> None:
    found = batch("resnet18")
    assert found["image"].std() == pytest.approx(8, rel=0.05)
    assert set(found["label"]) <= {0, 9}


def test_weights_are_scaled_by_the_first_pattern_and_every_term_of_the_rule_shows() -> None:
    known = workloads.find()["deepspeech2"]
    preset = known.preset("tiny")
    extreme = known.network(preset).adversarial
    names = ("conv1.bn.gamma", "rnn2.bn.gamma", "head.bn.gamma")
    assert [extreme.factor(name) for name in names] == [8, 4, 1]
    rule = known.optimizer(preset)
    found = extreme.rule(rule)
    assert (found.learning_rate, found.epsilon, found.weight_decay, found.clip) == (1, 1, 2**-7, 1)
    undecayed = extreme.rule(replace(rule, weight_decay=0.0, clip=0.0))
    assert (undecayed.weight_decay, undecayed.clip) == (0, 0)
    assert (found.name, found.decay, found.beta1) == (rule.name, rule.decay, rule.beta1)
