"""From a program's outputs to what the caller gets: the boundary, as one generated function.

    finish(inputs, outputs, leaves)  -> the user's result
    place(inputs, outputs, leaves)   -> its leaves, before they are put into containers; `gather` does that

Writes come first, so that views of an input see its new content. Results with the same `object`
number are one object. The containers of the result are built by generated text where they are
Python's own, and by torch's pytree otherwise.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.captured import Binding, Captured
from monograph.capture.guards import Text
from monograph.ir.boundary import (
    Choice,
    Fresh,
    InputItself,
    InputView,
    Literal,
    Number,
    Result,
    Size,
    boundary_symbols,
)
from monograph.ir.edit import symbols_in
from monograph.ir.graph import Value
from monograph.ir.symbolic import Dim, Symbol
from monograph.ir.types import TensorType

__all__ = ["Finish", "Told", "finisher", "gatherer", "hander", "is_whole", "placer", "relayout", "reinterpret",
           "symbols_told", "write_back"]

Finish = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class Told:
    """Where a symbol is told: a dim of an input or output, or an output that holds it (`axis` None)."""

    kind: str
    number: int
    axis: int | None

    def __str__(self) -> str:
        return f"{self.kind}[{self.number}].{'item()' if self.axis is None else f'size({self.axis})'}"

    def read(self, values: Sequence[Any]) -> int:
        value: torch.Tensor = values[self.number]
        return int(value) if self.axis is None else value.size(self.axis)


def finisher(captured: Captured) -> Finish:
    """The whole epilogue of one captured function."""
    text = Text()
    names = _results(text, captured)
    text.lines.append(f"return {_tree(text, captured.boundary.tree, names[:captured.boundary.shown])}")
    return text.function("finish", "inputs, outputs, leaves", guarded=False)


def placer(captured: Captured) -> Finish:
    """The writes, and the list of results."""
    text = Text()
    names = _results(text, captured)
    text.lines.append(f"return [{', '.join(names)}]")
    return text.function("place", "inputs, outputs, leaves", guarded=False)


def hander(captured: Captured, chosen: Mapping[int, Choice]) -> Callable[..., None]:
    """`hand(results, inputs, outputs, leaves)`: what the program wrote to under autograd gets its content and its
    history; results that are the caller's tensors in this call, or views of them, take their places. They are made
    where autograd listens."""
    text = Text()
    boundary = captured.boundary
    for input, result in boundary.rewritten.items():
        text.lines.append(f"{text.name(write_followed)}({itself(text, captured.bindings[input])}, results[{result}])")
    text.lines += _requirements(text, captured)
    text.lines += [f"{name} = {place}" for name, place in symbols_told(captured).items()]
    views: set[str] = set()

    def view(result: InputView, condition: str) -> str:          # one object, however often the result has it
        name, made = f"view{result.object}", _expression(text, result, captured)
        if name not in views:
            text.lines.append(f"{name} = None")
            views.add(name)
        text.lines.append(f"{condition}{name} = {made} if {name} is None else {name}")
        return name

    for number, result in enumerate(boundary.results):
        if isinstance(result, InputView) and result.input in boundary.rewritten:
            text.lines.append(f"results[{number}] = {view(result, '')}")
    for number, choice in chosen.items():
        for output, other in reversed(choice.alternatives):
            condition = f"if outputs[{output}]: "
            made = view(other, condition) if isinstance(other, InputView) else _expression(text, other, captured)
            text.lines.append(f"{condition}results[{number}] = {made}")
    return text.function("hand", "results, inputs, outputs, leaves", guarded=False)


def gatherer(captured: Captured) -> Callable[[Sequence[Any]], Any]:
    """From the list of results to the user's containers."""
    text = Text()
    names = [f"results[{i}]" for i in range(captured.boundary.shown)]
    text.lines.append(f"return {_tree(text, captured.boundary.tree, names)}")
    return text.function("gather", "results", guarded=False)


def _results(text: Text, captured: Captured) -> list[str]:
    boundary = captured.boundary
    text.lines += [f"{name} = {place}" for name, place in symbols_told(captured).items()]
    for write in boundary.writes:
        if write.result is not None and captured.joint is not None:
            continue                          # it is made where autograd listens
        if write.grown:
            target = itself(text, captured.bindings[write.input])
            text.lines.append(f"{text.name(write_grown)}({target}, outputs[{write.output}])")
        else:
            text.lines.append(f"{text.name(write_back)}(inputs[{write.input}], outputs[{write.output}])")
    for move in boundary.relayouts:
        target = itself(text, captured.bindings[move.input])
        text.lines.append(f"{text.name(relayout)}({target}, {_place(text, move.place, captured)})")
    if captured.joint is None:
        text.lines += _requirements(text, captured)
    made: dict[tuple[type, int], str] = {}
    return [_name(text, result, captured, made) for result in boundary.results]


