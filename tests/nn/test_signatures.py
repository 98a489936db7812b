"""Each layer of torch is here or left out for a reason, and so is each parameter of its constructor."""

import inspect

from emberharmony import nn
from tests.nn.layers import (
    test_activations,
    test_attention,
    test_convolution,
    test_dropout,
    test_embedding,
    test_linear,
    test_normalization,
    test_padding,
    test_pooling,
    test_recurrent,
    test_shaping,
    test_transformer,
    test_upsampling,
)
from tests.nn.loss_rows import ROWS as LOSSES
from tests.nn.omissions import CLASSES, EVERYWHERE, OPTIONS
from tests.nn.oracle import Case
from tests.nn.signatures import given, require_parameters, torch
from tests.together import together

CASES: list[Case] = [
    *test_activations.CASES,
    *test_attention.CASES,
    *test_convolution.CASES,
    *test_dropout.CASES,
    *test_embedding.CASES,
    *test_linear.CASES,
    *test_normalization.CASES,
    *test_padding.CASES,
    *test_pooling.CASES,
    *test_recurrent.CASES,
    *test_shaping.CASES,
    *test_transformer.LAYERS,
    *test_transformer.WHOLE,
    *test_upsampling.CASES,
]
"""The rows that compare layers with those of torch."""

WITHOUT_ROWS = {
    **{f"MaxUnpool{n}d": {"kernel_size", "stride", "padding"} for n in (1, 2, 3)},
    "EmbeddingBag": {"scale_grad_by_freq"},
    "TransformerDecoder": {"decoder_layer", "num_layers", "norm"},
    "TransformerEncoder": {"encoder_layer", "num_layers", "norm"},
    "TripletMarginWithDistanceLoss": {"distance_function"},
}
"""Parameters that tests of their own give, because the layers take the results or the weights of others."""

CONTAINERS = {"DataParallel", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"}
"""Classes whose constructors take modules or parameters alone; `test_containers.py` compares them.

`DataParallel` of torch divides a batch between the devices of one process, ours between processes.
"""

THEIRS = {
    name: kind
    for name, kind in vars(torch.nn).items()
    if isinstance(kind, type) and (issubclass(kind, torch.nn.Module) or name not in ("Parameter", "Buffer"))
}
COMMON = sorted(name for name in THEIRS if hasattr(nn, name) and name not in CONTAINERS)


def test_each_class_of_torch_is_there_or_left_out_for_a_reason() -> None:
    assert {name for name in THEIRS if not hasattr(nn, name)} - set(CLASSES) == set()
    assert [name for name in CLASSES if hasattr(nn, name)] == []
    assert all([*CLASSES.values(), *EVERYWHERE.values(), *(x for each in OPTIONS.values() for x in each.values())])
    assert set(OPTIONS) <= set(COMMON)


@together("name", COMMON)
def test_the_parameters_are_those_of_torch_and_have_rows(name: str) -> None:
    rows = {each for case in CASES if case.name == name for each in given(name, case.args, case.kwargs)}
    if name.endswith("Loss"):
        function = getattr(nn, name).function.__name__
        rows = {"reduction", *(each for row in LOSSES if row.name == function for each in row.options)}
        assert [row for row in LOSSES if row.name == function], f"{name}: no row compares it"
    elif name not in WITHOUT_ROWS:
        assert [case for case in CASES if case.name == name], f"{name}: no row compares it"
    # Each row runs in several dtypes, and each row of a loss with each reduction.
    require_parameters(name, {"dtype", *rows, *WITHOUT_ROWS.get(name, ())})


def test_our_own_options_have_names_only() -> None:
    """An option that torch lacks stands behind all of torch's, so that calls by position mean the same."""
    for name in COMMON:
        found = inspect.signature(getattr(nn, name)).parameters.values()
        theirs = set(inspect.signature(THEIRS[name]).parameters)
        if "kwargs" not in theirs:
            own = [each for each in found if each.name not in theirs]
            assert [each.name for each in own if each.kind is not each.KEYWORD_ONLY] == [], name
