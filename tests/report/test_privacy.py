"""Texts of the page without home folders and user names."""

from __future__ import annotations

import pytest

from steelyard.report.privacy import without_names


@pytest.fixture(autouse=True)
def _alice(monkeypatch):
    monkeypatch.setenv("HOME", "/srv/people/alice")
    monkeypatch.setenv("LOGNAME", "alice")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/srv/people/alice/runs/x", "~/runs/x"),
        ("see /srv/people/alice.", "see ~."),
        ("/srv/people/alice2/runs", "/srv/people/alice2/runs"),
        ("--data=/home/bob/data", "--data=~/data"),
        ("--data /Users/bob", "--data ~"),
        ("(/root/.cache/x)", "(~/.cache/x)"),
        ("/rootless/x", "/rootless/x"),
        ("C:\\Users\\bob\\runs", "~\\runs"),
        ("/tmp/tests-of-alice/run", "/tmp/tests-of-user/run"),
        ("/mnt/alice", "/mnt/user"),
        ("/opt/malice/bin", "/opt/malice/bin"),
        ("alice is a network", "alice is a network"),
        ("1.2 GFLOP/s", "1.2 GFLOP/s"),
    ],
)
def test_homes_become_a_tilde_and_user_names_in_paths_a_placeholder(text, shown):
    assert without_names(text) == shown


def test_a_home_folder_of_the_whole_machine_shortens_nothing(monkeypatch):
    monkeypatch.setenv("HOME", "/")
    assert without_names("/opt/x and a / b") == "/opt/x and a / b"
