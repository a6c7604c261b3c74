"""Types of the plain values in the files of a run: machines, environments, inputs, rounds and certificates."""

from typing import TypedDict

from steelyard_worker.records import Count


class EnvironmentFacts(TypedDict):
    """The facts in run.json about an environment."""

    version: str
    python: str
    python_version: str
    packages: dict[str, str]
    external: bool


class InputFacts(TypedDict):
    """The facts in run.json about the inputs of a group."""

    origin: str
    identity: str


class HostFacts(TypedDict, total=False):
    """The facts about a machine that reports use or list; `host.Machine` has all facts."""

    cpu_model: str
    cores_usable: Count
    cores_logical: Count
    memory_bytes: Count
    caches: dict[str, Count]
    system: str
    virtualised: str
    gpus: list[str]
    npus: list[str]
    unknown: dict[str, str]


class NoiseFacts(TypedDict, total=False):
    """The values of `host.HostNoise` that reports draw."""

    seconds: float
    own_cores: float
    foreign_cores: float
    steal_share: float


class Reused(TypedDict):
    """The earlier run that measured the rounds of a group, and its start."""

    run: str
    created: str


class RoundNode(TypedDict, total=False):
    """The node of a cluster on which an attempt ran, and the empty text without a cluster; older records do not have it.

    `beside`: the nodes that had ranks of its strategies.
    """

    node: str
    beside: list[str]


class RoundNote(RoundNode):
    """One line of rounds.jsonl: an attempt at a round, whether it counts, and what disturbed the machine."""

    group: str
    round: Count
    attempt: Count
    kept: bool
    reasons: list[str]
    severity: float
    host_noise: NoiseFacts


class CertificateFacts(TypedDict):
    """The fields of every value in certificates.json. A certificate with a judgement also has the fields of `Judged`."""

    passed: bool
    sentence: str


class Judged(CertificateFacts, total=False):
    """The fields of a certificate that reports read by name."""

    key: str
    declared: str
    implementation: str
    losses: list[float]
    loss_limits: list[float]
    outputs: dict[str, float]
    output_limits: dict[str, float]
    imported: dict[str, str]
    updates: dict[str, list[float]]
    update_limits: dict[str, float]
