"""Sizes that vary between calls: few programs, the results and strides of eager."""

import collections

import pytest
import torch

import monograph

SIZES = (5, 9, 3, 2, 1, 0, 17, 33)


def entries(fast):
    return monograph.api.dispatcher_of(fast).entries


def fallbacks(fast):
    return [entry.fixed for entry in entries(fast) if entry.fixed]


def compare(got, want):
    got, want = [list(r) if isinstance(r, (tuple, list)) else [r] for r in (got, want)]
    assert len(got) == len(want)
    for a, b in zip(got, want):
        if isinstance(b, torch.Tensor):
            assert (a.shape, a.stride(), a.dtype, a.requires_grad) == (b.shape, b.stride(), b.dtype, b.requires_grad)
            torch.testing.assert_close(a, b, equal_nan=True)
        else:
            assert type(a) is type(b) and a == b


def writes(x):
    y = x + 1
    y[:, 1:3] = 0
    y[-1] *= 2
    return y, x.sum(0)


def counts(x):
    return x * x.shape[0], x.numel(), x.shape, x.mean(0) / x.size(0)


def halves(x):
    return x[x.shape[0] // 2:], x[:-1], x[1:] - x[:-1]


def both(x):
    return torch.cat([x, x + 1], 0), torch.stack([x, x]), x.t() @ x


FUNCTIONS = {
    "pointwise": lambda x: (x.sin() + 1).relu(),
    "reduction": lambda x: (x.sum(), x.mean(0), x.sum(1, keepdim=True), x.std(0), x.softmax(1), x.amax(1)),
    "layout": lambda x: (x.t(), x.t().contiguous(), x.reshape(-1), x.view(-1, 2, 2), x.unsqueeze(0).expand(3, -1, -1)),
    "product": lambda x: (x @ x.t(), x.t() @ x),
    "factories": lambda x: (torch.arange(x.shape[0]), x.new_zeros(x.shape[0], 2), torch.ones_like(x), torch.eye(len(x))
                            ),
    "flip": lambda x: (x.flip(0), x.roll(1, 0), x.cumsum(0), x.repeat(2, 1), x.repeat_interleave(2, 0)),
    "padding": lambda x: (torch.nn.functional.pad(x, (1, 2, 0, 3)), torch.nn.functional.pad(x, (0, 6), value=2.0)),
    "writes": writes, "counts": counts, "halves": halves, "both": both,
}


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_vary(name, backend):
    fn = FUNCTIONS[name]
    fast = monograph.compile(fn, backend=backend)
    for size in SIZES:
        if size == 0 and name in ("reduction", "writes", "layout"):       # eager refuses, or does it for 0 alone
            continue
        x = torch.randn(size, 4)
        compare(fast(x), fn(x))
    if name != "factories":                          # `len` is asked for a number
        assert len(entries(fast)) <= 5        # the first, any, a branch taken at 2, 1, 0
        assert len(fallbacks(fast)) <= (name == "halves")       # what is left of 2 is of size 1


def test_two_programs_do_for_all_sizes_from_2():
    fast = monograph.compile(lambda x, y: (x + y).relu().sum(1))
    for size in (5, 9, 3, 2, 17, 33, 128):
        x, y = torch.randn(size, 4), torch.randn(size, 4)
        compare(fast(x, y), (x + y).relu().sum(1))
    assert len(entries(fast)) == 2


def test_sizes_that_change_apart_are_apart():
    fast = monograph.compile(lambda x, y: (x.sum(), y.sum(), x[:, None] * y))
    for m, n in ((3, 4), (5, 6), (6, 5), (7, 7), (2, 9)):
        x, y = torch.randn(m), torch.randn(n)
        compare(fast(x, y), (x.sum(), y.sum(), x[:, None] * y))
    assert len(entries(fast)) <= 3


def test_static_sizes_stay_apart():
    fast = monograph.compile(lambda x: x + 1, dynamic=False)
    for size in (3, 4, 5):
        fast(torch.ones(size))
    assert len(entries(fast)) == 3


def test_all_sizes_are_symbols_at_once():
    fast = monograph.compile(lambda x, w: x @ w, dynamic=True)
    for m, k, n in ((3, 4, 5), (4, 3, 6), (9, 2, 2), (5, 5, 5)):
        x, w = torch.randn(m, k), torch.randn(k, n)
        compare(fast(x, w), x @ w)
    assert len(entries(fast)) == 1


def test_marked_sizes():
    fast = monograph.compile(lambda x: x * 2)
    x = torch.randn(4, 6)
    monograph.mark_dynamic(x, 0, max=8)
    for size in (4, 7, 8):
        y = x if size == 4 else torch.randn(size, 6)
        compare(fast(y), y * 2)
    assert len(entries(fast)) == 1
    y = torch.randn(9, 6)
    compare(fast(y), y * 2)
    assert str(fast.recompiles[0]) == "size 0 of args[0] is from 2 to 8: not for s0 9"


def test_marks_are_checked():
    x = torch.randn(4, 6)
    with pytest.raises(monograph.InputError, match="size 4 of dimension 0 is not from 5 to None"):
        monograph.mark_dynamic(x, 0, min=5)
    with pytest.raises(monograph.InputError, match="dimension 2"):
        monograph.mark_dynamic(x, 2)


def test_a_question_about_a_size_is_named():
    def fn(x):
        return x + 1 if x.shape[0] > 4 else x - 1

    fast = monograph.compile(fn)
    for size in (5, 9, 3, 4, 7, 2):
        x = torch.randn(size)
        compare(fast(x), fn(x))
    assert len(entries(fast)) == 3
    assert "s0 > 4 with s0 = size 0 of args[0] (asked at test_dynamic.py:" in str(fast.recompiles[1])


def test_strides_that_follow_sizes():
    fast = monograph.compile(lambda x: (x + 1, x.sum(1), x.reshape(-1)))
    for size in (3, 5, 8, 4):
        x = torch.randn(4, size).t()
        compare(fast(x), (x + 1, x.sum(1), x.reshape(-1)))
        x = torch.randn(size, 4, 6)[:, 1:3]
        compare(fast(x), (x + 1, x.sum(1), x.reshape(-1)))
    assert len(entries(fast)) == 4


def test_writes_to_arguments():
    def fn(x, y):
        x.add_(y)
        x[:, 0] = 7
        return x.t()

    fast = monograph.compile(fn)
    for size in (3, 5, 8, 2):
        x, y = torch.randn(size, 4), torch.randn(size, 4)
        a, b = x.clone(), x.clone()
        compare(fast(a, y), fn(b, y))
        compare(a, b)
    assert len(entries(fast)) == 2 and not fallbacks(fast)


def test_what_needs_the_number_gets_it():
    def fn(x):
        return x * sum(range(x.shape[0]))

    fast = monograph.compile(fn)
    for size in (3, 5, 8):
        x = torch.randn(size, 2)
        compare(fast(x), fn(x))
    assert len(entries(fast)) == 3 and fallbacks(fast)
    text = str(monograph.explain(fast, torch.ones(3, 2)))
    assert "no symbol: size 0 of args[0]: the program needs its number" in text


def test_gradients():
    layer = torch.nn.Linear(4, 3)

    def fn(x):
        return (layer(x).relu() * x.shape[0]).sum(), x.tanh().t()

    fast = monograph.compile(fn)
    for size in (3, 5, 8, 2, 1, 31):
        x = torch.randn(size, 4)
        results = []
        for call in (fast, fn):
            layer.zero_grad()
            y = x.clone().requires_grad_()
            loss, other = call(y)
            (loss + other.pow(2).sum()).backward()
            results.append([loss.detach(), other.detach(), y.grad, layer.weight.grad, layer.bias.grad])
        compare(*results)
    assert len(entries(fast)) == 3 and not fallbacks(fast)


def test_sizes_are_ints_to_the_user():
    def fn(x):
        n = x.shape[0]
        assert isinstance(n, int) and isinstance(n // 2, (float, int)) and isinstance(n / 2, float)
        assert isinstance(n > 2, bool) and isinstance(n, torch.SymInt | int)
        return x + 1, n // 2 + 1, x.shape, {"n": n}, divmod(n, 2)

    fast = monograph.compile(fn)
    for size in (3, 7, 9, 4):
        x = torch.ones(size, 2)
        got, want = fast(x), fn(x)
        assert got[1:] == want[1:] and [type(r) for r in got[1:]] == [type(r) for r in want[1:]]
        assert type(got[3]["n"]) is int and type(got[2][0]) is int
    assert len(entries(fast)) == 2
    assert torch.SymInt.__getattribute__ is object.__getattribute__


@pytest.mark.parametrize("fn", [
    lambda x: (f"{x.shape[0]}, {x.shape[0]!r}", x + 1),
    lambda x: (str(x.shape), x + 1),
    lambda x: x + {3: 1, 7: 2}.get(x.shape[0], 5),
    lambda x: (x + len(x), x * x.shape[0] ** 0.5, x[: int(x.shape[0] * 0.5)]),
])
def test_what_shows_a_size_gets_its_number(fn):
    fast = monograph.compile(fn)
    for size in (3, 7, 9, 3):
        x = torch.randn(size, 2)
        compare(fast(x), fn(x))
    assert len(entries(fast)) == 3


def test_sizes_in_effects(capsys):
    class State:
        rows = 0

    state = State()

    def fn(x):
        state.rows = x.shape[0] + 1
        print("rows", x.shape)
        return x + 1

    fast = monograph.compile(fn)
    for size in (3, 7, 9, 4):
        fast(torch.ones(size, 2))
        assert type(state.rows) is int and state.rows == size + 1
        assert capsys.readouterr().out == f"rows torch.Size([{size}, 2])\n"


@pytest.mark.parametrize("grad", [False, True])
def test_branches_loops_and_draws(grad):
    def fn(x):
        y = x + 1 if x.sum() > 0 else x * x.shape[0]
        i = torch.zeros((), dtype=torch.long)
        while i < 3:
            y = y * 1.5 + i
            i = i + 1
        return y, torch.nn.functional.dropout(y, 0.5), torch.randn(x.shape[0], 2)

    fast = monograph.compile(fn)
    for size in (3, 5, 8, 2, 13):
        found = []
        x = torch.randn(size, 4, requires_grad=grad)
        for call in (fast, fn):
            torch.manual_seed(size)
            y, z, r = call(x)
            if grad:
                x.grad = None
                (y + z).sum().backward()
            found.append([y.detach(), z.detach(), r, x.grad])
        compare(*found)
    assert len(entries(fast)) == 2 and not fallbacks(fast)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_draws_in_memory_order(dynamic, backend):
    def function(x):
        y, some = x.t(), x[x >= 0].reshape(-1, 2).t()
        return (torch.randn_like(y), torch.rand_like(y), torch.randint_like(y, 9), torch.randn_like(some),
                torch.bernoulli(y.sigmoid()), torch.nn.functional.dropout(y, 0.5), torch.empty_like(y).normal_())

    compiled = monograph.compile(function, backend=backend, dynamic=dynamic)
    for rows in (3, 5, 6):
        x = torch.arange(-4.0, rows * 4 - 4).reshape(rows, 4)
        torch.manual_seed(rows)
        want = function(x)
        torch.manual_seed(rows)
        for got, expected in zip(compiled(x), want):
            assert torch.equal(got, expected) and got.stride() == expected.stride()


def test_sizes_as_keys_of_what_is_kept():
    class Keeper(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tables, self.seen, self.shapes, self.sizes = {}, set(), collections.OrderedDict(), []

        def forward(self, x, n):
            if n not in self.tables:
                self.tables[n] = torch.arange(n) * 1.0
            self.seen.add((x.shape[0], n))
            self.shapes[tuple(x.shape)] = n
            self.sizes.append(x.shape[0])
            return x + self.tables[n].sum()

    mine, eager = Keeper(), Keeper()
    compiled = monograph.compile(mine)
    for rows, n in ((2, 3), (3, 4), (2, 3), (5, 5), (7, 3), (7, 6)):
        x = torch.ones(rows, 2)
        compare(compiled(x, n), eager(x, n))
        assert list(mine.tables) == list(eager.tables) and mine.seen == eager.seen and mine.sizes == eager.sizes
        assert list(mine.shapes.items()) == list(eager.shapes.items())
        assert {type(entry) for entry in (*mine.tables, *mine.sizes, *mine.shapes.values())} == {int}
        compare(list(mine.tables.values()), list(eager.tables.values()))
