"""Functions of integers that the program calls whole, where values were read from the call before."""

from __future__ import annotations

import itertools

import pytest
import torch

import monograph
from monograph.api import dispatcher_of

KINDS = [[0, 0, 1, 1, 0], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [1, 0, 2, 0, 1]]


def runs(kinds):
    found = []
    for kind, group in itertools.groupby(enumerate(kinds.tolist()), lambda entry: entry[1]):
        group = list(group)
        found.append((kind, group[0][0], group[-1][0] + 1))
    positions, place = torch.zeros(2, kinds.shape[0], dtype=torch.long), 0
    for kind, start, end in found:
        positions[:, start:end] = torch.arange(end - start) + place if kind == 0 else place
        place += end - start if kind == 0 else 2
    return positions, place


def counted(kinds):
    counts = {}
    for kind in kinds.tolist():
        counts[kind] = counts.get(kind, 0) + 1
    return torch.tensor([counts[kind] for kind in kinds.tolist()])


def pieces(kinds, *sizes, step=1, **options):
    """Lists of tensors whose lengths values decide, joined."""
    made = []
    for size in kinds.tolist():
        if size:
            made.append(torch.arange(size * step) + sizes[0])
    joined = torch.cat([*made, torch.zeros(20, dtype=torch.long)])[:10]
    return {"joined": joined.reshape(2, 5), "count": len(made) + options["more"]}


def advanced(kinds):
    numbers, out = {1: iter(range(5)), 2: iter(range(9, 0, -1))}, []
    for kind in kinds.tolist():
        out.append(next(numbers[kind]) if kind else -1)
    return torch.tensor(out)


def windows(kinds):
    ends = [0]
    for kind in kinds:
        ends.extend((torch.arange(3) * kind + ends[-1]).tolist())
    return torch.tensor(ends)[-5:]


class Table:
    def __init__(self, width):
        self.width = width

    def row(self, kinds):
        return torch.tensor([{0: 5, 1: 6}.get(kind, self.width) for kind in kinds.tolist()])


class Wider(Table):
    def row(self, kinds):
        return super().row(kinds) * 2 + torch.tensor([hash(kind) for kind in kinds.tolist()])


def texts(kinds):
    return torch.tensor([len(f"{kind:>{kind + 1}}") for kind in kinds.tolist()])


def pairs(kinds):
    found = sorted(set(kinds.tolist()))
    return torch.tensor(found[:1] * 5), found[0]


CALLED = {
    "runs": lambda kinds: runs(kinds)[0][0] + runs(kinds)[1],
    "keys of a dict": counted,
    "arguments by name, sizes that differ": lambda kinds: (
        lambda found: found["joined"][1] + found["count"])(pieces(kinds, 3, 4, step=2, more=1)),
    "iterators in a dict": advanced,
    "a list that is extended": windows,
    "a method": Table(7).row,
    "a method with super": Wider(7).row,
    "texts": texts,
    "numbers": lambda kinds: pairs(kinds)[0] * pairs(kinds)[1],
}


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.linear = function, torch.nn.Linear(3, 5)

    def forward(self, x, kinds):
        return self.linear(x) * self.function(kinds).float()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", CALLED)
def test_one_program_for_all_values(name: str, grad: bool):
    torch.manual_seed(0)
    model = Model(CALLED[name])
    compiled = monograph.compile(model, backend="reference")
    with torch.set_grad_enabled(grad):
        for kinds in KINDS:
            x, kinds = torch.randn(2, 3), torch.tensor(kinds)
            torch.testing.assert_close(compiled(x, kinds), model(x, kinds))
    assert len(dispatcher_of(compiled).entries) == 1


# -- those that are not ----------------------------------------------------------------------------

SEEN: dict[str, int] = {}
LAST = torch.tensor([3, 1, 4, 1, 5])


def writes(kinds):
    SEEN["last"] = max(kinds.tolist(), key=lambda kind: {0: 0}.get(kind, kind))
    return torch.tensor([{0: 1}.get(kind, 2) for kind in kinds.tolist()])


def writes_argument(kinds):
    kinds[0] = {0: 4}.get(kinds[1].item(), 5)
    return kinds + 1


