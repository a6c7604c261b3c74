"""What a new process may use: logical processors and memory."""

import os


def usable_cores() -> int:
    """Return the number of logical processors that this process may run on."""
    # Only Linux restricts a process to some processors (affinity); macOS does not have the function.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory_bytes() -> int:
    """Return the memory in bytes that a new process may take without swapping."""
    import psutil  # imported here, as most callers need only `usable_cores`

    return int(psutil.virtual_memory().available)
