"""Every pointwise op on zeros of both signs, infinities, NaN, subnormals, huge numbers and extreme integers.

Native code must give what eager gives: the same NaN, infinities and signs of zero, and values within a few units in
the last place. Where eager's vectors and its scalar code differ, either of the two.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

import monograph
from monograph.codegen import jit
from monograph.ir.op import NO_DEFAULT
from monograph.ops import families, table
from tests.loops.kernels import Case

INF, NAN = float("inf"), float("nan")
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
MASKS = ("condition", "mask")
NUMBERED = ("other", "exponent", "self", "value", "min", "max")
NUMBERS = [2.5, 0.0, -0.0, -1.0, INF, -INF, NAN, 0.5, -0.5, 1e-30, 1, 2, 3, -2]
WHOLE_NUMBERS = [1, 2, 3, 7, -2]            # division by 0 raises, and smallest / -1 ends eager's process
OTHERS = {"value": 1.0, "negative_slope": 0.01, "alpha": 1.0, "scale": 1.0, "input_scale": 1.0, "is_result": False,
          "self_is_result": False, "lambd": 0.5, "threshold": 1.0, "beta": 1.0,
          "min_val": -1.0, "max_val": 1.0, "decimals": 1, "weight": 0.3}
OPTIONS = {"approximate": ("none", "tanh"), "rounding_mode": ("floor", "trunc")}
RELATIVE = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 8.1e-3, torch.float16: 1.01e-3}
SCALAR = 7      # elements that eager handles without vectors


class Place(int):
    """The position of a tensor argument."""


@dataclass
class Call:
    name: str
    args: list[Any]
    options: dict[str, Any]
    columns: list[torch.Tensor]

    def filled(self, values: Any) -> list[Any]:
        return [values[given] if isinstance(given, Place) else given for given in self.args]

    def eager(self, columns: list[torch.Tensor]) -> torch.Tensor:
        return table.overload(self.name)(*self.filled(columns), **self.options)

    def answers(self) -> list[torch.Tensor]:
        """From eager's vectors and from its scalar code."""
        pieces = zip(*(column.split(SCALAR) for column in self.columns), strict=True)
        return [self.eager(self.columns), torch.cat([self.eager([p.clone() for p in piece]) for piece in pieces])]

    def case(self) -> Case:
        name = self.name.removeprefix("aten.")
        return Case(lambda call, *values: call(name, *self.filled(values), **self.options), *self.columns)

    def __str__(self) -> str:
        return f"{self.name}{[a for a in self.args if not isinstance(a, Place)]}{self.options}"


def special(dtype: torch.dtype, few: bool) -> list[Any]:
    if dtype is torch.bool:
        return [False, True]
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        least = info.smallest_normal * info.eps
        if few:
            return [0.0, -0.0, INF, -INF, NAN, least, info.max, 1.0, -2.0]
        positive = [0.0, INF, least, info.smallest_normal * 1.5, info.max, 1.0, 0.5, 2.0, 3.0, 2.5, 6.0, 20.5, 100.0,
                    0.3, 1e-4, 88.5]
        return [NAN, *positive, *(-x for x in positive)]
    info = torch.iinfo(dtype)
    some = [info.min, info.max, 0, 1, 3, *((-1, -5) if info.min else (2,))]
    more = [info.max - 1, info.min + 1, 2, 7, 8, 15, 16, 31, 32, 63, 64, 100, *((-2, -7, -8, -64) if info.min else ())]
    return some if few else some + more


