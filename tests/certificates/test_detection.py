"""In how many tensors a mistake of a stated size would have been seen, and how a certificate says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import subjects
import synthetic
from planned import inaccurate, noisy
from synthetic import NETWORK

from steelyard.certificates import detection
from steelyard.certificates.conclusion import conclude
from steelyard.certificates.judgement import Finding, Judgement

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.certificates.plan import CertificationPlan

ALL = {"1 %": 1.0, "0.1 %": 1.0}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding levels are kept by the key of the references, which have other noise in every test."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


def finding(key: str, allowed: float, unavoidable: float = 0.0) -> Finding:
    kinds = {
        "output": ("outputs", "output"),
        "grad": ("gradients", "gradient"),
        "after1": ("after 1 step", "state"),
        "after2": ("after 2 steps", "state"),
    }
    return Finding(key, key, *kinds[key.partition("/")[0]], 0.0, 1e-7, allowed, unavoidable)


def judgement(*findings: Finding, few: tuple[Finding, ...] = ()) -> Judgement:
    return Judgement(True, "", findings, few=few)


def test_the_share_of_tensors_counts_those_in_which_the_error_is_beyond_what_is_allowed_and_unavoidable() -> None:
    found = judgement(
        finding("grad/a", 5e-4), finding("grad/b", 9e-4, 2e-4), finding("grad/c", 9e-3, 2e-3), finding("grad/d", 9e-3)
    )
    assert detection.shares(found) == {"gradients": {"1 %": 0.75, "0.1 %": 0.25}}


def test_a_tensor_counts_where_the_small_batch_would_have_shown_it() -> None:
    own = finding("grad/a", 0.5), finding("grad/b", 0.5), finding("after1/a", 0.5)
    few = finding("grad/a", 1e-5), finding("after1/a", float("inf")), finding("output/x", 1e-5)
    found = judgement(*own, few=few)
    assert detection.shares(found) == {
        "gradients": {"1 %": 0.5, "0.1 %": 0.5},
        "after 1 step": {"1 %": 0.0, "0.1 %": 0.0},
    }


def test_the_sentence_counts_outputs_gradients_and_trained_updates_of_the_first_step() -> None:
    updates = finding("after1/head.weight", 1e-4), finding("after1/head.bias", 0.5)
    others = finding("after1/frozen.weight", 0.5), finding("after2/head.weight", 0.5)
    found = judgement(finding("output/logits", 1e-4), finding("grad/head.weight", 0.5), *updates, *others)
    assert detection.sentence(found, NETWORK) == (
        "A mistake of 1 % in a single tensor would be seen in all outputs, in no gradient and in 1 of 2 updates of the "
        "first step."
    )
    assert detection.sentence(judgement(updates[0], *others), NETWORK) == ""


@pytest.mark.parametrize(("coarse", "hidden"), [(1, 0.0), (2, 0.04)])
def test_mistakes_that_more_than_one_gradient_in_ten_hides_have_a_size(coarse: int, hidden: float) -> None:
    """Of ten gradients, the finest of those that are coarse hides errors of up to 4 %."""
    sizes = (0.07, 0.04)[2 - coarse :] if coarse == 2 else (0.04,)
    fine = [finding(f"grad/{number}", 1e-4) for number in range(10 - coarse)]
    found = judgement(*fine, *(finding(f"grad/coarse{size}", size) for size in sizes))
    assert detection.hidden(found) == hidden


def test_a_certificate_that_shows_everything_says_nothing_of_it(tmp_path: Path) -> None:
    found = conclude(noisy(subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path, batch=4), 1.0, {}))
    assert found.passed
    assert "mistake" not in found.sentence
    assert found.not_looked_at == ("later steps",)
    assert found.seen["gradients"] == found.seen["outputs"] == found.seen["after 1 step"] == ALL


def test_a_certificate_names_the_mistakes_that_its_gradients_hide(tmp_path: Path) -> None:
    """Noise that is amplified a thousand times hides 1.2 %, and a batch of four has no smaller one."""
    plan = noisy(subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path, batch=4), 1000.0, {})
    found = conclude(plan)
    assert found.passed
    assert found.seen["gradients"] == {"1 %": 0.0, "0.1 %": 0.0}
    assert (
        " A mistake of 1 % in a single tensor would be seen in no output, in no gradient and in no update of the first step. "
    ) in found.sentence
    assert found.not_looked_at == ("later steps", "mistakes of less than 1.2 % in gradients")
    assert found.sentence.endswith(" Not looked at: later steps and mistakes of less than 1.2 % in gradients.")


def test_where_float64_shows_the_definition_the_sentence_is_about_float32(plan: CertificationPlan) -> None:
    """Long sums of this candidate excuse 3 % everywhere; outputs and gradients of a few samples are held to rounding."""
    found = conclude(inaccurate(plan, definition=0, sums=3e-2))
    assert found.passed
    assert found.seen["outputs"] == found.seen["gradients"] == ALL
    assert found.seen["after 2 steps"] == {"1 %": 0.0, "0.1 %": 0.0}
    assert (
        " A mistake of 1 % in a single tensor, in float32 alone, would be seen in all outputs, in all gradients and in no "
        "update of the first step. Not looked at: later steps."
    ) in found.sentence


def test_a_rejected_candidate_has_the_shares_and_no_sentence(tmp_path: Path) -> None:
    candidate = subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path, batch=4)
    runs = synthetic.dumps(network=candidate.network, amplified=1000.0)
    plan = noisy(candidate, 1000.0, {"loss": runs[0]["loss"] * 2})
    found = conclude(replace(plan, candidate=replace(plan.candidate, has_float64=True)))
    assert not found.passed
    assert found.seen["gradients"] == {"1 %": 0.0, "0.1 %": 0.0}
    assert "mistake" not in found.sentence
