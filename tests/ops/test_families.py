"""Every name in the families is an op of torch with the traits its family promises."""

import pytest

from monograph.ir.op import Trait
from monograph.ops import families, table


@pytest.mark.parametrize("name", sorted(families.KERNELS) + sorted(families.SCATTER) + sorted(families.TEMPLATE))
def test_every_name_is_an_op(name):
    table.lookup(name)


@pytest.mark.parametrize("name", sorted(families.POINTWISE))
def test_pointwise_ops_are_tagged_so(name):
    assert table.lookup(name).has(Trait.POINTWISE)


@pytest.mark.parametrize("name", sorted(families.REDUCTION))
def test_reductions_are_tagged_so(name):
    assert table.lookup(name).has(Trait.REDUCTION)


def test_families_do_not_overlap():
    assert len(families.KERNELS) == sum(len(names) for names in families.FAMILIES.values())
