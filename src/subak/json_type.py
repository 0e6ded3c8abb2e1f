"""Names the type of a value of JSON, TOML, YAML or a setting, whose parts are known only after a look at it."""
from typing import Any, TypeAlias

Json: TypeAlias = Any  # None, bool, int, float, str, list[Json] or dict[str, Json]; the one place that says Any for it
