"""What the step runner and the runtime agree on: numbers of 64-bit words in the tables they share.

    Frame   ::= header(FrameWord) base* args* error(i64[8]) observed*     one per call in flight
    base    ::= arena | error record | row word 0 | input* | output* | derived* | literal* | row word*    data pointers
    Step    ::= function, first argument, number of arguments, 0, 0     a kernel
              | 0, 0, PYTHON, 0, 0                                      the caller's business
              | 0, 0, JUMP, step, 0
              | 0, argument, TEST_..., step, mask                       jumps where no bit of the mask is set
              | 0, argument, ROWS, step, 0                              see runtime.program.RowsNext; arguments: the
                                                                        counter and how many follow, (base, row bytes)*
              | 0, argument, RECORD, 0, 0                               see runtime.program.Record; arguments: the
                                                                        counter and how many, (base, bytes, source)*
              | 0, argument, ROW_AT, 0, row bytes                       see runtime.program.RowAt; arguments: base and
                                                                        base of the stack, counter and 0, index
    Argument::= number of a base, byte offset
    Fact    ::= dtype code, item size, rank, sizes*, strides*              what an input must be
    Watch   ::= input number, lines, line stride, tail offset, tail bytes  how to sample a weight
    Seen    ::= pointer, version, hash                                     what a copy was derived from
    Layout  ::= LayoutWord                                                 where torch keeps things (runtime.probe)

`monograph_call(Frame*)` reads the inputs' and outputs' pointers, checks the facts, looks whether a watched
weight changed, runs steps [first, last). It returns a Status in the upper half and the number of
the input or step in the lower half. `monograph_steps(Frame*)` only runs the steps. A loop that takes longer than
`PAUSE_NANOSECONDS` is left with status PAUSED where it jumps back, so that the interpreter can handle signals and let
other threads run; the caller goes on from there.
"""

from __future__ import annotations

import enum

__all__ = [
    "ARENA_BASE", "ARGUMENT_WORDS", "ERROR_BASE", "FIRST_INPUT_BASE", "PAUSE_NANOSECONDS", "SEEN_WORDS", "STEP_WORDS",
    "WATCH_WORDS", "WORDS_BASE", "FrameWord", "LayoutWord", "Status", "StepKind",
]

STEP_WORDS = 5
PAUSE_NANOSECONDS = 50_000_000
ARGUMENT_WORDS = 2
WATCH_WORDS = 5
SEEN_WORDS = 3
ARENA_BASE, ERROR_BASE, WORDS_BASE, FIRST_INPUT_BASE = 0, 1, 2, 3


class FrameWord(enum.IntEnum):
    INPUTS = 0          # PyListObject* of the input tensors
    INPUT_COUNT = 1     # 0: pointers are filled in by the caller
    FACTS = 2           # Fact** of the inputs
    OUTPUTS = 3         # PyListObject* of the output tensors
    OUTPUT_COUNT = 4
    LAYOUT = 5
    BASES = 6
    WATCHES = 7
    WATCH_COUNT = 8
    SEEN = 9            # what the current copies were derived from
    OBSERVED = 10       # what is found now
    STEPS = 11
    FIRST = 12
    LAST = 13
    ARGUMENTS = 14
    ARGS = 15           # room for the arguments of one step


class StepKind(enum.IntEnum):
    """What a step without a function does. A test reads so many bits."""

    PYTHON = 0
    JUMP = 1
    TEST_8 = 2
    TEST_16 = 3
    TEST_32 = 4
    TEST_64 = 5
    ROWS = 6
    RECORD = 7
    ROW_AT = 8


class LayoutWord(enum.IntEnum):
    """Byte offsets unless said otherwise."""

    LIST_ITEMS = 0      # PyListObject -> PyObject**
    TENSOR_TYPE = 1     # the two exact classes whose objects are read (pointers)
    PARAMETER_TYPE = 2
    IMPL = 3            # PyObject -> TensorImpl*
    KEYS = 4            # TensorImpl -> dispatch key set
    PLAIN_KEYS = 5      # the two key sets of ordinary CPU tensors (values)
    INFERENCE_KEYS = 6
    DTYPE = 7           # TensorImpl -> u16 dtype code
    RANK = 8
    SIZES = 9           # inline, up to INLINE_RANK dims; else pointer to sizes and strides
    STRIDES = 10
    INLINE_RANK = 11    # a number of dims
    STORAGE = 12        # TensorImpl -> StorageImpl*
    DATA = 13           # StorageImpl -> data pointer
    OFFSET = 14         # TensorImpl -> storage offset in elements
    VERSION = 15        # TensorImpl -> VersionCounter*
    VERSION_VALUE = 16  # VersionCounter -> u32


class Status(enum.IntEnum):
    DONE = 0
    INPUT = 1           # an input is not the plain tensor that was expected
    STALE = 2           # a watched weight changed
    FAILED = 3          # a step returned non-zero
    OUTPUT = 4
    PYTHON = 5          # a step that is not native comes next
    PAUSED = 6          # go on at this step
