"""The calls of the fuzzer: seed and number determine them, they cover every op, and their source can be evaluated."""

import collections
import re

from emberharmony.core.registry import EMPTY, OPS
from emberharmony.testing.fuzz.cases import argument_pool, case_of
from emberharmony.testing.fuzz.odd import DTYPES
from emberharmony.testing.fuzz.program import arguments_source, namespace, program_source
from emberharmony.testing.fuzz.values import is_bounded
from emberharmony.testing.samples import all_samples
from tests.together import together

NAMES = sorted(OPS)


def test_seed_and_number_determine_a_call() -> None:
    assert [case_of(3, number, NAMES) for number in range(60)] == [case_of(3, number, NAMES) for number in range(60)]
    assert case_of(3, 7, NAMES) != case_of(4, 7, NAMES)
    assert case_of(3, 7, NAMES).op == case_of(4, 7, NAMES).op == NAMES[7]


def test_the_calls_cover_every_op() -> None:
    assert {case_of(0, number, NAMES).op for number in range(len(NAMES))} == set(NAMES)


def test_almost_all_arguments_can_be_evaluated(backend: str) -> None:
    names, failed = namespace(), collections.Counter[str]()
    for number in range(1500):
        case = case_of(1, number, NAMES)
        code = compile(arguments_source(case), "<fuzz>", "eval")
        try:
            args, kwargs, then = eval(code, names)
        except Exception as error:  # noqa: BLE001  (arguments that cannot be evaluated are counted)
            failed[type(error).__name__] += 1
            continue
        assert len(args) == len(case.arguments)
        assert list(kwargs) == list(case.keywords)
        assert len(then) == len(case.then)
    assert sum(failed.values()) < 60, failed


def test_the_arguments_cover_every_kind_of_odd_value_and_every_dtype() -> None:
    text = "\n".join(arguments_source(case_of(2, number, NAMES)) for number in range(8000))
    for way in (
        *(
            "nan",
            "inf",
            "2**31",
            "2**63",
            "10**400",
            "as_read_only(",
            "non_contiguous_tensor(",
            "Hostile()",
            "np.bool_(",
            "object()",
        ),
        *("np.broadcast_to(", ":0]", "[None]", "nested_list(", "'nonsense'", "np.arange(10**6)", "(1,) * 33", "lambda"),
    ):
        assert way in text, way
    used = {name for name in DTYPES if re.search(rf"\b{name}\b", text)}
    assert used == set(DTYPES)


def test_loop_counts_in_calls_are_small() -> None:
    bounded = set()
    for number in range(3000):
        case = case_of(0, number, ["fori_loop", "while_loop", "scan"])
        given = dict(zip([p.name for p in OPS[case.op].parameters], case.arguments, strict=False)) | case.keywords
        for parameter in given:
            if is_bounded(case.op, parameter):
                bounded.add((case.op, parameter))
                assert not re.search(r"\*\*|\d{3}|lambda", given[parameter]), given[parameter]
    assert bounded == {("fori_loop", "lower"), ("fori_loop", "upper"), ("scan", "length"), ("while_loop", "cond")}


def test_exactly_the_ops_without_cases_have_a_base_call() -> None:
    rows = all_samples()
    without = {op for op in OPS if not rows[op].cases and any(p.default is EMPTY for p in OPS[op].parameters)}
    assert without <= {op for op, row in rows.items() if row.usual}
    assert not any(row.usual and row.cases for row in rows.values())


def test_the_pool_contains_the_options_of_sample_rows() -> None:
    assert "'channels_first'" in argument_pool()["data_format"]
    assert "'linear'" in argument_pool()["method"]


@together("number", range(40))
def test_the_program_of_a_call_names_it_and_compiles(number: int, backend: str) -> None:
    case = case_of(5, number, ["add", "concatenate", "sum", "cond", "take"])
    text = program_source(case, 5, backend, "what it did")
    assert text.startswith(f"# {case.op} on {backend}, call {number} of seed 5:\n# what it did\n")
    compile(text, "<program>", "exec")
