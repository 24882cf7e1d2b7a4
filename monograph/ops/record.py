"""The automatic route of decomposition: run torch's own Python decomposition of an op and write down its steps.

    Recipe ::= Step* outputs            values are numbered: the operands' tensors first, then every result
    Step   ::= op operands attributes types

A recipe is found once per signature (op, operand types, attributes) and spliced in wherever it occurs. Ops on
the way that kernels do not cover are opened too; where one remains, there is no recipe and the op stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from monograph import compat
from monograph.ir.graph import Node, Value, flatten_operands, map_operand
from monograph.ir.op import Op, Trait
from monograph.ir.types import TensorType, Type
from monograph.ops import families, own, table
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import NARROW
from monograph.ops.rules import RULES

__all__ = ["Recipe", "recipe", "splice"]

# Whole programs rather than ops: better called than unrolled.
WHOLE = frozenset({
    "aten.lstm", "aten.gru", "aten.rnn_tanh", "aten.rnn_relu", "aten._fft_c2c", "aten._fft_c2r", "aten._fft_r2c",
    "aten.linear", "aten.convolution", "aten.scaled_dot_product_attention",
})

# Other numbers than eager's: after a target of -1 the margins to class 0 still count; NaN in a grid is no place.
WRONG = frozenset({"aten.multilabel_margin_loss_forward", "aten.grid_sampler_2d"})

# On bf16 and f16 torch's kernels round these elsewhere than the decompositions do.
WHOLE_WHEN_NARROW = frozenset(f"aten.{name}" for name in """
    addmv addr linalg_cross linspace mvlgamma dist renorm xlogy special_xlog1py special_entr logit logit_backward
    nll_loss_forward nll_loss2d_forward binary_cross_entropy_with_logits binary_cross_entropy_backward
    soft_margin_loss soft_margin_loss_backward mse_loss mse_loss_backward smooth_l1_loss huber_loss huber_loss_backward
    native_batch_norm_backward batch_norm_backward glu_backward
    upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d
""".split())
# Kernels for pictures compute with fixed point numbers on bytes.
WHOLE_ON_INTEGERS = frozenset({"aten.upsample_bilinear2d", "aten.upsample_bicubic2d", "aten.upsample_linear1d"})

# What torch's decompositions may raise on a signature they do not take.
REFUSALS = (RuntimeError, TypeError, ValueError, AssertionError, IndexError, KeyError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Ref:
    """The value numbered `index` of a recipe."""

    index: int


@dataclass(frozen=True, slots=True)
class Step:
    op: Op
    operands: tuple[Any, ...]         # with Ref where a node has a Value
    attributes: dict[str, Any]
    types: tuple[Type, ...]
    first: int                        # number of its first result


@dataclass(frozen=True, slots=True)
class Recipe:
    steps: tuple[Step, ...]
    outputs: tuple[Ref | None, ...]


_known: dict[Hashable, Recipe | None] = {}


def splice(builder: Builder, node: Node) -> list[Value | None] | None:
    """Put the recipe of `node` where `builder` points: the values of its results, or None without a recipe."""
    found = recipe(node)
    if found is None:
        return None
    values: dict[int, Value] = dict(enumerate(node.inputs))
    for step in found.steps:
        operands = _resolve(step.operands, values)
        made = builder.insert(Node(step.op, operands, step.attributes, step.types, loc=builder.loc))
        values.update(enumerate(made.results, step.first))
    return [None if ref is None else values[ref.index] for ref in found.outputs]


def _resolve(operand: Any, values: dict[int, Value]) -> Any:
    if isinstance(operand, Ref):
        return values[operand.index]
    return tuple(_resolve(entry, values) for entry in operand) if isinstance(operand, tuple) else operand


def recipe(node: Node) -> Recipe | None:
    """How torch decomposes `node` into ops that kernels cover; None where it does not."""
    op = node.op
    packet = op.name.rsplit(".", 1)[0]
    if op.has(Trait.RANDOM) or op.name in own.TABLE or packet in WHOLE | WRONG or not _is_plain(node):
        return None
    dtypes = {value.tensor.dtype for value in node.inputs}
    if packet in WHOLE_WHEN_NARROW and not dtypes.isdisjoint(NARROW):
        return None
    if packet in WHOLE_ON_INTEGERS and not any(dtype.is_floating_point for dtype in dtypes):
        return None
    if packet.startswith("aten.upsample_") and not _scales_are_ratios(node):
        return None
    key = (op.name, _key(node.operands), _key(tuple(node.attributes.items())), torch.get_default_dtype())
    if key not in _known:
        _known[key] = _record(node)
    return _known[key]


def _scales_are_ratios(node: Node) -> bool:
    """Whether a scale is the ratio of the sizes where those are equal or one is double: eager then goes by the sizes,
    torch's decompositions by the scale."""
    scales = [scale for name, scale in node.attributes.items() if name.startswith("scales")]
    sizes = node.inputs[0].tensor.shape[2:], node.results[0].tensor.shape[2:]
    return all(scale is None or scale * before == after or after not in (before, 2 * before)
               for scale, before, after in zip(scales, *sizes))


