import type { Metric, Parameter } from '../api/types';
import { compareByMode } from './numbers';
import { trialStates } from './states';
import type { TrialRow } from './sweep_model';

export interface Sort {
  /** `number`, `state`, `best`, `step`, `seconds`, `reason`, or `config.NAME`. */
  key: string;
  descending: boolean;
}

export const defaultSort: Sort = { key: 'best', descending: false };

/** As the URL holds it: `best`, `-best`, `config.lr`. */
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

/** A second press on a column's header turns it round. */
export function pressColumn(sort: Sort, key: string): Sort {
  return { key, descending: sort.key === key ? !sort.descending : false };
}

type Comparable = number | string | undefined;

/**
 * Rows in order. `best` ascends from the best, whichever way the metric goes; rows without a value
 * come last both ways; equal rows keep the order of their numbers.
 */
export function sortTrials(trials: Iterable<TrialRow>, sort: Sort, metric: Metric): TrialRow[] {
  const rows = [...trials];
  const sign = sort.descending ? -1 : 1;
  const read = reader(sort.key);
  const compareValues = sort.key === 'best' ? bestFirst(metric.mode) : compareNatural;
  const values = new Map(rows.map((row) => [row.number, read(row)]));
  return rows.sort((a, b) => {
    const left = values.get(a.number);
    const right = values.get(b.number);
    if (left === undefined || right === undefined) {
      if (left !== right) return left === undefined ? 1 : -1;
      return a.number - b.number;
    }
    return sign * compareValues(left, right) || a.number - b.number;
  });
}

function reader(key: string): (row: TrialRow) => Comparable {
  switch (key) {
    case 'number':
      return (row) => row.number;
    case 'state':
      return (row) => trialStates.indexOf(row.state);
    case 'best':
      return (row) => row.best;
    case 'step':
      return (row) => row.step;
    case 'seconds':
      return (row) => row.seconds;
    case 'reason':
      return (row) => row.reason || undefined;
  }
  const name = key.replace(/^config\./, '');
  return (row) => {
    const value = row.config[name];
    return typeof value === 'boolean' ? Number(value) : value;
  };
}

function bestFirst(mode: Metric['mode']): (a: number | string, b: number | string) => number {
  return (a, b) => compareByMode(mode, Number(a), Number(b));
}

function compareNatural(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

/** The parameters worth a column: in the order of the sweep file, constants left out. */
export function searchedParameters(
  parameters: readonly Parameter[] | undefined,
  trials: Iterable<TrialRow>,
): string[] {
  if (parameters) {
    return parameters.filter((each) => each.type !== 'constant').map((each) => each.name);
  }
  const names = new Set<string>();
  for (const trial of trials) for (const name of Object.keys(trial.config)) names.add(name);
  return [...names];
}
