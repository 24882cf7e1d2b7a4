"""What relocation types mean, per machine.

A fix computes, for arrays of relocations at once, the value to store from

    S  address of the symbol       A  addend       P  address of the place       G  address of S's entry in the
                                                                                    global offset table

and writes it into the image. `Machine.stub` is code that jumps to a far address: calls reach
2 GiB (x86-64) or 128 MiB (aarch64) at most, and libraries may be mapped anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from monograph.errors import CompileError
from monograph.runtime import elf

__all__ = ["MACHINES", "STUB_BYTES", "Fix", "Machine"]

STUB_BYTES = 16


@dataclass(frozen=True, slots=True)
class Fix:
    """How one relocation type is applied.

    target  symbol: S is the symbol itself; call: a stub where it lies outside the image; got: its table entry
    write   (image bytes, offsets in the image, S + A, P) -> None
    width   bytes written at each place
    """

    name: str
    target: Literal["symbol", "call", "got"]
    write: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]
    width: int = 4


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    fixes: Mapping[int, Fix]
    stub: Callable[[int], bytes]


def _put(image: np.ndarray, at: np.ndarray, value: np.ndarray, width: int) -> None:
    for byte in range(width):
        image[at + byte] = (value >> (8 * byte)) & 0xFF


def _in_range(value: np.ndarray, low: int, high: int, what: str) -> None:
    if len(value) and (int(value.min()) < low or int(value.max()) > high):
        raise CompileError(f"a relocation does not fit ({what}): compile with position-independent code")


def _absolute64(image: np.ndarray, at: np.ndarray, target: np.ndarray, place: np.ndarray) -> None:
    _put(image, at, target, 8)


def _relative64(image: np.ndarray, at: np.ndarray, target: np.ndarray, place: np.ndarray) -> None:
    _put(image, at, target - place, 8)


def _relative32(image: np.ndarray, at: np.ndarray, target: np.ndarray, place: np.ndarray) -> None:
    _in_range(target - place, -(1 << 31), (1 << 31) - 1, "32 bits, relative")
    _put(image, at, target - place, 4)


def _unsigned32(image: np.ndarray, at: np.ndarray, target: np.ndarray, place: np.ndarray) -> None:
    _in_range(target, 0, (1 << 32) - 1, "32 bits, absolute")
    _put(image, at, target, 4)


def _signed32(image: np.ndarray, at: np.ndarray, target: np.ndarray, place: np.ndarray) -> None:
    _in_range(target, -(1 << 31), (1 << 31) - 1, "32 bits, absolute")
    _put(image, at, target, 4)


def _x86_stub(address: int) -> bytes:
    return b"\xff\x25\0\0\0\0" + address.to_bytes(8, "little") + b"\xcc\xcc"      # jmp [rip]; address


X86 = Machine("x86-64", {
    1: Fix("R_X86_64_64", "symbol", _absolute64, 8),
    2: Fix("R_X86_64_PC32", "symbol", _relative32),
    4: Fix("R_X86_64_PLT32", "call", _relative32),
    9: Fix("R_X86_64_GOTPCREL", "got", _relative32),
    10: Fix("R_X86_64_32", "symbol", _unsigned32),
    11: Fix("R_X86_64_32S", "symbol", _signed32),
    24: Fix("R_X86_64_PC64", "symbol", _relative64, 8),
    41: Fix("R_X86_64_GOTPCRELX", "got", _relative32),
    42: Fix("R_X86_64_REX_GOTPCRELX", "got", _relative32),
}, _x86_stub)


def _words(image: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The 32-bit instructions at `at`."""
    return sum((image[at + byte].astype(np.int64) << (8 * byte) for byte in range(4)), np.zeros(len(at), np.int64))


def _branch26(image: np.ndarray, at: np.ndarray, target: np.ndarray, place: np.ndarray) -> None:
    distance = target - place
    _in_range(distance, -(1 << 27), (1 << 27) - 1, "branch")
    _put(image, at, (_words(image, at) & ~0x3FFFFFF) | ((distance >> 2) & 0x3FFFFFF), 4)


def _page21(image: np.ndarray, at: np.ndarray, target: np.ndarray, place: np.ndarray) -> None:
    pages = (target >> 12) - (place >> 12)
    _in_range(pages, -(1 << 20), (1 << 20) - 1, "page")
    immediate = ((pages & 3) << 29) | (((pages >> 2) & 0x7FFFF) << 5)
    _put(image, at, (_words(image, at) & ~0x60FFFFE0) | immediate, 4)


def _low12(shift: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]:
    def write(image: np.ndarray, at: np.ndarray, target: np.ndarray, place: np.ndarray) -> None:
        immediate = ((target & 0xFFF) >> shift) << 10
        _put(image, at, (_words(image, at) & ~0x3FFC00) | immediate, 4)

    return write


def _arm_stub(address: int) -> bytes:
    return b"\x50\x00\x00\x58\x00\x02\x1f\xd6" + address.to_bytes(8, "little")    # ldr x16, .+8; br x16; address


ARM = Machine("aarch64", {
    257: Fix("R_AARCH64_ABS64", "symbol", _absolute64, 8),
    260: Fix("R_AARCH64_PREL64", "symbol", _relative64, 8),
    261: Fix("R_AARCH64_PREL32", "symbol", _relative32),
    275: Fix("R_AARCH64_ADR_PREL_PG_HI21", "symbol", _page21),
    277: Fix("R_AARCH64_ADD_ABS_LO12_NC", "symbol", _low12(0)),
    278: Fix("R_AARCH64_LDST8_ABS_LO12_NC", "symbol", _low12(0)),
    282: Fix("R_AARCH64_JUMP26", "call", _branch26),
    283: Fix("R_AARCH64_CALL26", "call", _branch26),
    284: Fix("R_AARCH64_LDST16_ABS_LO12_NC", "symbol", _low12(1)),
    285: Fix("R_AARCH64_LDST32_ABS_LO12_NC", "symbol", _low12(2)),
    286: Fix("R_AARCH64_LDST64_ABS_LO12_NC", "symbol", _low12(3)),
    299: Fix("R_AARCH64_LDST128_ABS_LO12_NC", "symbol", _low12(4)),
    311: Fix("R_AARCH64_ADR_GOT_PAGE", "got", _page21),
    312: Fix("R_AARCH64_LD64_GOT_LO12_NC", "got", _low12(3)),
}, _arm_stub)

MACHINES: dict[int, Machine] = {elf.X86_64: X86, elf.AARCH64: ARM}
