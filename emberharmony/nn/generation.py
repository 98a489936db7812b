"""Generation of tokens by language models: `generate` and `stream_generate`."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError, brief
from emberharmony.nn import rngs
from emberharmony.nn.cache import KVCache
from emberharmony.nn.options import length_option, number_option, share_option
from emberharmony.types import Tensor, TensorLike


class LanguageModel(Protocol):
    """The protocol of a model for `generate`: caches and a call that returns logits.

    For texts of different length, its attention asks each cache for the `mask`, and a layer that adds positions takes
    the `offset` of a cache; see `nn.KVCache`. Rotary positions begin at `length`, because only distances count.
    """

    def caches(self) -> Sequence[KVCache]:
        """Returns new caches, one for each layer of attention."""
        ...

    def __call__(self, tokens: Tensor, caches: Any) -> Tensor:
        """Returns logits (batch, time, vocabulary), of which the last ones are used; `tokens` follow the cached ones.

        Args:
            tokens: integers (batch, time).
            caches: those that `caches` returned, to which the call adds.
        """
        ...


def stream_generate(
    model: LanguageModel,
    prompt: TensorLike,
    max_tokens: int | None = None,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    eos: int | Sequence[int] = (),
    rng: "rngs.Generator | rngs.Rngs | None" = None,
) -> Iterator[Any]:
    """Yields the tokens with which a model continues a prompt, each as soon as it is computed.

    Between two tokens the program may switch the backend, and the continuation stays the same: the weights and caches
    follow, and the numbers that are drawn come from the host.

    Args:
        model: has the call and the method `caches` that `examples/models` show: `model(tokens, caches)` returns logits
            (batch, time, vocabulary) and `model.caches()` a list of `nn.KVCache`. Call `model.eval()` first if it has
            dropout.
        prompt: integers (time,), or (batch, time) for several texts, or a list of texts of different length.
        max_tokens: how many tokens are generated at most; None sets no limit.
        temperature: by what the logits are divided before a token is drawn; 0 takes the token with the largest.
        top_k: draws from the k likeliest tokens only; None draws from all.
        top_p: draws from the likeliest tokens only whose probabilities add up to p; None draws from all.
        eos: the token, or the tokens, that end a text.
        rng: draws the tokens, equal ones on every backend. Without one, `ops.random.seed` decides.

    Yields:
        an integer, or a list of one for each text of the batch. The last token is the one that ends the text, if there
        is one. A text of a batch that has ended goes on with the token that ended it until all have.

    Raises:
        ArgumentError: if an option is out of range, or the texts differ in length and the model does not mask padding.
        ShapeError: if the prompt or a text is empty, or has other axes.

    Example:
        >>> class Counting(nn.Module):
        ...     def caches(self):
        ...         return []
        ...     def __call__(self, tokens, caches):
        ...         return ops.one_hot(ops.remainder(ops.add(tokens, 1), 5), 5)
        >>> list(nn.stream_generate(Counting(), [0, 1], 6, eos=0))
        [2, 3, 4, 0]
    """
    end_tokens = _end_tokens(eos)
    if max_tokens is not None:
        length_option("max_tokens", max_tokens, 0)
    temperature = number_option("temperature", temperature)
    if not 0 <= temperature < float("inf"):
        raise ArgumentError(f"temperature must be 0 or positive, got {temperature}")
    top_k = None if top_k is None else length_option("top_k", top_k)
    if top_p is not None and not share_option("top_p", top_p):
        raise ArgumentError("top_p must be more than 0; top_k=1 draws the likeliest token")
    prompt_token_lists, is_single = _texts_and_is_single(prompt)
    generator = rngs.generator(rng) if temperature else None
    sampling_options = temperature, top_k, top_p, generator
    return _token_steps(model, prompt_token_lists, is_single, max_tokens, end_tokens, sampling_options)


def generate(
    model: LanguageModel,
    prompt: TensorLike,
    max_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    eos: int | Sequence[int] = (),
    rng: "rngs.Generator | rngs.Rngs | None" = None,
) -> list[Any]:
    """Returns the tokens with which a model continues a prompt.

    Args:
        model, prompt, max_tokens, temperature, top_k, top_p, eos, rng: see `stream_generate`.

    Returns:
        a list of integers; for a batch a list of these, in which each text ends with the token that ended it.

    Raises:
        EmberError: as `stream_generate` does.

    Example:
        >>> class Counting(nn.Module):
        ...     def caches(self):
        ...         return []
        ...     def __call__(self, tokens, caches):
        ...         return ops.one_hot(ops.remainder(ops.add(tokens, 1), 5), 5)
        >>> nn.generate(Counting(), [[1], [3]], 6, eos=4)
        [[2, 3, 4], [4]]
    """
    (prompts, is_single), end_tokens = _texts_and_is_single(prompt), _end_tokens(eos)
    sampling_options: Any = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "eos": eos, "rng": rng}
    token_limit = length_option("max_tokens", max_tokens, 0)
    tokens = list(stream_generate(model, prompts[0] if is_single else prompts, token_limit, **sampling_options))
    if is_single:
        return tokens
    token_lists = [[row_tokens[row] for row_tokens in tokens] for row in range(len(prompts))]
    end_positions = [
        next((i for i, token in enumerate(token_list) if token in end_tokens), len(token_list))
        for token_list in token_lists
    ]
    return [token_list[: end_position + 1] for token_list, end_position in zip(token_lists, end_positions, strict=True)]


def _texts_and_is_single(prompt: Any) -> tuple[list[list[int]], bool]:
    """Returns the token lists of a prompt, and whether it is a single text instead of a batch.

    Raises:
        ShapeError: if the prompt or a text is empty, or has other axes.
    """
    rows = prompt if isinstance(prompt, (list, tuple)) else ()
    row_shapes = {tuple(row.shape) if hasattr(row, "shape") else (len(row),) for row in rows if hasattr(row, "__len__")}
    if len(row_shapes) > 1:  # parse each text alone, as a tensor has rows of equal length
        texts_and_flags = [_texts_and_is_single(row) for row in rows]
        if all(is_single for _, is_single in texts_and_flags):
            return [texts[0] for texts, _ in texts_and_flags], False
    tokens = ops.convert_to_tensor(prompt)
    shape = tuple(tokens.shape)
    if len(shape) not in (1, 2) or 0 in shape or not ops.dtype(tokens).is_integer:
        raise ShapeError(f"expected a prompt of integers (time,) or (batch, time), got shape {shape}")
    token_ids = ops.to_numpy(tokens).tolist()
    return ([token_ids], True) if len(shape) == 1 else (token_ids, False)


def _end_tokens(eos: int | Sequence[int]) -> frozenset[int]:
    """Returns the option `eos`, a token or several that end a text, as a set.

    Raises:
        ArgumentTypeError: if they are no integers.
    """
    end_tokens = tuple(eos) if isinstance(eos, (tuple, list, set, frozenset)) else (eos,)
    for token in end_tokens:
        if isinstance(token, bool) or not hasattr(token, "__index__"):
            raise ArgumentTypeError(f"eos must be an integer or a list of them, got {brief(eos)}")
    return frozenset(int(token) for token in end_tokens)


def _token_steps(
    model: LanguageModel, texts: list[list[int]], is_single: bool, limit: int | None, ends: frozenset[int], options: Any
) -> Iterator[Any]:
    """Yields the new tokens of each step, one for each text, until all texts have ended or the limit is reached."""
    caches, longest_length = model.caches(), max(map(len, texts))
    padding_lengths = tuple(longest_length - len(text) for text in texts)
    if any(padding_lengths):
        for cache in caches:
            if isinstance(cache, KVCache):
                cache.padding = padding_lengths
    tokens = ops.array([[0] * pad_count + text for pad_count, text in zip(padding_lengths, texts, strict=True)])
    end_tokens: list[int | None] = [None] * len(tokens)
    while (limit is None or limit > 0) and None in end_tokens:
        logits = model(tokens, caches)
        if any(padding_lengths) and not any(isinstance(cache, KVCache) and cache.is_masked for cache in caches):
            raise ArgumentError(
                f"{type(model).__name__} does not ask its caches for the mask of padding (nn.KVCache.mask), which "
                f"texts of different length need; generate each text alone"
            )
        chosen_tokens = _sample_tokens(logits[:, -1], *options)
        active_selection, token_ids = selection.active(), ops.to_numpy(chosen_tokens).tolist()
        new_tokens = [
            token if end_token is None else end_token for token, end_token in zip(token_ids, end_tokens, strict=True)
        ]
        end_tokens = [token if token in ends else None for token in new_tokens]
        yield new_tokens[0] if is_single else new_tokens
        if new_tokens == token_ids and selection.is_active(active_selection):
            tokens = ops.expand_dims(chosen_tokens, 1)
        else:
            tokens = ops.array([[token] for token in new_tokens])
        limit = None if limit is None else limit - 1


def _sample_tokens(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None, generator: Any
) -> Tensor:
    """Returns one token (batch,) for each row of logits (batch, vocabulary)."""
    if not temperature:
        return ops.argmax(logits, -1)
    logits = ops.divide(ops.cast(logits, "float32"), temperature)
    if top_k is not None and top_k < logits.shape[-1]:
        least_logit = ops.top_k(logits, top_k)[0][:, -1:]
        logits = ops.where(ops.less(logits, least_logit), -ops.inf, logits)
    if top_p is not None and top_p < 1:
        sorted_logits = ops.sort(logits, -1, descending=True)
        probabilities = ops.softmax(sorted_logits, -1)
        # A token is kept if the probabilities of the tokens before it add up to less than top_p.
        kept_count = ops.sum(
            ops.less(ops.subtract(ops.cumsum(probabilities, -1), probabilities), top_p), -1, keepdims=True
        )
        least_logit = ops.take_along_axis(sorted_logits, ops.subtract(ops.maximum(kept_count, 1), 1), -1)
        logits = ops.where(ops.less(logits, least_logit), -ops.inf, logits)
    return ops.squeeze(ops.random.categorical(logits, 1, generator=generator), 1)
