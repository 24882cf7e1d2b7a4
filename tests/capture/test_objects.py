"""Objects among the arguments: another one of the same structure runs the same program."""

import copy
import types
import weakref

import pytest
import torch

import monograph


class Layer:
    def __init__(self, rows=None):
        self.rows = rows


class Cache:
    scale = 2.0

    def __init__(self, layers=0):
        self.layers = [Layer() for _ in range(layers)]
        self.steps = 0

    def update(self, x, number=0):
        while len(self.layers) <= number:
            self.layers.append(Layer())
        layer = self.layers[number]
        layer.rows = x if layer.rows is None else torch.cat([layer.rows, x])
        self.steps += 1
        return layer.rows


def state(value):
    """What an object holds, as plain containers."""
    if isinstance(value, (Cache, Layer, types.SimpleNamespace)):
        return {key: state(entry) for key, entry in vars(value).items()}
    if isinstance(value, (list, tuple)):
        return [state(entry) for entry in value]
    if isinstance(value, dict):
        return {key: state(entry) for key, entry in value.items()}
    return value.tolist() if isinstance(value, torch.Tensor) else value


@torch.no_grad()
def compare(fn, calls, programs=None):
    """`calls`: functions that make the arguments of a call; what they make is compared before and after."""
    compiled = monograph.compile(fn, backend="reference")
    for make in calls:
        ours, theirs = make(), make()
        got, want = compiled(*ours), fn(*theirs)
        assert state(got) == state(want)
        assert state(ours) == state(theirs)
    if programs is not None:
        assert len(compiled.recompiles) == programs - 1, [str(entry) for entry in compiled.recompiles]


def rows(n):
    return torch.arange(n * 2.0).view(n, 2)


def with_rows(*sizes):
    cache = Cache(len(sizes))
    for layer, size in zip(cache.layers, sizes, strict=True):
        layer.rows = rows(size)
    return cache


def test_a_fresh_object_runs_the_same_program():
    def fn(x, cache):
        return cache.update(x * cache.scale).sum(), cache

    compare(fn, [lambda: (rows(2), Cache())] * 3, programs=1)
    compare(fn, [lambda: (rows(2), with_rows(3))] * 3, programs=1)
    compare(fn, [lambda: (rows(2), with_rows(3, 4))] * 3, programs=1)


def test_objects_are_returned_and_written_where_they_are_the_calls_own():
    def fn(x, cache):
        rows = cache.update(x)
        return {"cache": cache, "layers": cache.layers, "layer": cache.layers[0]}, rows

    compiled = monograph.compile(fn, backend="reference")
    with torch.no_grad():
        caches = [with_rows(3) for _ in range(3)]
        for cache in caches:
            layer = cache.layers[0]
            found, _ = compiled(rows(2), cache)
            assert found["cache"] is cache and found["layers"] is cache.layers and found["layer"] is layer
    assert [len(cache.layers[0].rows) for cache in caches] == [5, 5, 5] and not compiled.recompiles


def test_one_object_or_two():
    def fn(x, first, second):
        return first.update(x) + second.update(x)[:len(x)]

    def same():
        cache = with_rows(2)
        return rows(2), cache, cache

    compare(lambda x, a, b: (a.update(x).sum(), b.update(x).sum(), a is b),
            [lambda: (rows(2), with_rows(2), with_rows(2)), same, lambda: (rows(2), with_rows(2), with_rows(2)), same])


def test_objects_that_share_a_part():
    def shared():
        cache = Cache(2)
        cache.layers[1] = cache.layers[0] = Layer(rows(2))
        return rows(1), cache

    compare(lambda x, cache: (cache.update(x, 0).sum(), cache.update(x, 1).sum()),
            [lambda: (rows(1), with_rows(2, 2)), shared, lambda: (rows(1), with_rows(2, 2)), shared])

    def across():
        first, second = with_rows(2), with_rows(2)
        second.layers = first.layers
        return rows(1), first, second

    compare(lambda x, a, b: (a.update(x).sum(), b.update(x).sum()),
            [lambda: (rows(1), with_rows(2), with_rows(2)), across] * 2)


def test_tensors_that_share_memory():
    def fn(x, cache):
        cache.layers[0].rows.add_(1)
        return x * 2, cache.layers[1].rows.sum()

    def argument():
        cache = with_rows(2, 2)
        return cache.layers[0].rows, cache

    def another():
        cache = with_rows(2, 2)
        cache.layers[1].rows = cache.layers[0].rows[:]
        return rows(2), cache

    compare(fn, [lambda: (rows(2), with_rows(2, 2)), argument, another, lambda: (rows(2), with_rows(2, 2))])


def test_a_tensor_that_is_a_weight():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", rows(2))

        def forward(self, cache):
            cache.layers[0].rows.mul_(2)
            return self.weight + 1

    net, twin = Net(), Net()
    compiled = monograph.compile(net, backend="reference")
    with torch.no_grad():
        for own in (False, True, False):
            ours, theirs = with_rows(2), with_rows(2)
            if own:
                ours.layers[0].rows, theirs.layers[0].rows = net.weight, twin.weight
            assert torch.equal(compiled(ours), twin(theirs)) and state(ours) == state(theirs)


def test_an_object_that_is_known_otherwise():
    known = with_rows(2)
    seen = [known]

    compare(lambda x, cache: x + 1 if cache is known else x - 1,
            [lambda: (rows(2), with_rows(2)), lambda: (rows(2), known), lambda: (rows(2), with_rows(2))])
    compare(lambda x, cache: x + 1 if cache in seen else x - cache.steps,
            [lambda: (rows(2), with_rows(2)), lambda: (rows(2), known), lambda: (rows(2), with_rows(2))])
    table = {known: 3.0}
    compare(lambda x, cache: x + table.get(cache, 1.0) + cache.steps,
            [lambda: (rows(2), with_rows(2)), lambda: (rows(2), known), lambda: (rows(2), with_rows(2))])
    compare(lambda x, cache: x + known.steps + len(cache.update(x)),
            [lambda: (rows(2), with_rows(2)), lambda: (rows(2), with_rows(2))])