def _is_plain(node: Node) -> bool:
    """Static shapes, dtypes that kernels take, no numbers known only at run time."""
    types = [value.type for value in (*node.inputs, *node.results)]
    return not node.regions and all(
        isinstance(type, TensorType) and type.is_static and type.dtype in families.DTYPES for type in types)


def _key(entry: Any) -> Hashable:
    if isinstance(entry, Value):
        return entry.type
    if isinstance(entry, tuple):
        return tuple(_key(part) for part in entry)
    return type(entry), repr(entry)


def _record(node: Node) -> Recipe | None:
    """Run the decomposition on fake operands and write it down."""
    target = table.overload(node.op.name)
    function = compat.decomposition(target)
    if function is None:
        return None
    with compat.plain_torch(), compat.fake_tensor_mode():
        fakes = [_fake(value.tensor) for value in flatten_operands(node.operands)]
        supply = iter(fakes)
        operands = [map_operand(operand, lambda _: next(supply)) for operand in node.operands]
        args, kwargs = table.unbind(node.op, operands, node.attributes)
        tape = _Tape(fakes)
        try:
            with tape:
                result = function(*args, **kwargs)
        except REFUSALS:
            return None
    return None if result is NotImplemented else tape.finish(list(_flat(result)), node)


def _fake(type: TensorType) -> torch.Tensor:
    shape: Any = type.shape
    if type.strides is None:
        return torch.empty(shape, dtype=type.dtype, device=type.device)
    strides: Any = type.strides
    return torch.empty_strided(shape, strides, dtype=type.dtype, device=type.device)


