"""The kinds of records in the golden set, and which commands are shown of each."""

from __future__ import annotations

from dataclasses import dataclass

WIDTHS = (80, 120, 200)
# Kinds that lay out nothing that others do not are shown at one width: the whole set takes about a minute of computing time.
AT_ONE_WIDTH = {
    "alone",
    "diverged",
    "documents-of-batches",
    "documents-of-graphs",
    "documents-of-profiles",
    "documents-of-scores",
    "documents-quick",
    "equal",
    "frameworks",
    "memory",
    "nothing",
    "older",
    "searches",
    "seeds",
    "uncertified",
    "without-numbers",
}


@dataclass(frozen=True)
class Shown:
    """A command, the name of its text, the width of the terminal in columns, and the pages that it writes."""

    name: str
    arguments: tuple[str, ...]
    width: int = 120
    pages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """What is shown of a record: of the run that is named like the kind, if there is one, and further commands.

    `quantities`: other quantities to rank by.
    """

    has_run: bool = True
    quantities: tuple[str, ...] = ()
    more: tuple[Shown, ...] = ()


def _shown(name: str, line: str, width: int = 120, *pages: str) -> Shown:
    return Shown(name, tuple(line.split()), width, pages)


def _lists(*names: str) -> tuple[Shown, ...]:
    found = {"list-runs": "list runs", "list-runs-json": "list runs --json", "runs-list": "runs list"}
    return tuple(_shown(name, found[name]) for name in names or found)


def _explained(run: str) -> tuple[Shown, ...]:
    return _shown("explain", f"explain --run {run}"), _shown("explain-json", f"explain --run {run} --json")


