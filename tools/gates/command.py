"""The command line of `python tools/gates`."""

import os
import warnings
from collections import defaultdict
from pathlib import Path

import click
import numpy as np

from emberharmony import ops
from emberharmony.core.errors import EmberError
from emberharmony.core.selection import current
from gates import probe as probes
from gates import random_programs
from gates import steps as training
from gates.comparison import HARMLESS, SOURCE, Difference, differences
from gates.record import Record
from gates.variants import describe_variant

_OP = click.option("--op", "names", multiple=True, metavar="NAME", help="Record this op alone (more than once: these).")
_FILE = click.Path(dir_okay=False, path_type=Path)
_CHEAP = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1"
)
_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Shows that a move of code changes nothing: record before and after it, and compare.

    BACKEND is numpy, torch, mlx, jax, dask, another installed backend, or "strict" for the array API over
    array_api_strict. Each record needs a process of its own.
    """


@command.command()
@click.argument("backend")
@click.argument("out", type=_FILE)
@_OP
@click.option("--rows-only", is_flag=True, help="Run the sample rows, without the calls with operands of each dtype.")
def probe(backend: str, out: Path, names: tuple[str, ...], rows_only: bool) -> None:
    """Records into OUT what each op gives: values, dtypes, errors and gradients."""
    _use_backend(backend)
    op_names = _ops_to_probe(names)
    outcomes = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i, name in enumerate(op_names, 1):
            outcomes[name] = probes.probe_op(name, not rows_only)
            if i % 8 == 0:
                current().free_caches()  # programs that were compiled
        if not names:
            outcomes |= probes.program_outcomes()
    _write_record(Record("probe", backend, outcomes), out)


@command.command()
@click.argument("backend")
@click.argument("out", type=_FILE)
@_OP
def variants(backend: str, out: Path, names: tuple[str, ...]) -> None:
    """Records into OUT the source that dispatch generates for each op, and the native function that it calls."""
    _use_backend(backend)
    _write_record(Record("variants", backend, {name: describe_variant(name) for name in _ops_to_probe(names)}), out)


@command.command()
@click.argument("backend")
@click.argument("out", type=_FILE)
@click.option(
    "--optimizer", "names", multiple=True, metavar="NAME", help="Record this one alone (see `gates/steps.py`)."
)
def steps(backend: str, out: Path, names: tuple[str, ...]) -> None:
    """Records into OUT what each optimizer and wrapper makes of lists of parameters."""
    _use_backend(backend)
    unknown_names = {*names} - training.OPTIMIZERS.keys()
    if unknown_names:
        raise click.BadParameter(f"there is no optimizer {min(unknown_names)!r}", param_hint="--optimizer")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        outcomes = {name: training.outcomes_of(name) for name in names or training.OPTIMIZERS}
        if not names:
            outcomes["others"] = training.other_outcomes()
    _write_record(Record("steps", backend, outcomes), out)


@command.command()
@click.argument("backend")
@click.argument("out", type=_FILE)
@click.option("--count", type=int, default=300, help="How many functions to compile (default: 300).")
def programs(backend: str, out: Path, count: int) -> None:
    """Records into OUT what compiled random functions give; PyTorch takes seconds for each."""
    _use_backend(backend)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        outcomes = {f"{seed:04}": random_programs.outcomes_of(seed) for seed in range(count)}
    _write_record(Record("programs", backend, outcomes), out)


@command.command()
@click.argument("before", type=_EXISTING)
@click.argument("after", type=_EXISTING)
@click.option("--eps", type=float, default=0.0, help="Let numbers differ by so many eps of their dtype (default: 0).")
@click.option("--show", type=int, default=3, help="Print so many examples of each kind (default: 3).")
def compare(before: Path, after: Path, eps: float, show: int) -> None:
    """Prints the differences of two records by kind; fails if there are any but messages, last digits and new ops."""
    old, new = _read_record(before), _read_record(after)
    if (old.gate, old.backend) != (new.gate, new.backend):
        raise click.UsageError(f"{before} is of {old.gate} on {old.backend}, {after} of {new.gate} on {new.backend}")
    differences_by_kind: dict[str, list[Difference]] = defaultdict(list)
    for difference in differences(old, new, eps):
        differences_by_kind[difference.kind].append(difference)
    finding_count = sum(map(len, old.ops.values()))
    click.echo(f"{old.gate} on {old.backend}: {len(old.ops)} entries with {finding_count} findings")
    for kind, of_kind in sorted(differences_by_kind.items()):
        _print_differences(kind, of_kind, show)
    if differences_by_kind.keys() - HARMLESS:
        raise SystemExit(1)
    click.echo("no difference" if not differences_by_kind else "no difference that counts")


def _print_differences(kind: str, kind_differences: list[Difference], show: int) -> None:
    names = sorted({difference.op for difference in kind_differences})
    click.echo(
        f"{kind}: {len(kind_differences)} in {len(names)} ops: {' '.join(names[:20])}{' …' if len(names) > 20 else ''}"
    )
    if kind == SOURCE:  # one example of each change, since a change of the generator changes many ops alike
        ops_by_change: dict[tuple[str, str], list[str]] = defaultdict(list)
        for difference in kind_differences:
            ops_by_change[difference.before, difference.after].append(difference.op)
        for (old, new), changed in sorted(ops_by_change.items(), key=lambda item: -len(item[1]))[:show]:
            click.echo("\n".join(filter(None, [f"  {len(changed)} ops, such as {changed[0]}:", old, new])))
        return
    for difference in kind_differences[:show]:
        click.echo(f"  {difference.op}({difference.call})\n    {difference.before}\n    {difference.after}")


def _use_backend(backend: str) -> None:
    if backend == "jax":  # which reads both once, when it starts; the options halve the time that it compiles
        os.environ.setdefault("JAX_ENABLE_X64", "1")
        os.environ.setdefault("XLA_FLAGS", _CHEAP)
    try:
        if backend == "strict":
            _use_array_api_strict()
        else:
            ops.set_backend(backend)  # type: ignore[arg-type]
    except (ImportError, EmberError) as error:
        raise click.BadParameter(str(error), param_hint="BACKEND") from error


def _use_array_api_strict() -> None:
    """Activates a backend over the reference implementation of the array API.

    Raises:
        ImportError: if array_api_strict is not installed.
    """
    import array_api_strict as xp

    from emberharmony.backend.arrayapi import from_array_api

    backend = from_array_api("strict", xp, tensor_type=type(xp.asarray(1)))
    ops.use_backend(backend).__enter__()  # for the rest of the process


def _ops_to_probe(names: tuple[str, ...]) -> list[str]:
    try:
        return probes.ops_to_probe(names)
    except KeyError as error:
        raise click.BadParameter(f"there is no op {error.args[0]!r}", param_hint="--op") from error


def _write_record(record: Record, out: Path) -> None:
    try:
        record.write(out)
    except OSError as error:
        raise click.FileError(str(out), error.strerror or str(error)) from error
    finding_count = sum(map(len, record.ops.values()))
    click.echo(f"{record.gate} on {record.backend}: {len(record.ops)} entries with {finding_count} findings, in {out}")


def _read_record(path: Path) -> Record:
    try:
        return Record.read(path)
    except (ValueError, TypeError) as error:
        raise click.UsageError(f"{path} is no record of a gate: {error}") from error
