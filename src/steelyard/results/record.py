"""run.json: the plan of a run, its machine, environments, inputs and state. The file is rewritten at every change."""

import json
import re
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from steelyard.errors import ResumableError, UserError
from steelyard.files import atomic, json_lines, paths
from steelyard.plan.run_plan import RunPlan
from steelyard.results import permission
from steelyard.results.facts import EnvironmentFacts, HostFacts, InputFacts, Judged, Reused, RoundNote
from steelyard_worker import records
from steelyard_worker.case import Case
from steelyard_worker.protocol import METHOD
from steelyard_worker.strategy import parts_of

# Format 1: the options alone; a report had to plan again, from the workloads at the time of the report.
# Format 2: the complete plan with every case.
# Format 3: without a noise floor, which no verdict needs any more.
FORMAT = 3
FORMAT_OF_0_1 = 1  # format 2 was in no release
FILE = "run.json"
CERTIFICATES = "certificates.json"
ROUNDS = "rounds.jsonl"
PAGE = "report.html"
LAST_LEVELS = ("L2", "L3", "L4")

# No run has more rounds; a record with more is damaged.
MOST_ROUNDS = 10_000


class UnreadableRun(UserError):
    """A run.json that cannot be used. `state`: unreadable, damaged, older format, newer format."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.state = state


@dataclass(frozen=True)
class RunRecord:
    """The contents of run.json. `state`: running, interrupted, complete.

    `plan` holds every requested case. `created`: ISO 8601. `machine`: the fingerprint of the machine that measures, `host`: its
    facts. `worker_hash`: of the measuring code. `steelyard`: the version that wrote the record.
    `unavailable`: environment -> why it could not be created.
    `inputs`: group -> description of its data. `above_peak`: case id -> why its speed is an error.
    `fewer_multiplications`: case id -> why only convolutions with fewer multiplications than are counted explain its speed.
    `reused`: group -> the earlier run whose rounds are used again.
    `peak`: `peak_name` -> source -> GFLOP/s of the fastest matrix product. `bandwidth`: number of threads -> GB/s of the memory.
    `seconds`: stage -> elapsed time, over all parts of a continued run.
    `shared_machine`: another run used the machine at the same time, and this run did not wait for it.
    `identity`: a random text from the start of the run, by which it is recognised in any folder; empty in older records.
    `nodes`: the nodes of a cluster that were chosen to measure; `left_out`: why others were not. Empty without a cluster.
    `allowed`: the mark over the foreign code that may be executed on that machine; empty if there is none.
    """

    plan: RunPlan
    created: str
    state: str
    command: str
    machine: str = ""
    host: HostFacts = field(default_factory=HostFacts)
    environments: dict[str, EnvironmentFacts] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, InputFacts] = field(default_factory=dict)
    peak: dict[str, dict[str, float]] = field(default_factory=dict)
    bandwidth: dict[str, float] = field(default_factory=dict)
    above_peak: dict[str, str] = field(default_factory=dict)
    fewer_multiplications: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    reused: dict[str, Reused] = field(default_factory=dict)
    shared_machine: bool = False
    nodes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    worker_hash: str = ""
    method: int = METHOD
    steelyard: str = ""
    identity: str = ""
    allowed: str = ""
    format: int = FORMAT

    @property
    def study(self) -> str:
        """The name of the study."""
        return self.plan.study.name

    @property
    def started(self) -> datetime:
        """The time at which the run was started."""
        return moment(self.created)

    @property
    def last_cache_bytes(self) -> int:
        """The total size of the processors' last-level caches in bytes; 0 if the system does not report it."""
        levels = {name: size for name, size in self.host.get("caches", {}).items() if name in LAST_LEVELS}
        return levels[max(levels)] if levels else 0

    def threads_of(self, case: Case) -> int:
        """Return the number of threads of a case, over all its parts: as set, or all cores that a process may use."""
        return parts_of(case.strategy) * case.settings.threads or int(self.host.get("cores_usable", 0))

    def peak_gflops(self, case: Case) -> float | None:
        """Return the GFLOP/s of the fastest matrix product in the precision and with the threads of a case; None if not known."""
        precision = case.settings.precision
        # Older runs did not record the threads of a peak.
        found = self.peak.get(peak_name(precision, self.threads_of(case))) or self.peak.get(precision, {})
        return _positive(max(found.values(), default=0.0))

    def bandwidth_gbps(self, case: Case) -> float | None:
        """Return the measured bandwidth of the memory with the threads of a case, GB/s; None if it is not known."""
        return _positive(self.bandwidth.get(str(self.threads_of(case)), 0.0))

    @cached_property
    def available(self) -> RunPlan:
        """The plan without the cases whose environments could not be created."""
        return self.plan.without(self.unavailable)


