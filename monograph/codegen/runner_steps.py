"""LLVM IR of the step runner: the loop over steps, kernels and control flow.

    i64  monograph_steps(Frame*)             run steps from `first` on, until one outside of [first, last) comes
"""

from __future__ import annotations

import time

from monograph.codegen.runner_text import frame, word
from monograph.runtime.abi import ARGUMENT_WORDS, PAUSE_NANOSECONDS, STEP_WORDS, FrameWord, Status, StepKind

__all__ = ["PAUSE", "STEPS"]

# Reading the clock takes as long as a small step, so a loop reads it after 1, 2, 4, ... rounds: as many more as keep
# the time between two readings below a few milliseconds.
CLOCK = getattr(time, "CLOCK_MONOTONIC", 1)
SOON, LATE, MOST_ROUNDS = 1_000_000, 10_000_000, 1 << 20

PAUSE = f"""
declare i32 @clock_gettime(i32, ptr)

%Rounds = type {{ i64, i64, i64, i64 }}         ; rounds left, rounds between readings, first reading, last reading

define internal i1 @is.time.to.pause(ptr %rounds) {{
entry:
  %left = load i64, ptr %rounds
  %left.next = sub i64 %left, 1
  store i64 %left.next, ptr %rounds
  %due = icmp sle i64 %left.next, 0
  br i1 %due, label %look, label %no
look:
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 {CLOCK}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
{word("between", "%rounds", 1)}{word("first", "%rounds", 2)}{word("latest", "%rounds", 3)}
  %started = icmp ne i64 %first, 0
  br i1 %started, label %compare, label %start
start:
  store i64 %now, ptr %first.at
  br label %set
compare:
  %elapsed = sub i64 %now, %first
  %pause = icmp sgt i64 %elapsed, {PAUSE_NANOSECONDS}
  br i1 %pause, label %yes, label %set
set:
  %since = sub i64 %now, %latest
  %soon = icmp slt i64 %since, {SOON}
  %late = icmp sgt i64 %since, {LATE}
  %more = shl i64 %between, 1
  %fewer = lshr i64 %between, 2
  %grown = select i1 %soon, i64 %more, i64 %between
  %shrunk = select i1 %late, i64 %fewer, i64 %grown
  %capped = call i64 @llvm.smin.i64(i64 %shrunk, i64 {MOST_ROUNDS})
  %next = call i64 @llvm.smax.i64(i64 %capped, i64 1)
  store i64 %next, ptr %between.at
  store i64 %next, ptr %rounds
  store i64 %now, ptr %latest.at
  br label %no
no:
  ret i1 false
yes:
  ret i1 true
}}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""


def _test(bits: int) -> str:
    """Loads the word a test asks about as i64."""
    wide = f"zext i{bits} %bits.{bits} to i64" if bits < 64 else "add i64 %bits.64, 0"
    return f"""test.{bits}:
  %bits.{bits} = load i{bits}, ptr %tested
  %word.{bits} = {wide}
  br label %decide