KINDS: dict[str, Kind] = {
    "training": Kind(
        quantities=("peak memory", "first step", "throughput"),
        more=(
            _shown("advise-weighted", "advise --run training --for speed=2 --for memory --for maintained"),
            _shown("advise-steps", "advise --run training --for short-jobs --steps 1000"),
            _shown("advise-json", "advise --run training --json"),
            _shown("advise-wrong", "advise --run training --for sped"),
            _shown("advise-energy", "advise --run training --for energy"),
            _shown("advise-price", "advise --run training --price 1.20EUR/h"),
            _shown("report-price", "report training --price $1.2/h", 80, "runs/training/report-with-price.html"),
            _shown("report-price-json", "report training --price $1.2/h --json"),
            _shown("report-unmetered-price", "report training --price 0.30/kWh", 80),
            Shown(
                "report-cost-80",
                ("report", "training", "--quantity", "cost", "--price", "1.2/h"),
                80,
                ("runs/training/report-cost.html",),
            ),
            _shown("compare-contenders", "compare fake dummy --run training"),
            _shown("compare-contenders-json", "compare fake dummy --run training --json"),
            _shown("report-wrong", "report traning"),
            *_lists("list-runs"),
        ),
    ),
    "inference": Kind(
        quantities=("latency p99", "first step", "peak memory"),
    ),
    "sweep": Kind(),
    "largest-batch": Kind(),
    "largest-batches": Kind(),
    "strategies": Kind(quantities=("peak memory",)),
    "link-speed": Kind(),
    "profiles": Kind(more=_explained("profiles")),
    "explained": Kind(more=_explained("explained")),
    "graphs": Kind(),
    "limits": Kind(
        quantities=("energy",),
        more=(
            _shown("advise-price", "advise --run limits --for cost --for energy --price 0.30/kWh"),
            _shown("advise-json", "advise --run limits --price 0.30EUR/kWh --json"),
            _shown("report-cost", "report limits --quantity cost --price 0.30EUR/kWh"),
        ),
    ),
    "job-length": Kind(more=(_shown("advise-epochs", "advise --run job-length --for short-jobs --epochs 3"),)),
    "many": Kind(),
    "left-out": Kind(
        more=(
            _shown(
                "compare-uncertified", "compare fake/scripted,step_us=10000 fake/scripted,step_us=11000 --run left-out"
            ),
            _shown("compare-ambiguous", "compare fake dummy --run left-out"),
            _shown("compare-unknown", "compare fake/scripted,step_us=10000 dumy --run left-out"),
            _shown("advise-any", "advise --run left-out --for speed --any"),
        ),
    ),
    "retired": Kind(
        more=(
            _shown("advise-conditions", "advise --run retired --for speed --for exchange --for maintained"),
            _shown("advise-any", "advise --run retired --any"),
            _shown("advise-json", "advise --run retired --json"),
        )
    ),
    "unavailable": Kind(),
    "alone": Kind(),
    "nothing": Kind(),
    "disturbed": Kind(),
    "older": Kind(),
    "damaged": Kind(),
    "unreadable": Kind(
        has_run=False,
        more=(
            *(_shown(f"report-{name}", f"report {name}") for name in ("a", "b", "c", "d", "e", "f")),
            *_lists(),
        ),
    ),
    **{name: Kind() for name in ("search", "ranks", "faults", "exported", "memory", "learning", "diverged")},
    "epochs": Kind(
        quantities=("total time",),
        more=(
            _shown("advise-accuracy", "advise --run epochs --for accuracy-in-time --threshold 0.5"),
            _shown("report-price", "report epochs --price 1.20EUR/h", 80),
            _shown("advise-never", "advise --run epochs --for accuracy-in-time --threshold 0.9999"),
        ),
    ),
    "frameworks": Kind(more=_explained("frameworks")),
    **{
        name: Kind()
        for name in (
            "close",
            "equal",
            "uncertified",
            "searches",
            "documents-of-scores",
            "documents-of-batches",
            "documents-of-graphs",
            "without-numbers",
        )
    },
    "documents": Kind(),
    "documents-quick": Kind(),
    "documents-apart": Kind(),
    "documents-of-strategies": Kind(),
    "documents-of-profiles": Kind(),
    "seeds": Kind(),
    "before-and-after": Kind(
        has_run=False,
        more=(
            *(_shown(f"compare-{width}", "compare after before", width) for width in WIDTHS),
            _shown("compare-json", "compare after before --json"),
            _shown("compare-throughput", "compare after before --quantity throughput"),
            _shown("compare-elsewhere", "compare before elsewhere --anyway"),
            _shown("compare-elsewhere-refused", "compare before noisy elsewhere"),
            _shown("compare-noisy", "compare before noisy"),
            _shown("compare-anyway", "compare after inferred --anyway"),
            _shown("compare-refused", "compare after inferred"),
        ),
    ),
    "machines": Kind(
        has_run=False,
        more=(
            *(
                _shown(
                    f"compare-{width}",
                    "compare run-aaaa run-bbbb run-cccc run-dddd --output machines.html",
                    width,
                    *pages,
                )
                for width, pages in ((80, ()), (120, ("machines.html",)), (200, ()))
            ),
            _shown("compare-json", "compare run-aaaa run-bbbb run-cccc run-dddd --json"),
            *_lists(),
        ),
    ),
    "history": Kind(
        has_run=False,
        more=(
            *(
                _shown(f"history-{width}", "history", width, *pages)
                for width, pages in ((80, ()), (120, ("runs/history.html",)), (200, ()))
            ),
            _shown("history-json", "history --json"),
            _shown("history-check", "history --fail-if-slower 5%"),
            _shown("history-since", "history --since 2026-01-09"),
            _shown("history-wrong", "history nihgtly"),
            *_lists("runs-list"),
        ),
    ),
}


def commands_of(kind: str) -> list[Shown]:
    """Return the commands of a kind: first those of its run, then its own."""
    known = KINDS[kind]
    return [*(_of_run(kind, known) if known.has_run else ()), *known.more]


def _of_run(run: str, known: Kind) -> list[Shown]:
    widths = (120,) if run in AT_ONE_WIDTH else WIDTHS
    shown = [
        _shown(f"report-{width}", f"report {run}", width, *(f"runs/{run}/report.html" for _ in range(width == 120)))
        for width in widths
    ]
    shown += [_shown("report", f"report {run} --json"), _shown("advise", f"advise --run {run}")]
    for quantity in known.quantities:
        name = quantity.replace(" ", "-")
        arguments = ("report", run, "--quantity", quantity)
        shown += [
            Shown(f"report-{name}-120", arguments, 120, (f"runs/{run}/report-{name}.html",)),
            Shown(f"report-{name}", (*arguments, "--json")),
        ]
    return shown
