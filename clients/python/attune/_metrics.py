"""Checks and converts the arguments of a report."""

from __future__ import annotations

import math
import operator
import reprlib
import typing
import unicodedata

STEP_MAX = 2**53 - 1
_METRICS_MAX = 1000
_METRIC_NAME_BYTES_MAX = 256


def to_floats(metrics: typing.Any) -> dict[str, float]:
    """Returns the metrics as floats. Raises ValueError if a name or a value is not allowed."""
    if not hasattr(metrics, "items"):
        raise ValueError(f"metrics is {_short_repr(metrics)} and must map names to numbers, as in {{\"loss\": 0.1}}")
    if len(metrics) > _METRICS_MAX:
        raise ValueError(f"metrics has {len(metrics)} values, and a report has at most {_METRICS_MAX}; report fewer")
    values = {}
    for name, value in metrics.items():
        if not _is_name(name):
            raise ValueError(f"a metric is named {_short_repr(name)}; a name has 1 to {_METRIC_NAME_BYTES_MAX} "
                             "bytes of UTF-8 and no control characters")
        try:
            values[name] = _to_float(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"metric {name!r} is {_short_repr(value)} and must be one number: "
                             f"{_conversion_hint(value)}") from error
        except OverflowError as error:
            raise ValueError(f"metric {name!r} is an integer that is too large for a float; scale it") from error
    return values


def _is_name(name: typing.Any) -> bool:
    if not isinstance(name, str) or any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
        return False
    return 0 < len(name.encode()) <= _METRIC_NAME_BYTES_MAX


def _to_float(value: typing.Any) -> float:
    value = _to_scalar(value)
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError("not a number")  # float() also reads text and bytes
    return float(value)


def _to_scalar(value: typing.Any) -> typing.Any:
    """Returns the Python scalar of a tensor or an array of one element, and other values as they are."""
    return value.item() if hasattr(value, "item") else value


def _conversion_hint(value: typing.Any) -> str:
    if isinstance(value, (str, bytes)):
        return "it is text; convert it with float(…), or omit it"
    return f"its type is {type(value).__name__}; convert it to a float, for example to its mean, or omit it"


def to_step(step: typing.Any, last: int = 0) -> int:
    """Returns the step of a report as an int. Raises ValueError if it is not an integer above `last`.

    Every integer type is accepted, such as NumPy's; a bool is not.
    """
    try:
        value = _to_scalar(step)
        integer = None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        integer = None
    if integer is None or not last < integer <= STEP_MAX:
        raise ValueError(f"step is {_short_repr(step)} and must be a whole number above {last}"
                         + (", the last step" if last else ""))
    return integer


def to_logged_step(step: typing.Any) -> float:
    """Returns the step of logged values as a float. Raises ValueError if it is not finite or below 0."""
    try:
        number = _to_float(step)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"step is {_short_repr(step)} and must be a finite number of at least 0")
    return number


def to_json(metrics: dict[str, float]) -> dict[str, float | str]:
    """Returns the metrics for JSON, which has neither NaN nor infinities: these become text."""
    return {name: value if math.isfinite(value) else str(value) for name, value in metrics.items()}


def to_text(metrics: dict[str, float]) -> str:
    """Returns the metrics as text for people."""
    return "  ".join(f"{name}={value:.6g}" for name, value in metrics.items())


def _short_repr(value: typing.Any) -> str:
    """Returns the repr of a value; if it is long, without its middle."""
    return reprlib.repr(value)
