"""Facts that words of memory answer for, and the same facts where there are no such words."""

import sys
import sysconfig
import types

import pytest
import torch

from monograph.api import dispatcher_of
from monograph.capture import guards_versions
from tests.capture.test_guards import OtherBlock, change_factor, check, compiled_net


def test_unrelated_changes_of_a_watched_dict_are_cheap_and_harmless():
    net, fast, x = compiled_net()
    guard = dispatcher_of(fast).entries[0].guard
    with torch.no_grad():
        for step in range(3):
            net.counter = step
            assert guard.check((x,), {}) is not None
        net.blocks[0].dropout.p = 0.25
        assert guard.check((x,), {}) is None
        net.blocks[0].dropout.p = 0.5
        assert guard.check((x,), {}) is not None


def test_a_number_at_the_address_of_an_equal_one_that_is_gone():
    net, fast, x = compiled_net()
    guard = dispatcher_of(fast).entries[0].guard
    try:
        with torch.no_grad():
            for step in range(50):
                change_factor(float("2.0"))
                assert guard.check((x,), {}) is not None
                change_factor(None)                      # frees what was there
                change_factor(3.0 + step)
                assert guard.check((x,), {}) is None
    finally:
        change_factor(2.0)


def test_facts_without_words_in_memory_are_evaluated(monkeypatch):
    monkeypatch.setattr(guards_versions, "layouts", dict)
    net, fast, x = compiled_net()
    assert check(net, fast, x) == (True, [])
    net.blocks[0].__class__ = OtherBlock
    change_factor(5.0)
    try:
        assert check(net, fast, x)[1] == ["factor (closure of make_closure.<locals>.times): 2.0 -> 5.0",
                                          "class of blocks.0: Block -> OtherBlock"]
    finally:
        change_factor(2.0)


@pytest.mark.skipif(sys.implementation.name != "cpython" or bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
                    reason="another layout of objects")
def test_words_of_functions_cells_and_classes_are_found():
    found = guards_versions.layouts().keys() - {dict}
    assert found == {types.FunctionType, types.CellType, type, object}
