"""pip's settings are read in pip's order of precedence and reach uv; credentials reach no log."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.environments.pip_settings import (
    PipSettings,
    pip_variables,
    read_files,
    read_settings,
    redact,
    settle,
    uv_variables,
)
from steelyard.errors import UserError


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Variables of a person with a home, a user file and a system file of their own."""
    environ = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_CONFIG_DIRS": str(tmp_path / "system"),
        "PATH": os.environ["PATH"],
    }
    _write(tmp_path / "system" / "pip" / "pip.conf", "[global]\nindex-url = http://global/\ntimeout = 7\n")
    return environ


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_users_file_wins_over_the_global_one_and_leaves_the_rest(home: dict[str, str], tmp_path: Path) -> None:
    _write(tmp_path / "config" / "pip" / "pip.conf", "[global]\nindex-url = http://user/\n")
    settings = read_settings(home)
    assert settings.index_url == "http://user/"
    assert settings.timeout == "7"


def test_the_new_user_file_wins_over_the_legacy_one(home: dict[str, str], tmp_path: Path) -> None:
    _write(tmp_path / ".pip" / "pip.conf", "[global]\nindex-url = http://legacy/\nproxy = http://p/\n")
    _write(tmp_path / "config" / "pip" / "pip.conf", "[global]\nindex-url = http://user/\n")
    assert read_settings(home).index_url == "http://user/"
    assert read_settings(home).proxy == "http://p/"


def test_a_named_file_wins_and_hides_the_users_file(home: dict[str, str], tmp_path: Path) -> None:
    _write(tmp_path / "config" / "pip" / "pip.conf", "[global]\nproxy = http://user/\n")
    named = _write(tmp_path / "named.conf", "[global]\nindex-url = http://named/\n")
    settings = read_settings({**home, "PIP_CONFIG_FILE": str(named)})
    assert (settings.index_url, settings.proxy, settings.timeout) == ("http://named/", "", "7")


def test_a_named_null_file_hides_every_file(home: dict[str, str]) -> None:
    assert read_settings({**home, "PIP_CONFIG_FILE": os.devnull}).index_url == ""


def test_a_variable_wins_over_every_file_and_section(home: dict[str, str], tmp_path: Path) -> None:
    _write(tmp_path / "config" / "pip" / "pip.conf", "[install]\nindex-url = http://install/\n")
    assert read_settings(home).index_url == "http://install/"
    assert read_settings({**home, "PIP_INDEX_URL": "http://variable/"}).index_url == "http://variable/"


def test_an_empty_variable_counts_as_not_said(home: dict[str, str]) -> None:
    assert read_settings({**home, "PIP_INDEX_URL": ""}).index_url == "http://global/"


def test_lists_over_several_lines_and_underscored_keys_are_read(home: dict[str, str], tmp_path: Path) -> None:
    text = "[global]\nextra_index_url =\n    http://a/\n    http://b/\nfind-links = /w x\nno-index = yes\n"
    _write(tmp_path / "config" / "pip" / "pip.conf", text)
    settings = read_settings(home)
    assert settings.extra_index_url == ("http://a/", "http://b/")
    assert settings.find_links == ("/w", "x")
    assert settings.no_index


def test_a_file_that_does_not_parse_is_named(home: dict[str, str], tmp_path: Path) -> None:
    path = _write(tmp_path / "config" / "pip" / "pip.conf", "index-url = http://user/\n")
    with pytest.raises(UserError, match=r"config/pip/pip\.conf cannot be read") as caught:
        read_settings(home)
    assert str(path) in str(caught.value)


def test_a_switch_that_is_no_yes_or_no_is_refused(home: dict[str, str]) -> None:
    with pytest.raises(UserError, match="no-index is 'perhaps'"):
        read_settings({**home, "PIP_NO_INDEX": "perhaps"})


def test_pip_itself_reads_the_same(home: dict[str, str], tmp_path: Path) -> None:
    python = getattr(sys, "_base_executable", sys.executable)
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no pip here to compare with")
    _write(tmp_path / ".pip" / "pip.conf", "[global]\nindex-url = http://legacy/\nproxy = http://p/\n")
    _write(tmp_path / "config" / "pip" / "pip.conf", "[global]\nextra-index-url = a\n  b\n[install]\ncert=/c\n")
    named = _write(tmp_path / "named.conf", "[global]\nindex-url = http://named/\n")
    for more in ({}, {"PIP_CONFIG_FILE": str(named)}, {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "9"}):
        environ = {**home, **more}
        done = subprocess.run(
            [python, "-m", "pip", "config", "list"], capture_output=True, text=True, env=environ, check=True
        )
        assert settle(read_files(environ)) == settle(_config_list(done.stdout)), more


def _config_list(text: str) -> dict[str, str]:
    import ast

    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): str(ast.literal_eval(value)) for key, equals, value in pairs if equals}


def test_uv_is_told_all_that_pip_is_told() -> None:
    settings = PipSettings(
        index_url="http://i/",
        extra_index_url=("http://a/", "http://b/"),
        find_links=("/w", "/x"),
        cert="/c.pem",
        trusted_host=("i", "a"),
        proxy="http://p/",
        timeout="180.0",
        retries="2",
    )
    told = uv_variables(settings, {})
    assert told["UV_DEFAULT_INDEX"] == "http://i/"
    assert told["UV_INDEX"] == "http://a/ http://b/"
    assert told["UV_FIND_LINKS"] == "/w,/x"
    assert told["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert told["SSL_CERT_FILE"] == "/c.pem"
    assert told["UV_INSECURE_HOST"] == "i a"
    assert told["HTTPS_PROXY"] == "http://p/"
    assert (told["UV_HTTP_TIMEOUT"], told["UV_HTTP_RETRIES"]) == ("180", "2")


def test_what_the_user_told_uv_itself_wins() -> None:
    own = {"UV_INDEX_URL": "http://mine/", "UV_FIND_LINKS": "/mine"}
    told = uv_variables(PipSettings(index_url="http://pip/", find_links=("/pip",)), own)
    assert "UV_DEFAULT_INDEX" not in told
    assert "UV_FIND_LINKS" not in told


def test_pip_is_given_the_same_settings_and_reads_no_file() -> None:
    told = pip_variables(PipSettings(index_url="http://i/", find_links=("/w", "/x"), no_index=True))
    assert told["PIP_CONFIG_FILE"] == os.devnull
    assert told["PIP_FIND_LINKS"] == "/w /x"
    assert told["PIP_NO_INDEX"] == "1"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://me:secret@host/simple", "https://***@host/simple"),
        ("at https://token@host/ and https://host/", "at https://***@host/ and https://host/"),
        ("error: 'http://a:b@h/x' user@mail", "error: 'http://***@h/x' user@mail"),
        ("https://me:se@cret@host/x", "https://***@host/x"),
    ],
)
def test_credentials_are_taken_out_of_urls(text: str, clean: str) -> None:
    assert redact(text) == clean


def test_a_description_for_a_person_shows_no_credentials() -> None:
    assert PipSettings(index_url="https://me:pw@host/").described() == "index-url = https://***@host/"