"""


STEPS = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @monograph_steps(ptr %frame) {{
entry:
{frame(steps=(FrameWord.STEPS, "ptr"), first=(FrameWord.FIRST, "i64"), last=(FrameWord.LAST, "i64"),
        arguments=(FrameWord.ARGUMENTS, "ptr"), bases=(FrameWord.BASES, "ptr"), args=(FrameWord.ARGS, "ptr"))}
  %rounds = alloca %Rounds
  store %Rounds {{ i64 1, i64 1, i64 0, i64 0 }}, ptr %rounds
  br label %head
head:
  %i = phi i64 [ %first, %entry ], [ %i.next, %next ], [ %target, %go ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %step, label %done
step:
  %row = mul i64 %i, {STEP_WORDS}
  %record = getelementptr i64, ptr %steps, i64 %row
  %function = load ptr, ptr %record
{word("begin", "%record", 1)}{word("count", "%record", 2)}
  %is.control = icmp eq ptr %function, null
  br i1 %is.control, label %control, label %fill
fill:
  %k = phi i64 [ 0, %step ], [ %k.next, %fill.body ]
  %filling = icmp slt i64 %k, %count
  br i1 %filling, label %fill.body, label %call
fill.body:
  %position = add i64 %begin, %k
  %position.words = mul i64 %position, {ARGUMENT_WORDS}
  %argument = getelementptr i64, ptr %arguments, i64 %position.words
  %base.number = load i64, ptr %argument
{word("bytes", "%argument", 1)}
  %base.at = getelementptr ptr, ptr %bases, i64 %base.number
  %base = load ptr, ptr %base.at
  %pointer = getelementptr i8, ptr %base, i64 %bytes
  %slot = getelementptr ptr, ptr %args, i64 %k
  store ptr %pointer, ptr %slot
  %k.next = add i64 %k, 1
  br label %fill
call:
  %code = call i32 %function(ptr %args)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %next, label %failed
control:
{word("target", "%record", 3)}{word("mask", "%record", 4)}
  switch i64 %count, label %test [
    i64 {StepKind.PYTHON}, label %python
    i64 {StepKind.JUMP}, label %jump
    i64 {StepKind.ROWS}, label %rows
    i64 {StepKind.RECORD}, label %record.round
    i64 {StepKind.ROW_AT}, label %row.at
  ]
test:
  %test.words = mul i64 %begin, {ARGUMENT_WORDS}
  %test.argument = getelementptr i64, ptr %arguments, i64 %test.words
  %test.number = load i64, ptr %test.argument
{word("test.bytes", "%test.argument", 1)}
  %test.base.at = getelementptr ptr, ptr %bases, i64 %test.number
  %test.base = load ptr, ptr %test.base.at
  %tested = getelementptr i8, ptr %test.base, i64 %test.bytes
  switch i64 %count, label %test.64 [
    i64 {StepKind.TEST_8}, label %test.8
    i64 {StepKind.TEST_16}, label %test.16
    i64 {StepKind.TEST_32}, label %test.32
  ]
{"".join(map(_test, (8, 16, 32, 64)))}
decide:
  %word = phi i64 {", ".join(f"[ %word.{bits}, %test.{bits} ]" for bits in (8, 16, 32, 64))}
  %set = and i64 %word, %mask
  %true = icmp ne i64 %set, 0
  br i1 %true, label %next, label %go
rows:
  %rows.words = mul i64 %begin, {ARGUMENT_WORDS}
  %rows.argument = getelementptr i64, ptr %arguments, i64 %rows.words
  %rows.counter = load i64, ptr %rows.argument
{word("rows.count", "%rows.argument", 1)}
  %rows.done.at = getelementptr i64, ptr %bases, i64 %rows.counter
  %rows.done = load i64, ptr %rows.done.at
{word("rows.all", "%rows.done.at", 1)}{word("rows.each", "%rows.done.at", 2)}
  %rows.left = icmp slt i64 %rows.done, %rows.all
  br i1 %rows.left, label %rows.set, label %go
rows.set:
  %rows.last = sub i64 %rows.all, %rows.each
  %rows.row = call i64 @llvm.smin.i64(i64 %rows.done, i64 %rows.last)
  %rows.next = add i64 %rows.done, %rows.each
  store i64 %rows.next, ptr %rows.done.at
  br label %rows.head
rows.head:
  %rows.k = phi i64 [ 0, %rows.set ], [ %rows.k.next, %rows.point ]
  %rows.more = icmp slt i64 %rows.k, %rows.count
  br i1 %rows.more, label %rows.point, label %next
rows.point:
  %rows.k.next = add i64 %rows.k, 1
  %rows.entry.words = mul i64 %rows.k.next, {ARGUMENT_WORDS}
  %rows.entry = getelementptr i64, ptr %rows.argument, i64 %rows.entry.words
  %rows.base = load i64, ptr %rows.entry
{word("rows.bytes", "%rows.entry", 1)}
  %rows.pointer.at = getelementptr i64, ptr %bases, i64 %rows.base
{word("rows.first", "%rows.pointer.at", 1)}
  %rows.offset = mul i64 %rows.row, %rows.bytes
  %rows.pointer = add i64 %rows.first, %rows.offset
  store i64 %rows.pointer, ptr %rows.pointer.at
  br label %rows.head
row.at:
  %row.words = mul i64 %begin, {ARGUMENT_WORDS}
  %row.argument = getelementptr i64, ptr %arguments, i64 %row.words
  %row.base = load i64, ptr %row.argument
{word("row.stack", "%row.argument", 1)}{word("row.counter", "%row.argument", 2)}
{word("row.index.base", "%row.argument", 4)}{word("row.index.offset", "%row.argument", 5)}
  %row.index.memory.at = getelementptr ptr, ptr %bases, i64 %row.index.base
  %row.index.memory = load ptr, ptr %row.index.memory.at
  %row.index.at = getelementptr i8, ptr %row.index.memory, i64 %row.index.offset
  %row.index = load i64, ptr %row.index.at
  %row.count.word = getelementptr i64, ptr %bases, i64 %row.counter
  %row.count = load i64, ptr %row.count.word
  %row.negative = icmp slt i64 %row.index, 0
  %row.from.end = add i64 %row.index, %row.count
  %row.number = select i1 %row.negative, i64 %row.from.end, i64 %row.index
  %row.exists = icmp ult i64 %row.number, %row.count
  br i1 %row.exists, label %row.set, label %python
row.set:
  %row.stack.word = getelementptr i64, ptr %bases, i64 %row.stack
{word("row.first", "%row.stack.word", 1)}
  %row.skipped = mul i64 %row.number, %mask
  %row.pointer = add i64 %row.first, %row.skipped
  %row.word.at = getelementptr i64, ptr %bases, i64 %row.base
  store i64 %row.pointer, ptr %row.word.at
  %row.word.first.at = getelementptr i64, ptr %row.word.at, i64 1
  store i64 %row.first, ptr %row.word.first.at
  br label %next
record.round:
  %stack.words = mul i64 %begin, {ARGUMENT_WORDS}
  %stack.argument = getelementptr i64, ptr %arguments, i64 %stack.words
  %stack.counter = load i64, ptr %stack.argument
{word("stack.count", "%stack.argument", 1)}
  %stack.done.at = getelementptr i64, ptr %bases, i64 %stack.counter
  %stack.done = load i64, ptr %stack.done.at
{word("stack.room", "%stack.done.at", 1)}
  %stack.fits = icmp slt i64 %stack.done, %stack.room
  br i1 %stack.fits, label %stack.head, label %python
stack.head:
  %stack.k = phi i64 [ 0, %record.round ], [ %stack.k.next, %stack.copy ]
  %stack.more = icmp slt i64 %stack.k, %stack.count
  br i1 %stack.more, label %stack.copy, label %stack.close
stack.copy:
  %stack.k.next = add i64 %stack.k, 1
  %stack.twice = shl i64 %stack.k, 1
  %stack.entry.number = add i64 %stack.twice, 1
  %stack.entry.words = mul i64 %stack.entry.number, {ARGUMENT_WORDS}
  %stack.entry = getelementptr i64, ptr %stack.argument, i64 %stack.entry.words
  %stack.base = load i64, ptr %stack.entry
{word("stack.bytes", "%stack.entry", 1)}{word("stack.source", "%stack.entry", ARGUMENT_WORDS)}
{word("stack.offset", "%stack.entry", ARGUMENT_WORDS + 1)}
  %stack.source.base.at = getelementptr ptr, ptr %bases, i64 %stack.source
  %stack.source.base = load ptr, ptr %stack.source.base.at
  %stack.from = getelementptr i8, ptr %stack.source.base, i64 %stack.offset
  %stack.end.at = getelementptr ptr, ptr %bases, i64 %stack.base
  %stack.end = load ptr, ptr %stack.end.at
  call void @llvm.memcpy.p0.p0.i64(ptr %stack.end, ptr %stack.from, i64 %stack.bytes, i1 false)
  %stack.end.next = getelementptr i8, ptr %stack.end, i64 %stack.bytes
  store ptr %stack.end.next, ptr %stack.end.at
  br label %stack.head
stack.close:
  %stack.done.next = add i64 %stack.done, 1
  store i64 %stack.done.next, ptr %stack.done.at
  br label %next
jump:
  %is.back = icmp sle i64 %target, %i
  br i1 %is.back, label %round, label %go
round:
  %is.time = call i1 @is.time.to.pause(ptr %rounds)
  br i1 %is.time, label %paused, label %go
go:
  br label %head
next:
  %i.next = add i64 %i, 1
  br label %head
failed:
  %status = or i64 %i, {Status.FAILED << 32}
  ret i64 %status
python:
  %stop = or i64 %i, {Status.PYTHON << 32}
  ret i64 %stop
paused:
  %later = or i64 %target, {Status.PAUSED << 32}
  ret i64 %later
done:
  ret i64 0
}}
"""