def operands(name: str, parameters: list[Any], dtype: torch.dtype) -> list[torch.Tensor]:
    """All combinations, one column per operand, repeated until eager's vectors are full."""
    few = len(parameters) > 2
    grids = [special(torch.bool if p.name in MASKS else dtype, few) for p in parameters]
    rows = list(itertools.product(*grids))
    divides = any(part in name for part in ("div", "mod", "remainder"))
    if divides and len(grids) == 2 and not dtype.is_floating_point and dtype is not torch.bool:
        least = torch.iinfo(dtype).min
        rows = [(a, b) for a, b in rows if b and not (b == -1 and a == least)]
    rows *= -(-128 // len(rows))
    return [torch.tensor([row[k] for row in rows], dtype=torch.bool if p.name in MASKS else dtype)
            for k, p in enumerate(parameters)]


def arguments(name: str, number: Any) -> list[Any]:
    """The arguments of op `name`, `number` for those that may be anything; options and what has a default left out."""
    result: list[Any] = []
    for parameter in table.lookup(name).parameters:
        if parameter.is_operand:
            result.append(Place(sum(isinstance(given, Place) for given in result)))
        elif parameter.name in NUMBERED and number is not None:
            result.append(number if parameter.name != "max" or name != "aten.clamp.default" else 2)
        elif parameter.name in OPTIONS or parameter.default is not NO_DEFAULT:
            break
        else:
            result.append(OTHERS[parameter.name])
    return result


def calls(name: str, dtype: torch.dtype) -> Iterator[Call]:
    parameters = table.lookup(name).parameters
    tensors = [p for p in parameters if p.is_operand]
    columns = operands(name, tensors, dtype)
    numbered = len(tensors) < 3 and any(not p.is_operand and p.name in NUMBERED for p in parameters)
    numbers = (NUMBERS if dtype.is_floating_point else WHOLE_NUMBERS) if numbered else [None]
    chosen = next((p.name for p in parameters if p.name in OPTIONS), None)
    options = [{chosen: choice} for choice in OPTIONS[chosen]] if chosen else [{}]
    for number, option in itertools.product(numbers, options):
        yield Call(name, arguments(name, number), option, columns)


def same(call: Call, got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Per element: equal; close, for floats, with the same sign of zero."""
    if not want.dtype.is_floating_point:
        return got == want
    info = torch.finfo(want.dtype)
    absolute = torch.full(want.shape, 4 * info.smallest_normal, dtype=torch.float64)     # torch may flush what is below
    if "gelu" in call.name or "_backward" in call.name:     # slopes are right to a part of 1, not of themselves
        absolute += info.eps * call.columns[0].double().abs().nan_to_num(0, 0, 0)
    a, b = got.double(), want.double()
    close = (a - b).abs() <= RELATIVE[want.dtype] * torch.maximum(a.abs(), b.abs()) + absolute
    close = torch.where(a.isinf() | b.isinf(), a == b, close)
    close = torch.where(a.isnan() | b.isnan(), a.isnan() & b.isnan(), close)
    return torch.where((a == 0) & (b == 0), a.signbit() == b.signbit(), close)


@pytest.mark.parametrize("dtype", FLOATS + WHOLE, ids=str)
def test_special_values(dtype):
    torch.set_num_threads(1)
    made: list[tuple[Call, Case, list[torch.Tensor]]] = []
    for name in sorted(families.POINTWISE):
        for call in calls(name, dtype):
            try:
                answers = call.answers()
            except (RuntimeError, NotImplementedError):      # eager does not take the dtype
                continue
            made.append((call, call.case(), answers))
    for number, (_, case, _) in enumerate(made):
        case.kernel.name = f"kernel{number}"
    loaded = jit.load([case.kernel for _, case, _ in made])
    faults = []
    for call, case, answers in made:
        got, = case.buffers()
        assert loaded[case.kernel.name]([*call.columns, got]) is None, str(call)
        assert got.dtype is answers[0].dtype, str(call)
        wrong = ~torch.stack([same(call, got, answer) for answer in answers]).any(0)
        for at in wrong.nonzero().flatten().tolist():       # one element alone may go yet another way (oneDNN)
            alone = replace(call, columns=[column[at:at + 1].clone() for column in call.columns])
            wrong[at] = not same(alone, got[at:at + 1], alone.eager(alone.columns))
        for at in wrong.nonzero().flatten().tolist()[:1]:
            inputs = [column[at].item() for column in call.columns]
            faults.append(f"{call} of {inputs}: {got[at].item()}, eager {answers[0][at].item()}")
    assert not faults, "\n".join(faults)


ZEROS = [0.0, -0.0, -0.0, 0.0, 0.0, -0.0, 0.0]


@pytest.mark.parametrize("count", [7, 64])
@pytest.mark.parametrize("name", ["minimum", "maximum", "fmin", "fmax"])
def test_which_zero_an_extremum_of_two_gives(name, count):
    """Of zeros with different signs: the first in eager's scalar code, the second in its vectors."""
    x, y = torch.zeros(count), torch.zeros(count)
    x[::2], y[1::3] = -0.0, -0.0
    for dtype in FLOATS:
        a, b = x.to(dtype), y.to(dtype)
        fn = getattr(torch, name)
        assert torch.equal(monograph.compile(fn)(a, b).signbit(), fn(a, b).signbit()), dtype


FOLDS = {
    "max": lambda x: x.max(1).values, "min": lambda x: x.min(1).values, "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(1), "prod": lambda x: x.prod(1), "cummax": lambda x: x.cummax(1).values,
    "pool": lambda x: torch.nn.functional.max_pool1d(x, 2), "columns": lambda x: x.max(0).values,
    "average": lambda x: torch.nn.functional.avg_pool1d(x, 2),
}


@pytest.mark.parametrize("size", [2, 3, 7, 40])
@pytest.mark.parametrize("name", FOLDS)
def test_folds_keep_the_zero_they_met_first(name, size):
    for x in (torch.tensor(ZEROS).repeat(60)[:9 * size].reshape(9, size), torch.full((9, size), -0.0)):
        fn = FOLDS[name]
        assert torch.equal(monograph.compile(fn)(x).signbit(), fn(x).signbit())
