"""No part of a password of a store is shown, whatever address somebody types, and whatever the driver says of it."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_merging import run_in

from steelyard import analysis, report
from steelyard.cli.commands import selection
from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.report import page
from steelyard.results import addresses, record
from steelyard.results.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "Zq9Xv"  # in every part of every password, and in no other text
ODD = [
    "postgresql://me:Zq9Xv/Zq9Xv@host/db",
    "postgresql://me:Zq9Xv@Zq9Xv@host/db",
    "postgresql://me:Zq9Xv'Zq9Xv\"Zq9Xv@host/db",
    "postgresql://me:Zq9Xv Zq9Xv@host/db",
    "postgresql://me@host/db?sslpassword=Zq9Xv",
    "postgresql://me@host/db?pass%77ord=Zq9Xv",
    "postgresql://host/db?password=Zq9Xv&host=Zq9Xv",
    "POSTGRESQL://me:Zq9Xv@host/db",
    " postgresql://me:Zq9Xv@host/db",
    "postgresql://me:Zq9Xv%zz@host/db",
    "postgresql://me:1/Zq9Xv?sslmode=Zq9Xv@host/db",
    "postgresql://me:1/2?options=Zq9Xv@host/db",
    "postgresql://me:Zq9Xv#Zq9Xv?Zq9Xv@host/db",
    "postgresql://Zq9Xv@host/db",
    "postgresql://me:Zq9Xv@host:Zq9Xv/db",
    "postgres:me:Zq9Xv@host/db",
    "postgresq://me:Zq9Xv@host/db",
    "host=h user=me password=Zq9Xv",
    "postgresql://me:Zq9Xv\udcff@host/db",
    "postgresql://me:Zq9Xv@host/d\nb",
]


def message_of(url: str, parsed: dict[str, Any]) -> str:
    """Return what a driver could say: everything that it was given, and everything that it made of that."""
    words = ", ".join(f'{name} "{value}" {value}' for name, value in parsed.items())
    return f'connection to server at {words} failed: FATAL: {url!r}: password authentication failed for user "me"'


@pytest.fixture(autouse=True)
def driver() -> Iterator[None]:
    """The real driver, but no connection: whatever is connected fails, with a message that repeats everything."""

    def connect(url: str, **_: Any) -> None:
        raise psycopg.OperationalError(message_of(url, psycopg.conninfo.conninfo_to_dict(url)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg, "connect", connect)
        patch.setattr(page, "library", lambda: "")  # packing it takes most of the time of a page
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs."""
    runs = tmp_path_factory.mktemp("runs")
    run_in(runs, "aaaaaaaa1")
    return runs


COMMANDS = [
    ("run", "--store", "URL", "--dry-run", "-w", "nothing"),
    ("run", "--store=URL", "-w", "nothing"),
    ("run", "--stor", "URL"),
    ("run", "--stor=URL"),
    ("run", "URL"),
    ("history", "--store", "URL"),
    ("history", "--runs", "URL"),
    ("report", "URL"),
    ("compare", "URL", "URL"),
    ("merge", "URL", "--runs", "FOLDER"),
    ("merge", "FOLDER", "URL", "--runs", "FOLDER"),
]