def _requirements(text: Text, captured: Captured) -> list[str]:
    """What inputs are after the call, where they start or cease to require grad."""
    return [f"{text.name(require_grad)}({itself(text, captured.bindings[require.input])}, {require.requires})"
            for require in captured.boundary.requires]


def symbols_told(captured: Captured) -> dict[str, Told]:
    """For each symbol that the boundary speaks of or tangents have, what tells it."""
    bindings = captured.bindings
    tangents = [value.type for value, binding in zip(captured.graph.inputs, bindings) if binding.kind == "tangent"]
    used = boundary_symbols(captured.boundary).union(*map(symbols_in, tangents))
    inputs = [value if binding.kind != "tangent" else None for value, binding in zip(captured.graph.inputs, bindings)]
    outputs: list[Value] = captured.graph.outputs
    if captured.joint is not None:
        outputs = outputs[:captured.joint.forward_outputs]
    found: dict[str, Told] = {}
    for kind, values in (("inputs", inputs), ("outputs", outputs)):
        for number, value in enumerate(values):
            for name, axis in _tells(value):
                if name in used:
                    found.setdefault(name, Told(kind, number, axis))
    return found


def _tells(value: Value | None) -> Iterator[tuple[str, int | None]]:
    """The symbols that a tensor shows, with the dim that does; None: it holds the number."""
    if value is None or not isinstance(value.type, TensorType):
        return
    if value.node is not None and value.node.op.name == "mono.scalar" and isinstance(value.node.operands[0], Symbol):
        yield value.node.operands[0].name, None
    yield from ((dim.name, axis) for axis, dim in enumerate(value.type.shape) if isinstance(dim, Symbol))


def _numbers(text: Text, dims: tuple[Dim, ...]) -> str:
    """Text for sizes or strides."""
    if all(isinstance(dim, int) for dim in dims):
        return text.name(tuple(dims))
    return f"({', '.join(map(str, dims))},)"


def _name(text: Text, result: Result, captured: Captured, made: dict[tuple[type, int], str]) -> str:
    """The variable that holds a result; `made`: those of the objects so far."""
    key = (type(result), getattr(result, "object", -1))
    if key[1] >= 0 and key in made:
        return made[key]
    expression = _choice(text, result, captured, made) if isinstance(result, Choice) else \
        _expression(text, result, captured)
    if isinstance(result, Fresh) and any(line.endswith(f" = {expression}") for line in text.lines):
        expression += ".detach()"            # another object has the output itself: this one shares its memory
    made[key] = name = f"r{len(text.lines)}"
    text.lines.append(f"{name} = {expression}")
    return name


def _choice(text: Text, result: Choice, captured: Captured, made: dict[tuple[type, int], str]) -> str:
    names = [_name(text, other, captured, made) for _, other in result.alternatives]
    otherwise = _name(text, result.otherwise, captured, made)
    chosen = f"chosen{len(text.lines)}"
    text.lines.append(f"{chosen} = {otherwise}")
    for (output, _), name in reversed(list(zip(result.alternatives, names, strict=True))):
        text.lines.append(f"if outputs[{output}]: {chosen} = {name}")
    return chosen


def _expression(text: Text, result: Result, captured: Captured) -> str:
    if isinstance(result, (Fresh, InputView)):
        made = _place(text, result, captured)
        if result.parameter:
            return f"{text.name(torch.nn.Parameter)}({made}, {result.leaf})"
        return f"{made}.detach().requires_grad_()" if result.leaf else made
    if isinstance(result, InputItself):
        return itself(text, captured.bindings[result.input])
    if isinstance(result, Literal):
        leaf = captured.objects.get(id(result.value))
        return text.name(result.value) if leaf is None else f"leaves[{leaf}]"
    if isinstance(result, Size):
        numbers = result.value
        return f"{text.name(torch.Size)}({_numbers(text, numbers)})" if isinstance(numbers, tuple) else f"({numbers})"
    assert isinstance(result, Number)
    return f"{text.name(number)}(outputs[{result.output}])"


