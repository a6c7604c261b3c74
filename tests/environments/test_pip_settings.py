"""pip's settings are read in pip's order of precedence and reach uv; credentials do not reach the log."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.environments.install_errors import redact
from steelyard.environments.pip_settings import NAMES, describe_settings, no_index, read_pip_settings, uv_variables
from steelyard.errors import UserError


@pytest.fixture(autouse=True)
def _own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a home, a configuration folder and a system folder of their own."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "system"))
    _write(tmp_path / "system" / "pip" / "pip.conf", "[global]\nindex-url = http://global/\ntimeout = 7\n")


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "pip" / "pip.conf"


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_users_file_overrides_the_global_one_key_by_key(user_file: Path) -> None:
    _write(user_file, "[global]\nindex-url = http://user/\n")
    settings = read_pip_settings()
    assert settings["index-url"] == "http://user/"
    assert settings["timeout"] == "7"


def test_the_new_user_file_overrides_the_legacy_one(user_file: Path, tmp_path: Path) -> None:
    _write(tmp_path / ".pip" / "pip.conf", "[global]\nindex-url = http://legacy/\nproxy = http://p/\n")
    _write(user_file, "[global]\nindex-url = http://user/\n")
    settings = read_pip_settings()
    assert (settings["index-url"], settings["proxy"]) == ("http://user/", "http://p/")


def test_a_named_file_replaces_the_users_file(user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(user_file, "[global]\nproxy = http://user/\n")
    named = _write(tmp_path / "named.conf", "[global]\nindex-url = http://named/\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(named))
    settings = read_pip_settings()
    assert (settings["index-url"], settings["timeout"]) == ("http://named/", "7")
    assert "proxy" not in settings


def test_a_named_null_file_disables_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert read_pip_settings() == {}


def test_a_variable_overrides_every_file_and_section(user_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(user_file, "[install]\nindex-url = http://install/\n[global]\nindex-url = http://user/\n")
    assert read_pip_settings()["index-url"] == "http://install/"
    monkeypatch.setenv("PIP_INDEX_URL", "http://variable/")
    assert read_pip_settings()["index-url"] == "http://variable/"


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "")
    assert read_pip_settings()["index-url"] == "http://global/"


def test_lists_over_several_lines_and_keys_with_underscores_are_read(user_file: Path) -> None:
    text = "[global]\nextra_index_url =\n    http://a/\n    http://b/\nfind-links = /w x\nno-index = yes\n"
    _write(user_file, text)
    settings = read_pip_settings()
    assert settings["extra-index-url"] == "http://a/ http://b/"
    assert settings["find-links"] == "/w x"
    assert no_index(settings)


def test_a_file_with_a_syntax_error_is_named(user_file: Path) -> None:
    _write(user_file, "index-url = http://me:secret@user/\n")
    with pytest.raises(UserError, match=r"config/pip/pip\.conf cannot be read") as caught:
        read_pip_settings()
    assert str(user_file) in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_switch_that_is_neither_yes_nor_no_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "perhaps")
    with pytest.raises(UserError, match="no-index is 'perhaps'"):
        read_pip_settings()


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("on", True), ("True", True), ("0", False), ("off", False)]
)
def test_a_switch_is_read_as_pip_reads_it(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", value)
    assert no_index(read_pip_settings()) is expected


def test_pip_itself_reads_the_same(user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this interpreter has no pip to compare with")
    _write(tmp_path / ".pip" / "pip.conf", "[global]\nindex-url = http://legacy/\nproxy = http://p/\n")
    _write(user_file, "[global]\nextra-index-url = a\n  b\nretries =\n[install]\ncert=/c\n")
    named = _write(tmp_path / "named.conf", "[global]\nindex-url = http://named/\n")
    for variables in ({}, {"PIP_CONFIG_FILE": str(named)}, {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "9"}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        expected = _settings_of_pip()
        assert expected or "PIP_RETRIES" in variables
        assert read_pip_settings() == expected


def _settings_of_pip() -> dict[str, str]:
    command = [sys.executable, "-m", "pip", "config", "list"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pairs = [line.partition("=") for line in printed.splitlines()]
    values = {key: " ".join(str(ast.literal_eval(value)).split()) for key, _, value in pairs}
    return {
        key.rpartition(".")[2]: value
        for section in ("global", "install", ":env:")
        for key, value in values.items()
        if key.rpartition(".")[0] == section and key.rpartition(".")[2] in NAMES and value
    }


def test_uv_gets_all_settings_of_pip() -> None:
    settings = {
        "index-url": "http://i/",
        "extra-index-url": "http://a/ http://b/",
        "find-links": "/w /x",
        "cert": "/c.pem",
        "trusted-host": "i a",
        "proxy": "http://p/",
        "timeout": "180.0",
        "retries": "2",
    }
    variables = uv_variables(settings, {})
    assert variables["UV_DEFAULT_INDEX"] == "http://i/"
    assert variables["UV_INDEX"] == "http://a/ http://b/"
    assert variables["UV_FIND_LINKS"] == "/w,/x"
    assert variables["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert variables["SSL_CERT_FILE"] == "/c.pem"
    assert variables["UV_INSECURE_HOST"] == "i a"
    assert variables["HTTPS_PROXY"] == "http://p/"
    assert (variables["UV_HTTP_TIMEOUT"], variables["UV_HTTP_RETRIES"]) == ("180", "2")


def test_the_users_own_settings_for_uv_override_those_of_pip() -> None:
    own = {"UV_INDEX_URL": "http://mine/", "UV_FIND_LINKS": "/mine"}
    variables = uv_variables({"index-url": "http://pip/", "find-links": "/pip"}, own)
    assert "UV_DEFAULT_INDEX" not in variables
    assert "UV_FIND_LINKS" not in variables


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://me:secret@host/simple", "https://***@host/simple"),
        ("at https://token@host/ and https://host/", "at https://***@host/ and https://host/"),
        ("error: 'http://a:b@h/x' user@mail", "error: 'http://***@h/x' user@mail"),
        ("https://me:se@cret@host/x", "https://***@host/x"),
    ],
)
def test_credentials_are_removed_from_urls(text: str, clean: str) -> None:
    assert redact(text) == clean


def test_the_description_contains_no_credentials() -> None:
    assert describe_settings({"index-url": "https://me:pw@host/"}) == "index-url = https://***@host/"
