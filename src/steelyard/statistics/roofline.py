"""Which limit of a machine bounds a network: arithmetic, or the bandwidth of memory (Williams, Waterman, Patterson 2009)."""

from dataclasses import dataclass

ARITHMETIC, MEMORY, CACHE = "arithmetic", "memory", "cache"


@dataclass(frozen=True)
class Limits:
    """The limits of one network on this machine. `flops` and `least_bytes` are of a step; the rest is per second.

    `bound`: which of the machine's two limits is the lower one for this network; CACHE where its data may stay in the caches, so
    that the bandwidth of memory need not limit it.
    """

    flops: int
    least_bytes: int
    held_bytes: int
    peak_flops: float
    bandwidth: float
    cache_bytes: int

    @property
    def intensity(self) -> float:
        """An upper bound of the operations per byte that must be moved."""
        return self.flops / self.least_bytes

    @property
    def bend(self) -> float:
        """The operations per byte from which on arithmetic is the lower limit."""
        return self.peak_flops / self.bandwidth

    @property
    def roof_flops(self) -> float:
        """The limit of this network, FLOP/s."""
        return self.intensity * self.bandwidth if self.bound == MEMORY else self.peak_flops

    @property
    def bound(self) -> str:
        """Which limit is the lower one."""
        if self.intensity >= self.bend:
            return ARITHMETIC
        return CACHE if self.held_bytes <= self.cache_bytes else MEMORY
