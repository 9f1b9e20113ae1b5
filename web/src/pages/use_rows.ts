import { useEffect, useMemo, useReducer, useRef } from 'preact/hooks';

import { RowWindow } from '../live/row_window';
import type { LiveSweep, RowQuery } from '../live/sweep_live';
import type { ColumnData, Sort } from '../model/columns';
import type { Predicate } from '../model/filter';
import { RowView } from '../model/row_view';
import type { SweepModel, TrialRow } from '../model/sweep_model';
import type { RowSource } from './trial_table';
import { useLive } from './use_live';

/** The rows that match a filter, in the order of a column. */
export function useSortedRows(
  model: SweepModel,
  matches: Predicate,
  sort: Sort,
  columns: readonly ColumnData[],
): readonly TrialRow[] {
  const view = useRef<RowView>();
  view.current ??= new RowView();
  return view.current.update(model, matches, sort, columns);
}

/** Rows that the page has. They are ordered by `rows` and show the newest content. */
export function useRowSource(model: SweepModel, rows: readonly TrialRow[]): RowSource {
  return useMemo(
    () => ({
      length: rows.length,
      at: (index) => {
        const row = rows[index];
        return row && (model.trials.get(row.number) ?? row);
      },
      indexOf: (number) =>
        number === undefined ? -1 : rows.findIndex((each) => each.number === number),
    }),
    [model, rows],
  );
}

interface WindowRows extends RowSource {
  /** The rows that are read. */
  read: readonly TrialRow[];
}

const noRows: WindowRows = { length: 0, at: () => undefined, indexOf: () => -1, read: [] };

/**
 * The rows of a sweep whose trials the server sorts and filters; none if the page has all.
 * `least`: how many rows to read, although they are not in view.
 */
export function useRowWindow(
  live: LiveSweep,
  model: SweepModel,
  query: RowQuery,
  least: number,
): WindowRows {
  const { order_by, filter } = query;
  const { firstPage, isWindowed } = live;
  const window = useLive((): RowWindow | NoWindow => {
    if (!isWindowed) return noWindow;
    const isFirst = firstPage?.query.order_by === order_by && firstPage?.query.filter === filter;
    return new RowWindow(model, query, isFirst ? firstPage?.page : undefined);
  }, [model, isWindowed, order_by, filter]);
  const rows = window instanceof RowWindow ? window : undefined;
  const version = rows?.version.value ?? 0;
  useEffect(() => rows?.refresh(), [rows, model.revision]);
  useEffect(() => rows?.readFirst(least), [rows, least]);
  return useMemo(() => {
    if (!rows) return noRows;
    return {
      length: rows.length,
      at: (index) => rows.at(index),
      indexOf: (number) => rows.indexOf(number),
      want: (first, last) => rows.want(first, last),
      read: rows.rows,
    };
  }, [rows, version]);
}

interface NoWindow {
  close(): void;
}
const noWindow: NoWindow = { close: () => undefined };

/** The value, which changes at most once in `ms` unless the key changes. */
export function usePaced<Value>(value: Value, key: unknown, ms: number): Value {
  const held = useRef({ value, key, at: -Infinity });
  const [, rerender] = useReducer<number, void>((count) => count + 1, 0);
  const wait = held.current.key === key ? held.current.at + ms - performance.now() : 0;
  if (held.current.value !== value && wait <= 0)
    held.current = { value, key, at: performance.now() };
  const isStale = held.current.value !== value;
  useEffect(() => {
    if (!isStale) return undefined;
    const timer = setTimeout(rerender, wait);
    return () => clearTimeout(timer);
  }, [isStale, value]);
  return held.current.value;
}
