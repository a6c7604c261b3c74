"""What the user requested: one frozen record of the command line, stored with the run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    """The request of `steelyard run`. Empty tuples mean: as the study says."""

    study: str = "first-look"
    workloads: tuple[str, ...] = ()  # "name" or "name:preset"
    frameworks: tuple[str, ...] = ()  # "name" or "name@version"
    modes: tuple[str, ...] = ()  # "framework=mode[,mode]"
    knobs: tuple[str, ...] = ()  # "framework.knob=value[,value]" or "knob=value"
    protocol: str = ""
    rounds: tuple[int, int] | None = None
    optimizer: str = ""
    batch: int = 0  # samples per step; 0: as the preset says
    synthetic: bool = False  # synthetic batches even where a preset names data
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
    minutes: float | None = None  # None: as the study says; 0: no limit
    certify: bool = True
    calibrate: bool = True
    guard: bool = True  # repeat rounds that the machine disturbed
    silence_s: float = 600.0
