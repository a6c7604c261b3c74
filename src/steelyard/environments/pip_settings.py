"""pip's settings, translated for uv, which does not read them: on many machines only pip is set up.

They are read from pip's files and variables and not from `pip config list`, which takes half a second and
needs a pip in this interpreter. A test compares the two.

Order of precedence (pip's documentation, "Configuration"), later ones win: the global file, the user's file,
the file of the interpreter, the file named by PIP_CONFIG_FILE, the PIP_* variables. In the files, `[install]`
wins over `[global]`. When PIP_CONFIG_FILE names an existing file, the user's file is not read; when it is
/dev/null, no file is read.
"""

import configparser
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import platformdirs

from steelyard.environments.install_errors import redact
from steelyard.errors import UserError

LISTS = ("extra-index-url", "find-links", "trusted-host")
NAMES = ("index-url", "no-index", "cert", "client-cert", "proxy", "timeout", "retries", "keyring-provider", *LISTS)


def read_pip_settings() -> dict[str, str]:
    """Return the settings that decide where `pip install` finds packages; the parts of a list are separated by blanks.

    Raises `UserError` for a file that cannot be read and for a `no-index` that is neither yes nor no.
    """
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for path in _files():
        parser = _parsed(path)
        for name, section in sections.items():
            section.update(_normalised(parser.items(name) if parser.has_section(name) else ()))
    variables = _normalised((name[4:], value) for name, value in os.environ.items() if name.startswith("PIP_"))
    layers = (*sections.values(), variables)
    # An empty value counts as not set.
    settings = {name: value for layer in layers for name, value in layer.items() if value and name in NAMES}
    no_index(settings)
    return settings


def describe_settings(settings: Mapping[str, str]) -> str:
    """Return the settings in one line, without credentials."""
    return redact(", ".join(f"{name} = {value}" for name, value in settings.items()))


def no_index(settings: Mapping[str, str]) -> bool:
    """Return whether packages come from `find-links` alone."""
    value = settings.get("no-index", "no").lower()
    if value not in ("y", "yes", "t", "true", "on", "1", "n", "no", "f", "false", "off", "0"):
        raise UserError(f"pip's setting no-index is '{value}'. Change it to yes or no.")
    return value[0] in "yt1" or value == "on"


def uv_variables(settings: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make uv use these settings, except those that the user has set for uv in `own`.

    Variables and not arguments, because a URL with a password must not be visible in the process list.
    pip takes the best version over all indexes. uv must do so as well: its default, the first index that has
    the package, misses a pinned version whenever another index holds an older copy.
    """
    get = settings.get
    cert = get("cert", "")
    variables = {
        "UV_DEFAULT_INDEX": get("index-url"),
        "UV_INDEX": get("extra-index-url"),
        "UV_FIND_LINKS": get("find-links", "").replace(" ", ","),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": get("trusted-host"),
        "UV_HTTP_TIMEOUT": get("timeout", "").partition(".")[0],
        "UV_HTTP_RETRIES": get("retries"),
        "UV_KEYRING_PROVIDER": "subprocess" if get("keyring-provider") == "subprocess" else "",
        "SSL_CERT_DIR" if Path(cert).is_dir() else "SSL_CERT_FILE": cert,
        "SSL_CLIENT_CERT": get("client-cert"),
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), get("proxy")),
    }
    older_names = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_INDEX": "UV_EXTRA_INDEX_URL"}
    return {
        name: value
        for name, value in variables.items()
        if value and name not in own and older_names.get(name) not in own
    }


def pip_variables(settings: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make pip use these settings alone, and the package sources that `own` names for uv."""
    for_uv = {
        "index-url": own.get("UV_DEFAULT_INDEX") or own.get("UV_INDEX_URL"),
        "extra-index-url": own.get("UV_INDEX") or own.get("UV_EXTRA_INDEX_URL"),
        "find-links": own.get("UV_FIND_LINKS", "").replace(",", " "),
    }
    chosen = {**settings, **{name: value for name, value in for_uv.items() if value}}
    variables = {f"PIP_{name.upper().replace('-', '_')}": value for name, value in chosen.items()}
    return {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}


def _files() -> list[Path]:
    """Return the files that pip reads, the one that wins last."""
    named = os.environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    folders = platformdirs.site_config_dir("pip", appauthor=False, multipath=True).split(os.pathsep)
    if os.name != "nt" and sys.platform != "darwin":
        folders.append("/etc")
    if not Path(named).is_file():
        home = Path.home()
        folders.append(str(home / ("pip" if os.name == "nt" else ".pip")))
        folders += [str(home / ".config" / "pip")] if sys.platform == "darwin" else []
        folders.append(platformdirs.user_config_dir("pip", appauthor=False, roaming=True))
    folders.append(sys.prefix)
    name = "pip.ini" if os.name == "nt" else "pip.conf"
    return [Path(folder, name) for folder in folders] + ([Path(named)] if named else [])


def _parsed(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, "utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        reason = redact(" ".join(str(error).split()))
        raise UserError(f"pip's configuration file {path} cannot be read ({reason}). Correct or remove it.") from error
    return parser


def _normalised(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the settings under the names of pip's documentation."""
    found = {}
    for key, value in items:
        name = key.lower().replace("_", "-").removeprefix("--")
        found["timeout" if name == "default-timeout" else name] = " ".join(value.split())
    return found
