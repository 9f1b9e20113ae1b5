import type { TrialState } from '../api/contract';
import type { ColumnData, Value } from './columns';
import { fromWire } from './numbers';
import { trialStates } from './states';
import type { TrialRow } from './sweep_model';

export type Predicate = (trial: TrialRow) => boolean;

const comparison = /^([\w.:/-]+?)(<=|>=|!=|=|<|>)(.+)$/;

/**
 * Parses a filter. A trial must match all its words:
 *
 *   stopped            a state; state:stopped,failed for several
 *   17 or #17          a trial's number
 *   lr<0.01            a column by its label or key, another metric or parameter, or attempts
 *   optimizer=sgd      equality, also of words
 *   anything else      part of a text in a column
 */
export function parseFilter(text: string, columns: readonly ColumnData[]): Predicate {
  const filterable = columns.filter((column) => column.filterable);
  const words = text.trim().split(/\s+/).filter(Boolean);
  const predicates = words.map((word) => parseWord(word, filterable));
  return (trial) => predicates.every((matches) => matches(trial));
}

/** Keeps the states that were chosen by the chips above the table; none chosen means all. */
export function stateFilter(states: readonly string[]): Predicate {
  if (states.length === 0) return () => true;
  const chosen = new Set(states);
  return (trial) => chosen.has(trial.state);
}

function parseWord(word: string, columns: readonly ColumnData[]): Predicate {
  const lower = word.toLowerCase();
  if (isState(lower)) return (trial) => trial.state === lower;
  if (lower.startsWith('state:')) return stateFilter(lower.slice('state:'.length).split(','));
  if (/^#?\d+$/.test(word)) {
    const number = Number(word.replace('#', ''));
    return (trial) => trial.number === number;
  }
  const [, name, operator, operand] = comparison.exec(word) ?? [];
  if (name && operator && operand) return compare(valueReader(name, columns), operator, operand);
  return (trial) =>
    columns.some((column) => {
      const value = column.value(trial);
      return typeof value === 'string' && value.toLowerCase().includes(lower);
    });
}

function isState(word: string): word is TrialState {
  return (trialStates as readonly string[]).includes(word);
}

/** Reads the column of a name, or a value of a trial that has no column. */
function valueReader(name: string, columns: readonly ColumnData[]): (trial: TrialRow) => Value {
  const column = columns.find(({ key, label }) => name === label || name === key);
  if (column) return (trial) => column.value(trial);
  if (name === 'attempts') return (trial) => trial.attempt_count;
  return ({ config, metrics }) => {
    const metric = metrics[name];
    return config[name] ?? (metric === undefined ? undefined : fromWire(metric));
  };
}

function compare(read: (trial: TrialRow) => Value, operator: string, operand: string): Predicate {
  const number = Number(operand);
  return (trial) => {
    const value = read(trial);
    if (value === undefined) return false;
    if (operator === '=' || operator === '!=') {
      const equal =
        typeof value === 'number'
          ? value === number
          : String(value).toLowerCase() === operand.toLowerCase();
      return equal === (operator === '=');
    }
    if (typeof value !== 'number' || Number.isNaN(number)) return false;
    switch (operator) {
      case '<':
        return value < number;
      case '<=':
        return value <= number;
      case '>':
        return value > number;
      default:
        return value >= number;
    }
  };
}
