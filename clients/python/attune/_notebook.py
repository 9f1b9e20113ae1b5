"""Shows sweeps, trials and curves as HTML, for notebooks. Every value is escaped."""

from __future__ import annotations

import html
import math
import typing

_ROWS_MAX = 100
_CURVES_MAX = 100
_POINTS_MAX = 500  # of a curve
_WIDTH, _HEIGHT, _MARGIN = 640, 240, 8  # pixels

Row = typing.Mapping[str, typing.Any]


def sweep(answer: Row) -> str:
    """Returns a table with the name, the state and the best result of a sweep."""
    best = answer["best"]
    facts = {"sweep": f"{answer['id']} {answer['name']}", "state": answer["state"], "reason": answer["reason"],
             "trials": ", ".join(f"{count} {state}" for state, count in answer["trials"].items() if count) or "none"}
    if best:
        facts["best"] = f"{answer['metric']['name']} {_text(best['value'])} (trial {best['trial']}, step {best['step']})"
        facts["configuration"] = ", ".join(f"{name}={_text(value)}" for name, value in best["config"].items())
    return _table([], [[name, value] for name, value in facts.items() if value])


def trials(rows: typing.Sequence[Row]) -> str:
    """Returns a table with a row for each trial."""
    names = {kind: list(dict.fromkeys(name for row in rows for name in row[kind])) for kind in ("config", "metrics")}
    header = ["trial", "state", "step", "best", *names["config"], *names["metrics"]]
    cells = [[str(row["number"]), row["state"], str(row["step"]), _text(row["best"]),
              *(_text(row[kind].get(name)) for kind in names for name in names[kind])] for row in rows[:_ROWS_MAX]]
    return _table(header, cells) + _text_of_more(len(rows) - _ROWS_MAX, "trials")


def curves(rows: typing.Sequence[Row], metric: str) -> str:
    """Returns a drawing of a metric over steps, with a line for each trial."""
    lines = {row["number"]: _finite_points(row) for row in rows[:_CURVES_MAX]}
    points = [point for line in lines.values() for point in line]
    if not points:
        return f"<p>no values of {html.escape(metric)}</p>"
    steps, values = zip(*points)
    drawn = "".join(_polyline(number, line, min(steps), max(steps), min(values), max(values))
                    for number, line in lines.items() if line)
    caption = (f"{metric} from {_text(min(values))} to {_text(max(values))}, "
               f"steps {_text(min(steps))} to {_text(max(steps))}")
    return (f'<figure><svg width="{_WIDTH}" height="{_HEIGHT}" role="img">{drawn}</svg>'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>" + _text_of_more(len(rows) - _CURVES_MAX, "curves"))


def _finite_points(row: Row) -> list[tuple[float, float]]:
    """Returns at most _POINTS_MAX points of a curve, without NaN and infinities, which cannot be drawn."""
    points = [point for point in zip(row["steps"], row["values"]) if math.isfinite(point[1])]
    return points[::math.ceil(len(points) / _POINTS_MAX) or 1]


def _polyline(number: int, points: typing.Sequence[tuple[float, float]], first: float, last: float, low: float,
              high: float) -> str:
    def coordinate(value: float, begin: float, end: float, length: int) -> float:
        share = (value - begin) / (end - begin) if end > begin else 0.5
        return _MARGIN + share * (length - 2 * _MARGIN)

    corners = " ".join(f"{coordinate(step, first, last, _WIDTH):.1f},{_HEIGHT - coordinate(value, low, high, _HEIGHT):.1f}"
                       for step, value in points)
    style = f'fill="none" stroke="hsl({number * 137 % 360}, 60%, 45%)" stroke-width="1.5" stroke-linecap="round"'
    # A line of one point is drawn as a dot, because it begins and ends there.
    return f'<polyline points="{corners} {corners.rpartition(" ")[2]}" {style}><title>trial {number}</title></polyline>'


def _table(header: typing.Sequence[str], rows: typing.Sequence[typing.Sequence[str]]) -> str:
    def line(kind: str, cells: typing.Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    head = f"<thead>{line('th', header)}</thead>" if header else ""
    return f"<table>{head}<tbody>{''.join(line('td', row) for row in rows)}</tbody></table>"


def _text_of_more(count: int, what: str) -> str:
    return f"<p>and {count} more {what}</p>" if count > 0 else ""


def _text(value: typing.Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
