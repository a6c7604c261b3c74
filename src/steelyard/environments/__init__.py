"""Environments: isolated interpreters that hold one framework each, made from lock files or brought."""

from steelyard.environments.brought import bring
from steelyard.environments.interpreter import clean_environ
from steelyard.environments.listing import Kept, list_environments, remove
from steelyard.environments.lock import Lock, read_locks
from steelyard.environments.package import fetch_package
from steelyard.environments.progress import Progress, Report, drawing, watch_progress
from steelyard.environments.shelf import ensure, ensure_all
from steelyard.environments.spec import Environment, EnvironmentSpec, Failure, plan_environments, versions_of

__all__ = [
    "Environment",
    "EnvironmentSpec",
    "Failure",
    "Kept",
    "Lock",
    "Progress",
    "Report",
    "bring",
    "clean_environ",
    "drawing",
    "ensure",
    "ensure_all",
    "fetch_package",
    "list_environments",
    "plan_environments",
    "read_locks",
    "remove",
    "versions_of",
    "watch_progress",
]
