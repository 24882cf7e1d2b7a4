"""Ops of our own: numbers, checks, loops that keep their history, as text and as evaluated."""

from __future__ import annotations

import pytest
import torch

from monograph.errors import CompileError, VerificationError, WrongPath, exception_class
from monograph.ir.printer import print_graph
from monograph.ir.verifier import verify
from monograph.ops import infer
from monograph.ops.evaluate import evaluate
from monograph.ops.text import parse


class Custom(Exception):
    class Inner(Exception):
        pass


def run(text: str, *inputs: object) -> list:
    graph = parse(text)
    verify(graph, infer.result_types)
    assert print_graph(parse(print_graph(graph))) == print_graph(graph)
    return evaluate(graph, list(inputs), check=True)


def test_a_number_read_from_a_tensor_is_a_size():
    filled, back = run("""graph {
        symbol n: 0..
        input %x: i64[]
        %n = mono.number(%x, symbol="n", lo=0)
        %y = aten.full.default([n, 2], 1.5)
        %z = mono.scalar(2*n + 1)
        return %y, %z
    }""", torch.tensor(3))
    assert filled.shape == (3, 2)
    assert back.dtype is torch.int64 and back.item() == 7


def test_scalar_takes_numbers_values_and_a_dtype():
    a, b = run("""graph {
        symbol n: 0..
        input %x: i64[1]
        %n = mono.number(%x, symbol="n")
        %a = mono.scalar(%n, dtype=f64)
        %b = mono.scalar(True, dtype=bool)
        return %a, %b
    }""", torch.tensor([3]))
    assert (a.dtype, a.item(), b.dtype, b.item()) == (torch.float64, 3.0, torch.bool, True)


CHECK = """graph {{
    input %ok: bool[1]
    mono.check(%ok, error="{error}"{message})
    return %ok
}}"""


@pytest.mark.parametrize(("error", "cls"), [
    ("ValueError", ValueError), (f"{__name__}:Custom", Custom), (f"{__name__}:Custom.Inner", Custom.Inner),
])
def test_check_raises_the_named_exception(error: str, cls: type[Exception]):
    text = CHECK.format(error=error, message=', message="x must be {positive}"')
    run(text, torch.tensor([True]))
    with pytest.raises(cls) as caught:
        run(text, torch.tensor([False]))
    assert type(caught.value) is cls and caught.value.args == ("x must be {positive}",)


def test_check_without_message_raises_without_arguments():
    with pytest.raises(AssertionError) as caught:
        run(CHECK.format(error="AssertionError", message=""), torch.tensor([False]))
    assert caught.value.args == ()


@pytest.mark.parametrize("name", ["Nonesuch", "int", "nowhere:Error", "torch:nothing"])
def test_a_class_that_is_not_there_is_an_error_by_name(name: str):
    with pytest.raises(CompileError, match=name):
        exception_class(name)


@pytest.mark.parametrize(("value", "given", "same"), [
    ("[1.0, nan]", [1.0, float("nan")], True),
    ("[0.0, 1.0]", [-0.0, 1.0], False),
    ("[1.0, 2.0]", [1.0, 2.5], False),
])
def test_expect_compares_elements_exactly(value: str, given: list[float], same: bool):
    text = f"""graph {{
        input %x: f64[2, 1]
        mono.expect(%x, value={value}, number=4)
        return %x
    }}"""
    x = torch.tensor(given, dtype=torch.float64).reshape(2, 1)
    if same:
        run(text, x)
        return
    with pytest.raises(WrongPath) as caught:
        run(text, x)
    assert (caught.value.number, caught.value.actual) == (4, tuple(given))


HISTORY = """graph {
    symbol t: 0..
    input %x: f32[2]
    input %n: i64[]
    %i = aten.mul.Tensor(%n, 0)
    %last, %j, %trips, %xs, %is = mono.while([%x, %i], history=[0, 1], trips="t") {
        condition {
            input %c: f32[2]
            input %k: i64[]
            %go = aten.lt.Tensor(%k, %n)
            return %go
        }
        body {
            input %c: f32[2]
            input %k: i64[]
            %d = aten.mul.Tensor(%c, 2)
            %l = aten.add.Tensor(%k, 1)
            return %d, %l
        }
    }
    %s = mono.scalar(t)
    return %last, %j, %s, %xs, %is
}"""


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_while_stacks_what_its_iterations_start_from(trips: int):
    last, j, count, xs, numbers = run(HISTORY, torch.tensor([1.0, -1.0]), torch.tensor(trips))
    assert last.tolist() == [2.0**trips, -(2.0**trips)] and j.item() == count.item() == trips
    assert xs.tolist() == [[2.0**k, -(2.0**k)] for k in range(trips)] and xs.shape == (trips, 2)
    assert numbers.tolist() == list(range(trips)) and numbers.dtype is torch.int64


GROWS = """graph {
    symbol m: 1..
    symbol k: 1..
    input %x: f32[1]
    input %n: f32[]
    %y: f32[k] = mono.while([%x]) {
        condition {
            input %c: f32[m]
            %s = aten.sum.default(%c)
            %go = aten.lt.Tensor(%s, %n)
            return %go
        }
        body {
            input %c: f32[m]
            %d = aten.cat.default([%c, %x])
            RETURN
        }
    }
    %z = aten.view.default(%y, [k, 1])
    return %z
}"""


def test_a_carry_may_change_its_size():
    (z,) = run(GROWS.replace("RETURN", "return %d"), torch.ones(1), torch.tensor(3.0))
    assert z.shape == (3, 1)


@pytest.mark.parametrize(("returned", "message"), [
    ("return", "returns 0 values"),
    ("return %n", "cannot become"),
])
def test_a_body_must_return_what_it_takes(returned: str, message: str):
    with pytest.raises(VerificationError, match=message):
        verify(parse(GROWS.replace("RETURN", returned)))


def test_a_cond_may_give_tensors_of_two_sizes():
    text = """graph {
        symbol k: 0..
        input %x: f32[3]
        input %p: bool[]
        %y: f32[k] = mono.cond(%p) {
            then {
                %s = aten.slice.Tensor(%x, 0, 1)
                return %s
            }
            otherwise {
                return %x
            }
        }
        return %y
    }"""
    assert run(text, torch.ones(3), torch.tensor(True))[0].shape == (2,)
    assert run(text, torch.ones(3), torch.tensor(False))[0].shape == (3,)
    with pytest.raises(VerificationError, match="cannot become"):
        verify(parse(text.replace("%y: f32[k]", "%y: f32[2]")))


def test_a_node_has_the_effects_of_its_regions():
    graph = parse("""graph {
        input %x: f32[3]
        input %p: bool[]
        %y = mono.cond(%p) {
            then {
                mono.check(%p, error="ValueError")
                return %x
            }
            otherwise {
                return %x
            }
        }
        return %y
    }""")
    (node,) = graph.nodes
    assert not node.is_pure and node.op.is_pure
    assert {effect.name for effect in node.effects} == {"RAISES"}


def test_a_symbol_bound_outside_is_no_looser_size():
    text = GROWS.replace("RETURN", "return %d").replace("input %x: f32[1]", "input %x: f32[1]\n    input %w: f32[m]")
    with pytest.raises(VerificationError, match=r"takes f32\[m\], is given f32\[1\]"):
        verify(parse(text))
