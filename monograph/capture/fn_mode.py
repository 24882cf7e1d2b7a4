"""The function mode above the dispatch mode: who asks for values, and which calls reach us whole.

With autograd out of the way (grad mode off) calls run below its kernels, so that composite ops
arrive at the dispatch mode as one op. Questions that fakes cannot answer are refused by name here,
before torch fails in its own words.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from monograph import compat, errors
from monograph.capture import blame, classes, counted, dynamic, handlers, higher_order, packed, value_checks, writes
from monograph.capture.arrays import TracedArray, as_tensors, copied
from monograph.capture.attributes import attribute, check_gradients, lie_alike
from monograph.capture.draws import REAL, DefaultGenerator
from monograph.capture.functions import Allowed, call_whole, gives_number
from monograph.capture.histories import cut, settled
from monograph.capture.inputs import flat_like
from monograph.capture.layout import Layout
from monograph.capture.literals import BUILDERS, built
from monograph.capture.number import TracedNumber, as_operands, number_dtype, takes_float
from monograph.capture.regions.errors import Asked, Caught, Unmergeable
from monograph.capture.size_arguments import SPLITS, as_sizes, assert_parts

if TYPE_CHECKING:
    from monograph.capture.tracer import Tracer

__all__ = ["UserMode"]

Tensor = torch.Tensor

# They leave torch with the tensor's memory or its printed values.
LEAVES_TORCH: dict[Any, str] = {
    Tensor.__array__: "__array__()", Tensor.data_ptr: "data_ptr()",
    Tensor.__dlpack__: "__dlpack__()", Tensor.__repr__: "repr()", Tensor.__format__: "format()",
    Tensor.__reduce_ex__: "pickling", compat.READ_VERSION: "_version",
}

SHOWN = frozenset({Tensor.__format__, Tensor.__repr__})      # in an f-string of converted code they need no values

GIVES_NUMBER = frozenset({Tensor.item, torch.equal, Tensor.equal, torch.allclose, Tensor.allclose})
LISTED = 64        # elements of a tensor of which each may be a number of the program
SIZES = frozenset({                          # of a tensor that is not an argument these may be symbols
    Tensor.shape.__get__, Tensor.size, Tensor.stride, Tensor.numel, Tensor.nelement, Tensor.__len__,
})
INDEXING = frozenset({Tensor.__getitem__, Tensor.__setitem__})
INDEX_DTYPES = frozenset({torch.int64, torch.int32, torch.int16, torch.int8})

# They read the memory of a tensor of indices without asking through an op.
READS_INDICES = frozenset({torch.tensor_split, Tensor.tensor_split})

# With oneDNN its derivative needs a workspace that fakes leave undefined.
LSTM = torch.lstm
RECURRENT = frozenset({torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu})

# They run autograd's engine, which must see its own kernels.
AUTOGRAD = frozenset({Tensor.backward, torch.autograd.grad, torch.autograd.backward})


# They say whether a tensor has a history, past the kernels.
SET_HISTORIES = frozenset({Tensor.detach_, Tensor.requires_grad_, Tensor.requires_grad.__set__})


# Neither torch's kernels nor what the tracer says in their place raise these.
FAULTS = (AssertionError, KeyError, NameError)


class UserMode(TorchFunctionMode):
    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return self.call(func, types, args, kwargs or {})
        except Exception as error:
            self.raised(error)
            raise

    def raised(self, error: Exception) -> None:
        """What torch raises on a number or size that the run decides is raised for this one: the trace may not go on
        from a handler of the user's. Nor may it on a fault of ours. What autograd refuses holds for arguments that
        stand as these do."""
        if isinstance(error, FAULTS) and blame.raised_by_us(error) and blame.raised_by_user(error) is None \
                and blame.may_be_caught():
            raise errors.UnsupportedError(f"tracing it raised {type(error).__name__}: {error}",
                                          loc=blame.location(blame.user_frame()), why="that is a fault of the tracer",
                                          hint="report it, and let the call run eagerly (fullgraph=False)") from error
        plan, sizes = self.tracer.plan, self.tracer.sizes
        self.tracer.refused |= isinstance(error, RuntimeError)
        stands = plan is not None and (bool(sizes.told) or (plan.numbers > 0 and not plan.read_numbers))
        if stands and not isinstance(error, (AttributeError, errors.MonographError)) and blame.may_be_caught():
            raise Caught from error

    def call(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        kinds = classes.overriding(types)
        if kinds:
            with self:
                return classes.call(kinds, func, args, kwargs)
        generator = kwargs.get("generator")
        if isinstance(generator, torch.Generator) and self.tracer.generators is not None:
            kwargs = {name: value for name, value in kwargs.items() if name != "generator"}
            if not isinstance(generator, DefaultGenerator) and generator is not REAL:
                with self.tracer.generators.drawing(self.tracer, generator):
                    return self.call(func, types, args, kwargs)
        if func is Tensor.__deepcopy__ and isinstance(args[0], compat.FakeTensor) and not args[0].requires_grad:
            return self.deep_copy(*args)
        if func is Tensor.__format__ and isinstance(args[0], compat.FakeTensor) and not args[0].dim():
            return self.formatted(*args)
        if func is Tensor.__reduce_ex__ and self.copies(args[0]):
            return Tensor.detach, args[:1]
        if func is Tensor.is_set_to:
            return self.lies_as(*args)
        if func in LEAVES_TORCH and (isinstance(args[0], compat.FakeTensor) or func is Tensor.__array__):
            raise self.leaves(func, args[0])
        if isinstance(func, compat.HigherOrderOperator) and func.name() in higher_order.KNOWN:
            with self:
                return higher_order.call(func, args, kwargs)
        if isinstance(func, Allowed):
            self.tracer.record.loc = blame.location(blame.user_frame(3))
            return call_whole(self.tracer, func.function, func.name, args, kwargs)
        if type(func) in compat.OPS and gives_number(func):
            return call_whole(self.tracer, func, str(func), args, kwargs)
        if func is Tensor.tolist:
            return self.tolist(args[0])
        if func in counted.FUNCTIONS and any(isinstance(x, counted.TracedList) for x in (*args, *kwargs.values())):
            with self:
                found = counted.call(self.tracer, func, args, kwargs)
            if found is not NotImplemented:
                return found
        if func is Tensor.unbind:
            self.tracer.convert_loop(args[0])
        if func in packed.PACKED:
            with self:
                return packed.PACKED[func](self.tracer, *args)
        if func in RECURRENT and packed.is_packed(args):
            with self:
                sizes = packed.told(self.tracer, args[1])
            with compat.without_onednn():
                return func(args[0], sizes, *args[2:], **kwargs)
        if func is Tensor.numpy:
            return self.numpy(*args, **kwargs)
        if func in SET_HISTORIES and self.tracer.in_region:
            self.set_history(func, *args)
        if func is Tensor.register_hook:
            args = (args[0], self.tracer.backward_hooks.wrap(args[1]))
        if func is torch.tensor and args and type(args[0]) is TracedArray:
            func = copied
        args, kwargs = as_tensors(self.tracer, func, args, kwargs)
        if func in BUILDERS and args:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                tensor = built(self.tracer, *args, **kwargs)
            if tensor is not None:
                return tensor
        if func in INDEXING:
            x, index, *new = args
            args = (x, tuple(map(self.as_index, index)) if type(index) is tuple else self.as_index(index), *new)
        if takes_float(func, args, kwargs) and not (self.tracer.in_region or self.tracer.backward_hooks.in_backward):
            self.tracer.record.loc = blame.location(blame.user_frame(3))
            return call_whole(self.tracer, func, func.__name__, args, kwargs)
        args, kwargs = as_sizes(self.tracer, func, args, kwargs)
        args, kwargs = as_operands(self.tracer, func, args, kwargs)
        if torch.is_grad_enabled():
            args, kwargs = cut(self.tracer, args, kwargs)
        value_checks.check_call(self.tracer, func, args, kwargs)
        if func in SPLITS:
            with torch._C.DisableTorchFunction():
                assert_parts(self.tracer, args, kwargs)
        if func in GIVES_NUMBER:
            number = self.number(func, args, kwargs)
            if number is not None:
                return number
        if func in READS_INDICES and any(isinstance(x, compat.FakeTensor) for x in (*args[1:], *kwargs.values())):
            raise handlers.needs_value(torch.ops.aten._local_scalar_dense.default, None)
        if func in SIZES and self.tracer.sizes.varies(args[0]):
            args = (self.tracer.lift(args[0]), *args[1:])
        answer = attribute(self.tracer, func, args)
        if answer is not NotImplemented:
            return answer
        if func in INDEXING:
            selected = self.select(args[0], args[1])
            if selected is not None:
                x, index = selected
                with torch._C.DisableTorchFunction():
                    return x[index] if func is Tensor.__getitem__ else x.__setitem__(index, args[2])
        if func is Tensor.__setitem__ and dynamic.is_copied(self.tracer, *args):
            func, args = Tensor.copy_, (args[0][args[1]], args[2])
        if torch.is_grad_enabled() or func in AUTOGRAD or compat.forward_ad_level() >= 0:
            if func is LSTM:
                with compat.without_onednn():
                    return func(*args, **kwargs)
            result = func(*args, **kwargs)
            if func is Tensor.backward:
                check_gradients(self.tracer)
            return result
        with compat.below_autograd():
            result = func(*args, **kwargs)
        if not self.tracer.differentiable:
            return result
        with torch._C.DisableTorchFunction(), compat.below_autograd():
            return settled(self.tracer, result)

    def set_history(self, func: Any, tensor: torch.Tensor, requires: bool = True) -> None:
        """In a branch or loop: `detach_()` is a write of the same numbers, others are no part of a region."""
        with torch._C.DisableTorchFunction():
            tensor = self.tracer.lift(tensor)
            if func is Tensor.detach_ and tensor.grad_fn is not None:
                writes.forget_history(self.tracer, tensor)
            elif tensor.requires_grad != (requires and func is not Tensor.detach_):
                raise Unmergeable("a branch or loop changes whether a tensor requires grad")

    def as_index(self, entry: Any) -> Any:
        """One entry of an index: a tensor for a traced integer, or for a sequence of them (torch would read memory)."""
        if isinstance(entry, TracedNumber) and entry.kind is int:
            return entry.tensor
        if type(entry) not in (list, tuple) or not entry:
            return entry
        with torch._C.DisableTorchFunction(), torch.no_grad():
            tensor = built(self.tracer, entry)
        return entry if tensor is None else tensor

    def select(self, x: torch.Tensor, index: Any) -> tuple[torch.Tensor, tuple[Any, ...]] | None:
        """`x` and `index` once its entries that are traced numbers are gone; None when there is none."""
        with torch._C.DisableTorchFunction():
            found, site = dynamic.split_index(x, index, self.is_traced_number), blame.site("index")
            if found is None or site in self.tracer.plan.forks:
                return None
            if torch.is_grad_enabled() and x.requires_grad and not self.tracer.in_region:
                return None                  # autograd's own backward knows no such place
            self.tracer.record.loc = blame.location(blame.user_frame(3))
            for dim, number in found[0]:
                x = dynamic.select(self.tracer, x, dim, number, site)
            return x, found[1] or (Ellipsis,)

    def is_traced_number(self, entry: Any) -> bool:
        """A tensor without dims holding an integer that the program does not say itself."""
        return (isinstance(entry, torch.Tensor) and entry.dim() == 0 and entry.dtype in INDEX_DTYPES
                and self.tracer.known(self.tracer.lift(entry)) is None)

    def number(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What `.item()`, `equal` or `allclose` gives; None where torch itself shall answer."""
        tensor = args[0]
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if func is not Tensor.item:
                tensor = self.comparison(func, args, kwargs)
            if tensor is None or tensor.numel() != 1:
                return None
            dtype = number_dtype(tensor.dtype)
            if dtype is None:
                return None
            if self.tracer.known(self.tracer.lift(tensor)) is not None:
                return None
            return self.tracer.item(tensor.detach().reshape(()).to(dtype, copy=True))

    def formatted(self, tensor: torch.Tensor, spec: str) -> str:
        """As torch does it: a tensor without dims by its number."""
        number = self.number(Tensor.item, (tensor,), {})
        return format(tensor.item() if number is None else number, spec)

    def comparison(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
        """The tensor of one bool behind `equal` or `allclose`; None where torch would not compare elements."""
        left, right = args[0], args[1] if len(args) > 1 else kwargs.get("other")
        if not isinstance(right, torch.Tensor) or left.shape != right.shape or left.dtype != right.dtype:
            return None
        if func in (torch.equal, Tensor.equal):
            return (left == right).all()
        return torch.isclose(*args, **kwargs).all()

    def deep_copy(self, tensor: torch.Tensor, memo: dict[Any, Any]) -> torch.Tensor:
        """A copy in a storage of its own, shared by the copies of all tensors that shared one."""
        if id(tensor) not in memo:
            home = ("storage", compat.storage_id(tensor))
            if home not in memo:
                memo[home] = flat_like(tensor).clone()
            memo[id(tensor)] = memo[home].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        copied: torch.Tensor = memo[id(tensor)]
        return copied

    def copies(self, tensor: torch.Tensor) -> bool:
        """Whether `copy.copy` asks what it may make another tensor of the same memory from."""
        frame = blame.asking_frame(3)
        return frame is not None and frame.f_code is copy.copy.__code__ and not tensor.requires_grad

    def lies_as(self, tensor: torch.Tensor, other: torch.Tensor) -> bool:
        with torch._C.DisableTorchFunction():
            return lie_alike(self.tracer.lift(tensor), self.tracer.lift(other))

    def leaves(self, func: Any, tensor: torch.Tensor) -> Exception:
        frame = blame.user_frame(3)
        refusal = errors.UnsupportedError(
            f"`{blame.expression(frame)}` takes a traced tensor out of torch by {LEAVES_TORCH[func]}",
            loc=blame.location(frame), why="while it is traced there is no memory behind it")
        asking = blame.asking_frame(3)
        if func in SHOWN and not tensor.requires_grad and asking is not None and self.tracer.can_convert(asking.f_code):
            return Asked(asking.f_code, refusal)
        return refusal

    def numpy(self, tensor: torch.Tensor, *, force: bool = False) -> Any:
        """The array that shares a tensor's memory."""
        self.tracer.record.loc = blame.location(blame.user_frame(3))
        with torch._C.DisableTorchFunction():
            why = None if force else compat.no_array_of(tensor)
            if why is not None:
                raise why
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if force:
                tensor = tensor.detach().resolve_conj().resolve_neg()
            return TracedArray(self.tracer, self.tracer.lift(tensor).detach())

    def tolist(self, tensor: torch.Tensor) -> Any:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            self.tracer.record.loc = blame.location(blame.user_frame(3))
            few = isinstance(tensor, compat.FakeTensor) and Layout.of(tensor).is_static and tensor.numel() <= LISTED
            if few and not self.tracer.plan.read_numbers:
                numbers = self.numbers(tensor.detach())
                if numbers is not None:
                    return numbers
            return self.tracer.ask_all(tensor)

    def numbers(self, tensor: torch.Tensor) -> Any:
        """The numbers in a traced tensor, in nested lists; None where it depends on no input, or holds complex ones."""
        if number_dtype(tensor.dtype) is None or self.tracer.known(self.tracer.lift(tensor)) is not None:
            return None
        if not tensor.dim():
            return self.number(Tensor.item, (tensor,), {})
        return [self.numbers(entry) for entry in tensor.unbind()]
