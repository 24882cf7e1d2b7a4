"""Every function of some model files converted: the models compute what they did."""

import gc
import sys
import types

import pytest
import torch

from monograph.capture.convert import compile as compiler
from monograph.capture.convert.swap import swapped

transformers = pytest.importorskip("transformers")

SIZES = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 50,
         "num_key_value_heads": 2, "max_position_embeddings": 32}
FAMILIES = {
    "Bert": SIZES, "Llama": SIZES, "Mixtral": {**SIZES, "num_local_experts": 2},
    "GPT2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 32},
}


def convertible(files):
    """Code objects of all live functions of some files, with what they become."""
    codes = {id(found.__code__): found.__code__ for found in gc.get_objects()
             if type(found) is types.FunctionType and found.__code__.co_filename in files}
    pairs, refused = [], []
    for code in codes.values():
        try:
            pairs.append((code, compiler.convert(code)))
        except compiler.Unconvertible as error:
            refused.append((code.co_qualname, error.reason))
    return pairs, refused


@pytest.mark.parametrize("family", FAMILIES)
def test_model(family):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**FAMILIES[family])
    model = getattr(transformers, f"{family}Model")(config).eval()
    shared = ["transformers.masking_utils", "transformers.cache_utils", "transformers.modeling_rope_utils"]
    files = {sys.modules[name].__file__ for name in (type(model).__module__, *shared) if name in sys.modules}
    tokens = torch.arange(12).reshape(2, 6)
    with torch.no_grad():
        expected = model(tokens, output_hidden_states=True)
        pairs, refused = convertible(files)
        assert len(pairs) > 20 and not refused, refused
        with swapped(pairs):
            assert compiler.converted_from(type(model).forward.__code__) or hasattr(type(model).forward, "__wrapped__")
            got = model(tokens, output_hidden_states=True)
    for one, other in zip(expected.hidden_states, got.hidden_states):
        assert torch.equal(one, other)
