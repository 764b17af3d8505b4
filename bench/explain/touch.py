"""Touches every page of fresh areas of 2 MiB: python3 -I touch.py AREAS huge|small."""

import mmap
import sys

AREA = 2 << 20
areas, advice = int(sys.argv[1]), {"huge": mmap.MADV_HUGEPAGE, "small": mmap.MADV_NOHUGEPAGE}[sys.argv[2]]
for _ in range(areas):
    # One area more than is touched, so that a whole huge page fits in wherever the kernel puts it.
    memory = mmap.mmap(-1, 2 * AREA, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(advice)
    for page in range(0, 2 * AREA, mmap.PAGESIZE):
        memory[page] = 1
    memory.close()
