"""`steelyard.port` in programs and tests: the verdict, and an error that says where two models part."""

from __future__ import annotations

import pytest

import steelyard
from steelyard.errors import UserError


def test_equal_models_pass(port):
    check = steelyard.port(port.folder)
    check.require()
    assert (check.verdict, check.equal) == ("equal", True)
    assert repr(check).startswith("Equal. 8 pairs of modules and all outputs agree")


def test_a_difference_is_an_error_with_its_place_and_its_cause(port):
    port.block("second", epsilon=1e-6)
    check = steelyard.port(port.folder)
    with pytest.raises(UserError, match=r"(?s)They part in 'norm' .* second has epsilon 1e-06"):
        check.require()
    assert check.as_dict()["findings"][0]["first"] == "norm"


def test_a_folder_that_is_none_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"has no port\.toml"):
        steelyard.port(tmp_path)
