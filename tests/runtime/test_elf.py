import contextlib
import ctypes
import mmap
import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.errors import CompileError
from monograph.runtime import elf, relocate
from monograph.runtime.link import link
from monograph.runtime.symbols import externals
from tests.runtime.llvm import compile_ir, runner
from tests.runtime.programs import add_ir, threads_ir


def function(image, name, *arguments):
    result, *arguments = arguments
    return ctypes.CFUNCTYPE(result, *arguments)(image.symbols[name])


def call_i64(text, name, *values, others=(), table=None):
    image = link([compile_ir(text), *map(compile_ir, others)], externals() if table is None else table)
    arguments = [ctypes.c_int64] * len(values)
    return function(image, name, ctypes.c_int64, *arguments)(*values)


def test_code_constants_and_data():
    text = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
@pointers = internal constant [2 x ptr] [ptr @table, ptr @counter]
@counter = internal global i64 5
@zeros = internal global [100 x i64] zeroinitializer
@shared = global i64 7
define i64 @f(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %a = load i64, ptr %p
  %q.at = getelementptr ptr, ptr @pointers, i64 1
  %q = load ptr, ptr %q.at
  %b = load i64, ptr %q
  %b1 = add i64 %b, 1
  store i64 %b1, ptr %q
  %z = getelementptr i64, ptr @zeros, i64 %i
  %c = load i64, ptr %z
  %d = load i64, ptr @shared
  %s1 = add i64 %a, %b
  %s2 = add i64 %s1, %c
  %s3 = add i64 %s2, %d
  ret i64 %s3
}
"""
    image = link([compile_ir(text)], {})
    f = function(image, "f", ctypes.c_int64, ctypes.c_int64)
    assert [f(0), f(3)] == [10 + 5 + 7, 40 + 6 + 7]


def test_objects_refer_to_each_other():
    one = "declare i64 @g(i64)\ndefine i64 @f(i64 %x) {\n %y = call i64 @g(i64 %x)\n ret i64 %y\n}"
    two = """
@k = external global i64
define i64 @g(i64 %x) {
  %k = load i64, ptr @k
  %y = mul i64 %x, %k
  ret i64 %y
}
"""
    three = "@k = global i64 6\n"
    assert call_i64(one, "f", 7, others=(two, three)) == 42


def test_libraries_far_away_are_called_through_stubs():
    text = "declare i64 @labs(i64)\ndeclare i64 @strtol(ptr, ptr, i32)\n" \
        "define i64 @f(i64 %x) {\n %y = call i64 @labs(i64 %x)\n %z = call i64 @labs(i64 %y)\n ret i64 %z\n}"
    assert call_i64(text, "f", -9) == 9


def test_known_libraries():
    table = externals()
    for name in ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "expf", "pow", "malloc", "free",
                 "memcpy", "memset"):
        assert table[name]
    with pytest.raises(KeyError):
        table["omp_no_such_function"]


def test_unknown_symbols_are_named():
    text = """
