import type { Metric, Parameter } from '../api/contract';
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
  /** A number by which a value is ordered; by default numbers by size and words by the alphabet. */
  order?(value: Value): number;
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

/** The best value comes first, NaN last. */
export function bestFirst(mode: Metric['mode']): (value: Value) => number {
  return (value) => {
    if (Number.isNaN(value)) return Infinity;
    return mode === 'max' ? -Number(value) : Number(value);
  };
}

const collator = new Intl.Collator('en', { numeric: true });

export function compareNatural(a: Value, b: Value): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a), String(b));
}

/** The parameters that get a column: all except constants, in the order of the sweep file. */
export function searchedParameters(parameters: readonly Parameter[]): Parameter[] {
  return parameters.filter((each) => each.type !== 'constant');
}
