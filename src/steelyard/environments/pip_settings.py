"""The settings of pip, read as pip reads them, and handed on to uv, which does not read them.

They are read from the same files and variables, not by running pip, which takes half a second and may
not be there at all; a test holds the two answers against each other.

Order of precedence (pip's documentation, "Configuration"): the global file, the user's file, the site
file of the interpreter, the file that PIP_CONFIG_FILE names, the PIP_* variables; later ones win. Within
files, a section `[install]` wins over `[global]`. With PIP_CONFIG_FILE naming a file that exists, the
user's file is not read; with PIP_CONFIG_FILE=/dev/null no file is.
"""

import configparser
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from steelyard.errors import UserError

LISTS = ("extra_index_url", "find_links", "trusted_host")
SWITCHES = ("no_index",)
SECTIONS = ("global", "install", ":env:")
CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]+@")


@dataclass(frozen=True)
class PipSettings:
    """What decides where packages come from. Empty means that pip has no opinion."""

    index_url: str = ""
    extra_index_url: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    cert: str = ""
    client_cert: str = ""
    trusted_host: tuple[str, ...] = ()
    proxy: str = ""
    timeout: str = ""
    retries: str = ""
    keyring_provider: str = ""

    def described(self) -> str:
        """One line for a person, without credentials."""
        told = [
            f"{field.name.replace('_', '-')} = {_shown(value)}"
            for field in fields(self)
            if (value := getattr(self, field.name))
        ]
        return redact(", ".join(told))


def redact(text: str) -> str:
    """The text without the user names and passwords of its URLs."""
    return CREDENTIALS.sub("***@", text)


def read_settings(environ: Mapping[str, str] | None = None) -> PipSettings:
    """The settings that `pip install` would use here. Raises `UserError` for a file that cannot be read."""
    return settle(read_files(os.environ if environ is None else environ))


def read_files(environ: Mapping[str, str]) -> dict[str, str]:
    """`section.key` -> value, from the files and variables that pip would read."""
    told: dict[str, str] = {}
    for path in configuration_files(environ):
        told.update(_read_file(path))
    for name, value in environ.items():
        if name.startswith("PIP_"):
            told[f":env:.{_key(name[4:])}"] = value
    return told


def configuration_files(environ: Mapping[str, str]) -> list[Path]:
    """The files pip reads, the one that wins last."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    name = "pip.ini" if os.name == "nt" else "pip.conf"
    paths = [folder / name for folder in _global_folders(environ)]
    if not (named and Path(named).exists()):
        legacy = home / ("pip" if os.name == "nt" else ".pip")
        paths += [legacy / name, _user_folder(environ, home) / name]
    paths.append(Path(sys.prefix) / name)
    return paths + ([Path(named)] if named else [])


def settle(told: Mapping[str, str]) -> PipSettings:
    """Merge `section.key` values; empty values count as not said. Raises `UserError` for a bad switch."""
    merged: dict[str, str] = {}
    for section in SECTIONS:
        for key, value in told.items():
            of, _, name = key.rpartition(".")
            if of == section and value:
                merged["timeout" if name == "default-timeout" else name] = value
    found: dict[str, object] = {}
    for field in fields(PipSettings):
        if said := merged.get(field.name.replace("_", "-")):
            found[field.name] = _typed(field.name, said)
    return PipSettings(**found)  # type: ignore[arg-type]


def uv_variables(settings: PipSettings, own: Mapping[str, str]) -> dict[str, str]:
    """The variables that make uv do what pip would. What the user told uv itself (`own`) wins.

    Variables, not arguments: a URL with a password must not stand in the list of processes. With several
    indexes pip takes the best version of all, and so must uv: its default, the first index that knows
    the name, would miss pins whenever an extra index holds an older copy.
    """
    proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), settings.proxy)
    folder = Path(settings.cert).is_dir() if settings.cert else False
    variables = {
        "UV_DEFAULT_INDEX": settings.index_url,
        "UV_INDEX": " ".join(settings.extra_index_url),
        "UV_FIND_LINKS": ",".join(settings.find_links),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_DIR" if folder else "SSL_CERT_FILE": settings.cert,
        "SSL_CLIENT_CERT": settings.client_cert,
        "UV_INSECURE_HOST": " ".join(settings.trusted_host),
        "UV_HTTP_TIMEOUT": str(int(float(settings.timeout))) if settings.timeout else "",
        "UV_HTTP_RETRIES": settings.retries,
        "UV_KEYRING_PROVIDER": "subprocess" if settings.keyring_provider == "subprocess" else "",
        **proxy,
    }
    rivals = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_INDEX": "UV_EXTRA_INDEX_URL"}
    return {
        name: value for name, value in variables.items() if value and name not in own and rivals.get(name) not in own
    }


def pip_variables(settings: PipSettings) -> dict[str, str]:
    """The same settings for a pip that reads no file: nothing else of the user's pip habits takes part."""
    variables = {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    for field in fields(settings):
        if value := getattr(settings, field.name):
            variables[f"PIP_{field.name.upper()}"] = _shown(value)
    return variables


def _typed(name: str, value: str) -> str | bool | tuple[str, ...]:
    if name in LISTS:
        return tuple(value.split())
    if name not in SWITCHES:
        return value
    if value.lower() in ("y", "yes", "t", "true", "on", "1"):
        return True
    if value.lower() in ("n", "no", "f", "false", "off", "0"):
        return False
    raise UserError(f"pip's setting {name.replace('_', '-')} is '{value}'; write yes or no.")


def _shown(value: str | bool | tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return value if isinstance(value, str) else " ".join(value)


def _read_file(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, "utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise UserError(f"pip's settings file {path} cannot be read: {redact(str(error))}.") from error
    return {f"{section}.{_key(name)}": value for section in parser.sections() for name, value in parser.items(section)}


def _key(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _global_folders(environ: Mapping[str, str]) -> list[Path]:
    if os.name == "nt":
        return [Path(environ.get("PROGRAMDATA", "C:\\ProgramData")) / "pip"]
    if sys.platform == "darwin":
        return [Path("/Library/Application Support/pip")]
    folders = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    return [*(Path(folder) / "pip" for folder in folders.split(os.pathsep) if folder), Path("/etc")]


def _user_folder(environ: Mapping[str, str], home: Path) -> Path:
    if os.name == "nt":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "pip"
    mac = home / "Library" / "Application Support" / "pip"
    if sys.platform == "darwin" and mac.is_dir():
        return mac
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip"
