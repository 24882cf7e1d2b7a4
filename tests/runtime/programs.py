"""Small hand-made programs for the runtime's tests."""

import torch

from monograph.ir.types import TensorType
from monograph.runtime.program import Derived, Native, Program, Slot
from tests.runtime.llvm import compile_ir, runner


def tensor_type(*shape, dtype=torch.float32, strides=None):
    if strides is None:
        strides = torch.empty(shape, device="meta").stride()
    return TensorType(dtype, tuple(shape), strides=tuple(strides))


def add_ir(name, n):
    """out[i] = a[i] + b[i], arguments a, b, out."""
    return f"""
define i32 @{name}(ptr %args) {{
entry:
  %a = load ptr, ptr %args
  %b.at = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %b.at
  %o.at = getelementptr ptr, ptr %args, i64 2
  %o = load ptr, ptr %o.at
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %body ]
  %c = icmp slt i64 %i, {n}
  br i1 %c, label %body, label %done
body:
  %pa = getelementptr float, ptr %a, i64 %i
  %x = load float, ptr %pa
  %pb = getelementptr float, ptr %b, i64 %i
  %y = load float, ptr %pb
  %z = fadd float %x, %y
  %po = getelementptr float, ptr %o, i64 %i
  store float %z, ptr %po
  %j = add i64 %i, 1
  br label %head
done:
  ret i32 0
}}
"""


def check_ir(name, limit):
    """Fails with code 1 and values (index, limit) unless i64 argument 0 is below `limit`; args: index, error."""
    return f"""
define i32 @{name}(ptr %args) {{
  %p = load ptr, ptr %args
  %e.at = getelementptr ptr, ptr %args, i64 1
  %e = load ptr, ptr %e.at
  %v = load i64, ptr %p
  %ok = icmp slt i64 %v, {limit}
  br i1 %ok, label %fine, label %bad
fine:
  ret i32 0
bad:
  store i64 1, ptr %e
  %e1 = getelementptr i64, ptr %e, i64 2
  store i64 %v, ptr %e1
  %e2 = getelementptr i64, ptr %e, i64 3
  store i64 {limit}, ptr %e2
  ret i32 1
}}
"""


def threads_ir(name):
    """Adds 1 to counter[thread number] (i64[64], argument 0) in every thread of a parallel region."""
    return f"""
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
define internal void @{name}.body(ptr %data) {{
  %t = call i32 @omp_get_thread_num()
  %w = zext i32 %t to i64
  %p = getelementptr i64, ptr %data, i64 %w
  store i64 1, ptr %p
  ret void
}}
define i32 @{name}(ptr %args) {{
  %o = load ptr, ptr %args
  call void @llvm.memset.p0.i64(ptr %o, i8 0, i64 512, i1 false)
  call void @GOMP_parallel(ptr @{name}.body, ptr %o, i32 0, i32 0)
  ret i32 0
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def sum_program(*shape):
    """out = a + b, then out2 = out + b by way of the arena."""
    kind = tensor_type(*shape)
    n = kind.numel
    return Program(
        slots=[Slot("input", 0, kind), Slot("input", 1, kind), Slot("arena", 64, kind), Slot("output", 0, kind)],
        inputs=[kind, kind], outputs=[kind], arena_bytes=64 + 4 * n,
        steps=[Native("add", (0, 1, 2)), Native("add", (2, 1, 3))], objects=[compile_ir(add_ir("add", n)), runner()],
    )


def weight_program(n, scale=2.0):
    """out = x + derived, derived = scale * w."""
    kind = tensor_type(n)
    return Program(
        slots=[Slot("input", 0, kind), Slot("derived", 0, kind), Slot("output", 0, kind)],
        inputs=[kind, kind], outputs=[kind], steps=[Native("add", (0, 1, 2))],
        objects=[compile_ir(add_ir("add", n)), runner()],
        derived=[Derived((1,), {"steps": []}, lambda w: w * scale, kind)],
    )


def threads_program():
    kind = tensor_type(64, dtype=torch.int64)
    return Program(
        slots=[Slot("output", 0, kind)], inputs=[], outputs=[kind], steps=[Native("count", (0,))],
        objects=[compile_ir(threads_ir("count")), runner()],
    )