def run(argv: list[str]) -> tuple[str, int]:
    """Run a command; returns its output and its exit code."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            code = main(argv)
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return text.getvalue(), code


def said(url: str, folder: Path) -> str:
    """Return everything that commands say when they are given an address."""
    found = []
    for words in COMMANDS:
        argv = [
            {"URL": url, "--store=URL": f"--store={url}", "--stor=URL": f"--stor={url}", "FOLDER": str(folder)}.get(
                w, w
            )
            for w in words
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["steelyard", *argv])
            output, code = run(argv)
        assert code != 0, words
        assert "Traceback" not in output
        found.append(output)
    return "\n".join(found)


def recorded(url: str, runs: Path) -> str:
    """Return the run.json and the page of a run that was started with an address, and the page of one by an older version."""
    (run,) = runs.iterdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["steelyard", "run", "--store", url, "-w", "line"])
        with selection.begun(record.read(run).plan, runs.with_name("begun"), "line") as made:
            found = (made / record.FILE).read_text() + report.write(analysis.view(made)).read_text()
    record.update(made, command=shlex.join(["steelyard", "run", f"--store={url}"]))
    return found + report.write(analysis.view(made)).read_text()


def is_free_of(mark: str, text: str) -> bool:
    """Report whether a text holds no part of a password."""
    return mark not in text


@pytest.mark.parametrize("url", ODD)
def test_no_odd_address_is_repeated(url: str, folder: Path) -> None:
    output = said(url, folder)
    assert is_free_of(MARK, output)
    assert is_free_of(MARK, addresses.shown(url))


@pytest.mark.parametrize("url", [each for each in ODD if "\udcff" not in each])
def test_no_odd_address_is_recorded(url: str, folder: Path) -> None:
    assert is_free_of(MARK, recorded(url, folder))


PARTS = st.lists(
    st.sampled_from(["/", "@", "?", "&", "=", "'", '"', " ", "%", "%2F", ":", "#", ",", "\\", "$", "é", MARK]),
    max_size=6,
)
PASSWORDS = st.builds(lambda before, after: "".join([*before, MARK, *after]), PARTS, PARTS)
FORMS = st.sampled_from(
    [
        "postgresql://me:{0}@host:5432/db",
        "postgres://me:{0}@host",
        "postgresql://{0}@host/db",
        "postgresql://me@host/db?password={0}",
        "postgresql://host/db?sslpassword={0}",
        "postgresql://host/db?pass%77ord={0}&sslmode=disable",
        "PostgreSQL://me:{0}@host/db",
        " postgresql://me:{0}@host/db ",
        "host=host password={0} dbname=db",
        "postgresql://me:{0}@[::1]:5432,other/db?connect_timeout=3",
    ]
)


@given(FORMS, PASSWORDS, st.booleans())
def test_no_drawn_password_is_shown(form: str, password: str, quoted: bool) -> None:
    """Neither in what is shown of an address, nor in what is said of a connection that fails, nor in a recorded command."""
    url = form.format(quote(password, safe="") if quoted else password)
    texts = [addresses.shown(url), *addresses.without_addresses(["run", "--store", url, f"--store={url}", url])]
    texts += [
        addresses.command(shlex.join(["steelyard", "run", "--store", url])),
    ]
    texts += [addresses.hidden_in(f"There is no run {each}.", ["report", url]) for each in (url, repr(url))]
    try:
        Shared(url)
    except UserError as error:
        texts.append(str(error))
    else:
        pytest.fail("it cannot be connected")
    assert all(is_free_of(MARK, each) for each in texts), texts


@settings(max_examples=12)
@given(FORMS, PASSWORDS, st.booleans())
def test_no_drawn_password_is_in_a_message_a_record_or_a_page(
    folder: Path, form: str, password: str, quoted: bool
) -> None:
    url = form.format(quote(password, safe="") if quoted else password)
    assert is_free_of(MARK, said(url, folder))
    assert is_free_of(MARK, recorded(url, folder))


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgres://me:secret@host:5433/db?sslmode=require", "postgres://host:5433/db"),
        ("postgresql://me@a.example,b.example:1/db", "postgresql://a.example,b.example:1/db"),
        ("postgresql://me:a%2Fb%40c@host", "postgresql://host"),
        ("postgresql://me:secret@/db?host=/tmp", "postgresql:///db"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql:///db", "postgresql:///db"),
        ("postgresql://me:p@ss@host/db", addresses.HIDDEN),
    ],
)
def test_where_an_address_is_clear_its_host_and_database_are_shown(url: str, plain: str) -> None:
    assert addresses.shown(url) == plain


def test_what_is_no_address_stays_in_a_command() -> None:
    words = [
        "steelyard",
        "run",
        "--on",
        "ray://host:10001",
        "--data",
        "/srv/postgres/data",
        "--strategy",
        "processes:2@100mbit",
        "--env",
        "fake=/passwords/python",
        "-w",
        "bert:tiny",
    ]
    assert addresses.without_addresses(words) == words
    assert addresses.command(shlex.join(words)) == shlex.join(words)


def test_what_the_driver_says_is_kept_where_it_cannot_hold_a_password() -> None:
    with pytest.raises(
        UserError, match=r"//host:5432/db cannot be used \(password authentication failed; the server's own words"
    ):
        Shared("postgresql://me:secret@host:5432/db")
    with pytest.raises(
        UserError, match=r'//host:5432/db cannot be used \(connection to server at dbname "db" db, host "host"'
    ):
        Shared("postgresql://host:5432/db")
    with pytest.raises(
        UserError, match=r"postgresql://\*\*\* cannot be used \(password authentication failed; the server"
    ):
        Shared("postgresql://me:p@ss@host/db")


def test_a_password_that_the_shell_has_divided_is_hidden() -> None:
    words = ["run", "--store", "postgresql://me:Zq9Xv", "Zq9Xv", "Zq9Xv@host/db", "-f", "tensorflow@2.20.0"]
    plain = ["run", "--store", *[addresses.HIDDEN] * 3, "-f", "tensorflow@2.20.0"]
    assert addresses.without_addresses(words) == plain
    output, code = run(words)
    assert code == 2
    assert is_free_of(MARK, output)


def test_a_folder_with_an_odd_name_can_be_merged(tmp_path: Path, folder: Path) -> None:
    odd = tmp_path / "me@host"
    odd.symlink_to(folder)
    assert main(["merge", str(odd), "--runs", str(tmp_path / "all"), "--json"]) == 0
    assert json.loads((next((tmp_path / "all").iterdir()) / "run.json").read_text())["identity"] == "aaaaaaaa1"
