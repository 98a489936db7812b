"""`emberharmony weights ls|check|diff|convert`: files of tensors, of which one block is in memory at a time."""

import fnmatch
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import click

from emberharmony import io
from emberharmony.cli.drawing import aligned_table, progress
from emberharmony.cli.models import model_of
from emberharmony.core.errors import WeightFileError, suggest
from emberharmony.core.names.layouts import LAYOUTS
from emberharmony.io.differences import Difference, differences
from emberharmony.io.index import INDEX
from emberharmony.io.rewriting import Rewritten, new_names, rewrite
from emberharmony.io.sources import Source, source
from emberharmony.io.statistics import Statistics, json_number, nonfinite_text, statistics

_MATCH = click.option("--match", "pattern", default="*", show_default=True, help="Only tensors with such a name.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def weights() -> None:
    """List, check, compare and convert files of weights.

    A path is a safetensors file, an index of shards, a folder with one of these, an .npz file, or a .pth, .pt or .bin
    file of PyTorch. The exit status is 2 if a command cannot be carried out, and 130 after Ctrl-C.
    """


@weights.command()
@click.argument("path")
@click.option("--stats", is_flag=True, help="Read the tensors, and show statistics of their finite elements.")
@_MATCH
@_JSON
def ls(path: str, stats: bool, pattern: str, as_json: bool) -> None:
    """List the tensors of PATH with dtype, shape and size, in the order of the file.

    Only headers are read, unless --stats is given.
    """
    with closing(source(path)) as source_file:
        tensor_names = _names_matching(source_file.tensors, pattern)
        statistics_by_name: dict[str, Statistics | None] = {}
        if stats:
            with _progress_in_bytes(source_file, tensor_names) as advance:
                for name in tensor_names:
                    statistics_by_name[name] = statistics(source_file, name, advance)
        total_bytes = _total_bytes(source_file, tensor_names)
    if as_json:
        tensor_records = [
            _tensor_as_json(source_file, name)
            | ({"statistics": _numbers_for_json(statistics_by_name[name])} if stats else {})
            for name in tensor_names
        ]
        file_report = {"path": source_file.path, "metadata": source_file.metadata, "tensors": tensor_records}
        click.echo(json.dumps(file_report | {"total": {"tensors": len(tensor_names), "nbytes": total_bytes}}, indent=1))
        return
    table_rows = [
        [_safe_text(name), source_file.tensors[name].dtype, *_shape_and_size(source_file, name)]
        for name in tensor_names
    ]
    header = ["name", "dtype", "shape", "size"]
    if stats:
        header += ["min", "max", "mean", "std", "not finite"]
        table_rows = [
            [*line, *_statistics_cells(statistics_by_name[name])]
            for line, name in zip(table_rows, tensor_names, strict=True)
        ]
    click.echo(aligned_table(header, table_rows))
    for name, text in source_file.metadata.items():
        click.echo(f"metadata {_safe_text(name)}: {_safe_text(text if len(text) < 80 else f'{text[:77]}...')}")
    click.echo(f"{len(tensor_names):,} tensors, {_size_text(total_bytes)}")


@weights.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--values", is_flag=True, help="Also read the tensors, and refuse elements that are not finite.")
@_JSON
def check(paths: tuple[str, ...], values: bool, as_json: bool) -> None:
    """Check PATHS completely, and name every fault; only headers are read, unless --values is given.

    The exit status is 1 if anything is wrong.
    """
    report_records = []
    for path in paths:
        check_report = io.check(path)
        faults = [_fault_entry(error) for error in check_report.errors]
        if values and check_report.ok:
            faults = list(_nonfinite_faults(check_report.path))
        size_counts = {"tensors": len(check_report.tensors), "nbytes": check_report.nbytes}
        report_record = {
            "path": check_report.path,
            "ok": not faults,
            "faults": faults,
            "warnings": check_report.warnings,
            **size_counts,
        }
        report_records.append(report_record)
        if as_json:
            continue
        for fault in faults:
            click.echo(f"FAIL {fault['message']}")
        for warning in check_report.warnings:
            click.echo(f"warning: {check_report.path}: {_safe_text(warning)}")
        if not faults:
            click.echo(
                f"{check_report.path}: {size_counts['tensors']:,} tensors, {_size_text(size_counts['nbytes'])}, correct"
            )
    if as_json:
        click.echo(json.dumps(report_records, indent=1))
    if not all(record["ok"] for record in report_records):
        sys.exit(1)


@weights.command()
@click.argument("first")
@click.argument("second")
@click.option("--all", "everything", is_flag=True, help="Also list the tensors that are equal.")
@_MATCH
@_JSON
def diff(first: str, second: str, everything: bool, pattern: str, as_json: bool) -> None:
    """Compare the tensors of the files FIRST and SECOND by name: dtypes, shapes, and each element to the bit.

    The largest relative difference is that to the larger absolute value of two elements. The exit status is 0 if all
    tensors are equal to the bit, and 1 if not.
    """
    with closing(source(first)) as first_file, closing(source(second)) as second_file:
        tensor_names = _names_matching(
            [*first_file.tensors, *(name for name in second_file.tensors if name not in first_file.tensors)], pattern
        )
        with _progress_in_bytes(first_file, [name for name in tensor_names if name in first_file.tensors]) as advance:
            tensor_differences = list(differences(first_file, second_file, tensor_names, advance))
    unequal_rows = [difference for difference in tensor_differences if difference.kind != "equal"]
    shown_rows = tensor_differences if everything else unequal_rows
    if as_json:
        summary_record = {
            "first": first_file.path,
            "second": second_file.path,
            "equal": not unequal_rows,
            "compared": len(tensor_differences),
        }
        click.echo(
            json.dumps(summary_record | {"tensors": [_difference_for_json(row) for row in shown_rows]}, indent=1)
        )
    else:
        if shown_rows:
            header = ("name", "", "elements that differ", "largest difference", "relative")
            click.echo(aligned_table(header, [_comparison_row(row) for row in shown_rows]))
        count_text = f"{len(tensor_differences):,} tensors"
        click.echo(
            f"{len(unequal_rows):,} of {count_text} differ" if unequal_rows else f"{count_text} are equal to the bit"
        )
    if unequal_rows:
        sys.exit(1)


@weights.command()
@click.argument("src")
@click.argument("dst")
@click.option("--dtype", help="Cast the floating tensors to this dtype.")
@click.option("--max-shard-size", help='Write several files of at most this size, such as "5GB", and their index.')
@click.option(
    "--rename",
    "rules",
    nargs=2,
    multiple=True,
    metavar="PATTERN NEW",
    help="Replace what a regular expression finds in the names; NEW may refer to groups (repeatable).",
)
@_MATCH
@click.option("--metadata", multiple=True, metavar="NAME=TEXT", help="Store this text beside the tensors (repeatable).")
@click.option("--layout", type=click.Choice(LAYOUTS), help="Give the tensors the names and axes of this library.")
@click.option(
    "--model",
    metavar="FILE.py:NAME",
    help="The model whose layers say what the tensors are, or its class, for --layout; the file is run.",
)
@click.option("--source", "before", type=click.Choice(LAYOUTS), help="The layout of SRC, if it has no tag.")
@click.option("--force", is_flag=True, help="Replace DST if it exists.")
@_JSON
def convert(
    src: str,
    dst: str,
    dtype: str | None,
    max_shard_size: str | None,
    rules: tuple[tuple[str, str], ...],
    pattern: str,
    metadata: tuple[str, ...],
    layout: str | None,
    model: str | None,
    before: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Convert SRC to DST, a .safetensors or an .npz file.

    DST is written as a whole or not at all, also after Ctrl-C. Tied tensors stay tied in safetensors files.

    With --layout the tensors get the names and axes of PyTorch, MLX or Keras. Only the layers of a model say what a
    tensor is, so --model names it: `--layout mlx --model model.py:Net`.
    """
    if layout is None and (model or before):
        raise click.UsageError("--model and --source are for --layout")
    if layout is not None and pattern != "*":
        raise click.UsageError("--layout converts all tensors of a model, so --match does not go with it")
    if not force and (os.path.lexists(dst) or os.path.lexists(dst + INDEX)):
        raise click.UsageError(f"{dst} exists; give --force to replace it")
    with closing(source(src)) as source_file:
        new_name_by_name = new_names(
            _names_matching(source_file.tensors, pattern),
            [(_compile_pattern(rule), replacement) for rule, replacement in rules],
        )
        added_metadata = dict(map(_key_and_value, metadata))
        metadata_texts = source_file.metadata | added_metadata
        rewrite_options: Any = {"dtype": dtype, "max_shard_size": max_shard_size}
        if layout is None:
            with _progress_in_bytes(source_file, list(new_name_by_name)) as advance:
                summary = rewrite(
                    source_file, dst, new_name_by_name, metadata=metadata_texts, advance=advance, **rewrite_options
                )
        else:
            target_model = None if model is None else model_of(model)
            rewrite_options |= {"layout": layout, "model": target_model, "source": before}
            written_files = io.convert(
                src, dst, rename=new_name_by_name.__getitem__, metadata=added_metadata, **rewrite_options
            )
            check_report = io.check(dst)
            summary = Rewritten(written_files, len(check_report.tensors), check_report.nbytes, {})
    for name, count in summary.overflowed.items():
        click.echo(
            f"warning: {count:,} elements of {_safe_text(name)} are too large for {dtype} and now infinite", err=True
        )
    if metadata_texts and dst.endswith(".npz"):
        click.echo(f"warning: .npz files have no place for metadata, {len(metadata_texts)} texts are lost", err=True)
    if as_json:
        result_counts = {"files": summary.files, "tensors": summary.tensors, "nbytes": summary.nbytes}
        click.echo(json.dumps(result_counts | {"overflowed": summary.overflowed}, indent=1))
        return
    for file in summary.files:
        click.echo(file)
    click.echo(f"{summary.tensors:,} tensors, {_size_text(summary.nbytes)}")


def _names_matching(names: Iterable[str], pattern: str) -> list[str]:
    """Returns the names of tensors that match a pattern.

    Raises:
        click.UsageError: if none does; the message suggests the nearest name.
    """
    names = list(names)
    matching_names = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    if not matching_names and pattern != "*":
        raise click.UsageError(f"no tensor matches {pattern!r}{suggest(pattern.strip('*?'), names)}")
    return matching_names


def _compile_pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise click.UsageError(f"{text!r} is no regular expression: {error}") from error


def _key_and_value(text: str) -> tuple[str, str]:
    name, equals_sign, value = text.partition("=")
    if not equals_sign:
        raise click.UsageError(f"--metadata takes NAME=TEXT, not {text!r}")
    return name, value


@contextmanager
def _progress_in_bytes(source_file: Source, names: Sequence[str]) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar in megabytes, and gives the block the function that advances it by bytes."""
    total_bytes = sum(source_file.tensors[name].nbytes for name in names)
    read_byte_count = 0
    with progress(total_bytes // 10**6 + 1, "MB read") as advance_bar:

        def advance(nbytes: int) -> None:
            nonlocal read_byte_count
            megabytes_before, read_byte_count = read_byte_count, read_byte_count + nbytes
            advance_bar(read_byte_count // 10**6 - megabytes_before // 10**6)

        yield advance


def _total_bytes(source_file: Source, names: Sequence[str]) -> int:
    """Returns the bytes of tensors; those of tied ones are counted once."""
    return sum({source_file.memory_key(name): source_file.tensors[name].nbytes for name in names}.values())


def _safe_text(text: str) -> str:
    """Returns a text from a file without control characters, which could change the terminal."""
    return text if text.isprintable() else repr(text)[1:-1]


def _size_text(nbytes: int) -> str:
    """Returns a number of bytes as a text with a unit, such as "1.2 MB"."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if nbytes >= 1000**power:
            return f"{nbytes / 1000**power:.1f} {unit}"
    return f"{nbytes} B"


def _shape_and_size(source_file: Source, name: str) -> tuple[str, str]:
    tensor_info = source_file.tensors[name]
    return f"({', '.join(map(str, tensor_info.shape))}{',' * (len(tensor_info.shape) == 1)})", _size_text(
        tensor_info.nbytes
    )


def _tensor_as_json(source_file: Source, name: str) -> dict[str, Any]:
    tensor_info = source_file.tensors[name]
    return {"name": name, "dtype": tensor_info.dtype, "shape": tensor_info.shape, "nbytes": tensor_info.nbytes}


def _numbers_for_json(figures: Statistics | None) -> dict[str, Any] | None:
    return None if figures is None else {name: json_number(value) for name, value in figures._asdict().items()}


def _statistics_cells(figures: Statistics | None) -> list[str]:
    if figures is None:
        return ["-"] * 5
    return [
        *map(_number_text, (figures.minimum, figures.maximum, figures.mean, figures.std)),
        nonfinite_text(figures) or "-",
    ]


def _number_text(value: complex | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, (int, bool)) else f"{value:.5g}"


def _fault_entry(error: WeightFileError) -> dict[str, Any]:
    fault_record = {
        "kind": error.kind,
        "file": error.path,
        "tensor": error.tensor,
        "reason": error.reason,
        "hint": error.hint,
    }
    return fault_record | {"message": str(error)}


def _nonfinite_faults(path: str) -> Iterator[dict[str, Any]]:
    """Yields a fault for each tensor with elements that are not finite."""
    with closing(source(path)) as file, _progress_in_bytes(file, list(file.tensors)) as advance:
        for name in file.tensors:
            tensor_statistics = statistics(file, name, advance)
            if tensor_statistics is not None and (tensor_statistics.nans or tensor_statistics.infinities):
                yield _fault_entry(
                    WeightFileError("values", path, f"has elements that are {nonfinite_text(tensor_statistics)}", name)
                )


def _difference_for_json(difference: Difference) -> dict[str, Any]:
    """Returns the difference of a tensor in two files as JSON data."""
    info_by_side = {
        side: None if info is None else {"dtype": info.dtype, "shape": info.shape}
        for side, info in (("first", difference.first), ("second", difference.second))
    }
    largest_by_kind = {"absolute": json_number(difference.absolute), "relative": json_number(difference.relative)}
    return {
        "name": difference.name,
        "kind": difference.kind,
        **info_by_side,
        "elements": difference.elements,
        **largest_by_kind,
        "nans": difference.nans,
    }


def _comparison_row(tensor_difference: Difference) -> tuple[str, ...]:
    """Returns the difference of a tensor in two files as the cells of a table's row."""
    if tensor_difference.first is None or tensor_difference.second is None:
        return (
            _safe_text(tensor_difference.name),
            f"only in the {'first' if tensor_difference.second is None else 'second'}",
            "",
            "",
            "",
        )
    difference_text = "equal"
    if tensor_difference.kind == "shape":
        difference_text = f"shape {tensor_difference.first.shape} and {tensor_difference.second.shape}"
    elif tensor_difference.kind == "dtype":
        difference_text = f"dtype {tensor_difference.first.dtype} and {tensor_difference.second.dtype}"
    elif tensor_difference.kind == "values":
        difference_text = "values"
    nan_text = f", {tensor_difference.nans:,} NaN in one only" if tensor_difference.nans else ""
    count_text = "" if tensor_difference.elements is None else f"{tensor_difference.elements:,}{nan_text}"
    return (
        _safe_text(tensor_difference.name),
        difference_text,
        count_text,
        _number_text(tensor_difference.absolute),
        _number_text(tensor_difference.relative),
    )