def reads_other(kinds):
    return LAST * {0: 4}.get(kinds[1].item(), 5)


def hands_back(kinds):
    return kinds if {0: 4}.get(kinds[1].item(), 5) else kinds + 1


def prints(kinds):
    print({0: "none"}.get(kinds[1].item(), "some"))
    return kinds + 1


def draws(kinds):
    return torch.randint(0, {0: 4}.get(kinds[1].item(), 5), (5,))


NOT_CALLED = {"a global dict": writes, "an argument": writes_argument, "a tensor of its own": reads_other,
              "an argument is returned": hands_back, "prints": prints, "draws": draws}


@pytest.mark.parametrize("name", NOT_CALLED)
def test_what_does_more_is_traced(name: str, capsys: pytest.CaptureFixture[str]):
    torch.manual_seed(0)
    model = Model(lambda kinds: NOT_CALLED[name](kinds.clone()))
    compiled = monograph.compile(model, backend="reference")
    for kinds in KINDS:
        x, kinds, left = torch.randn(2, 3), torch.tensor(kinds), []
        for called in (model, compiled):
            torch.manual_seed(5)
            SEEN.clear()
            left.append((called(x, kinds), dict(SEEN), torch.get_rng_state(), capsys.readouterr().out))
        torch.testing.assert_close(left[0][0], left[1][0])
        assert left[0][1] == left[1][1] and torch.equal(left[0][2], left[1][2]) and left[0][3] == left[1][3]
    assert all("host." not in entry.report.text for entry in dispatcher_of(compiled).entries)


def test_floats_are_traced():
    def scaled(x):
        return x * {0: 2.0}.get(int(x.sum()), 3.0)

    model = Model(lambda kinds: scaled(kinds.float()))
    compiled = monograph.compile(model, backend="reference")
    for kinds in KINDS:
        x, kinds = torch.randn(2, 3), torch.tensor(kinds)
        torch.testing.assert_close(compiled(x, kinds), model(x, kinds))
    assert all("host." not in entry.report.text for entry in dispatcher_of(compiled).entries)


# -- other values ----------------------------------------------------------------------------------

def check(kinds):
    if {2: True}.get(kinds.max().item(), False):
        raise KeyError(f"no kind {kinds.max().item()}")
    return kinds + 1


def test_it_raises_as_eager_does():
    model = Model(check)
    compiled = monograph.compile(model, backend="reference")
    x = torch.randn(2, 3)
    for kinds in KINDS[:3]:
        torch.testing.assert_close(compiled(x, torch.tensor(kinds)), model(x, torch.tensor(kinds)))
    with pytest.raises(KeyError, match="no kind 2"):
        compiled(x, torch.tensor(KINDS[3]))
    assert len(dispatcher_of(compiled).entries) == 1


def longer(kinds):
    found = [kind for kind, _ in itertools.groupby(kinds.tolist())]
    return torch.tensor(found), found


def test_other_sizes_and_structures_are_other_programs():
    class Summed(Model):
        def forward(self, x, kinds):
            tensor, found = longer(kinds)
            return self.linear(x).sum() * tensor.sum() + len(found)

    model = Summed(None)
    compiled = monograph.compile(model, backend="reference")
    for kinds in (*KINDS, *KINDS):
        x, kinds = torch.randn(2, 3), torch.tensor(kinds)
        torch.testing.assert_close(compiled(x, kinds), model(x, kinds))


def sometimes_handed_back(kinds):
    return kinds if {2: True}.get(kinds.max().item(), False) else kinds + 1


def test_a_later_call_that_does_more_is_traced():
    model = Model(lambda kinds: sometimes_handed_back(kinds))
    compiled = monograph.compile(model, backend="reference")
    for kinds in KINDS:
        x, kinds = torch.randn(2, 3), torch.tensor(kinds)
        torch.testing.assert_close(compiled(x, kinds), model(x, kinds))
    texts = ["host." in entry.report.text for entry in dispatcher_of(compiled).entries]
    assert sorted(texts) == [False, True]


