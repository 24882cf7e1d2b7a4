"""The dispatch mode under the user's code: every op arrives here on fakes and leaves as pure nodes.

One op at a time: lift real tensors, open composites, run the fake, then either remember a view's
recipe, record a pure node, or turn a write into a new value of its storage (`writes`).
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from monograph import compat, errors
from monograph.capture import (
    blame,
    by_example,
    eager_checks,
    fake_memo,
    functions,
    handlers,
    known,
    number_calls,
    opaque,
    shape_rules,
    sizes,
    value_checks,
    writes,
)
from monograph.capture.asking import Asking
from monograph.capture.call import Call, flatten_result, result_type, tensors_of
from monograph.capture.captured import Binding
from monograph.capture.classes import dress
from monograph.capture.dims import dim, is_symbolic
from monograph.capture.draws import Draws
from monograph.capture.inputs import Entry, Fakes, Restart, add_graph_input, check_supported, flat_like, lies_inside
from monograph.capture.joint import arrive
from monograph.capture.layout import Layout
from monograph.capture.memory import Memory
from monograph.capture.recorder import Recorder
from monograph.capture.regions import rolled
from monograph.capture.reshaped import reshape
from monograph.capture.size_arguments import interpolation
from monograph.capture.storage import Storage
from monograph.capture.symbols import Origin, Request, Sizes, SizesDiffer, refined
from monograph.capture.twins import METADATA, written
from monograph.capture.views import NO_STEP, Step
from monograph.ir.graph import Graph, Source, Value
from monograph.ir.op import Effect, Op, Trait
from monograph.ir.types import TensorType
from monograph.ops import table

__all__ = ["Tracer"]

LITERAL = torch.ops.aten.lift_fresh.default      # `torch.tensor(...)` hands its numbers to the program
SMALL = 16        # literals of up to this many equal elements are written as `full`


class Tracer(Asking, TorchDispatchMode):
    """One trace. `describe(real)` tells the source and path of a tensor met on the way."""

    def __init__(self, flat: set[int], describe: Any, resolve: Any, request: Request = MappingProxyType({}),
                 numeric: frozenset[Origin] | None = frozenset(), general: bool = True) -> None:
        self.sizes = Sizes(request, numeric=numeric)
        here = weakref.proxy(self)                    # no cycle: fakes end with the trace
        self.sizes.check = functools.partial(sizes.require, here)
        super().__init__()
        self.sizes.mode = self.mode = compat.symbolic_fake_mode(self.sizes.hear, not request, general)
        number_calls.TRACERS[self.mode] = weakref.ref(self)
        self.graph = Graph()
        self.record = Recorder(self.graph)
        self.memory = Memory(self.record)
        self.fakes = Fakes(self.mode, self.sizes)
        paths = self.paths                            # not `self`: no cycle keeps fakes alive
        self.draws = Draws(self.record, lambda: paths.done)
        self.flat = flat                              # real storages that must be flat bases
        self.describe = describe
        self.resolve = resolve                        # the real tensor behind a binding, in this call
        self.entries: list[Entry] = []
        self.by_real: dict[int, Entry] = {}           # id(real tensor)
        self.differentiable: dict[int, Entry] = {}      # id(fake): of arguments that require grad
        self.viewed: dict[int, torch.Tensor] = {}     # those of them of which the program makes views without grad
        self.by_fake: dict[int, Entry] = {}           # id(fake tensor)
        self.states: dict[int, torch.Tensor] = {}     # id(real state of the generator) -> its fake
        self.index_sites: dict[str, Any] = {}         # by symbol of an unknown place: the index that put a view there
        self.bindings: list[Binding] = []             # one per graph input
        self.gradients: dict[int, tuple[Any, Any]] = {}     # id(real tensor) -> it, and its .grad that was read
        self.keep: list[Any] = []                     # objects whose ids or storages are keys
        self.literals: dict[Value, torch.Tensor] = {}  # graph inputs whose numbers are written in the code
        self.loc_of_sequence: dict[int, Any] = {}
        self.silent = False                           # run fakes, record nothing
        self.ops = 0                                  # that have arrived
        self.refused = False                          # torch has raised on one

    # -- entering ----------------------------------------------------------------------

    def enter(self, real: torch.Tensor, source: Source, binding: Binding) -> torch.Tensor:
        """The fake of a real tensor, which becomes a graph input if it is the first of its storage."""
        known = self.by_real.get(id(real))
        if known is not None:
            return known.fake
        check_supported(real, str(source))
        differentiable = real.requires_grad and (source.kind == "argument" or not real.is_leaf)
        leaf = None
        with self.quiet():
            path = source.path if compat.storage_id(real) not in self.flat else None
            fake = self.fakes.make(real, path)
            if differentiable:
                fake, leaf = arrive(fake, real, self.fakes.make(real))
        if type(real) is not torch.Tensor:
            dress(fake, type(real))
        layout = Layout.of(fake)
        gradient = real.grad if real.is_leaf else None
        entry = Entry(real, fake, source, binding, layout, compat.storage_id(fake), compat.version(real), gradient,
                      leaf, fake.grad_fn)
        self._place(entry)
        self.entries.append(entry)
        self.by_real[id(real)] = self.by_fake[id(fake)] = entry
        if differentiable:
            self.differentiable[id(fake)] = entry
        return fake

    def _place(self, entry: Entry) -> None:
        """Find or make the storage of an entering tensor."""
        storage, layout = self.memory.find(entry.fake), entry.layout
        real_id = compat.storage_id(entry.real)
        if storage is not None:
            if layout.key != storage.layout.key and not lies_inside(layout, storage.layout):
                if real_id in self.flat:
                    raise errors.UnsupportedError(f"{entry.source} shares memory with a tensor of another dtype",
                                                  why="one memory is one value of one dtype in the graph",
                                                  hint="clone one of them")
                raise Restart(real_id)
            return
        base, binding = entry.fake, entry.binding
        if real_id in self.flat:
            with self.quiet():
                base = flat_like(entry.fake)
            layout = Layout.of(base)
            binding = Binding(binding.kind, binding.leaf, binding.tensor, binding.path, flat=True)
        entry.input = number = add_graph_input(self.graph, entry, layout, flat=binding.flat)
        self.bindings.append(binding)
        self.memory.add(base, self.graph.inputs[number], layout=layout, input=number)
        if binding.flat:
            entry.input = None

    def identity(self, entry: Entry) -> int:
        """A graph input that is the very tensor of `entry`."""
        if entry.input is None:
            entry.input = add_graph_input(self.graph, entry, entry.layout)
            self.bindings.append(entry.binding)
        return entry.input

    def lift(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake to compute with in place of `tensor`."""
        if isinstance(tensor, compat.FakeTensor):
            if tensor.fake_mode is not self.mode:
                raise errors.UnsupportedError("a tensor kept from another capture", loc=self.record.loc,
                                              why="it stood for a value of that graph and has none",
                                              hint="make or reset it in every call")
            return tensor
        known = self.by_real.get(id(tensor))
        if known is not None:
            return known.fake
        if id(tensor) in self.states:
            return self.states[id(tensor)]
        state = self.draws.value_of(tensor)
        if state is not None:
            return self._of_value(tensor, state)
        if torch.nn.parameter.is_lazy(tensor):
            raise errors.UninitializedError("a lazy module is called for the first time",
                                            loc=blame.location(blame.user_frame()), why="that call makes its weights",
                                            hint="call it once before")
        source = self.describe(tensor)
        return self.enter(tensor, source, Binding("tensor", tensor=tensor, path=source.path))

    def _of_value(self, tensor: torch.Tensor, value: Value) -> torch.Tensor:
        """The fake of a tensor that a node of the program gives."""
        with self.quiet():
            fake = self.states[id(tensor)] = self.fresh(tensor.shape, tensor.stride(), tensor.dtype)
        self.memory.add(fake, value)
        self.keep.append(tensor)
        return fake

    # -- dispatch ----------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(map(compat.dispatches, types)):
            return NotImplemented            # a wrapper, whose own code opens it
        with torch._C.DisableTorchFunction():
            if self.silent:
                return compat.run_fake(self.mode, func, args, kwargs)
            return self.dispatch(func, args, kwargs)

    def dispatch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func.namespace == "prim":
            return compat.run_fake(self.mode, func, args, kwargs)
        if func.namespace == "profiler":
            return func(*args, **kwargs)
        func, args = interpolation(func, args, kwargs)
        eager_checks.check(func, args, kwargs)
        if func not in shape_rules.KEPT_WHOLE and _is_composite(func):
            return self.open(func, args, kwargs)
        self.record.loc = self.where()
        self.ops += 1
        if not self.ops % rolled.OFTEN:
            rolled.look(self)
        if opaque.is_custom(func) and functions.is_open_to_autograd(args, kwargs):
            return functions.custom_op(self, func, args, kwargs)
        if func is LITERAL and not isinstance(args[0], compat.FakeTensor):
            return self.constant(args[0])
        value_checks.check_op(self, func, args, kwargs)
        call = Call(self, func, args, kwargs)
        handler = handlers.TABLE.get(func)
        if handler is not None:
            handled = handler(self, call)
            if handled is not NotImplemented:
                return handled
        try:
            if call.name in METADATA:
                return writes.metadata(self, call)
            if written(func):
                return opaque.custom_op(self, call) if opaque.writes_whole(func) else writes.write(self, call)
            return call.restore(self.pure(call))
        except compat.NEEDS_VALUE as error:
            raise handlers.needs_value(func, self.record.loc) from error
        except compat.NO_FAKE_KERNEL as error:
            if opaque.is_custom(func):
                return opaque.custom_op(self, call)
            raise errors.UnsupportedError(f"{func} has no shape rule", loc=self.record.loc,
                                          why="its result is needed before it runs",
                                          hint="register one with torch.library.register_fake") from error

    def open(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run torch's definition of a composite op, whose ops arrive here one by one."""
        if func is torch.ops.aten.reshape.default:
            reshaped = reshape(self, *args)
            if reshaped is not NotImplemented:
                return reshaped
        try:
            with self:
                return compat.composite_kernel(func, args, kwargs)
        except RuntimeError as error:
            if compat.NO_DATA in str(error):      # it reads a tensor's memory without asking through an op
                raise handlers.needs_value(func, self.record.loc) from error
            raise

    def where(self) -> Any:
        """The user's line behind the op being dispatched."""
        sequence = compat.current_backward_sequence()
        if sequence is not None:
            return self.loc_of_sequence.get(sequence, self.record.loc)
        loc = blame.location(blame.user_frame(3))
        if torch.is_grad_enabled():
            self.loc_of_sequence.setdefault(compat.last_sequence(), loc)
        return loc

    def constant(self, real: torch.Tensor) -> torch.Tensor:
        """A fresh tensor of the program that starts as a copy of `real`, numbers written in the code."""
        fake = self.fresh(real.shape, real.stride(), real.dtype)
        number = uniform(real)
        if number is not None:
            value = self.record.full(tuple(real.shape), number, real.dtype)
        else:
            type = TensorType(real.dtype, tuple(real.shape), "cpu", tuple(real.stride()))
            value = self.graph.add_input(type, "constant", Source("constant", f"literal{len(self.bindings)}"))
            self.bindings.append(Binding("tensor", tensor=real.detach()))
            self.literals[value] = real.detach()
        self.memory.add(fake, value)
        return fake

    def fresh(self, sizes: Any, strides: Any, dtype: torch.dtype) -> torch.Tensor:
        """A fake in a storage of its own, not known to `memory` yet."""
        return compat.fake_strided(self.mode, tuple(sizes), tuple(strides), dtype)

    def fake(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one op on fakes: its result's dtype, sizes and strides, or eager's error."""
        rule = shape_rules.TABLE.get(func)
        if rule is not None:
            result = rule(self, func, args, kwargs)
            if result is not NotImplemented:
                return result
        if fake_memo.sized_by_values(func, args):
            result = by_example.with_constants(self.mode, func, args, kwargs, self.known)
            if result is not NotImplemented:
                return result
        try:
            return compat.run_fake(self.mode, func, args, kwargs)
        except compat.NEEDS_VALUE:
            result = by_example.with_constants(self.mode, func, args, kwargs, self.known)
            if result is NotImplemented:
                raise
            return result
        except Exception as failure:     # whatever torch's kernel raises: eager decides
            if opaque.is_custom(func):
                raise compat.NO_FAKE_KERNEL(func) from failure
            return by_example.result_or_error(self.mode, func, args, kwargs, failure)

    def known(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The numbers of a tensor that depends on no input."""
        return known.constant(self.memory.read(tensor), self.literals)

    def fake_pure(self, call: Call) -> Any:
        """As `fake`, for an op that writes nothing: what its result looks like may be known."""
        key = fake_memo.key_of_call(call)
        if key is None:
            return self.fake(call.func, call.args, call.kwargs)
        result = fake_memo.make(key, call, self.mode, self.sizes.results)
        if result is NotImplemented:
            result = self.fake(call.func, call.args, call.kwargs)
            if any(layout.is_ambiguous for layout in call.layouts):
                result = by_example.laid_as_eager(self.mode, call.func, call.args, call.kwargs, result)
            fake_memo.remember(key, call, result, self.sizes.results)
        return result

    def again(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record another op in place of the one that arrived."""
        return self.pure(Call(self, func, args, kwargs))

    # -- pure ops ----------------------------------------------------------------------

    def pure(self, call: Call) -> Any:
        """An op that writes nothing: a view's recipe or a node."""
        if any(type(each) is torch.dtype and each in compat.QUANTIZED for each in (*call.args, *call.kwargs.values())):
            raise errors.UnsupportedError(f"{call.name} makes a quantized tensor", loc=self.record.loc,
                                          why="the graph has plain dense values",
                                          hint="dequantize outside of the compiled function")
        result = self.fake_pure(call)
        leaves = tensors_of(result)
        if not leaves:
            self._check_only(call)
            return result
        for leaf in leaves:
            self.check(leaf, call.name)
        homes = {compat.storage_id(t): (t, layout) for t, layout in zip(call.tensors, call.layouts, strict=True)}
        if all(compat.storage_id(leaf) in homes for leaf in leaves):
            self._views(call, result, leaves, homes)
            return result
        results = flatten_result(result)
        if sizes.are_new(results):
            return sizes.read(self, call, result)
        values = self.node(table.of_overload(call.func), self.encode(call.args), self.encode(call.kwargs),
                           [result_type(leaf) for leaf in results])
        for leaf, value in zip(results, values, strict=True):
            if not isinstance(leaf, torch.Tensor):
                continue
            if compat.storage_id(leaf) in homes:      # an op that may hand an operand through
                self.memory.write(leaf, self.memory.read(leaf))
            else:
                self.memory.add(leaf, value).factory = not call.tensors
        return result

    def _check_only(self, call: Call) -> None:
        """Record an op that gives nothing but may raise on what its operands hold."""
        op = table.of_overload(call.func)
        if call.tensors and Effect.RAISES in op.effects:
            self.record.node(op, self.encode(call.args), self.encode(call.kwargs), ())

    def node(self, op: Op, args: Any, kwargs: Any, types: list[Any], *, blank: bool = False) -> tuple[Value, ...]:
        """The results of a node of `op`; a random one may have been drawn before.

        `blank`: the first operand lends its shape only.
        """
        if not op.has(Trait.RANDOM) or _draws_nothing(op, args, kwargs):
            return self.record.node(op, args, kwargs, types).results
        signature = (op.name, *types, args[1:] if blank else args, tuple(kwargs.items()))
        return self.draws.draw(signature, lambda: self.record.node(op, args, kwargs, types).results)

    def normal(self, sizes: Any, mean: Any, std: Any, dtype: torch.dtype) -> Value:
        """Normal numbers drawn one by one, as into memory that does not lie row by row."""
        attributes = {"size": tuple(sizes), "mean": mean, "std": std, "dtype": dtype}
        return self.node(table.lookup("mono.normal"), (), attributes, [TensorType(dtype, tuple(sizes))])[0]

    def check(self, leaf: torch.Tensor, name: str) -> None:
        """DeviceError or UnsupportedError for a result that the compiler does not take."""
        if leaf.device.type != "cpu":
            raise errors.DeviceError(f"{name} makes a tensor on device {leaf.device}", loc=self.record.loc,
                                     why="only the CPU is supported",
                                     hint="make it on the CPU, or outside of the compiled function")
        if leaf.layout is not torch.strided or leaf.is_quantized or leaf.dtype in compat.QUANTIZED:
            kind = "quantized" if leaf.layout is torch.strided else f"sparse ({leaf.layout})"
            raise errors.UnsupportedError(f"{name} makes a {kind} tensor", loc=self.record.loc,
                                          why="the graph has plain dense values",
                                          hint="use its dense form")

    def _views(self, call: Call, result: Any, leaves: list[torch.Tensor], homes: Any) -> None:
        if call.func in NO_STEP:
            return
        several = isinstance(result, (list, tuple))
        sizes = tuple(tuple(leaf.shape) for leaf in leaves) if several else ()
        for part, leaf in enumerate(leaves):
            source, parent = homes[compat.storage_id(leaf)]
            args, kwargs = self.encode(call.args[1:]), self.encode(call.kwargs)
            step = Step(call.func, args, kwargs, parent, Layout.of(leaf), part, len(leaves), several, sizes)
            self.memory.of(source).remember(step)

    # -- encoding ----------------------------------------------------------------------

    def encode(self, value: Any) -> Any:
        """Tensors become their present values, symbolic numbers our expressions."""
        if isinstance(value, torch.Tensor):
            return self.operand(value)
        if isinstance(value, (list, tuple)):
            return tuple(self.encode(entry) for entry in value)
        if isinstance(value, Mapping):
            return {name: self.encode(entry) for name, entry in value.items()}
        return dim(value) if is_symbolic(value) else value

    def seal_sizes(self) -> None:
        """Start again where the trace found out how symbols are tied; name those of the graph."""
        tied = self.sizes.tied()
        if tied or self.sizes.pinned:
            raise SizesDiffer(refined(self.sizes.request, tied))
        self.graph.symbols.update(self.sizes.symbols)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Ops inside run on fakes and are not recorded."""
        before, self.silent = self.silent, True
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                yield
        finally:
            self.silent = before

    def storage_of(self, tensor: torch.Tensor) -> Storage:
        return self.memory.of(tensor)


_composite: dict[Any, bool] = {}


def _is_composite(func: Any) -> bool:
    known = _composite.get(func)
    if known is None:
        known = _composite[func] = compat.is_composite(func)
    return known


def _draws_nothing(op: Op, args: Any, kwargs: Any) -> bool:
    """Attention may drop, and says so, but with probability 0 it leaves the generator alone."""
    for position, parameter in enumerate(op.parameters):
        if parameter.name == "dropout_p":
            return (args[position] if position < len(args) else kwargs.get("dropout_p", parameter.default)) == 0
    return False


def uniform(real: torch.Tensor) -> Any:
    """The number that fills a small literal, if one does."""
    if not 0 < real.numel() <= SMALL or real.dtype.is_complex:
        return None
    values = real.reshape(-1).tolist()
    first = values[0]
    if any(value != first or math.copysign(1, value) != math.copysign(1, first) for value in values):
        return None
    return first
