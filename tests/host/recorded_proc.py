"""Texts of /proc as real machines gave them, shortened."""

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
model name\t: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz
physical id\t: 0
core id\t\t: 1
flags\t\t: fpu

processor\t: 2
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu

processor\t: 3
physical id\t: 0
core id\t\t: 1
flags\t\t: fpu

"""

CPUINFO_ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes asimdhp asimddp sve bf16 i8mm
CPU implementer\t: 0x41
CPU part\t: 0xd40

processor\t: 1
Features\t: fp asimd

"""

STAT = """cpu  5411 10 3753 140564 277 5 101 24 0 0
cpu0 1001 0 1458 72500 57 0 14 10 0 0
intr 1 2 3
"""

PROCESS = (
    "4711 (a (strange) name) S 42 4711 4711 0 -1 4194304 100 200 0 0 150 50 30 20 20 0 4 0 9999 "
    "1000000 100 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0"
)

PRESSURE = """some avg10=0.07 avg60=0.18 avg300=0.28 total=5617536
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
"""

VMSTAT = "nr_free_pages 100\npswpin 30\npswpout 12\npgmajfault 946\n"