def _place(text: Text, result: Fresh | InputView, captured: Captured) -> str:
    """A result that lies over an output or an input."""
    if isinstance(result, Fresh):
        base, type = f"outputs[{result.output}]", captured.graph.outputs[result.output].type
        absolute = True
        plain = is_whole(result, type)
    else:
        binding = captured.bindings[result.input]
        base, type = itself(text, binding), captured.graph.inputs[result.input].type
        if result.detached:
            base += ".detach()"
        absolute, plain = binding.flat, False
    assert isinstance(type, TensorType)
    made = base if plain else _over(text, base, result, type.dtype, absolute)
    if result.conj:
        made = f"{made}.conj()"
    return f"{text.name(compat.negative_view)}({made})" if result.neg else made


def is_whole(result: Fresh, type: Any) -> bool:
    """Whether the result is the output itself rather than a view of it."""
    return isinstance(type, TensorType) and (result.sizes, result.strides, result.offset, result.dtype) == (
        type.shape, type.strides, 0, type.dtype)


def _over(text: Text, base: str, result: Fresh | InputView, dtype: torch.dtype, absolute: bool) -> str:
    sizes, strides = _numbers(text, result.sizes), _numbers(text, result.strides)
    if dtype is not result.dtype:
        dtypes = text.name(result.dtype)
        return f"{text.name(reinterpret)}({base}, {dtypes}, {sizes}, {strides}, {result.offset}, {absolute})"
    offset = f"{result.offset}" if absolute else f"{base}.storage_offset() + ({result.offset})"
    return f"{base}.as_strided({sizes}, {strides}, {offset})"


def itself(text: Text, binding: Binding) -> str:
    """The very object that an input was, not the flat view the program may see instead."""
    if binding.kind == "argument":
        return f"leaves[{binding.leaf}]"
    return text.name(binding.tensor)


def reinterpret(
    base: torch.Tensor, dtype: torch.dtype, sizes: Any, strides: Any, offset: int, absolute: bool,
) -> torch.Tensor:
    """A view of another dtype over the storage of `base`; `offset` counts elements of `dtype`."""
    if not absolute:
        offset += base.storage_offset() * base.element_size() // dtype.itemsize
    view = torch.empty(0, dtype=dtype, device=base.device)
    return view.set_(base.untyped_storage(), offset, sizes, strides)


def write_back(target: torch.Tensor, value: torch.Tensor) -> None:
    """`value` becomes the content of `target`, whose version counter moves as after any in-place operation."""
    with torch.no_grad():
        target.copy_(value)


def write_followed(target: torch.Tensor, value: torch.Tensor) -> None:
    """`value` becomes the content of `target`, and its history the target's."""
    if target.requires_grad and not value.requires_grad:      # the program cut its history
        target.detach_()
    target.copy_(value)


def require_grad(tensor: torch.Tensor, requires: bool) -> None:
    """As by `requires_grad_()` of a leaf, `detach_()` of any other."""
    if tensor.is_leaf:
        tensor.requires_grad_(requires)
    else:
        tensor.detach_()


def write_grown(target: torch.Tensor, value: torch.Tensor) -> None:
    """`value`, one dimension, becomes the content of the storage behind `target`, which grows to hold it."""
    storage, size = target.untyped_storage(), value.numel() * value.element_size()
    if storage.nbytes() < size:
        storage.resize_(size)
    write_back(target.detach().as_strided(value.shape, value.stride(), 0), value)


def relayout(target: torch.Tensor, view: torch.Tensor) -> None:
    """`target`, the object, becomes another view, as after `target.t_()`."""
    target.data = view.detach()


def number(value: Any) -> int | float | bool:
    return value.item() if isinstance(value, torch.Tensor) else value


def _tree(text: Text, tree: Any, names: list[str]) -> str:
    """Text that builds the result: a `capture.tree.Tree`, whose leaves are all plain in most cases."""
    if tree is None:
        return names[0]
    if tree.replica is None:
        return _containers(text, tree.spec, iter(names))
    return f"{text.name(tree)}.unflatten([{', '.join(names)}])"


def _containers(text: Text, spec: Any, names: Iterator[str]) -> str:
    """Text that builds the containers of a TreeSpec around the next names."""
    if spec.is_leaf():
        return next(names)
    children = [_containers(text, child, names) for child in spec.children()]
    if spec.type is list:
        return f"[{', '.join(children)}]"
    if spec.type is tuple:
        return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
    if spec.type in (dict, OrderedDict):
        pairs = ", ".join(f"{text.name(key)}: {child}" for key, child in zip(spec.context, children))
        return f"{{{pairs}}}" if spec.type is dict else f"{text.name(OrderedDict)}({{{pairs}}})"
    unflatten = pytree.SUPPORTED_NODES[spec.type].unflatten_fn
    return f"{text.name(unflatten)}([{', '.join(children)}], {text.name(spec.context)})"