def test_the_address_of_an_object():
    compiled = monograph.compile(lambda x, cache: (x + cache.steps, id(cache)), backend="reference")
    for _ in range(3):
        cache = Cache()
        assert compiled(rows(2), cache)[1] == id(cache)


def test_what_is_read_decides():
    def deaf():
        cache = with_rows(2)
        cache.update = lambda x: x * 5
        return rows(2), cache

    def other_class():
        class Double(Cache):
            def update(self, x):
                return super().update(x * 2)

        cache = Double(1)
        return rows(2), cache

    def own_scale():
        cache = with_rows(2)
        cache.scale = 7.0
        return rows(2), cache

    def counted():
        cache = with_rows(2)
        cache.steps = 4
        return rows(2), cache

    def empty():
        cache = with_rows(2)
        cache.layers = []
        return rows(2), cache

    def without():
        cache = with_rows(2)
        cache.layers[0] = None
        return rows(2), cache

    def fn(x, cache):
        if cache.layers and cache.layers[0] is None:
            return x
        return cache.update(x) * cache.scale + cache.steps

    plain = lambda: (rows(2), with_rows(2))      # noqa: E731
    for change in (deaf, other_class, own_scale, counted, empty, without):
        compiled = monograph.compile(fn, backend="reference")
        with torch.no_grad():
            for make in (plain, change, plain, change):
                (x, ours), (_, theirs) = make(), make()
                assert torch.equal(compiled(x, ours), fn(x, theirs))


def test_an_object_inside_of_what_is_returned():
    compiled = monograph.compile(lambda x, cache: (x * 2, types.SimpleNamespace(cache=cache, steps=cache.steps)),
                                 backend="reference")
    for _ in range(3):
        cache = with_rows(2)
        assert compiled(rows(2), cache)[1].cache is cache


def test_an_object_that_is_kept():
    keeper = types.SimpleNamespace(last=None)

    def fn(x, cache):
        keeper.last = cache
        return x + cache.steps

    compiled = monograph.compile(fn, backend="reference")
    for _ in range(3):
        cache = with_rows(2)
        compiled(rows(2), cache)
        assert keeper.last is cache


def test_an_object_that_is_referred_to():
    keeper = types.SimpleNamespace(last=None)

    for refer in (weakref.ref, lambda cache: cache.update, lambda cache: iter(cache.layers)):
        def fn(x, cache, refer=refer):
            keeper.last = refer(cache)
            return x + cache.steps

        compiled = monograph.compile(fn, backend="reference")
        for _ in range(3):
            cache = with_rows(2)
            compiled(rows(2), cache)
            if refer is weakref.ref:
                assert keeper.last() is cache
            elif isinstance(keeper.last, types.MethodType):
                assert keeper.last.__self__ is cache
            else:
                assert next(keeper.last) is cache.layers[0]


def test_what_is_printed_names_the_object(capsys):
    def fn(x, cache):
        print(cache)
        return x + cache.steps

    compiled = monograph.compile(fn, backend="reference")
    for _ in range(2):
        cache = Cache()
        compiled(rows(2), cache)
        assert capsys.readouterr().out == f"{cache}\n"


def test_objects_with_more_than_attributes():
    class Slots:
        __slots__ = ("rows",)

        def __init__(self, rows):
            self.rows = rows

    class Computed:
        def __init__(self, rows):
            self.held = rows

        def __getattr__(self, name):
            return vars(self)["held"]

    for kind in (Slots, Computed):
        compiled = monograph.compile(lambda x, thing: x + thing.rows, backend="reference")
        for k in range(3):
            x = torch.ones(2)
            assert torch.equal(compiled(x, kind(x * k)), x + x * k)


def test_gradients_through_an_object():
    def fn(x, cache):
        return (cache.update(x) * 3).sum()

    compiled = monograph.compile(fn, backend="reference")
    for with_grad in (False, True, False, True):
        found = []
        for call in (compiled, fn):
            x, cache = rows(2).requires_grad_(), with_rows(2)
            if with_grad:
                cache.layers[0].rows.requires_grad_()
            call(x, cache).backward()
            found.append((x.grad, cache.layers[0].rows.requires_grad))
        assert torch.equal(found[0][0], found[1][0]) and found[0][1] == found[1][1]


def test_a_deep_copy_of_an_object():
    cache = with_rows(3, 1)
    compare(lambda x, cache: cache.update(x, 1) - cache.layers[0].rows[:len(x) + 1],
            [lambda: (rows(2), copy.deepcopy(cache))] * 3, programs=1)


@pytest.mark.parametrize("many", [1, 2])
def test_a_list_of_objects(many):
    compare(lambda x, caches: [cache.update(x) for cache in caches],
            [lambda: (rows(2), [with_rows(2) for _ in range(many)])] * 3, programs=1)


def test_attributes_of_tensors_in_an_object():
    def fn(x, cache):
        return x * getattr(cache.layers[0].rows, "factor", 1.0) + cache.steps

    def marked():
        cache = with_rows(2)
        cache.layers[0].rows.factor = 3.0
        return rows(2), cache

    compare(fn, [lambda: (rows(2), with_rows(2)), marked, lambda: (rows(2), with_rows(2)), marked])
