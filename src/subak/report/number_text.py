"""Formats durations, shares, counts and bytes, the same on pages and in terminals."""
from collections.abc import Callable, Sequence

NOTHING = "–"  # noqa: RUF001 - what a table shows where a value does not exist

MINUS = "\u2212"

SECOND_STEPS = ((1e-3, 1e-6, "µs"), (1, 1e-3, "ms"), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h"))
BYTE_STEPS = ((1e3, 1, "B"), (1e6, 1e3, "kB"), (1e9, 1e6, "MB"))
DAY_STEP, GIGABYTE_STEP = (float("inf"), 86_400, "d"), (float("inf"), 1e9, "GB")  # beyond the steps
ENERGY_STEPS = ((1, 1e-3, "Wh"), (1e4, 1, "kWh"), (1e7, 1e3, "MWh"), (float("inf"), 1e6, "GWh"))
POWER_STEPS = ((1e3, 1, "W"), (1e6, 1e3, "kW"), (float("inf"), 1e6, "MW"))
MASS_STEPS = ((1, 1e-3, "g"), (1e4, 1, "kg"), (float("inf"), 1e3, "t"))


def number_text(value: float) -> str:
    """Return *value* with three significant digits and thousands separated: ``3``, ``3.20``, ``0.051``, ``12,583``.

    Only what is below a millionth has an exponent: ``0.000024``, ``3e-7``.
    """
    size = abs(value)
    if size >= 99.95 or value == round(value):
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995:
        return f"{value:.2f}"
    short = f"{value:.3g}"
    if "e" not in short:
        return short
    return f"{float(short):.8f}".rstrip("0") if size >= 1e-6 else short.replace("e-0", "e-")


def seconds_text(seconds: float | None) -> str:
    """Return a duration in the unit that suits it: ``0 s``, ``51 ms``, ``3.2 s``, ``12.5 min``, ``4.1 h``, ``3 d``."""
    if seconds is None:
        return NOTHING
    if seconds == 0:
        return "0 s"
    _, size, unit = _step(abs(seconds), (*SECOND_STEPS, DAY_STEP))
    return f"{number_text(seconds / size)} {unit}"


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


def counted(count: float, noun: str, many: str = "") -> str:
    """Return a count and its noun, whose plural is *many*, or has an s: ``1 task``, ``2,095 tasks``."""
    return f"{count_text(count)} {noun if count == 1 else many or f'{noun}s'}"


def bytes_text(size: float | None) -> str:
    """Return a size in memory: ``812 MB``, ``5.4 GB``."""
    if size is None:
        return NOTHING
    _, unit_size, unit = _step(size, (*BYTE_STEPS, GIGABYTE_STEP))
    return f"{number_text(size / unit_size)} {unit}"


def energy_text(kwh: float | None) -> str:
    """Return an energy, given in kWh: ``3.20 Wh``, ``512 kWh``, ``10.4 MWh``."""
    return NOTHING if kwh is None else _in_steps(kwh, ENERGY_STEPS)


def power_text(watts: float | None) -> str:
    """Return a power, given in W: ``86 W``, ``1.41 MW``."""
    return NOTHING if watts is None else _in_steps(watts, POWER_STEPS)


def mass_text(kilograms: float | None) -> str:
    """Return a mass, given in kg: ``310 g``, ``5,210 kg``, ``12.0 t``."""
    return NOTHING if kilograms is None else _in_steps(kilograms, MASS_STEPS)


def plain_text(value: float | None) -> str:
    """Return a number of no unit that is told here: ``0.0031``, ``512``."""
    return NOTHING if value is None else number_text(value)


Steps = Sequence[tuple[float, float, str]]  # below which limit a unit suits, its size, its sign
UNITS: dict[Callable[[float | None], str], Steps] = {
    seconds_text: (*SECOND_STEPS, DAY_STEP), bytes_text: (*BYTE_STEPS, GIGABYTE_STEP), energy_text: ENERGY_STEPS,
    power_text: POWER_STEPS, mass_text: MASS_STEPS}


def in_one_unit(text: Callable[[float | None], str], values: Sequence[float | None]) -> tuple[str, list[str]]:
    """Return the unit in which all of *values* read well, and each in it, where *text* would say each in its own.

    It is the largest value's, or as much smaller a one as shows the smallest with less than two zeros in front, while
    the largest has at most six digits.
    """
    if text is share_text:
        return "%", [share_text(value).removesuffix(" %") for value in values]
    steps = UNITS.get(text)
    sizes = [abs(value) for value in values if value]
    if steps is None:
        return "", [text(value) for value in values]
    number = steps.index(_step(max(sizes), steps)) if sizes else _plain(steps)
    while number and sizes and min(sizes) / steps[number][1] < 0.1 and max(sizes) / steps[number - 1][1] < 1e6:
        number -= 1
    _, size, unit = steps[number]
    return unit, [NOTHING if value is None else number_text(value / size) for value in values]


def difference_text(share: float | None) -> str:
    """Return a relative difference in per cent with its sign: ``+3.2 %``, ``\u2212120 %``, ``0 %`` for nearly none."""
    if share is None:
        return NOTHING
    size = abs(100 * share)
    if size < 0.05:
        return "0 %"
    return f"{'+' if share > 0 else MINUS}{f'{size:.1f}' if size < 99.95 else f'{size:,.0f}'} %"


def _plain(steps: Steps) -> int:
    return next(number for number, (_, size, _) in enumerate(steps) if size == 1)


def _in_steps(value: float, steps: Steps) -> str:
    """Return a value in the unit that suits it; nothing at all in the steps' own."""
    _, size, unit = _step(abs(value), steps) if value else steps[_plain(steps)]
    return f"{number_text(value / size)} {unit}"


def _step(size: float, steps: Steps) -> tuple[float, float, str]:
    return next(step for step in steps if size < step[0])
