"""LLVM IR of the step runner: the native code every program has in common.

`IR` defines

    i64  monograph_call(Frame*)              read pointers, check facts, look for changed weights, run steps
    i64  monograph_steps(Frame*)             run steps from `first` on, until one outside of [first, last) comes
    i64  monograph_watch(Frame*)             1 when a watched weight changed; observed words are written
    void monograph_parallel(fn, data, n, flags)     stands in for GOMP_parallel: see runtime.threads

for the tables that `runtime.abi` describes; `monograph_steps` is in `runner_steps`. It has no target triple and no
vectors wider than 512 bits, so it compiles for any host. Assembling a program puts its object among `Program.objects`.
"""

from __future__ import annotations

from monograph.codegen.runner_steps import PAUSE, STEPS
from monograph.codegen.runner_text import field, frame, layout, word
from monograph.runtime.abi import FIRST_INPUT_BASE, SEEN_WORDS, WATCH_WORDS, FrameWord, LayoutWord, Status

__all__ = ["IR", "SYMBOL"]

SYMBOL = "monograph_call"


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

# Objects whose class is exactly Tensor or Parameter and whose dispatch keys are those of an ordinary CPU tensor are
# read by plain loads; anything else (subclasses, lazy conjugates, other devices) makes the caller look closer.
POINTERS = f"""
define internal i64 @pointers(ptr %list, i64 %count, ptr %facts, ptr %layout, ptr %destination) {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %begin, label %done
begin:
{layout(*LayoutWord)}{field("items", "%list", "%LIST_ITEMS", "ptr")}
  br label %head
head:
  %i = phi i64 [ 0, %begin ], [ %i.next, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %object, label %done
object:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item.at
{field("class", "%item", "8", "i64")}
  %is.tensor = icmp eq i64 %class, %TENSOR_TYPE
  %is.parameter = icmp eq i64 %class, %PARAMETER_TYPE
  %is.known = or i1 %is.tensor, %is.parameter
  br i1 %is.known, label %plain, label %bad
plain:
{field("impl", "%item", "%IMPL", "ptr")}{field("keys", "%impl", "%KEYS", "i64")}
{field("dtype", "%impl", "%DTYPE", "i16")}{field("rank", "%impl", "%RANK", "i64")}
  %is.plain = icmp eq i64 %keys, %PLAIN_KEYS
  %is.inference = icmp eq i64 %keys, %INFERENCE_KEYS
  %is.cpu = or i1 %is.plain, %is.inference
  %fact.at = getelementptr ptr, ptr %facts, i64 %i
  %fact = load ptr, ptr %fact.at
  %want.dtype = load i64, ptr %fact
{word("itemsize", "%fact", 1)}{word("want.rank", "%fact", 2)}
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
{field("storage", "%impl", "%STORAGE", "ptr")}{field("memory", "%storage", "%DATA", "ptr")}
{field("offset", "%impl", "%OFFSET", "i64")}
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
{frame(count=(FrameWord.WATCH_COUNT, "i64"), watches=(FrameWord.WATCHES, "ptr"), seen=(FrameWord.SEEN, "ptr"),
        observed=(FrameWord.OBSERVED, "ptr"), bases=(FrameWord.BASES, "ptr"), layout=(FrameWord.LAYOUT, "ptr"),
        list=(FrameWord.INPUTS, "ptr"))}
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %begin, label %none
begin:
{layout(LayoutWord.LIST_ITEMS, LayoutWord.IMPL, LayoutWord.VERSION, LayoutWord.VERSION_VALUE)}
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
{word("lines", "%watch", 1)}{word("stride", "%watch", 2)}
{word("tail.offset", "%watch", 3)}{word("tail.bytes", "%watch", 4)}
  %base.number = add i64 %input, {FIRST_INPUT_BASE}
  %base.at = getelementptr ptr, ptr %bases, i64 %base.number
  %data = load ptr, ptr %base.at
  %address = ptrtoint ptr %data to i64
  %hash = call i64 @sample(ptr %data, i64 %lines, i64 %stride, i64 %tail.offset, i64 %tail.bytes)
  %seen.row = mul i64 %i, {SEEN_WORDS}
  %now = getelementptr i64, ptr %observed, i64 %seen.row
  br i1 %read.versions, label %counter, label %given
counter:
{field("items", "%list", "%LIST_ITEMS", "ptr")}
  %item.at = getelementptr ptr, ptr %items, i64 %input
  %item = load ptr, ptr %item.at
{field("impl", "%item", "%IMPL", "ptr")}{field("shared", "%impl", "%VERSION", "ptr")}
  %no.counter = icmp eq ptr %shared, null
  br i1 %no.counter, label %compare, label %read
read:
{field("narrow", "%shared", "%VERSION_VALUE", "i32")}
  %wide = zext i32 %narrow to i64
  br label %compare
given:
{word("version.given", "%now", 1)}
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
{word("then.version", "%then", 1)}{word("then.hash", "%then", 2)}
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
{word("inputs", "%frame", FrameWord.INPUTS, "ptr")}{word("inputs.count", "%frame", FrameWord.INPUT_COUNT)}
{word("outputs", "%frame", FrameWord.OUTPUTS, "ptr")}{word("outputs.count", "%frame", FrameWord.OUTPUT_COUNT)}
{word("facts", "%frame", FrameWord.FACTS, "ptr")}{word("layout", "%frame", FrameWord.LAYOUT, "ptr")}
{word("bases", "%frame", FrameWord.BASES, "ptr")}
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
