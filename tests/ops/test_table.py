"""From torch's schemas to ops: parameters, traits, effects, binding."""

import pytest
import torch

from monograph.ir.op import Effect, ParameterKind, Trait
from monograph.ops import own, table

lookup = table.lookup


def test_tensors_are_operands_everything_else_attributes():
    op = lookup("aten.convolution.default")
    assert [p.name for p in op.operand_parameters] == ["input", "weight", "bias"]
    assert [p.kind for p in op.operand_parameters] == [
        ParameterKind.TENSOR, ParameterKind.TENSOR, ParameterKind.OPTIONAL]
    assert lookup("aten.cat.default").operand_parameters[0].kind is ParameterKind.TENSORS


def test_ops_are_found_by_name_and_by_overload():
    assert lookup("aten.add.Tensor") is table.of_overload(torch.ops.aten.add.Tensor)
    assert lookup("mono.cond") is own.COND
    with pytest.raises(KeyError):
        lookup("aten.no_such_op.default")
    with pytest.raises(ValueError, match="writes"):
        lookup("aten.add_.Tensor")


@pytest.mark.parametrize(("name", "trait"), [
    ("aten.exp.default", Trait.POINTWISE), ("aten._to_copy.default", Trait.POINTWISE),
    ("aten.sum.dim_IntList", Trait.REDUCTION), ("aten.view.default", Trait.VIEW),
    ("aten.permute_copy.default", Trait.VIEW),
    ("aten.rand.default", Trait.RANDOM), ("aten.native_dropout.default", Trait.RANDOM),
    ("aten.full.default", Trait.FACTORY), ("aten.nonzero.default", Trait.SYNC), ("aten.mul.Tensor", Trait.COMMUTATIVE),
    ("aten.native_layer_norm.default", Trait.COMPOSITE), ("aten.linear.default", Trait.COMPOSITE),
])
def test_traits(name, trait):
    assert lookup(name).has(trait)


@pytest.mark.parametrize(("name", "trait"), [
    ("aten.view.dtype", Trait.VIEW), ("aten.index.Tensor", Trait.SYNC), ("aten.sub.Tensor", Trait.COMMUTATIVE),
    ("aten.stack.default", Trait.FACTORY),
])
def test_traits_it_must_not_have(name, trait):
    assert not lookup(name).has(trait)


def test_index_checks_and_integer_division_may_raise():
    for name in ("aten.gather.default", "aten.index.Tensor", "aten.embedding.default", "aten.remainder.Tensor"):
        assert lookup(name).effects == {Effect.RAISES}
    assert lookup("aten.mul.Tensor").is_pure


def test_bind_and_unbind_are_inverse():
    op = lookup("aten.gather.default")
    operands, attributes = table.bind(op, ("x", 1), {"index": "i"})
    assert operands == ("x", "i") and attributes == {"dim": 1, "sparse_grad": False}
    assert table.unbind(op, operands, attributes) == (["x", 1, "i"], {"sparse_grad": False})


def test_bind_refuses_what_the_schema_does_not_have():
    op = lookup("aten.neg.default")
    with pytest.raises(TypeError, match="colour"):
        table.bind(op, ("x",), {"colour": 1})
    with pytest.raises(TypeError, match="no value"):
        table.bind(op, (), {})


def test_every_overload_without_writes_makes_an_op():
    for packet in dir(torch.ops.aten):
        overloads = getattr(torch.ops.aten, packet)
        for name in getattr(overloads, "overloads", list)():
            target = getattr(overloads, name)
            if not target._schema.is_mutable:
                op = table.of_overload(target)
                assert table.lookup(op.name) is op
