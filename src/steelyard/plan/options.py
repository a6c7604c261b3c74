"""The options of a run as given on the command line; stored with the run."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    """The options of `steelyard run`. Empty texts and tuples mean: as the study or the preset has it.

    A field with the name of a field of `Cells` replaces that axis in every table of the study.
    """

    study: str = ""  # name or .toml file; empty: first-look
    size: str = ""  # one of the study's sizes; empty: the largest that fits
    workloads: tuple[str, ...] = ()  # "name" or "name:preset"
    frameworks: tuple[str, ...] = ()  # "name" or "name@version"
    modes: tuple[str, ...] = ()  # "framework=mode[,mode]"
    knobs: tuple[str, ...] = ()  # "framework.knob=value[,value]" or "knob=value"
    set: tuple[str, ...] = ()  # "size=value[,value][,size=value]"
    batches: tuple[int, ...] = ()  # samples per step
    optimizers: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    threads: tuple[int, ...] = ()  # 0: each framework's own default; empty: one per core in every framework
    seeds: tuple[int, ...] = ()
    memory_limits: tuple[str, ...] = ()  # of each measuring process, such as "4 GB"
    train_limits: tuple[int, ...] = ()  # training samples of the data set that are used
    loader_workers: tuple[int, ...] = ()
    strategies: tuple[str, ...] = ()  # "single", or "NAME:PARTS", where the name is that of a strategy or of a kind
    protocol: str = ""
    rounds: str = ""  # "5" or "3-8"
    synthetic: bool = False  # random batches even if the preset has a data set
    optimizer_implementation: str = ""
    device: str = ""
    deterministic: bool = False
    data: str = ""  # folder with data sets in their official layouts
    weights: str = ""  # file of the initial weights, or "FRAMEWORK:FILE"; empty: they are drawn
    workload_folders: tuple[str, ...] = ()
    framework_folders: tuple[str, ...] = ()
    external: dict[str, str] = field(default_factory=dict)  # environment name -> interpreter of the user's own
    thresholds: tuple[float, ...] = ()  # of the main score of the test metric: when a training reaches them
    profiles: int | None = None  # processes of each contender that are profiled after the rounds; None: the study's
    delta: float = 0.02
    minutes: float | None = None  # None: the study's limit; 0: no limit
    fresh: bool = False  # measure every cell anew, even if an earlier run has measured it in the same way
    certify: bool = True
    guard: bool = True  # repeat rounds during which the machine was disturbed
    silence_s: float = 600.0  # a worker that writes no event for this long is stopped
