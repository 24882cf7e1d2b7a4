"""Graphs with symbolic sizes that are no rows: one region of kernels that take sizes when they run."""

import pytest
import torch

from monograph.backend import compile_graph
from monograph.codegen import assemble, target
from monograph.config import Options
from monograph.ir.verifier import verify
from monograph.ops.evaluate import evaluate, special
from monograph.ops.text import parse
from monograph.runtime import serialise
from monograph.runtime.early import python_steps
from monograph.runtime.execute import Executable
from monograph.runtime.program import AnySize, Library
from monograph.schedule import plan, regions
from tests.rows import inputs_for, random_rows

SIZES = [(2, 2), (2, 3), (3, 7), (5, 8), (2, 9), (4, 17), (3, 64), (2, 67), (2, 131)]


def compiled(graph):
    program = assemble.program(plan(graph, target=target.host()), target.host(), jobs=1)
    return serialise.loads(serialise.dumps(program))


def check(graph, calls, python=0):
    """Equal to torch for all calls, with so many steps from Python."""
    verify(graph)
    program = compiled(graph)
    executable = Executable(program, resolve=special)
    for inputs in (*calls, *calls):         # sizes that are known, and those that are not
        wanted = evaluate(graph, inputs)
        for got, want in zip(executable.run(inputs), wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    for got, want in zip(executable.run_timed(inputs)[0], wanted, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    assert len(python_steps(program)) == python
    return program


def guarded(tensor):
    """A copy that ends where its memory does, with NaN in front of it and behind it as far as the allocator's page."""
    memory = torch.full((tensor.numel() + 4096,), float("nan") if tensor.is_floating_point() else 0).to(tensor.dtype)
    memory[2048:2048 + tensor.numel()] = tensor.reshape(-1)
    return memory[2048:2048 + tensor.numel()].view(tensor.shape)


ATTENTION = """
graph {{
    symbol b: 2..
    symbol s: 2..
    symbol t: 2..
    input %q: f32[b, 4, s, 16, strides=[64*s, 16*s, 16, 1]]
    input %k: f32[b, 4, t, 16, strides=[64*t, 16*t, 16, 1]]
    input %v: f32[b, 4, t, 16, strides=[64*t, 16*t, 16, 1]]
    {mask}
    %p = aten.transpose.int(%k, 1, 2)
    %c = aten.clone.default(%p)
    %u = aten.transpose.int(%c, 1, 2)
    %a = aten.scaled_dot_product_attention.default(%q, %u, %v, {operands})
    %x = aten.transpose.int(%a, 1, 2)
    %y: f32[b, s, 64] = aten.reshape.default(%x, shape=[b, s, 64])
    return %y
}}
"""
MASKS = {
    "no mask": ("", "None"),
    "causal": ("", "None, is_causal=True"),
    "bool": ("input %m: bool[b, 1, s, t, strides=[s*t, s*t, t, 1]]", "%m"),
    "additive": ("input %m: f32[b, 1, s, t, strides=[s*t, s*t, t, 1]]", "%m"),
    "keys": ("input %m: bool[b, 1, 1, t, strides=[t, t, t, 1]]", "%m"),
}


@pytest.mark.parametrize("name", list(MASKS))
def test_attention_of_any_size(name):
    mask, operands = MASKS[name]
    graph = parse(ATTENTION.format(mask=mask, operands=operands))
    torch.manual_seed(0)
    calls = []
    for b, s in SIZES:
        for t in (s, 3, 40, 600):
            inputs = [guarded(torch.randn(b, 4, n, 16)) for n in (s, t, t)]
            if mask:
                shape = (b, 1, 1 if name == "keys" else s, t)
                allowed = torch.rand(shape) > 0.3
                allowed[..., 0] = True
                inputs.append(guarded(torch.randn(shape)) if name == "additive" else allowed)
            calls.append(inputs)
    program = check(graph, calls)
    assert not any(isinstance(step, Library) for step in program.steps)


def test_a_query_of_one_row_and_keys_of_any_number():
    graph = parse("""
    graph {
        symbol p: 2..
        input %q: f32[1, 4, 1, 16, strides=[64, 16, 16, 1]]
        input %old: f32[1, 2, p, 16, strides=[32*p, 16*p, 16, 1]]
        input %new: f32[1, 2, 1, 16, strides=[32, 16, 16, 1]]
        %k: f32[1, 2, p + 1, 16] = aten.cat.default([%old, %new], 2)
        %a: f32[1, 4, 1, 16] = aten.scaled_dot_product_attention.default(%q, %k, %k, enable_gqa=True)
        %y: f32[1, 4, 1, 16] = aten.add.Tensor(%a, %q)
        return %k, %y
    }
    """)
    calls = [[guarded(torch.randn(1, 4, 1, 16)), guarded(torch.randn(1, 2, p, 16)), guarded(torch.randn(1, 2, 1, 16))]
             for p in (2, 3, 7, 8, 9, 100, 511, 512, 513, 1500)]
    check(graph, calls)


def test_products_reductions_and_joins_of_any_size():
    graph = parse("""
    graph {
        symbol b: 2..
        symbol s: 2..
        input %x: f32[b, s, 12, strides=[12*s, 12, 1]]
        input %z: f32[s, b, 12, strides=[12*b, 12, 1]]
        input %w: f32[12, 12, strides=[12, 1]] = parameter w
        %t: f32[b, s, 12] = aten.transpose.int(%z, 0, 1)
        %h: f32[b, s, 12] = aten.linear.default(%t, %w)
        %g: f32[b, s, 12] = aten.linear.default(%x, %w)
        %c: f32[b, 2*s, 12] = aten.cat.default([%h, %g], 1)
        %e: f32[b, 2*s, 12] = aten.exp.default(%c)
        %m: f32[b, 1, 12] = aten.sum.dim_IntList(%e, [1], True)
        %d: f32[b, 2*s, 12] = aten.div.Tensor(%e, %m)
        %n: f32[12, 2*s, b] = aten.permute.default(%d, [2, 1, 0])
        %l: f32[12, s, b] = aten.slice.Tensor(%n, 1, s)
        %r: f32[12, b] = aten.amax.default(%l, [1])
        %i: i64[2*s] = aten.arange.start_step(0, 2*s, 1, dtype=i64)
        %k: f32[12, 2*s, b] = aten.index_select.default(%n, 1, %i)
        return %d, %r, %k
    }
    """)
    torch.manual_seed(0)
    check(graph, [
        [guarded(torch.randn(b, s, 12)), guarded(torch.randn(s, b, 12)), torch.randn(12, 12)] for b, s in SIZES])


PRODUCT = """
graph {{
    symbol b: 2..
    symbol m: 2..
    symbol n: 2..
    symbol k: 2..
    input %x: f32[{a}]
    input %y: f32[{c}]
    {turn}
    %p = aten.bmm.default(%x, %z)
    %e = aten.add.Tensor(%p, 1)
    %r = aten.relu.default(%e)
    return %r
}}
"""
TURNED = "%z = aten.transpose.int(%y, 1, 2)"
PLAIN = "%z = aten.alias.default(%y)"
PRODUCTS = {        # batch, m, n, k; is B turned?
    "n": (2, 5, "n", 8, PLAIN), "n turned": (2, 5, "n", 8, TURNED), "one row": (2, 1, "n", 8, TURNED),
    "k": (2, 5, 24, "k", PLAIN), "k turned": (2, 20, 24, "k", TURNED), "one row k": (2, 1, 24, "k", PLAIN),
    "few rows": (3, 2, "n", "k", TURNED), "all": ("b", "m", "n", "k", PLAIN),
    "all turned": ("b", "m", "n", "k", TURNED), "m and n": (2, "m", "n", 8, PLAIN), "m and k": (1, "m", 24, "k", PLAIN),
    "one of any batch": ("b", 1, "n", 8, TURNED),
}


@pytest.mark.parametrize("name", list(PRODUCTS))
def test_products_of_two_activations(name):
    b, m, n, k, turn = PRODUCTS[name]
    second = (b, n, k) if turn is TURNED else (b, k, n)
    text = [", ".join(map(str, shape)) + f", strides=[{shape[1]}*{shape[2]}, {shape[2]}, 1]"
            for shape in ((b, m, k), second)]
    graph = parse(PRODUCT.format(a=text[0], c=text[1], turn=turn))
    torch.manual_seed(0)
    calls = []
    for size in ((2, 2, 2, 2), (2, 3, 7, 5), (3, 17, 64, 16), (2, 2, 33, 513), (2, 40, 130, 1030)):
        env = dict(zip("bmnk", size))
        shapes = [[env.get(dim, dim) for dim in shape] for shape in ((b, m, k), second)]
        calls.append([guarded(torch.randn(shape) * env.get(k, k) ** -0.5) for shape in shapes])
    program = check(graph, calls)
    assert not any(isinstance(step, Library) for step in program.steps)


def test_attention_written_out():
    """The order of strides of what lies between is found, though sizes have no order."""
    graph = parse("""
    graph {
        symbol s: 2..
        symbol t: 2..
        input %q: f32[1, 3, s, 16, strides=[48*s, 16*s, 16, 1]]
        input %k: f32[1, 3, t, 16, strides=[48*t, 16*t, 16, 1]]
        input %v: f32[1, 3, t, 16, strides=[48*t, 16*t, 16, 1]]
        %0: f32[3, s, 16] = aten.view.default(%q, size=[3, s, 16])
        %1: f32[1, 3, 16, t] = aten.transpose.int(%k, -1, -2)
        %2: f32[3, 16, t] = aten.view.default(%1, size=[3, 16, t])
        %3: f32[3, s, t] = aten.bmm.default(%0, %2)
        %4: f32[1, 3, s, t] = aten.view.default(%3, size=[1, 3, s, t])
        %5: f32[1, 3, s, t] = aten.mul.Tensor(%4, 0.25)
        %m: f32[1, 3, s, 1] = aten.amax.default(%5, [-1], True)
        %d: f32[1, 3, s, t] = aten.sub.Tensor(%5, %m)
        %e: f32[1, 3, s, t] = aten.exp.default(%d)
        %n: f32[1, 3, s, 1] = aten.sum.dim_IntList(%e, [-1], True)
        %6: f32[1, 3, s, t] = aten.div.Tensor(%e, %n)
        %7: f32[3, s, t] = aten.view.default(%6, size=[3, s, t])
        %8: f32[3, t, 16] = aten.view.default(%v, size=[3, t, 16])
        %9: f32[3, s, 16] = aten.bmm.default(%7, %8)
        %a: f32[1, 3, s, 16] = aten.view.default(%9, size=[1, 3, s, 16])
        return %a
    }
    """)
    calls = [[torch.randn(1, 3, s, 16), torch.randn(1, 3, t, 16), torch.randn(1, 3, t, 16)] for s, t in SIZES]
    program = check(graph, calls)
    assert not any(isinstance(step, Library) for step in program.steps)


def test_numbers_made_of_sizes_enter_the_arithmetic():
    graph = parse("""
    graph {
        symbol s: 2..
        input %x: f32[3, s, strides=[s, 1]]
        %t: f32[3] = aten.sum.dim_IntList(%x, [1])
        %m: f32[3] = aten.div.Tensor(%t, s)
        %c: f32[3, s] = aten.sub.Tensor(%x, 2*s + 1)
        %e: f32[s, 3] = aten.permute.default(%c, [1, 0])
        return %m, %e
    }
    """)
    check(graph, [[torch.randn(3, s)] for s in (2, 5, 33)])


def test_what_only_torch_can_do_stands_between_two_regions():
    graph = parse("""
    graph {
        symbol b: 2..
        symbol s: 2..
        input %x: f32[b, s, strides=[s, 1]]
        %e: f32[b, s] = aten.exp.default(%x)
        %t: f32[s, b] = aten.permute.default(%e, [1, 0])
        %a: f32[s, b] = aten.abs.default(%t)
        %o: f32[s, b], %i: i64[s, b] = aten.sort.default(%a)
        %p: f32[b, s] = aten.permute.default(%o, [1, 0])
        %y: f32[b, s] = aten.add.Tensor(%p, %e)
        %z: f32[b, s] = aten.neg.default(%y)
        return %z
    }
    """)
    program = check(graph, [[torch.randn(b, s)] for b, s in SIZES], python=2)
    assert sum(isinstance(step, AnySize) for step in program.steps) == 2


def test_kinds_of_nodes_are_refused_together_and_run_in_torch():
    """A power of a size is no constant of a kernel: the node is left to torch, the others are not."""
    text = """
    graph {
        symbol b: 2..
        symbol s: 2..
        input %x: f32[b, s, strides=[s, 1]]
        %e: f32[s, b] = aten.permute.default(%x, [1, 0])
        %p: f32[s, b] = aten.pow.Tensor_Scalar(%e, s)
        %f: f32[b, s] = aten.permute.default(%p, [1, 0])
        %c = aten.cumsum.default(%f, 1)
        %y = aten.exp.default(%c)
        return %y
    }
    """
    graph = parse(text)
    half = compile_graph(parse(text), Options(cache_dir=None))
    for b, s in SIZES[:5]:
        x = torch.rand(b, s)
        torch.testing.assert_close(half.run([x])[0], evaluate(graph, [x])[0])


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed, monkeypatch):
    monkeypatch.setattr(regions, "_is_all_rows", lambda graph, count: False)
    graph = random_rows(seed, 3 + seed % 8, least=2)
    program = compiled(graph)
    executable = Executable(program, resolve=special)
    for size in (2, 3, 8, 17):
        inputs = inputs_for(graph, size)
        for got, want in zip(executable.run(inputs), evaluate(graph, inputs), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_sizes_that_may_be_zero():
    graph = parse("""
    graph {
        symbol s: 0..
        input %x: f32[3, s, strides=[s, 1]]
        %e: f32[3, s] = aten.exp.default(%x)
        %y: f32[s, 3] = aten.permute.default(%e, [1, 0])
        %z: f32[s, 3] = aten.add.Tensor(%y, 1)
        return %z
    }
    """)
    check(graph, [[torch.randn(3, s)] for s in (0, 1, 2, 5)])


@pytest.mark.parametrize("size", [0, 1, 2, 7, 33])
@pytest.mark.parametrize("body", [
    "%z: f32[s, 5] = aten.mm.default(%x, %w)",
    "%t: f32[4, s] = aten.t.default(%x)\n %z: f32[4, 4] = aten.mm.default(%t, %x)",
    "%t: f32[4, s] = aten.t.default(%x)\n %z: f32[s, s] = aten.mm.default(%x, %t)",
    "%z: f32[4] = aten.sum.dim_IntList(%x, dim=[0])",
    "%z: f32[s] = aten.sum.dim_IntList(%x, dim=[1])",
    "%z: f32[] = aten.sum.default(%x)",
    "%z: f32[4] = aten.prod.dim_int(%x, dim=0)",
    "%z: f32[s, 4] = aten.cumsum.default(%x, dim=0)",
    "%z: f32[2*s, 4] = aten.cat.default([%x, %x])",
    "%z: f32[s, 4] = aten.flip.default(%x, dims=[0])",
    "%v: f32[4*s] = aten.view.default(%x, [4*s])\n %z: f32[4*s] = aten.exp.default(%v)",
    "%p: f32[4, s] = aten.permute.default(%x, [1, 0])\n %v: f32[2, 2*s] = aten.reshape.default(%p, [2, 2*s])\n"
    " %z: f32[2] = aten.sum.dim_IntList(%v, dim=[1])",
])
def test_kernels_of_nothing_and_of_little(body, size):
    graph = parse(f"""graph {{
        symbol s: 0..
        input %x: f32[s, 4, strides=[4, 1]]
        input %w: f32[4, 5, strides=[5, 1]]
        %y: f32[s, 4] = aten.relu.default(%x)
        {body.replace("%x", "%y")}
        return %z
    }}""")
    check(graph, [[torch.randn(size, 4), torch.randn(4, 5)]])
