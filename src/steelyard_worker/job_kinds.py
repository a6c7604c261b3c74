"""The kinds of jobs, and what follows from a kind in both packages: a line of this table for each."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class JobKind:
    """The properties of the processes of one kind of job.

    in_rounds: their times are in verdicts. They are watched from outside, compared with their certificate at the end, indexed.
    shown: the live view shows them, their time counts as that of processes, and a full disk ends the run. limited: the memory
    limit of a case holds. The process compares its exact peak with it; the launcher checks from time to time, so that a process
    far above the limit does not make the machine swap. timed: their ranks are on the hosts that a strategy names. For what is not
    timed, hosts make no difference. ends_at_once: all results are in the folder when `done` is written. Profilers, exporters and
    graph dumps may still write at the end of the process. log_is_read: libraries list in the log what they compute, so it is
    never shortened. folder: of a run, with the records of such processes; empty: their records are not kept in the run.
    """

    help: str
    in_rounds: bool = False
    shown: bool = False
    limited: bool = False
    timed: bool = False
    ends_at_once: bool = False
    log_is_read: bool = False
    folder: str = ""


MEASURE, PROBE, SEARCH = "measure", "probe", "search"
CERTIFY, RULE, CONTRACT, SETTINGS = "certify", "rule", "contract", "settings"
EXPORT, PROFILE, GRAPH, COMMUNICATION = "export", "profile", "graph", "communication"
CHECKPOINT = "checkpoint"

_TIMED = JobKind("", shown=True, limited=True, timed=True, ends_at_once=True)
KINDS = {
    MEASURE: replace(_TIMED, help="a process of a round", in_rounds=True, folder="trials"),
    PROBE: replace(_TIMED, help="as measure, to find out whether a batch fits", folder="probes"),
    SEARCH: replace(_TIMED, help="as measure, to choose settings", folder="search"),
    CERTIFY: JobKind("save the tensors of a certificate", ends_at_once=True),
    RULE: JobKind("train a few tensors with given gradients", ends_at_once=True),
    CONTRACT: JobKind("check the adapter"),
    SETTINGS: JobKind("only read the settings back", ends_at_once=True),
    EXPORT: JobKind("write the network as files for another runtime"),
    PROFILE: JobKind("steps under the framework's own profiler", log_is_read=True, folder="profiles"),
    GRAPH: JobKind("count the operations of a step's graph", folder="graphs"),
    CHECKPOINT: JobKind("read a file of weights that the framework has written", ends_at_once=True),
    COMMUNICATION: JobKind("an exchange between ranks by itself", timed=True, folder="communication"),
}
# What holds for a kind that this version does not know, in the record of another one.
UNKNOWN = JobKind("unknown")


def of(kind: str) -> JobKind:
    """Return the table's entry for a kind."""
    return KINDS.get(kind, UNKNOWN)