declare i64 @no_such_function(i64)
define i64 @f(i64 %x) {
  %y = call i64 @no_such_function(i64 %x)
  ret i64 %y
}
"""
    with pytest.raises(CompileError, match="no_such_function"):
        link([compile_ir(text)], externals())
    weak = text.replace("declare i64", "declare extern_weak i64")
    link([compile_ir(weak)], externals())


def test_two_definitions_are_an_error_and_weak_ones_yield():
    strong, other = ("define i64 @f(i64 %x) {\n ret i64 " + value + "\n}" for value in ("1", "2"))
    weak = strong.replace("define", "define weak").replace("i64 1", "i64 3")
    with pytest.raises(CompileError, match="'f'"):
        link([compile_ir(strong), compile_ir(other)], {})
    for order in ((weak, strong), (strong, weak)):
        assert call_i64(order[0], "f", 0, others=order[1:]) == 1


def test_names_are_redirected_to_the_runner():
    image = link([compile_ir(threads_ir("count")), runner()], externals(), {"GOMP_parallel": "monograph_parallel"})
    assert {"count", "monograph_parallel"} <= set(image.symbols)


def test_no_page_is_writable_and_executable():
    image = link([compile_ir("@g = global i64 1\n@c = constant i64 2\ndefine ptr @f() {\n ret ptr @g\n}")], {})
    rights = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high, flags = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
        for name in ("f", "g", "c"):
            if int(low, 16) <= image.symbols[name] < int(high, 16):
                rights[name] = flags
    assert rights == {"f": "r-xp", "g": "rw-p", "c": "r--p"}
    assert image.size % mmap.PAGESIZE == 0


def test_sixty_kernels_load_in_milliseconds():
    objects = [compile_ir("\n".join(add_ir(f"k{i}", i + 1) for i in range(60))), runner()]
    link(objects, externals())
    times = []
    for _ in range(5):
        start = time.thread_time()
        link(objects, externals())
        times.append(time.thread_time() - start)
    assert min(times) < 0.02


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_objects_give_errors(data):
    """Any result but a crash: reading a damaged object either fails clearly or leaves an object to link."""
    good = bytearray(runner())
    for _ in range(data.draw(st.integers(1, 4))):
        header, anywhere, table = st.integers(0, 63), st.integers(0, len(good) - 1), st.integers(1, 64 * 20)
        place = data.draw(st.one_of(header, anywhere, table.map(lambda back: len(good) - back)))
        good[place] = data.draw(st.integers(0, 255))
    bad = bytes(good[:data.draw(st.integers(0, len(good)))]) if data.draw(st.booleans()) else bytes(good)
    with contextlib.suppress(CompileError):
        link([bad], externals())


def test_other_machines_are_refused():
    with pytest.raises(CompileError, match="ELF machine 183"):
        link([compile_ir(add_ir("add", 4), "aarch64-unknown-linux-gnu")], {})


def test_unsupported_relocations_are_named():
    data = bytearray(runner())
    rows = elf._array(bytes(data), elf._SECTION, int.from_bytes(data[0x28:0x30], "little"), 99 and data[0x3C], "")
    for row in rows.tolist():
        if row[1] == 4 and row[5]:
            data[row[4] + 8] = 99
            break
    with pytest.raises(CompileError, match="relocation type 99"):
        link([bytes(data)], externals())


# -- aarch64: the numbers that the fixes put into instructions, against what the instruction set manual says

def fixed(number, instruction, target, place):
    image = np.frombuffer(bytearray(instruction.to_bytes(4, "little") + bytes(4)), np.uint8)
    fix = relocate.ARM.fixes[number]
    fix.write(image, np.array([0]), np.array([target], np.int64), np.array([place], np.int64))
    return int.from_bytes(image[:fix.width].tobytes(), "little")


def test_aarch64_instructions():
    assert fixed(283, 0x94000000, 0x400010, 0x400000) == 0x94000004          # bl .+16
    assert fixed(283, 0x94000000, 0x3FFFFC, 0x400000) == 0x97FFFFFF          # bl .-4
    assert fixed(275, 0x90000000, 0x403123, 0x400FFF) == 0xF0000000          # adrp x0, .+3 pages
    assert fixed(275, 0x90000001, 0x404000, 0x400000) == 0x90000021          # adrp x1, .+4 pages
    assert fixed(277, 0x91000000, 0x403123, 0) == 0x91048C00                 # add x0, x0, #0x123
    assert fixed(286, 0xF9400000, 0x403128, 0) == 0xF9409400                 # ldr x0, [x0, #0x128]
    assert fixed(299, 0x3DC00000, 0x403130, 0) == 0x3DC04C00                 # ldr q0, [x0, #0x130]
    assert fixed(257, 0, 0x1122334455667788, 0) == 0x1122334455667788
    assert fixed(261, 0, 0x400000, 0x400010) == 0xFFFFFFF0
    with pytest.raises(CompileError, match="does not fit"):
        fixed(283, 0x94000000, 1 << 40, 0)


def test_aarch64_relocations_of_real_objects_are_all_known():
    text = add_ir("add", 4) + """
@table = internal constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]
@outside = external global i64
declare double @exp(double)
define double @f(i64 %i, double %x) {
  %p = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %p
  %o = load i64, ptr @outside
  %s = add i64 %v, %o
  %d = sitofp i64 %s to double
  %e = call double @exp(double %x)
  %r = fadd double %d, %e
  ret double %r
}
"""
    item = elf.read(compile_ir(text, "aarch64-unknown-linux-gnu"))
    kinds = {kind for table in item.relocations for kind in table.type.tolist()}
    assert item.machine == elf.AARCH64 and len(kinds) >= 4 and kinds <= set(relocate.ARM.fixes)
