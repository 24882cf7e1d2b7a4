"""Every pointwise op of `ops.families`, on several dtypes with their special values, against torch."""

from __future__ import annotations

import pytest
import torch

from monograph.loops import lower_fill
from monograph.loops.lower import RULES
from monograph.ops import families, table
from tests.loops.kernels import Case, agree, check_native, close

SPECIAL = [0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), float("-inf"), 0.5, -0.5, 3.0, -3.0, 6.0, 2.5, -2.5, 1e-3,
           100.0, -100.0, 20.0, 1.5, -1.5]
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int8, torch.uint8, torch.bool]
NUMBERS = {"other": 2.5, "exponent": 3, "value": 2.5, "self": 2.5, "min": 0, "max": 2}


def sample(dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    n = 3 * len(SPECIAL)
    if dtype is torch.bool:
        return torch.rand(n, generator=generator) < 0.5
    if dtype.is_floating_point:
        x = torch.randn(n, generator=generator, dtype=torch.float64)
        x[torch.randperm(n, generator=generator)[:len(SPECIAL)]] = torch.tensor(SPECIAL, dtype=torch.float64)
        return x.to(dtype)
    info = torch.iinfo(dtype)
    x = torch.randint(max(info.min, -9), 10, (n,), generator=generator)
    x[:2] = torch.tensor([info.min, info.max])
    return x.to(dtype)


def operand(name: str, parameter: str, position: int, dtype: torch.dtype) -> torch.Tensor:
    if parameter in ("condition", "mask"):
        return sample(torch.bool, position)
    x = sample(dtype, position)
    if "shift" in name and position == 1:
        return torch.arange(len(x)).remainder(9).to(dtype)
    if not dtype.is_floating_point and dtype is not torch.bool and position == 1:
        if any(part in name for part in ("div", "mod", "remainder")):
            return torch.where((x == 0) | (x == -1), torch.ones_like(x), x)
        if "pow" in name:
            return x.abs() % 70
    return x


def case(name: str, dtype: torch.dtype) -> Case | None:
    """The op as a kernel; None where torch does not take the dtype."""
    inputs: list[torch.Tensor] = []
    arguments: list[object] = []
    keywords: dict[str, object] = {}
    for parameter in table.lookup(name).parameters:
        if parameter.is_operand:
            inputs.append(operand(name, parameter.name, len(inputs), dtype))
            arguments.append(Place(len(inputs) - 1))
        elif parameter.name == "rounding_mode":
            keywords["rounding_mode"] = "floor"
        elif parameter.name in NUMBERS:
            arguments.append(NUMBERS[parameter.name])
        else:
            break

    def filled(values):
        return [values[given] if isinstance(given, Place) else given for given in arguments]

    def eager(values):
        return table.overload(name)(*filled(values), **keywords)

    try:
        vectors = eager([x.repeat(5) for x in inputs])[:len(inputs[0])]
    except (RuntimeError, NotImplementedError):
        return None
    single = torch.cat([eager(row) for row in zip(*(x.clone().split(1) for x in inputs))])
    for x in inputs if vectors.dtype.is_floating_point else ():
        x[vectors.isnan() != single.isnan()] = 1      # eager has two answers: see test_special_values
    return Case(lambda call, *values: call(name.removeprefix("aten."), *filled(values), **keywords), *inputs)


class Place(int):
    """The position of a tensor argument."""


def test_every_op_of_the_families_has_a_rule():
    assert set(families.KERNELS) - set(RULES) - set(lower_fill.RULES) == set()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pointwise_ops_agree_with_torch(dtype):
    for name in sorted(families.POINTWISE):
        made = case(name, dtype)
        if made is not None:
            try:
                close(made.interpreted(), made.reference(), 1 if dtype.itemsize == 2 else 8)
            except AssertionError as error:
                raise AssertionError(f"{name} {dtype}") from error


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_native_pointwise_ops_agree_with_torch(dtype):
    made = [(name, case(name, dtype)) for name in sorted(families.POINTWISE)]
    check_native([(name, found, 16) for name, found in made if found is not None])


def test_division_modes():
    x, y = torch.randn(60) * 9, torch.randn(60)
    i, j = torch.randint(-50, 50, (60,)), torch.cat([torch.arange(1, 31), -torch.arange(2, 32)])
    for mode in ("floor", "trunc"):
        for a, b in ((x, y), (i, j), (x.bfloat16(), y.bfloat16())):
            agree(lambda call, a, b, mode=mode: call("div.Tensor_mode", a, b, rounding_mode=mode), a, b, native=False)


def test_a_division_by_zero_is_checked():
    made = Case(lambda call, a, b: call("div.Tensor_mode", a, b, rounding_mode="floor"),
                torch.arange(4), torch.tensor([1, 2, 0, 3]))
    fault = made.fault()
    assert fault is not None and fault.check.exception == "RuntimeError" and fault.check.message == "ZeroDivisionError"


def test_chains_round_between_the_ops_of_a_half():
    def chain(call, x, y):
        return call("mul.Tensor", call("add.Tensor", call("mul.Tensor", x, y), 0.1), x)

    x, y = (torch.randn(64, generator=torch.Generator().manual_seed(i)) for i in (1, 2))
    for dtype in (torch.bfloat16, torch.float16):
        agree(chain, x.to(dtype), y.to(dtype), ulps=0)


def test_broadcasting_and_sizes_of_one_and_none():
    add = lambda call, x, y: call("add.Tensor", x, y)   # noqa: E731
    for a, b in (((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 5), (4, 1)), ((1,), ()), ((0, 3), (1, 3))):
        agree(add, torch.randn(a), torch.randn(b), native=False)


def test_promotion_of_mixed_operands():
    i, f, h = torch.arange(6), torch.randn(6), torch.randn(6).half()
    for a, b in ((i, f), (i, h), (h, f), (f, torch.tensor(2.5, dtype=torch.float64)), (i > 2, i)):
        agree(lambda call, x, y: call("mul.Tensor", x, y), a, b, native=False)
        agree(lambda call, x, y: call("lt.Tensor", x, y), a, b, native=False)
