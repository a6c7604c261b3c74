"""Environments: isolated interpreters with one framework each, created from lock files or given by the user."""

from steelyard.environments.external import checked_path, external_environment
from steelyard.environments.folders import environments_folder
from steelyard.environments.interpreter import clean_environ
from steelyard.environments.listing import UNCHECKED, CachedEnvironment, list_environments, remove
from steelyard.environments.lock import Lock, read_locks
from steelyard.environments.package import fetch_package
from steelyard.environments.progress import Progress, Report, shown_on
from steelyard.environments.provisioning import ensure, ensure_all, ensured
from steelyard.environments.spec import (
    Environment,
    EnvironmentName,
    EnvironmentSpec,
    Failure,
    expanded,
    plan_environments,
    versions_of,
)

__all__ = [
    "UNCHECKED",
    "CachedEnvironment",
    "Environment",
    "EnvironmentName",
    "EnvironmentSpec",
    "Failure",
    "Lock",
    "Progress",
    "Report",
    "checked_path",
    "clean_environ",
    "ensure",
    "ensure_all",
    "ensured",
    "environments_folder",
    "expanded",
    "external_environment",
    "fetch_package",
    "list_environments",
    "plan_environments",
    "read_locks",
    "remove",
    "shown_on",
    "versions_of",
]
