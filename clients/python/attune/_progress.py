"""Shows the progress of a sweep on stderr while a program waits for it."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
import typing

from attune._rest import UNFINISHED_STATES

if typing.TYPE_CHECKING:
    from attune._contract import SweepDetail

_PERIOD_S = 5.0  # at least, between two lines


class _Display(typing.Protocol):
    def show(self, sweep: SweepDetail) -> None: ...
    def close(self) -> None: ...


@contextlib.contextmanager
def progress_display(wanted: bool | None) -> typing.Iterator[typing.Callable[[SweepDetail], None]]:
    """Yields a function that shows the state of a sweep.

    In a terminal or a notebook it shows a bar of tqdm, if tqdm is installed. Elsewhere it prints a line when the state
    has changed, at most every 5 s. It shows nothing if `wanted` is False. If `wanted` is None, it shows the state only in
    a terminal or a notebook.
    """
    is_watched = _is_watched()
    if sys.stderr is None or not (is_watched if wanted is None else wanted):
        yield lambda sweep: None
        return
    display = (_bar() if is_watched else None) or _Lines()
    try:
        yield display.show
    finally:
        display.close()


def _is_watched() -> bool:
    """Returns whether stderr is a terminal, or this is a notebook."""
    try:
        if sys.stderr.isatty():
            return True
    except (AttributeError, ValueError):  # no stderr, or a closed one
        return False
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_shell is not None and hasattr(get_shell(), "kernel")


class _Lines:
    def __init__(self) -> None:
        self._last_line, self._pending_line, self._printed_at = "", "", -_PERIOD_S

    def show(self, sweep: SweepDetail) -> None:
        limit = f" of {sweep['max_trials']}" if sweep["max_trials"] else ""
        self._pending_line = (f"{sweep['id']} {sweep['name']}: {sweep['state']}, {_count_ended(sweep)}{limit} trials "
                              f"ended, {_summary(sweep)}")
        if time.monotonic() - self._printed_at >= _PERIOD_S:
            self._print()

    def _print(self) -> None:
        if self._pending_line != self._last_line:
            print(self._pending_line, file=sys.stderr, flush=True)
            self._last_line, self._printed_at = self._pending_line, time.monotonic()

    def close(self) -> None:
        self._print()


def _bar() -> _Display | None:
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return None
    return _Bar(tqdm)


class _Bar:
    def __init__(self, tqdm: typing.Any) -> None:
        self._tqdm = tqdm
        self._bar: typing.Any = None

    def show(self, sweep: SweepDetail) -> None:
        if self._bar is None:
            self._bar = self._tqdm(desc=f"{sweep['id']} {sweep['name']}", total=sweep["max_trials"] or None,
                                   unit=" trials")
        self._bar.total = sweep["max_trials"] or None
        self._bar.n = _count_ended(sweep)
        self._bar.set_postfix_str(_summary(sweep), refresh=False)
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _summary(sweep: SweepDetail) -> str:
    """Returns the part of the state that a bar does not show, such as `2 running, best loss 0.12 (trial 1)`."""
    best = sweep["best"]
    return f"{sweep['trials']['running']} running" + (
        f", best {sweep['metric']['name']} {best['value']:.6g} (trial {best['trial']})" if best else "")


def _count_ended(sweep: SweepDetail) -> int:
    counts = typing.cast(typing.Dict[str, int], sweep["trials"])
    return sum(count for state, count in counts.items() if state not in UNFINISHED_STATES)
