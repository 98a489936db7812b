"""The `--<group>-only` switches, which are short forms of `--select`."""

from collections.abc import Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "numpy": ("EMB101", "EMB102", "EMB104", "EMB106", "EMB107", "EMB108", "EMB109"),
    "precision": ("EMB204",),
    "conversion": ("EMB103",),
    "operators": ("EMB201", "EMB202", "EMB203", "EMB205", "EMB206"),
    "backend": ("EMB105",),
    "frontend-backend": ("EMB301", "EMB302", "EMB303", "EMB304", "EMB305"),
    "syntax": ("EMB000",),
    "imports": ("EMB101", "EMB302", "EMB303", "EMB304"),
}
