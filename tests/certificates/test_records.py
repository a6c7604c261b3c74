"""Certificates are saved complete, found by their key, and made again when damaged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from steelyard.certificates import record
from steelyard.certificates.record import Certificate

if TYPE_CHECKING:
    from pathlib import Path

CERTIFICATE = Certificate(
    key="k" * 64,
    passed=True,
    sentence="Same computation: all 32 tensors match.",
    framework="pytorch",
    version="2.13.0",
    workload="lstm-imdb",
    preset="tiny",
    settings={"mode": "eager"},
    optimizer={"name": "adam"},
    declared="",
    references=("pytorch 2.13.0", "jax 0.10.2"),
    agreement=1e-14,
    float64_error=None,
    worst="head.bias after 1 step",
    worst_units=3.2,
    limit=128.0,
    first="",
    stage="",
    tensors=32,
    trainable_scalars=5346,
    resolution={"outputs": 1e-5},
    losses=(2.5, 2.25),
    loss_limits=(1e-5, 2e-5),
    outputs={"inference1/logits": 0.5},
    output_limits={"inference1/logits": 1e-6},
    task="training",
    strategy="single",
    steps=5,
    method=1,
    inputs="m",
    specification="s",
    implementation="i",
    created="2026-01-01T00:00:00+00:00",
)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))


def test_a_certificate_that_was_saved_is_found_again() -> None:
    record.save(CERTIFICATE)
    assert record.find(CERTIFICATE.key) == CERTIFICATE


def test_no_certificate_is_found_under_another_key() -> None:
    record.save(CERTIFICATE)
    assert record.find("other") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "[]",
        lambda _: "\udcff",
        lambda text: text.replace('"passed": true', '"passed": "yes"'),
        lambda text: text.replace('"format": 6', '"format": 5'),
        lambda text: text.replace('"passed": true', '"passed": false'),
        lambda text: text.replace("3.2", "1.2"),
        lambda text: text.replace('"sentence"', '"phrase"'),
        lambda text: text.replace("kkkk", "llll"),
    ],
)
def test_a_damaged_certificate_counts_as_none(damage: object) -> None:
    path = record.save(CERTIFICATE)
    assert callable(damage)
    path.write_bytes(damage(path.read_text(encoding="utf-8")).encode(errors="surrogateescape"))
    assert record.find(CERTIFICATE.key) is None
    record.save(replace(CERTIFICATE, sentence="made again"))
    assert record.find(CERTIFICATE.key) == replace(CERTIFICATE, sentence="made again")


def test_the_reason_why_a_certificate_cannot_be_read_is_stated() -> None:
    with pytest.raises(ValueError, match=r"^This is not a complete certificate of a known format\.$"):
        Certificate.from_json("[]")
    wrong = CERTIFICATE.to_json().replace('"passed": true', '"passed": 1')
    with pytest.raises(ValueError, match=r"^This certificate was changed after it was written\.$"):
        Certificate.from_json(wrong)


def test_certificates_are_listed_by_key_without_damaged_ones_and_can_be_read_by_people() -> None:
    later = replace(CERTIFICATE, key="z" * 64, passed=False)
    for each in (later, CERTIFICATE):
        record.save(each)
    (record.folder() / "damaged.json").write_text("{")
    assert record.load_all() == [CERTIFICATE, later]
    path = record.save(CERTIFICATE)
    assert path == record.folder() / f"{CERTIFICATE.key}.json"
    assert len(path.read_text(encoding="utf-8").splitlines()) > 20
