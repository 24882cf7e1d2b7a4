"""`generate()`, `save_pretrained` and results that are objects of the caller's, through a compiled model."""

import copy

import pytest
import torch
import transformers as hf

import monograph

SMALL = dict(vocab_size=50, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def gpt2():
    return hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=1, n_head=2, n_embd=16, n_positions=32, **SMALL))


def llama():
    return hf.LlamaForCausalLM(hf.LlamaConfig(
        num_hidden_layers=1, num_attention_heads=2, hidden_size=16, intermediate_size=32, **SMALL))


def t5():
    return hf.T5ForConditionalGeneration(hf.T5Config(
        num_layers=1, num_heads=2, d_model=16, d_ff=32, d_kv=8, decoder_start_token_id=0, **SMALL))


@pytest.mark.parametrize("make", [gpt2, llama, t5])
def test_generate_equals_eager(make):
    torch.manual_seed(0)
    eager = make().eval()
    fast = monograph.compile(copy.deepcopy(eager), backend="reference")
    tokens = torch.randint(3, 50, (2, 4))
    for way in ({"do_sample": False}, {"do_sample": True}, {"num_beams": 2}):
        found = []
        for model in (fast, eager):
            torch.manual_seed(1)
            found.append((model.generate(tokens, max_new_tokens=4, **way), torch.rand(1)))
        assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("make", [gpt2, llama, t5])
@pytest.mark.parametrize("way", [{"do_sample": False}, {"do_sample": True}, {"num_beams": 2}], ids=["1", "2", "3"])
def test_another_generate_compiles_nothing(make, way):
    torch.manual_seed(0)
    eager = make().eval()
    fast = monograph.compile(copy.deepcopy(eager), backend="reference")
    programs = []
    for seed in (1, 2, 3):
        found = []
        for model in (fast, eager):
            torch.manual_seed(seed)
            tokens = torch.randint(3, 50, (2, 4))
            found.append(model.generate(tokens, max_new_tokens=5, min_new_tokens=5, **way))
        assert torch.equal(*found)
        programs.append(len(monograph.api.dispatcher_of(fast).entries))
    assert programs[0] == programs[1] == programs[2] <= 4, programs


def test_a_cache_that_grows_takes_three_programs():
    torch.manual_seed(0)
    eager = gpt2().eval()
    fast = monograph.compile(copy.deepcopy(eager), backend="reference")
    tokens = torch.randint(3, 50, (2, 4))
    assert torch.equal(fast.generate(tokens, max_new_tokens=12), eager.generate(tokens, max_new_tokens=12))
    dispatcher = monograph.api.dispatcher_of(fast)
    assert len(dispatcher.entries) == 3           # the prompt, the first token after it, any other
    assert "argument.layers[0].keys: shape (2, 2, 4, 8) -> (2, 2, 5, 8)" in str(dispatcher.recompiles[1])


def test_save_pretrained(tmp_path):
    torch.manual_seed(0)
    eager = gpt2().eval()
    fast = monograph.compile(eager, backend="reference")
    tokens = torch.randint(3, 50, (2, 4))
    with torch.no_grad():
        want = fast(tokens).logits
        fast.save_pretrained(tmp_path)
        again = hf.GPT2LMHeadModel.from_pretrained(tmp_path).eval()
        torch.testing.assert_close(again(tokens).logits, want)
        torch.testing.assert_close(monograph.compile(again, backend="reference")(tokens).logits, want)


class Cache:
    def __init__(self):
        self.rows = None

    def update(self, x):
        self.rows = x if self.rows is None else torch.cat([self.rows, x])
        return self.rows


def test_an_object_that_was_passed_is_returned():
    def fn(x, cache):
        return cache.update(x * 2).sum(), cache

    fast = monograph.compile(fn)
    mine, theirs = Cache(), Cache()
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(2, 3)
            got, want = fast(x, mine), fn(x, theirs)
            assert got[1] is mine
            torch.testing.assert_close(got[0], want[0])
            torch.testing.assert_close(mine.rows, theirs.rows)


def test_a_list_of_the_modules_is_returned():
    class Keeps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.history = []

        def forward(self, x):
            self.history.append(x + 1)
            return self.history, {"all": self.history}

    net = Keeps()
    fast = monograph.compile(net)
    with torch.no_grad():
        for count in (1, 2, 3):
            first, second = fast(torch.ones(2))
            assert first is net.history and second["all"] is net.history and len(first) == count
            assert all(torch.equal(x, torch.full((2,), 2.0)) for x in first)


def test_a_new_object_is_new_at_every_call():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    weight = torch.nn.Parameter(torch.ones(2))
    fast = monograph.compile(lambda x: (Pair(x + 1, weight), Pair(x, [weight])))
    with torch.no_grad():
        one, two = fast(torch.ones(2)), fast(torch.zeros(2))
    assert one[0] is not two[0] and one[1] is not two[1] and one[1].b is not two[1].b
    assert one[0].b is weight and two[1].b[0] is weight


def test_the_size_of_a_cache_is_read_before_it_is_replaced():
    class State:
        def __init__(self, keys):
            self.keys = keys

    def step(x, state):
        seen = state.keys.shape[1]
        position = torch.arange(len(x)) + seen + state.keys.size(-1) * len(state.keys)
        state.keys = torch.cat([state.keys, x], 1)
        return position * x, state.keys.numel()

    compiled = monograph.compile(step)
    ours, theirs = State(torch.randn(3, 5)), State(torch.zeros(3, 5))
    for x in torch.randn(6, 3, 1):
        assert torch.equal(compiled(x, ours)[0], step(x, theirs)[0])
        assert ours.keys.shape == theirs.keys.shape
    assert len(compiled.recompiles) == 1


@torch.no_grad()
def test_attention_over_a_cache_of_one_sequence():
    class State:
        def __init__(self):
            self.keys = torch.ones(1, 4, 5, 8)

    def step(x, state):
        query = x.view(1, 1, 4, 8).transpose(1, 2)
        state.keys = torch.cat([state.keys, query], 2)
        return torch.nn.functional.scaled_dot_product_attention(query, state.keys, state.keys)

    compiled = monograph.compile(step)
    ours, theirs = State(), State()
    for x in torch.randn(6, 1, 1, 32):
        got, want = compiled(x, ours), step(x, theirs)
        torch.testing.assert_close(got, want)
        assert got.stride() == want.stride()
    assert len(compiled.recompiles) == 1
