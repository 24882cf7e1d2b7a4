"""LLVM IR of the step runner: the native code every program has in common.

`IR` defines

    i64  monograph_call(Frame*)              read pointers, check facts, look for changed weights, run steps
    i64  monograph_steps(Frame*)             run steps from `first` on, until one outside of [first, last) comes
    i64  monograph_watch(Frame*)             1 when a watched weight changed; observed words are written
    void monograph_parallel(fn, data, n, flags)     stands in for GOMP_parallel: see runtime.threads

for the tables that `runtime.abi` describes. It has no target triple and no vectors wider than 512 bits, so it
compiles for any host. Assembling a program puts its object among `Program.objects`.
"""

from __future__ import annotations

import time

from monograph.runtime.abi import (
    ARGUMENT_WORDS,
    FIRST_INPUT_BASE,
    PAUSE_NANOSECONDS,
    SEEN_WORDS,
    STEP_WORDS,
    WATCH_WORDS,
    FrameWord,
    LayoutWord,
    Status,
    StepKind,
)

__all__ = ["IR", "SYMBOL"]

SYMBOL = "monograph_call"


def _word(name: str, table: str, number: int, kind: str = "i64") -> str:
    return f"""  %{name}.at = getelementptr i64, ptr {table}, i64 {int(number)}
  %{name} = load {kind}, ptr %{name}.at
"""


def _frame(**words: tuple[FrameWord, str]) -> str:
    return "".join(_word(name, "%frame", number, kind) for name, (number, kind) in words.items())


def _layout(*words: LayoutWord) -> str:
    """Loads `%IMPL`, `%KEYS` ... from the layout table."""
    return "".join(_word(word.name, "%layout", word) for word in words)


def _field(name: str, base: str, offset: str, kind: str) -> str:
    return f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset}\n  %{name} = load {kind}, ptr %{name}.at\n"


