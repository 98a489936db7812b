"""Before the first release the changelog has one entry, and no fragments."""

from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_fragments_begin_with_the_first_release() -> None:
    if "## 0.1.0 (unreleased)" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        fragments = [path.name for path in (ROOT / "changes").glob("+*")]
        assert not fragments, "say it in the entry of 0.1.0 in CHANGELOG.md, under its topic"
