import type { TrialState } from '../api/types';
import { fromWire } from './numbers';
import { trialStates } from './states';
import type { TrialRow } from './sweep_model';

export type Predicate = (trial: TrialRow) => boolean;

const comparison = /^([\w.:/-]+?)(<=|>=|!=|=|<|>)(.+)$/;

/**
 * Words that must all hold:
 *
 *   stopped            a state; state:stopped,failed for several
 *   17 or #17          a trial's number
 *   lr<0.01            a parameter, a metric, or best, step, seconds, attempts, trial
 *   optimizer=sgd      equality also of words
 *   anything else      part of the reason or of a configuration's words
 */
export function parseFilter(text: string): Predicate {
  const words = text.trim().split(/\s+/).filter(Boolean).map(parseWord);
  return (trial) => words.every((word) => word(trial));
}

/** States chosen by the chips above the table; none chosen means all. */
export function stateFilter(states: readonly string[]): Predicate {
  if (states.length === 0) return () => true;
  const chosen = new Set(states);
  return (trial) => chosen.has(trial.state);
}

function parseWord(word: string): Predicate {
  const lower = word.toLowerCase();
  if (isState(lower)) return (trial) => trial.state === lower;
  if (lower.startsWith('state:')) return stateFilter(lower.slice('state:'.length).split(','));
  if (/^#?\d+$/.test(word)) {
    const number = Number(word.replace('#', ''));
    return (trial) => trial.number === number;
  }
  const parts = comparison.exec(word);
  if (parts) return compare(parts[1] as string, parts[2] as string, parts[3] as string);
  return (trial) => haystack(trial).includes(lower);
}

function isState(word: string): word is TrialState {
  return (trialStates as readonly string[]).includes(word);
}

function haystack(trial: TrialRow): string {
  const words = Object.values(trial.config).filter((value) => typeof value === 'string');
  return `${trial.reason} ${words.join(' ')}`.toLowerCase();
}

function field(trial: TrialRow, name: string): number | string | undefined {
  switch (name) {
    case 'trial':
    case 'number':
      return trial.number;
    case 'best':
      return trial.best;
    case 'step':
      return trial.step;
    case 'seconds':
      return trial.seconds;
    case 'attempts':
      return trial.attempts;
    case 'state':
      return trial.state;
  }
  const configured = trial.config[name];
  if (configured !== undefined)
    return typeof configured === 'boolean' ? String(configured) : configured;
  const metric = trial.metrics[name];
  return metric === undefined ? undefined : fromWire(metric);
}

function compare(name: string, operator: string, operand: string): Predicate {
  const number = Number(operand);
  return (trial) => {
    const value = field(trial, name);
    if (value === undefined) return false;
    if (operator === '=' || operator === '!=') {
      const equal =
        typeof value === 'number'
          ? value === number
          : value.toLowerCase() === operand.toLowerCase();
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
