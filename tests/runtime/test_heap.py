import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from monograph.runtime import heap

SCRIPT = """
import ctypes, resource
from monograph.runtime import heap
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
blocks = [libc.malloc(100_000) for _ in range(400)]
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks[:-1]:                      # the last one keeps the heap from shrinking by itself
    libc.free(block)
before = resident()
assert heap.give_back()
print(before - resident())
"""


@pytest.mark.skipif(heap._trim() is None, reason="glibc only")
def test_free_memory_goes_back_to_the_system():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=Path(__file__).parents[2],
                          check=True, timeout=200)
    assert int(done.stdout) > 30_000_000


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_other_c_libraries_have_nothing_to_ask(error, monkeypatch):
    def refuse(name):
        raise error

    heap._trim.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert heap.give_back() is False
    heap._trim.cache_clear()
