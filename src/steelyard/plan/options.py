"""The options of a run as given on the command line; stored with the run."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    """The options of `steelyard run`. Empty texts and tuples mean: as the study or the preset has it."""

    study: str = "first-look"
    workloads: tuple[str, ...] = ()  # "name" or "name:preset"
    frameworks: tuple[str, ...] = ()  # "name" or "name@version"
    modes: tuple[str, ...] = ()  # "framework=mode[,mode]"
    knobs: tuple[str, ...] = ()  # "framework.knob=value[,value]" or "knob=value"
    protocol: str = ""
    rounds: tuple[int, int] | None = None
    optimizer: str = ""
    batch: int = 0  # samples per step; 0: the preset's
    synthetic: bool = False  # random batches even if the preset has a data set
    optimizer_implementation: str = "native"
    device: str = "cpu"
    precision: str = "float32"
    threads: int | None = None  # None: one per core in every framework; 0: each framework's own default
    deterministic: bool = False
    loader_workers: int = 0
    data: str = ""  # folder with data sets in their official layouts
    workload_folders: tuple[str, ...] = ()
    framework_folders: tuple[str, ...] = ()
    external: dict[str, str] = field(default_factory=dict)  # environment name -> interpreter of the user's own
    seed: int = 1
    delta: float = 0.02
    minutes: float | None = None  # None: the study's limit; 0: no limit
    certify: bool = True
    guard: bool = True  # repeat rounds during which the machine was disturbed
    silence_s: float = 600.0  # a worker that writes no event for this long is stopped