PARALLEL = """
@monograph_threads = external global i32
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_max_threads()

define void @monograph_parallel(ptr %fn, ptr %data, i32 %n, i32 %flags) {
entry:
  %limit = load i32, ptr @monograph_threads
  %limited = icmp eq i32 %limit, 1
  br i1 %limited, label %alone, label %ask
ask:
  %one = icmp eq i32 %n, 1
  br i1 %one, label %alone, label %allowed
allowed:
  %max = call i32 @omp_get_max_threads()
  %single = icmp eq i32 %max, 1
  br i1 %single, label %alone, label %team
alone:
  call void %fn(ptr %data)
  ret void
team:
  call void @GOMP_parallel(ptr %fn, ptr %data, i32 %n, i32 %flags)
  ret void
}
"""

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
{_word("between", "%rounds", 1)}{_word("first", "%rounds", 2)}{_word("latest", "%rounds", 3)}
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
{_frame(steps=(FrameWord.STEPS, "ptr"), first=(FrameWord.FIRST, "i64"), last=(FrameWord.LAST, "i64"),
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
{_word("begin", "%record", 1)}{_word("count", "%record", 2)}
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
{_word("bytes", "%argument", 1)}
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
{_word("target", "%record", 3)}{_word("mask", "%record", 4)}
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
{_word("test.bytes", "%test.argument", 1)}
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
{_word("rows.count", "%rows.argument", 1)}
  %rows.done.at = getelementptr i64, ptr %bases, i64 %rows.counter
  %rows.done = load i64, ptr %rows.done.at
{_word("rows.all", "%rows.done.at", 1)}
  %rows.left = icmp slt i64 %rows.done, %rows.all
  br i1 %rows.left, label %rows.set, label %go
rows.set:
  %rows.last = sub i64 %rows.all, %mask
  %rows.row = call i64 @llvm.smin.i64(i64 %rows.done, i64 %rows.last)
  %rows.next = add i64 %rows.done, %mask
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
{_word("rows.bytes", "%rows.entry", 1)}
  %rows.pointer.at = getelementptr i64, ptr %bases, i64 %rows.base
{_word("rows.first", "%rows.pointer.at", 1)}
  %rows.offset = mul i64 %rows.row, %rows.bytes
  %rows.pointer = add i64 %rows.first, %rows.offset
  store i64 %rows.pointer, ptr %rows.pointer.at
  br label %rows.head
row.at:
  %row.words = mul i64 %begin, {ARGUMENT_WORDS}
  %row.argument = getelementptr i64, ptr %arguments, i64 %row.words
  %row.base = load i64, ptr %row.argument
{_word("row.stack", "%row.argument", 1)}{_word("row.counter", "%row.argument", 2)}
{_word("row.index.base", "%row.argument", 4)}{_word("row.index.offset", "%row.argument", 5)}
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
{_word("row.first", "%row.stack.word", 1)}
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
{_word("stack.count", "%stack.argument", 1)}
  %stack.done.at = getelementptr i64, ptr %bases, i64 %stack.counter
  %stack.done = load i64, ptr %stack.done.at
{_word("stack.room", "%stack.done.at", 1)}
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
{_word("stack.bytes", "%stack.entry", 1)}{_word("stack.source", "%stack.entry", ARGUMENT_WORDS)}
{_word("stack.offset", "%stack.entry", ARGUMENT_WORDS + 1)}
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

# Objects whose class is exactly Tensor or Parameter and whose dispatch keys are those of an ordinary CPU tensor are
# read by plain loads; anything else (subclasses, lazy conjugates, other devices) makes the caller look closer.
POINTERS = f"""
define internal i64 @pointers(ptr %list, i64 %count, ptr %facts, ptr %layout, ptr %destination) {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %begin, label %done
begin:
{_layout(*LayoutWord)}{_field("items", "%list", "%LIST_ITEMS", "ptr")}
  br label %head
head:
  %i = phi i64 [ 0, %begin ], [ %i.next, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %object, label %done
object:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item.at
{_field("class", "%item", "8", "i64")}
  %is.tensor = icmp eq i64 %class, %TENSOR_TYPE
  %is.parameter = icmp eq i64 %class, %PARAMETER_TYPE
  %is.known = or i1 %is.tensor, %is.parameter
  br i1 %is.known, label %plain, label %bad
plain:
{_field("impl", "%item", "%IMPL", "ptr")}{_field("keys", "%impl", "%KEYS", "i64")}
{_field("dtype", "%impl", "%DTYPE", "i16")}{_field("rank", "%impl", "%RANK", "i64")}
  %is.plain = icmp eq i64 %keys, %PLAIN_KEYS
  %is.inference = icmp eq i64 %keys, %INFERENCE_KEYS
  %is.cpu = or i1 %is.plain, %is.inference
  %fact.at = getelementptr ptr, ptr %facts, i64 %i
  %fact = load ptr, ptr %fact.at
  %want.dtype = load i64, ptr %fact
{_word("itemsize", "%fact", 1)}{_word("want.rank", "%fact", 2)}
  %dtype.wide = zext i16 %dtype to i64
  %same.dtype = icmp eq i64 %dtype.wide, %want.dtype
  %same.rank = icmp eq i64 %rank, %want.rank
  %same.both = and i1 %same.dtype, %same.rank
  %fits = and i1 %same.both, %is.cpu
  br i1 %fits, label %shape, label %bad
shape:
  %sizes.inline = getelementptr i8, ptr %impl, i64 %SIZES
  %strides.inline = getelementptr i8, ptr %impl, i64 %STRIDES
  %sizes.far = load ptr, ptr %sizes.inline
  %strides.far = getelementptr i64, ptr %sizes.far, i64 %rank
  %is.inline = icmp sle i64 %rank, %INLINE_RANK
  %sizes = select i1 %is.inline, ptr %sizes.inline, ptr %sizes.far
  %strides = select i1 %is.inline, ptr %strides.inline, ptr %strides.far
  %want.sizes = getelementptr i64, ptr %fact, i64 3
  %want.strides = getelementptr i64, ptr %want.sizes, i64 %rank
  br label %dim
dim:
  %d = phi i64 [ 0, %shape ], [ %d.next, %dim.next ]
  %dims = icmp slt i64 %d, %rank
  br i1 %dims, label %dim.check, label %data
dim.check:
  %size.at = getelementptr i64, ptr %sizes, i64 %d
  %size = load i64, ptr %size.at
  %want.size.at = getelementptr i64, ptr %want.sizes, i64 %d
  %want.size = load i64, ptr %want.size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %d
  %stride = load i64, ptr %stride.at
  %want.stride.at = getelementptr i64, ptr %want.strides, i64 %d
  %want.stride = load i64, ptr %want.stride.at
  %same.size = icmp eq i64 %size, %want.size
  %same.stride = icmp eq i64 %stride, %want.stride
  %is.one = icmp eq i64 %size, 1
  %stride.fits = or i1 %same.stride, %is.one
  %dim.fits = and i1 %same.size, %stride.fits
  br i1 %dim.fits, label %dim.next, label %bad
dim.next:
  %d.next = add i64 %d, 1
  br label %dim
data:
{_field("storage", "%impl", "%STORAGE", "ptr")}{_field("memory", "%storage", "%DATA", "ptr")}
{_field("offset", "%impl", "%OFFSET", "i64")}
  %is.null = icmp eq ptr %memory, null
  br i1 %is.null, label %bad, label %next
next:
  %bytes = mul i64 %offset, %itemsize
  %pointer = getelementptr i8, ptr %memory, i64 %bytes
  %slot = getelementptr ptr, ptr %destination, i64 %i
  store ptr %pointer, ptr %slot
  %i.next = add i64 %i, 1
  br label %head
bad:
  %index = phi i64 [ %i, %object ], [ %i, %plain ], [ %i, %dim.check ], [ %i, %data ]
  ret i64 %index
done:
  ret i64 -1
}}
"""

# A weight is sampled in whole cache lines spread over its bytes; eight lanes of add and rotate, so that neither
# equal changes nor changes in order cancel, then folded with multiplications. A short tail is taken byte by byte.
WATCH = f"""
declare <8 x i64> @llvm.fshl.v8i64(<8 x i64>, <8 x i64>, <8 x i64>)

define internal i64 @sample(ptr %data, i64 %lines, i64 %stride, i64 %tail.offset, i64 %tail.bytes) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %line ]
  %acc = phi <8 x i64> [ <i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8>, %entry ], [ %acc.next, %line ]
  %more = icmp slt i64 %i, %lines
  br i1 %more, label %line, label %fold
line:
  %bytes = mul i64 %i, %stride
  %at = getelementptr i8, ptr %data, i64 %bytes
  %words = load <8 x i64>, ptr %at, align 1
  %sum = add <8 x i64> %acc, %words
  %acc.next = call <8 x i64> @llvm.fshl.v8i64(<8 x i64> %sum, <8 x i64> %sum, <8 x i64> splat (i64 13))
  %i.next = add i64 %i, 1
  br label %head
fold:
  %h0 = extractelement <8 x i64> %acc, i32 0
  {"".join(f'''
  %w{lane} = extractelement <8 x i64> %acc, i32 {lane}
  %m{lane} = mul i64 %h{lane - 1}, -7046029288634856825
  %s{lane} = lshr i64 %m{lane}, 29
  %x{lane} = xor i64 %m{lane}, %s{lane}
  %h{lane} = add i64 %x{lane}, %w{lane}''' for lane in range(1, 8))}
  %tail = getelementptr i8, ptr %data, i64 %tail.offset
  br label %tail.head
tail.head:
  %k = phi i64 [ 0, %fold ], [ %k.next, %tail.body ]
  %h = phi i64 [ %h7, %fold ], [ %h.next, %tail.body ]
  %tail.more = icmp slt i64 %k, %tail.bytes
  br i1 %tail.more, label %tail.body, label %done
tail.body:
  %byte.at = getelementptr i8, ptr %tail, i64 %k
  %byte = load i8, ptr %byte.at
  %wide = zext i8 %byte to i64
  %mixed = xor i64 %h, %wide
  %h.next = mul i64 %mixed, 1099511628211
  %k.next = add i64 %k, 1
  br label %tail.head
done:
  ret i64 %h
}}

define i64 @monograph_watch(ptr %frame) {{
entry:
{_frame(count=(FrameWord.WATCH_COUNT, "i64"), watches=(FrameWord.WATCHES, "ptr"), seen=(FrameWord.SEEN, "ptr"),
        observed=(FrameWord.OBSERVED, "ptr"), bases=(FrameWord.BASES, "ptr"), layout=(FrameWord.LAYOUT, "ptr"),
        list=(FrameWord.INPUTS, "ptr"))}
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %begin, label %none
begin:
{_layout(LayoutWord.LIST_ITEMS, LayoutWord.IMPL, LayoutWord.VERSION, LayoutWord.VERSION_VALUE)}
  %read.versions = icmp sgt i64 %VERSION, 0
  br label %head
head:
  %i = phi i64 [ 0, %begin ], [ %i.next, %next ]
  %changed = phi i64 [ 0, %begin ], [ %changed.next, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %weight, label %done
weight:
  %row = mul i64 %i, {WATCH_WORDS}
  %watch = getelementptr i64, ptr %watches, i64 %row
  %input = load i64, ptr %watch
{_word("lines", "%watch", 1)}{_word("stride", "%watch", 2)}
{_word("tail.offset", "%watch", 3)}{_word("tail.bytes", "%watch", 4)}
  %base.number = add i64 %input, {FIRST_INPUT_BASE}
  %base.at = getelementptr ptr, ptr %bases, i64 %base.number
  %data = load ptr, ptr %base.at
  %address = ptrtoint ptr %data to i64
  %hash = call i64 @sample(ptr %data, i64 %lines, i64 %stride, i64 %tail.offset, i64 %tail.bytes)
  %seen.row = mul i64 %i, {SEEN_WORDS}
  %now = getelementptr i64, ptr %observed, i64 %seen.row
  br i1 %read.versions, label %counter, label %given
counter:
{_field("items", "%list", "%LIST_ITEMS", "ptr")}
  %item.at = getelementptr ptr, ptr %items, i64 %input
  %item = load ptr, ptr %item.at
{_field("impl", "%item", "%IMPL", "ptr")}{_field("shared", "%impl", "%VERSION", "ptr")}
  %no.counter = icmp eq ptr %shared, null
  br i1 %no.counter, label %compare, label %read
read:
{_field("narrow", "%shared", "%VERSION_VALUE", "i32")}
  %wide = zext i32 %narrow to i64
  br label %compare
given:
{_word("version.given", "%now", 1)}
  br label %compare
compare:
  %version = phi i64 [ -1, %counter ], [ %wide, %read ], [ %version.given, %given ]
  store i64 %address, ptr %now
  %now.version = getelementptr i64, ptr %now, i64 1
  store i64 %version, ptr %now.version
  %now.hash = getelementptr i64, ptr %now, i64 2
  store i64 %hash, ptr %now.hash
  %then = getelementptr i64, ptr %seen, i64 %seen.row
  %then.address = load i64, ptr %then
{_word("then.version", "%then", 1)}{_word("then.hash", "%then", 2)}
  %d0 = xor i64 %address, %then.address
  %d1 = xor i64 %version, %then.version
  %d2 = xor i64 %hash, %then.hash
  %d01 = or i64 %d0, %d1
  %difference = or i64 %d01, %d2
  %changed.next = or i64 %changed, %difference
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %head
done:
  %is.changed = icmp ne i64 %changed, 0
  %answer = zext i1 %is.changed to i64
  ret i64 %answer
none:
  ret i64 0
}}
"""

CALL = f"""
define i64 @monograph_call(ptr %frame) {{
entry:
{_word("inputs", "%frame", FrameWord.INPUTS, "ptr")}{_word("inputs.count", "%frame", FrameWord.INPUT_COUNT)}
{_word("outputs", "%frame", FrameWord.OUTPUTS, "ptr")}{_word("outputs.count", "%frame", FrameWord.OUTPUT_COUNT)}
{_word("facts", "%frame", FrameWord.FACTS, "ptr")}{_word("layout", "%frame", FrameWord.LAYOUT, "ptr")}
{_word("bases", "%frame", FrameWord.BASES, "ptr")}
  %input.bases = getelementptr ptr, ptr %bases, i64 {FIRST_INPUT_BASE}
  %input = call i64 @pointers(ptr %inputs, i64 %inputs.count, ptr %facts, ptr %layout, ptr %input.bases)
  %input.bad = icmp sge i64 %input, 0
  br i1 %input.bad, label %bad.input, label %read.outputs
read.outputs:
  %output.bases = getelementptr ptr, ptr %input.bases, i64 %inputs.count
  %output.facts = getelementptr ptr, ptr %facts, i64 %inputs.count
  %output = call i64 @pointers(ptr %outputs, i64 %outputs.count, ptr %output.facts, ptr %layout, ptr %output.bases)
  %output.bad = icmp sge i64 %output, 0
  br i1 %output.bad, label %bad.output, label %watch
watch:
  %changed = call i64 @monograph_watch(ptr %frame)
  %stale = icmp ne i64 %changed, 0
  br i1 %stale, label %bad.weight, label %run
run:
  %status = call i64 @monograph_steps(ptr %frame)
  ret i64 %status
bad.input:
  %input.status = or i64 %input, {Status.INPUT << 32}
  ret i64 %input.status
bad.output:
  %output.status = or i64 %output, {Status.OUTPUT << 32}
  ret i64 %output.status
bad.weight:
  ret i64 {Status.STALE << 32}
}}
"""

IR = PARALLEL + PAUSE + STEPS + POINTERS + WATCH + CALL
