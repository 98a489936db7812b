"""The report of a port: how much was ported, and what remains by kind and place."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from emberlint.port.rewrite import Ported


def text(files: Mapping[str, Ported]) -> Iterator[str]:
    """Yields the lines of the report for people."""
    for path, one in files.items():
        for use in one.remaining:
            advice = f" ({use.advice})" if use.advice else ""
            yield f"{path}:{use.line}: {use.native}: {use.reason}{advice}"
    ported = Counter(use.kind for one in files.values() for use in one.ported)
    remaining = Counter(use.kind for one in files.values() for use in one.remaining)
    for kind in sorted({*ported, *remaining}):
        yield f"{kind}: {ported[kind]} ported, {remaining[kind]} remain"
    total = ported.total() + remaining.total()
    share = f" ({ported.total() / total:.0%})" if total else ""
    changed = sum(one.before != one.after for one in files.values())
    yield f"{ported.total()} of {total} native uses ported{share}; {changed} of {len(files)} files change"


def as_json(files: Mapping[str, Ported]) -> str:
    """Returns the report as JSON."""
    document = {
        "version": 1,
        "files": [
            {
                "path": path,
                "changed": one.before != one.after,
                "ported": [{"native": use.native, "kind": use.kind, "line": use.line} for use in one.ported],
                "remaining": [use._asdict() for use in one.remaining],
            }
            for path, one in files.items()
        ],
    }
    return json.dumps(document, indent=2)
