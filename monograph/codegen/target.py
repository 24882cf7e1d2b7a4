"""The machine code is made for: widths, features, number of registers.

`host()` describes this machine; `generic(...)` any other, for tests and for code that is only read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from monograph.codegen import llvm_worker

__all__ = ["Target", "generic", "host"]

X86_LAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"


@dataclass(frozen=True, slots=True)
class Target:
    """What code generation asks of a machine."""

    triple: str
    cpu: str
    features: str               # LLVM's comma separated +feature,-feature
    vector_bits: int            # 512, 256 or 128
    registers: int              # vector registers
    layout: str                 # LLVM data layout string
    has_fma: bool
    has_f16: bool               # f16 <-> f32 in hardware
    has_masks: bool             # predicated loads and stores of every element size (AVX-512BW)
    has_gather: bool            # a gather instruction worth using

    def lanes(self, dtype: torch.dtype) -> int:
        """Elements of `dtype` per vector register; bf16 and f16 compute as f32."""
        return self.vector_bits // register_bits(dtype)

    def narrowed(self, vector_bits: int) -> Target:
        """This target with vectors of at most `vector_bits`."""
        return replace(self, vector_bits=min(self.vector_bits, vector_bits))


def register_bits(dtype: torch.dtype) -> int:
    """The width of one lane of `dtype` while it is computed with."""
    if dtype in (torch.bfloat16, torch.float16):
        return 32
    return max(8, dtype.itemsize * 8)


_host: Target | None = None


def host(ask: Callable[[], dict[str, Any] | None] | None = None) -> Target:
    """The machine this process runs on. `ask` may know what LLVM says of it, and spares loading LLVM here."""
    global _host
    if _host is None:
        _host = _described((ask() if ask is not None else None) or llvm_worker.host())
    return _host


def _described(found: dict[str, Any]) -> Target:
    """A target from what `llvm_worker.host` says."""
    features, text = set(found["has"]), found["features"]
    if found["triple"].startswith(("aarch64", "arm64")):
        bits, registers, masks, gather = 128, 32, False, False
    elif features >= {"avx512f", "avx512vl", "avx512bw"}:
        bits, registers, masks, gather = 512, 32, True, True
    elif "avx2" in features:
        bits, registers, masks, gather = 256, 16, False, False
    else:
        bits, registers, masks, gather = 128, 16, False, False
    arm = bits == 128 and registers == 32
    if bits == 512:
        text += ",-prefer-256-bit"      # otherwise LLVM splits our 512-bit vectors on some CPUs
    return Target(
        found["triple"], found["cpu"], text, bits, registers, found["layout"],
        has_fma=arm or "fma" in features, has_f16=arm or "f16c" in features, has_masks=masks, has_gather=gather,
    )


def generic(vector_bits: int = 256, *, fma: bool = True) -> Target:
    """An x86-64 machine with vectors of `vector_bits`."""
    wide = vector_bits == 512
    features = "+avx512f,+avx512vl,+avx512bw,+avx512dq,-prefer-256-bit" if wide else ""
    optional = {128: "sse4.2", 256: "avx2", 512: "avx512f"}[vector_bits]
    features = ",".join(filter(None, [f"+{optional}", features, "+fma,+f16c" if fma else "-fma,-f16c"]))
    level = {128: 2, 256: 3, 512: 4}[vector_bits]
    return Target(
        "x86_64-unknown-linux-gnu", f"x86-64-v{level}", features, vector_bits, 32 if wide else 16, X86_LAYOUT,
        has_fma=fma, has_f16=fma, has_masks=wide, has_gather=wide,
    )
