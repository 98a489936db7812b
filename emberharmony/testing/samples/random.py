"""Rows of `ops/random_ops.py`: values are the business of `tests/ops/test_random.py`."""

from emberharmony.testing.sample import Sample

SAMPLES = [
    Sample(op, str, (), reference="tests")
    for op in (
        *("random_seed", "standard_uniform", "standard_normal", "random_normal", "random_uniform", "random_randint"),
        *("random_poisson", "random_bernoulli", "random_binomial", "random_exponential", "random_gamma", "random_beta"),
        *("random_gumbel", "random_laplace", "random_truncated_normal", "random_categorical", "random_permutation"),
        *("random_shuffle", "random_choice", "dropout"),
    )
]
