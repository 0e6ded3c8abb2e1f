"""Numbers as text: durations, shares, counts and bytes as people say them, the same on pages and in terminals."""
NOTHING = "–"  # noqa: RUF001 - what a table shows where a value does not exist

SECOND_STEPS = ((1e-3, 1e-6, "µs"), (1, 1e-3, "ms"), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h"))
BYTE_STEPS = ((1e3, 1, "B"), (1e6, 1e3, "kB"), (1e9, 1e6, "MB"))


def number_text(value: float) -> str:
    """Return *value* with three significant digits and thousands separated: ``3``, ``3.20``, ``0.051``, ``12,583``."""
    size = abs(value)
    if size >= 99.95 or value == round(value):
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.9995 else f"{value:.3g}"


def seconds_text(seconds: float | None) -> str:
    """Return a duration in the unit that suits it: ``0 s``, ``51 ms``, ``3.2 s``, ``12.5 min``, ``4.1 h``, ``3 d``."""
    if seconds is None:
        return NOTHING
    if seconds == 0:
        return "0 s"
    for limit, size, unit in SECOND_STEPS:
        if abs(seconds) < limit:
            return f"{number_text(seconds / size)} {unit}"
    return f"{number_text(seconds / 86_400)} d"


def share_text(share: float | None) -> str:
    """Return a share of one in per cent: ``71.3 %``; what is nearly all is not called all."""
    if share is None:
        return NOTHING
    return "> 99.9 %" if 0.9995 <= share < 1 else f"{number_text(100 * share)} %"


def ratio_text(value: float | None) -> str:
    """Return a plain number with at most two decimals, so that ratios near one line up: ``1.00``, ``1.82``, ``738``."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if 0 < abs(value) < 9.995 else number_text(value)


def count_text(count: float | None) -> str:
    """Return a count with its thousands separated; a mean of counts is rounded."""
    return NOTHING if count is None else f"{count:,.0f}"


def bytes_text(size: float | None) -> str:
    """Return a size in memory: ``812 MB``, ``5.4 GB``."""
    if size is None:
        return NOTHING
    for limit, unit_size, unit in BYTE_STEPS:
        if size < limit:
            return f"{number_text(size / unit_size)} {unit}"
    return f"{number_text(size / 1e9)} GB"
