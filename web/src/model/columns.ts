import type { Metric, Parameter } from '../api/contract';
import { compareByMode } from './numbers';
import type { TrialRow } from './sweep_model';

/** A trial's value in a column; undefined: it has none. */
export type Value = number | string | boolean | undefined;

/** The part of a column of the trial table that sorting and filtering use. */
export interface ColumnData {
  /** The column's name in the URL; `config.NAME` for a parameter. */
  key: string;
  /** The column's name in its header and in a filter. */
  label: string;
  value(row: TrialRow): Value;
  sortable: boolean;
  filterable: boolean;
  /** The order of two values; by default numbers by size and words by the alphabet. */
  compare?(a: Value, b: Value): number;
}

export interface Sort {
  /** The key of a column. */
  key: string;
  descending: boolean;
}

export const defaultSort: Sort = { key: 'best', descending: false };

/** Reads the sort from the URL: `best`, `-best`, `config.lr`. */
export function parseSort(text: string | undefined): Sort {
  if (!text) return defaultSort;
  return text.startsWith('-')
    ? { key: text.slice(1), descending: true }
    : { key: text, descending: false };
}

export function formatSort(sort: Sort): string | undefined {
  const text = (sort.descending ? '-' : '') + sort.key;
  return text === defaultSort.key ? undefined : text;
}

/** A second press on a column's header reverses the order. */
export function pressColumn(sort: Sort, key: string): Sort {
  return { key, descending: sort.key === key ? !sort.descending : false };
}

/**
 * Sorts by a column. Rows without a value come last in both directions. Equal rows are ordered by
 * number, as are all rows if no sortable column has the key.
 */
export function sortTrials(
  trials: Iterable<TrialRow>,
  sort: Sort,
  columns: readonly ColumnData[],
): TrialRow[] {
  const column = columns.find(({ key, sortable }) => sortable && key === sort.key);
  const compare = column?.compare ?? compareNatural;
  const sign = sort.descending ? -1 : 1;
  const rows = [...trials];
  const values = new Map(rows.map((row) => [row.number, column?.value(row)]));
  return rows.sort((a, b) => {
    const left = values.get(a.number);
    const right = values.get(b.number);
    if (left === undefined || right === undefined) {
      if (left !== right) return left === undefined ? 1 : -1;
      return a.number - b.number;
    }
    return sign * compare(left, right) || a.number - b.number;
  });
}

/** The best value comes first, NaN last. */
export function bestFirst(mode: Metric['mode']): (a: Value, b: Value) => number {
  return (a, b) => compareByMode(mode, Number(a), Number(b));
}

function compareNatural(a: Value, b: Value): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

/** The parameters that get a column: all except constants, in the order of the sweep file. */
export function searchedParameters(parameters: readonly Parameter[]): string[] {
  return parameters.filter((each) => each.type !== 'constant').map((each) => each.name);
}
