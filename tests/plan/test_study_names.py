"""The studies that are part of steelyard."""

from __future__ import annotations

import pytest

from steelyard.errors import UserError
from steelyard.plan import studies


def test_a_study_has_the_name_of_its_file() -> None:
    found = studies.all_studies()
    assert len(found) > 20
    assert [name for name, study in found.items() if study.name != name] == []


def test_a_study_is_read_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = studies.all_studies()
    monkeypatch.setattr(studies, "all_studies", None)
    assert studies.study("lstm-kernels") == everything["lstm-kernels"]


def test_the_nearest_name_is_given_for_a_study_that_does_not_exist() -> None:
    with pytest.raises(UserError, match=r"There is no study 'lstm-kernel'.*lstm-kernels"):
        studies.study("lstm-kernel")