def test_in_a_branch():
    def forward(x, kinds):
        return x + counted(kinds) if x.sum() > 0 else x

    compiled = monograph.compile(forward, backend="reference")
    for kinds in KINDS:
        for sign in (1, -1):
            x, kinds = sign * torch.ones(5), torch.as_tensor(kinds)
            torch.testing.assert_close(compiled(x, kinds), forward(x, kinds))


def test_the_function_itself_is_traced():
    compiled = monograph.compile(counted, backend="reference")
    for kinds in KINDS:
        assert torch.equal(compiled(torch.tensor(kinds)), counted(torch.tensor(kinds)))
    assert all("host." not in entry.report.text for entry in dispatcher_of(compiled).entries)


def test_config_is_read_at_the_call():
    table = Table(7)
    model = Model(table.row)
    compiled = monograph.compile(model, backend="reference")
    x, kinds = torch.randn(2, 3), torch.tensor(KINDS[3])
    for width in (7, 8, 9):
        table.width = width
        torch.testing.assert_close(compiled(x, kinds), model(x, kinds))


def changes_a_list(kinds, found):
    found.append({0: 4}.get(kinds[1].item(), 5))
    return kinds + found[0]


def same_list(kinds, found):
    return kinds * {0: 4}.get(kinds[1].item(), 5), found


def test_lists_among_the_arguments():
    class Listing(Model):
        def forward(self, x, kinds):
            found, given = [], [1, 2]
            changed = changes_a_list(kinds, found)
            other, same = same_list(kinds, given)
            return self.linear(x) * changed + other, len(found), same is given

    model = Listing(None)
    compiled = monograph.compile(model, backend="reference")
    for kinds in KINDS:
        x, kinds = torch.randn(2, 3), torch.tensor(kinds)
        torch.testing.assert_close(compiled(x, kinds), model(x, kinds))


def gathered(kinds, length, options):
    if options is not None and "positions" in options:
        return options.pop("positions")
    found = [torch.arange(kind) for kind in {kind: 0 for kind in kinds.tolist()}]
    return torch.cat([*found, torch.zeros(length, dtype=torch.long)])[:5]


def test_a_dict_that_is_only_read():
    model = Model(lambda kinds: gathered(kinds, 5, {}))
    compiled = monograph.compile(model, backend="reference")
    for kinds in KINDS:
        x, kinds = torch.randn(2, 3), torch.tensor(kinds)
        torch.testing.assert_close(compiled(x, kinds), model(x, kinds))
    assert len(dispatcher_of(compiled).entries) == 1


def test_sizes_that_vary_are_no_reason_to_be_wrong():
    model = Model(runs_and_more)
    compiled = monograph.compile(model, backend="reference", dynamic=True)
    for kinds in KINDS:
        for more in (0, 1, 3):
            x, given = torch.randn(2, 3), torch.tensor(kinds + [0] * more)
            torch.testing.assert_close(compiled(x, given), model(x, given))


def runs_and_more(kinds):
    return runs(kinds)[0][0][:5] + by_size(kinds.shape, kinds)


def by_size(size, kinds):
    return {size[0]: 1}.get(kinds[0].item(), size[0])


def windows(grid):
    found = []
    for t, h, w in grid.tolist():
        down, across = 4 - h % 4, 4 - w % 4
        places = torch.nn.functional.pad(torch.arange(t * h * w).reshape(t, h, w), (0, across, 0, down), value=-1)
        places = places.reshape(t, (h + down) // 4, 4, (w + across) // 4, 4).transpose(2, 3)
        places = places.reshape(t, -1, 4, 4).reshape(-1)
        found.append(places[places >= 0])
    return torch.cat(found)


def windows_in_a_try(x, grid):
    try:
        return x[windows(grid)] * 2
    except KeyError:
        return x


def test_a_function_in_a_try_is_called_whole_where_torch_cannot_do_with_its_sizes() -> None:
    fast = monograph.compile(windows_in_a_try, backend="reference")
    x = torch.arange(32.0)
    for h, w in ((4, 8), (8, 4), (2, 16)):
        grid = torch.tensor([[1, h, w]])
        assert torch.equal(fast(x, grid), windows_in_a_try(x, grid))
    assert len(dispatcher_of(fast).entries) == 1
