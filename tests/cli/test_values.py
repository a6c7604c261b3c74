"""The texts of options: what each may be, and the sentence about one that is something else."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.cli import values
from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

Read = "Callable[[str], Any]"


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (values.folder, "", ""),
        (values.folder, "/a/b", "/a/b"),
        (values.folder, "a", str(Path("a").absolute())),
        (values.folder, "~/a", str(Path.home() / "a")),
        (values.interpreter, "mine=/opt/python", ("mine", "/opt/python")),
        (values.interpreter, "mine=/opt/a=b", ("mine", "/opt/a=b")),
        (values.minutes, "0", 0.0),
        (values.minutes, "1.5", 1.5),
        (values.silence, "1", 1.0),
        (values.texts, "a,b", ("a", "b")),
        (values.loader_workers, "0,2", (0, 2)),
        (values.seeds, "1,2,3", (1, 2, 3)),
        (values.threads, "default,4", (0, 4)),
        (values.batches, "64", (64,)),
        (values.goal, "speed", ("speed", 1.0)),
        (values.goal, "speed=2.5", ("speed", 2.5)),
        (values.steps, "10", 10),
        (values.epochs, "1000000", 1_000_000),
        (values.thresholds, "0.95,0.9,0.95", (0.9, 0.95)),
        (values.delta, "0.02", 0.02),
        (values.share, "5%", 0.05),
        (values.share, "0.05", 0.05),
        (values.share, "0", 0.0),
        (values.day, "2026-11-01", date(2026, 11, 1)),
        (values.place, "local", "local"),
        (values.place, "ray://head:10001", "ray://head:10001"),
        (values.fingerprint, "fingerprint=0a1b", "0a1b"),
        (values.node_count, "10000", 10_000),
    ],
)
def test_a_text_is_read(read: Callable[[str], Any], text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "option"),
    [
        (values.interpreter, "mine", "--env must be NAME=PYTHON"),
        (values.interpreter, "mine=", "--env must be NAME=PYTHON"),
        (values.minutes, "-1", "--minutes must be"),
        (values.minutes, "nan", "--minutes must be"),
        (values.minutes, "a", "--minutes must be"),
        (values.silence, "0.5", "--silence must be"),
        (values.loader_workers, "1,-1", "--loader-workers must be"),
        (values.seeds, "1.5", "--seed must be"),
        (values.seeds, "", "--seed must be"),
        (values.threads, "0", "--threads must be"),
        (values.threads, "4,all", "--threads must be"),
        (values.batches, "0", "--batch must be"),
        (values.batches, "1" * 21, "--batch must be"),
        (values.goal, "speed=0", "--for speed=0: a weight must be"),
        (values.goal, "speed=a", "--for speed must be"),
        (values.goal, "speed=", "--for speed must be"),
        (values.steps, "0", "--steps must be"),
        (values.epochs, "1000001", "--epochs must be"),
        (values.thresholds, "0.9,", "--threshold must be"),
        (values.thresholds, "inf", "--threshold must be"),
        (values.profiles, "a", "--profiles must be"),
        (values.taken_profiles, "0", "--profiles must be"),
        (values.delta, "0", "--delta must be"),
        (values.delta, "1", "--delta must be"),
        (values.delta, "2%", "--delta must be"),
        (values.share, "%", "--fail-if-slower must be"),
        (values.share, "5%%", "--fail-if-slower must be"),
        (values.share, "-1%", "--fail-if-slower must be"),
        (values.day, "yesterday", "--since must be a day"),
        (values.day, "2026-02-30", "--since must be a day"),
        (values.place, "ray://", "--on must be"),
        (values.place, "ray://a:b", "--on must be"),
        (values.fingerprint, "0a1b", "--nodes must be fingerprint=HEX"),
        (values.fingerprint, "fingerprint=XYZ", "--nodes must be fingerprint=HEX"),
        (values.node_count, "0", "--nodes must be"),
    ],
)
def test_another_text_is_refused_in_one_sentence(read: Callable[[str], Any], text: str, option: str) -> None:
    with pytest.raises(UserError) as refused:
        read(text)
    sentence = str(refused.value)
    assert sentence.startswith(option)
    assert sentence.endswith(".")
    assert "\n" not in sentence