def _flat(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for entry in result:
            yield from _flat(entry)
    else:
        yield result


class _Refused(RuntimeError):
    """An op on the way that no recipe may have."""


class _Tape(TorchDispatchMode):
    """Writes down the functional ops that run, opening those that kernels do not cover."""

    def __init__(self, fakes: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.kept: list[torch.Tensor] = []      # so that no id is reused
        self.refs: dict[int, Ref] = {}
        self.depth = 0
        for fake in fakes:
            self.name(fake)

    def name(self, fake: torch.Tensor) -> Ref:
        ref = Ref(len(self.kept))
        self.kept.append(fake)
        self.refs[id(fake)] = ref
        return ref

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = table.op_name(func)
        if name.startswith("prim."):        # questions such as prim.device, not computations
            return func(*args, **kwargs)
        if name in ALIASES:
            name, args, kwargs = ALIASES[name](*args, **kwargs)
            func = table.overload(name)
        if not _covered(name):
            inner = compat.decomposition(func)
            if inner is None or self.depth > 8:
                raise _Refused(name)
            self.depth += 1
            with self:
                result = inner(*args, **kwargs)
            self.depth -= 1
            return result
        result = func(*args, **kwargs)
        self.write(table.lookup(name), args, kwargs, result)
        return result

    def write(self, op: Op, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> None:
        operands, attributes = op.bind(args, kwargs)
        results = list(_flat(result))
        referred = tuple(self.refer(operand) for operand in operands)
        types = tuple(TensorType(r.dtype, tuple(r.shape), r.device.type) for r in results)
        first = len(self.kept)
        for each in results:
            self.name(each)
        self.steps.append(Step(op, referred, attributes, types, first))

    def refer(self, operand: Any) -> Any:
        if isinstance(operand, torch.Tensor):
            if id(operand) not in self.refs:
                raise _Refused("a constant")
            return self.refs[id(operand)]
        return tuple(self.refer(entry) for entry in operand) if isinstance(operand, tuple) else operand

    def finish(self, results: Sequence[Any], node: Node) -> Recipe | None:
        """The steps that `results` need, if those have the types of the node's results."""
        if len(results) != len(node.results):
            return None
        outputs: list[Ref | None] = []
        for fake, value in zip(results, node.results):
            if fake is None:
                outputs.append(None)
                continue
            if not isinstance(fake, torch.Tensor) or id(fake) not in self.refs:
                return None
            if (fake.dtype, tuple(fake.shape)) != (value.tensor.dtype, value.tensor.shape):
                return None
            outputs.append(self.refs[id(fake)])
        wanted = {ref.index for ref in outputs if ref is not None}
        kept: list[Step] = []
        for step in reversed(self.steps):
            if wanted.intersection(range(step.first, step.first + len(step.types))):
                kept.append(step)
                wanted.update(_indices(step.operands))
        if any(step.op is node.op for step in kept):
            return None       # no progress
        return Recipe(tuple(reversed(kept)), tuple(outputs))


def _covered(name: str) -> bool:
    """Whether a kernel, a template or a rule of ours takes the op."""
    return name in families.KERNELS or name in families.TEMPLATE or name in RULES


def _indices(operand: Any) -> Iterator[int]:
    if isinstance(operand, Ref):
        yield operand.index
    elif isinstance(operand, tuple):
        for entry in operand:
            yield from _indices(entry)


# --- torch's `prims`, which its reference functions are written in, as aten -----------------------

Call: TypeAlias = "tuple[str, tuple[Any, ...], dict[str, Any]]"


def _renamed(name: str) -> Callable[..., Call]:
    return lambda *args, **kwargs: (name, args, kwargs)


def _convert(x: Any, dtype: torch.dtype) -> Call:
    return "aten._to_copy.default", (x,), {"dtype": dtype}


def _sum(x: Any, dims: Sequence[int], *, output_dtype: torch.dtype | None = None) -> Call:
    return "aten.sum.dim_IntList", (x, dims), {"dtype": output_dtype}


def _var(x: Any, dims: Sequence[int], correction: Any, *, output_dtype: Any = None) -> Call:
    if output_dtype not in (None, x.dtype):
        raise _Refused("prims.var with a dtype")
    return "aten.var.correction", (x, dims), {"correction": correction}


def _broadcast_in_dim(x: Any, shape: Sequence[int], dims: Sequence[int]) -> Call:
    sizes = [1] * len(shape)
    for size, dim in zip(x.shape, dims):
        sizes[dim] = size
    return "aten.expand.default", (torch.ops.aten.view.default(x, sizes), shape), {}


def _iota(length: int, *, start: int, step: int, dtype: Any, device: Any, requires_grad: bool) -> Call:
    return "aten.arange.start_step", (start, start + length * step, step), {"dtype": dtype, "device": device}


def _full_like(x: Any, value: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Call:
    return "aten.full.default", (x.shape, value), {"dtype": dtype or x.dtype, "device": device or x.device}


ALIASES: dict[str, Callable[..., Call]] = {
    "prims.convert_element_type.default": _convert,
    "prims.sum.default": _sum,
    "prims.var.default": _var,
    "prims.broadcast_in_dim.default": _broadcast_in_dim,
    "prims.iota.default": _iota,
    "aten.full_like.default": _full_like,
    **{f"prims.{name}.default": _renamed(f"aten.{name}.Tensor") for name in (
        "add", "sub", "mul", "div", "eq", "ne", "lt", "gt", "le", "ge")},
    **{f"prims.{name}.default": _renamed(f"aten.{name}.default") for name in (
        "abs", "neg", "exp", "log", "sin", "cos", "tanh", "sqrt", "rsqrt", "floor", "ceil", "round", "isfinite",
        "maximum", "minimum", "lgamma", "digamma", "erf", "reciprocal", "clone")},
}
