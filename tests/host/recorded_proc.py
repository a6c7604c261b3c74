"""Shortened texts of /proc from real machines."""

CPUINFO_X86 = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz
cpu MHz\t\t: 3199.998
physical id\t: 0
core id\t\t: 0
cpu cores\t: 2
flags\t\t: fpu vme sse4_2 avx avx2 fma f16c avx512f avx512_vnni
power management:

processor\t: 1
model name\t: another model
flags\t\t: fpu avx10

"""

CPUINFO_ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes asimdhp asimddp sve bf16 i8mm
CPU implementer\t: 0x41
CPU part\t: 0xd40

processor\t: 1
Features\t: fp asimd

"""

STAT = """cpu  5411 10 3753 140564 277 5 101 24 30 0
cpu0 1001 0 1458 72500 57 0 14 10 0 0
intr 1 2 3
"""

MEMINFO = """MemTotal:  16 kB
MemFree:  4 kB
MemAvailable:  12 kB
Buffers:  1 kB
Cached:  2 kB
Active:  5 kB
Inactive:  3 kB
SwapTotal:  8 kB
SwapFree:  8 kB
Shmem:  1 kB
"""

VMSTAT = "nr_free_pages 100\npswpin 30\npswpout 12\npgmajfault 946\n"