def moment(text: str) -> datetime:
    """Return an ISO 8601 time as local time. ValueError: it is no such time, or too early or late for a local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except OverflowError as error:
        raise ValueError(str(error)) from None


def _positive(speed: float) -> float | None:
    return speed if speed > 0 else None


def peak_name(precision: str, threads: int) -> str:
    """Return the name of a peak, such as `float32, 2 threads`."""
    return f"{precision}, {threads} threads"


def new(plan: RunPlan, command: str, worker_hash: str) -> RunRecord:
    """Return the record of a run that is about to start."""
    from steelyard.version import VERSION

    return RunRecord(
        plan=plan,
        created=datetime.now().astimezone().isoformat(timespec="seconds"),
        state="running",
        command=command,
        worker_hash=worker_hash,
        steelyard=VERSION,
        identity=secrets.token_hex(8),
        allowed=permission.mark(plan, ""),
    )


def write(folder: Path, record: RunRecord) -> RunRecord:
    """Write run.json atomically: a reader sees the old or the new file.

    ResumableError: it cannot be written, and the old file remains. UserError: it cannot be written, and there is no old file.
    """
    path = folder / FILE
    try:
        atomic.write_text(path, json.dumps(records.plain(record), indent=1))
    except OSError as error:
        failed = f"{path} cannot be written ({error.strerror})."
        if path.exists():
            again = f"Fix this, then continue with: steelyard run --resume {paths.named(folder)}"
            raise ResumableError(f"{failed} {again}") from error
        raise UserError(f"{failed} Fix this, then give the command again.") from error
    return record


def update(folder: Path, **changes: Any) -> RunRecord:
    """Replace some fields of run.json and return the new record."""
    return write(folder, replace(read(folder), **changes))


def read(folder: Path) -> RunRecord:
    """Read run.json. UnreadableRun names a file that cannot be read, is damaged or has another format."""
    path = folder / FILE
    try:
        raw = records.parse(records.read_text(path))
    except OSError as error:
        raise UnreadableRun(f"{path} cannot be read ({error.strerror}). Check its permissions.", "unreadable") from None
    except ValueError as error:
        raise _damaged(path, error) from None
    written = raw.get("format") if isinstance(raw, dict) else None
    if not isinstance(written, int):
        raise _damaged(path, "it is not the record of a run")
    if written != FORMAT:
        age = "older format" if written < FORMAT else "newer format"
        mine = f"this version of steelyard reads format {FORMAT}"
        raise UnreadableRun(f"{path} has the {age} {written}; {mine}. {_advice(written, raw.get('steelyard'))}", age)
    try:
        found: RunRecord = records.build(RunRecord, raw, "run")
        _check(found)
    except ValueError as error:
        raise _damaged(path, error) from None
    return found


def _advice(written: int, version: object) -> str:
    """Return which version reads another format. `version`: the one that wrote the record, if the record names it."""
    from steelyard.version import VERSION

    if written == FORMAT_OF_0_1:
        return "Read it with steelyard 0.1.0, or measure again."
    if written < FORMAT:
        return "No release of steelyard reads it: measure again."
    if isinstance(version, str) and re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}", version) and version != VERSION:
        return f"Update steelyard to version {version} or later."
    return "Update steelyard."


def _check(record: RunRecord) -> None:
    """Raise ValueError for values of the right type that make no sense, or that do not fit together."""
    plan = record.plan
    for text in (record.created, *(each["created"] for each in record.reused.values())):
        moment(text)
    for group in plan.groups:
        group.protocol.decision(plan.options.delta)
        if not 1 <= group.protocol.rounds_min <= group.protocol.rounds_max <= MOST_ROUNDS:
            limits = f"from {group.protocol.rounds_min} to {group.protocol.rounds_max} rounds"
            message = f"the protocol of {group.name} allows {limits}"
            raise ValueError(message)
        if not group.variants or any(each.group != group.name for each in group.variants):
            message = f"the group {group.name} has no variants, or those of another group"
            raise ValueError(message)
    for variant in plan.variants:
        case = variant.case
        records.convert(records.Positive, case.sizes.get("batch"), f"the batch of {variant.key}")
        records.convert(records.Positive, parts_of(case.strategy), f"the number of parts of {variant.key}")
        if case.framework not in plan.frameworks or case.workload not in plan.workload_folders:
            message = f"the plan does not describe {case.framework} or {case.workload}, which {variant.key} needs"
            raise ValueError(message)


def read_certificates(folder: Path) -> dict[str, Any]:
    """Return the certificates of a run by case id; empty if certification was left out."""
    path = folder / CERTIFICATES
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = records.convert(dict[str, Judged], records.parse(records.read_text(path)), CERTIFICATES)
        for case_id, each in found.items():
            if len(each.get("losses", ())) != len(each.get("loss_limits", ())):
                message = f"{CERTIFICATES}.{case_id} has losses without limits"
                raise ValueError(message)
            if each.get("outputs", {}).keys() != each.get("output_limits", {}).keys():
                message = f"{CERTIFICATES}.{case_id} has outputs without limits"
                raise ValueError(message)
            if each.get("updates", {}).keys() != each.get("update_limits", {}).keys():
                message = f"{CERTIFICATES}.{case_id} has updates without limits"
                raise ValueError(message)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} is damaged ({error}). Restore it with: steelyard run --resume {paths.named(folder)}"
        ) from None
    return found


def read_rounds(folder: Path) -> tuple[list[Any], list[str]]:
    """Return the notes about the rounds of a run as `RoundNote`, and a sentence for each line that is damaged."""
    return json_lines.read(folder / ROUNDS, RoundNote)


def _damaged(path: Path, reason: object) -> UnreadableRun:
    return UnreadableRun(f"{path} is damaged ({reason}), so this run cannot be used. Measure again.", "damaged")
