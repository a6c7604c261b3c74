"""What the files of a run hold as plain values: of machines, environments, inputs, rounds and certificates."""

from typing import TypedDict

from steelyard_worker.records import Count


class EnvironmentFacts(TypedDict):
    """What run.json holds of an environment."""

    version: str
    python: str
    python_version: str
    packages: dict[str, str]
    external: bool


class InputFacts(TypedDict):
    """What run.json holds of the inputs of a group."""

    origin: str
    identity: str


class HostFacts(TypedDict, total=False):
    """The facts about a machine that reports compute with or list; `host.Machine` has all of them."""

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
    """The figures of `host.HostNoise` that reports draw."""

    seconds: float
    own_cores: float
    foreign_cores: float
    steal_share: float


class Reused(TypedDict):
    """The run that measured the rounds of a group, and when it was started."""

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
    """What every value in certificates.json holds; a certificate that was judged has the fields of `Judged` as well."""

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
