"""The part of a tracer that Python asks: values, numbers, checks.

    ask(tensor)     the number in a traced tensor: known when it depends on no input; else the function that asked is
                    converted and the trace starts again; else it is read from this call (`paths`); else refused
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch

from monograph import compat, errors
from monograph.capture import blame, handlers, number_calls, outline, sizes
from monograph.capture.captured import Binding
from monograph.capture.checks import REPLAY
from monograph.capture.dims import dim
from monograph.capture.draws import Draws
from monograph.capture.generators import Generators
from monograph.capture.identity import Identities
from monograph.capture.layout import Layout
from monograph.capture.memory import Memory
from monograph.capture.number import DTYPES, TracedNumber, kind_of
from monograph.capture.paths import Paths
from monograph.capture.recorder import Recorder
from monograph.capture.regions.cases import Entries
from monograph.capture.regions.errors import Asked, Numbers, Unmergeable
from monograph.capture.regions.rewritten import Rewritten
from monograph.capture.regions.rolled import long
from monograph.capture.symbols import Sizes
from monograph.ir.graph import Graph, Value
from monograph.ops import table

__all__ = ["Asking"]

ITEM = torch.ops.aten._local_scalar_dense.default


class Asking:
    graph: Graph
    record: Recorder
    memory: Memory
    draws: Draws
    sizes: Sizes
    bindings: list[Binding]
    by_fake: dict[int, Any]
    by_real: dict[int, Any]
    lift: Callable[[torch.Tensor], torch.Tensor]
    known: Callable[[torch.Tensor], torch.Tensor | None]
    fresh: Callable[..., torch.Tensor]
    resolve: Callable[[Binding], torch.Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.entries_of_loops = Entries(weakref.proxy(self), set())
        self.paths = Paths(self)                      # type: ignore[arg-type]
        self.identities = Identities(weakref.proxy(self))
        self.plan: Any = None                                        # the driver's: what earlier attempts have taught
        self.can_convert: Callable[[Any], bool] = lambda code: False
        self.can_wait: Callable[[Any], bool] = lambda code: False    # the attempt goes on, and is made again
        self.watched: Callable[[], Iterable[Any]] = lambda: ()       # containers that the trace has seen
        self.reached: Callable[[], tuple[Iterable[Any], Callable[[Any], bool]]] = lambda: ((), lambda value: False)
        self.existed: Callable[[Any], bool] = lambda value: False    # whether an object was there before the trace
        self.has_written: Callable[[Any], bool] = lambda known: False      # to a container seen first in a branch
        self.globals_now: Callable[[], dict[Any, Any]] = dict          # those that the trace has seen
        self.has_written_global: Callable[[Any, Any], bool] = lambda then, names: False
        self.count_messages: Callable[[], int] = lambda: 0           # prints, warnings so far
        self.generators: Generators | None = None                    # those of the caller's, where they are watched
        self.conditions: Counter[Any] = Counter()                     # read, by the code of the function that did
        self.rewritten: list[Rewritten] = []                          # of the bodies being traced under autograd
        self.rewriting: list[Any] = []           # the statements with bodies that give tensors of the outside a history
        self.recorded: list[Any] = []            # autograd's nodes of functions of the user's: see `regions.custom_vjp`
        self.backward_hooks: Any = None                              # the driver's: see that module
        self.derivative: Callable[..., dict[Value, Value]] | None = None      # of a region: see `regions.gradient`
        self.absence: Callable[[Graph, int, Value], Value | None] | None = None    # see `autodiff.absence`

    @property
    def in_region(self) -> bool:
        return self.record.graph is not self.graph

    def operand(self, tensor: torch.Tensor, follow: bool = False) -> Value:
        """The value of a tensor that an op reads.

        In a region the derivative comes from the ops, so that a tensor autograd does not follow is detached there;
        with `follow` it is even where grad mode is off.
        """
        value = self.memory.read(tensor)
        if self.in_region and (follow or torch.is_grad_enabled()) and (tensor.is_floating_point()
                                                                       or tensor.is_complex()):
            if self.followed_by_autograd(tensor) is None:
                return self.record.emit("aten.detach.default", value, sizes=value.tensor.shape, dtype=tensor.dtype)
            self.claim(tensor)
        return value

    def claim(self, tensor: torch.Tensor) -> None:
        """In a region, make the base of an outer storage the tensor whose history the region's backward goes on with.

        It is another one where torch made a new tensor of an op's result (factories), or the user did (`detach`).
        """
        storage = self.memory.of(tensor)
        root: torch.Tensor = tensor if tensor._base is None else tensor._base
        entry = self.by_real.get(id(root))
        if entry is not None:
            root = entry.fake
        if storage.base is root or storage.scope is self.record.graph:
            return
        if self.followed_by_autograd(storage.base) is not None or Layout.of(root).key != storage.layout.key:
            raise Unmergeable("autograd follows tensors that share memory, and a branch or loop uses one")
        storage.base = root

    def touch(self, tensor: torch.Tensor) -> None:
        """`tensor`, whose storage may be written, is about to get another history."""
        if not self.in_region:
            return
        if not self.rewritten:
            raise Unmergeable("a branch or loop without gradients records some")
        self.rewritten[-1].touch(tensor)

    def followed_by_autograd(self, fake: torch.Tensor) -> torch.Tensor | None:
        """The tensor that autograd knows and that requires grad, behind a fake; that of a parameter is the real one."""
        if fake.requires_grad:
            return fake
        entry = self.by_fake.get(id(fake))
        return entry.real if entry is not None and entry.leaf is None and entry.real.requires_grad else None

    # -- values ------------------------------------------------------------------------

    def ask(self, tensor: torch.Tensor, func: Any = ITEM) -> Any:
        """The number in `tensor`, of one element, which `func` asks for."""
        numbers = self.ask_all(tensor, func)
        while isinstance(numbers, list):
            numbers, = numbers
        return numbers

    def ask_all(self, tensor: torch.Tensor, func: Any = ITEM) -> Any:
        """The numbers in `tensor`, nested as by `tolist()`."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            tensor = self.lift(tensor)
            found = self.known(tensor)
            if found is None:
                error = handlers.needs_value(func, self.record.loc)
                frame, can_read = blame.asking_frame(), self.paths.can_read(tensor)
                if frame is not None and self.can_convert(frame.f_code):
                    if not (can_read and self.can_wait(frame.f_code)):
                        raise Asked(frame.f_code, error)
                else:
                    outline.ask(self, tensor.dtype is torch.bool and tensor.numel() == 1)      # type: ignore[arg-type]
                    self.entries_of_loops.ask(self.memory.read(tensor))
                    if not can_read:
                        raise error
                found = self.paths.read(tensor)
        with compat.plain_torch():
            return found.tolist()

    def convert_loop(self, tensor: torch.Tensor) -> None:
        """Where Python loops over a tensor whose length values decide, or a long one, let converted code leave that to
        the run."""
        counted = tensor.dim() and (self.sizes.is_told(tensor.shape[0]) or long(tensor) is not None)
        frame = blame.looping_frame() if counted else None
        if frame is not None and self.can_convert(frame.f_code):
            raise Asked(frame.f_code, self.refusal("the length of a loop"))

    def refusal(self, what: str) -> errors.DataDependentError:
        frame = blame.user_frame(2)
        return errors.DataDependentError(what, loc=blame.location(frame) or self.record.loc, hint=handlers.HINT,
                                         expression=blame.expression(frame))

    # -- numbers -----------------------------------------------------------------------

    def item(self, tensor: torch.Tensor) -> Any:
        """What `tensor.item()` gives, for a traced i64[], f64[] or bool[]."""
        if self.plan is not None:
            self.plan.numbers += 1
            if self.plan.read_numbers and not self.in_region and self.paths.can_read(tensor):
                return self.ask(tensor)
        return self.wrap(tensor)

    def plain(self, tensor: torch.Tensor) -> Any:
        """The number in `tensor`, for code with which nothing can stand for it: other attempts read all numbers."""
        if self.plan is None or self.known(tensor) is not None:
            return self.ask(tensor)
        self.entries_of_loops.ask(self.memory.read(tensor))
        if self.in_region:
            raise Unmergeable("a traced number is a key")
        if not self.plan.read_numbers:
            outline.ask(self)                  # type: ignore[arg-type]
            raise Numbers
        if (site := self.memory.statement(self.memory.read(self.lift(tensor)))) is not None:
            raise Unmergeable("a number that a branch or loop gives is a key", site)
        return self.ask(tensor)

    def wrap(self, tensor: torch.Tensor) -> TracedNumber:
        """The traced number in a traced i64[], f64[] or bool[]."""
        return TracedNumber(self, self.lift(tensor))     # type: ignore[arg-type]

    def number_tensor(self, number: Any) -> torch.Tensor:
        """A number, traced or Python's, or a size, as a traced tensor without dims."""
        if isinstance(number, TracedNumber):
            return number.tensor
        kind: Any = kind_of(number)
        dtype = DTYPES[kind]
        with compat.plain_torch():
            fake = self.fresh((), (), dtype)
        if isinstance(number, torch.SymInt):
            value = self.record.emit("mono.scalar", dim(number), sizes=(), dtype=dtype)
        else:
            value = self.record.full((), number, dtype)
        self.memory.add(fake, value)
        return fake

    def call(self, function: Callable[..., Any], kind: type, *args: Any) -> TracedNumber:
        """`function(*args)`, a `kind`, called by the program."""
        return number_calls.call(function, kind, *args)

    def number_of(self, when: Callable[[Callable[[Value], None]], None], kind: type) -> TracedNumber:
        """A traced number whose value comes later: `when` gets the function to give it to."""
        with compat.plain_torch():
            fake = self.fresh((), (), DTYPES[kind])
        when(lambda value: self.add_result(fake, value))
        return TracedNumber(self, fake)                  # type: ignore[arg-type]

    def add_result(self, fake: torch.Tensor, value: Value, frozen: tuple[str, Any] | None = None) -> None:
        """A fake whose storage holds `value`; `frozen`: as `Storage` has it."""
        self.memory.add(fake, value).frozen = frozen

    def traced(self, number: Any) -> TracedNumber:
        """A number, traced or not, or a size as a traced number."""
        return TracedNumber(self, self.number_tensor(number))      # type: ignore[arg-type]

    def size(self, number: TracedNumber) -> Any:
        """A traced number as torch functions take it that want no tensor: an integer as a symbol where that can be."""
        found = sizes.number(self, number.tensor) if number.kind is int else NotImplemented      # type: ignore[arg-type]
        return self.ask(number.tensor) if found is NotImplemented else found

    # -- checks ------------------------------------------------------------------------

    def check_value(self, ok: torch.Tensor, error: str, message: str | None) -> None:
        """Raise `error(message)` at run time unless `ok` (bool[]) is true."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            value = self.memory.read(self.lift(ok))
        self.record.node(table.lookup("mono.check"), (value,), {"error": error, "message": message}, ())

    def holds(self, ok: torch.Tensor) -> bool:
        """What `ok` (bool[]) is, where the program raises if it is false and may see to that itself."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if self.known(ok) is None and self.paths.can_read(ok):
                with compat.plain_torch():
                    true = bool(self.paths.evaluate(self.memory.read(ok)))
                if true:
                    self.paths.read(ok, asserted=True)
                    return True
        return bool(self.ask(ok))

    def only_if(self, ok: torch.Tensor) -> None:
        """A call in which `ok` (bool[]) is false runs in Python."""
        self.check_value(ok, REPLAY, None)
