"""The environments of a run while they are being made: what needs one waits for it, and the others are used meanwhile."""

import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from threading import Lock, get_ident

from steelyard.environments.spec import Environment, Failure
from steelyard.errors import UserError

Made = Environment | Failure


class Waits:
    """The time during which all work waited for environments. Time in which any thread works does not count."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._working: set[int] = set()
        self._waiting = 0
        self._since_s: float | None = None
        self._ended_s = 0.0

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        with self._lock:
            return self._ended_s + (0.0 if self._since_s is None else time.monotonic() - self._since_s)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Note that the thread works during the block, except while it waits."""
        self._change(works=True)
        try:
            yield
        finally:
            self._change(works=False)

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Note that the thread waits for an environment during the block."""
        worked = get_ident() in self._working
        self._change(works=False, more=1)
        try:
            yield
        finally:
            self._change(works=worked, more=-1)

    def _change(self, works: bool, more: int = 0) -> None:
        with self._lock:
            (self._working.add if works else self._working.discard)(get_ident())
            self._waiting += more
            if stands_still := self._waiting > 0 and not self._working:
                self._since_s = time.monotonic() if self._since_s is None else self._since_s
            elif self._since_s is not None:
                self._ended_s += time.monotonic() - self._since_s
            self._since_s = self._since_s if stands_still else None


class Arriving(MutableMapping[str, Environment]):
    """Environments by name. Looking one up waits until it is ready; KeyError: there is none, or it could not be made."""

    def __init__(self, futures: Mapping[str, "Future[Made]"]) -> None:
        self._futures = dict(futures)
        self.waits = Waits()

    def __getitem__(self, name: str) -> Environment:
        found = self._result(self._futures[name])
        if isinstance(found, Failure):
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, environment: Environment) -> None:
        self._futures[name] = _done(environment)

    def __delitem__(self, name: str) -> None:
        del self._futures[name]

    def __contains__(self, name: object) -> bool:
        """Return whether the environment is ready or expected; unlike a look-up, this never waits."""
        future = self._futures.get(str(name))
        return future is not None and not (future.done() and isinstance(future.result(), Failure))

    def __iter__(self) -> Iterator[str]:
        return (name for name in list(self._futures) if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def next_ready(self, names: Iterable[str]) -> set[str]:
        """Return those of the names that are ready or failed, after waiting for the first one."""
        futures = {name: self._futures[name] for name in names}
        with nullcontext() if any(each.done() for each in futures.values()) else self.waits.wait():
            done, _ = wait(futures.values(), return_when=FIRST_COMPLETED)
        return {name for name, future in futures.items() if future in done}

    def results(self) -> dict[str, Made]:
        """Wait for all; return each environment, or why it could not be made."""
        return {name: self._result(future) for name, future in self._futures.items()}

    def _result(self, future: "Future[Made]") -> Made:
        with nullcontext() if future.done() else self.waits.wait():
            return future.result()

    def failures(self) -> dict[str, str]:
        """Wait for all; return the reason for each that could not be made. UserError: there is no other."""
        found = self.results()
        failed = {name: each.sentence for name, each in found.items() if isinstance(each, Failure)}
        if len(failed) == len(found):
            raise UserError("No environment could be created: " + " ".join(failed.values()))
        return failed


def already(environments: Mapping[str, Environment]) -> Arriving:
    """Return environments that are all ready."""
    return Arriving({name: _done(each) for name, each in environments.items()})


def start(make: Mapping[str, Callable[[], Made]]) -> Arriving:
    """Start making all environments in parallel."""
    # `find_uv_bin` reads sysconfig, which Python 3.11 does not fill thread-safely on first use.
    sysconfig.get_config_vars()
    pool = ThreadPoolExecutor(max(1, len(make)), "environment")
    futures = {name: pool.submit(each) for name, each in make.items()}
    pool.shutdown(wait=False)  # the threads end with their work
    return Arriving(futures)


def _done(environment: Environment) -> "Future[Made]":
    future: Future[Made] = Future()
    future.set_result(environment)
    return future
