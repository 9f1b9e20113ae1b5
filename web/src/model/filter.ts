import type { TrialState } from '../api/contract';
import type { ColumnData, Value } from './columns';
import { fromWire } from './numbers';
import { trialStates } from './states';
import type { TrialRow } from './sweep_model';

export type Predicate = (trial: TrialRow) => boolean;

/** A filter cannot be parsed. */
export class FilterError extends Error {
  constructor(
    /** The place in the text, from 1. */
    readonly position: number,
    readonly expected: string,
  ) {
    super(`At position ${position}: expected ${expected}`);
  }
}

/**
 * Parses a filter. A trial must match all its words:
 *
 *   stopped            a state; state:stopped,failed for several
 *   tag:best           a tag; tag:best,lr for one of several
 *   17 or #17          a trial's number
 *   lr<0.01            a column by its label or key, another metric or parameter, or attempts
 *   lr:1e-4..1e-2      a closed range; an end may be missing
 *   created>2026-11-29 a time, compared as text
 *   optimizer=sgd      equality, also of words
 *   "two words"        part of a text in a column; so is any other word
 *   a OR b, (a b)      alternatives and groups
 *   -a, NOT a          trials that do not match
 *
 * The server has the same language (server/store/trials/trial_filter.cc). Throws FilterError.
 */
export function parseFilter(text: string, columns: readonly ColumnData[]): Predicate {
  try {
    return parse(text, columns);
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    // Positions count characters, not parts of them.
    const characters = [...text.slice(0, error.position - 1)].length;
    throw new FilterError(characters + 1, error.expected);
  }
}

const mostBytes = 4096;
const mostWords = 100;
const mostDepth = 32;

function parse(text: string, columns: readonly ColumnData[]): Predicate {
  if (new TextEncoder().encode(text).length > mostBytes)
    throw new FilterError(1, `at most ${mostBytes} bytes`);
  const tokens = tokensOf(text);
  if (tokens.length === 0) return () => true;
  const filterable = columns.filter((column) => column.filterable);
  const end = text.length + 1;
  let next = 0;
  let words = 0;
  let depth = 0;
  const isAt = (mark: string): boolean => tokens[next]?.mark === mark;

  const alternatives = (): Predicate => {
    const each = [conjunction()];
    while (isAt('OR')) {
      next += 1;
      each.push(conjunction());
    }
    return each.length === 1 ? (each[0] as Predicate) : (row) => each.some((is) => is(row));
  };
  const conjunction = (): Predicate => {
    const each = [operand()];
    while (next < tokens.length && !isAt('OR') && !isAt(')')) each.push(operand());
    return each.length === 1 ? (each[0] as Predicate) : (row) => each.every((is) => is(row));
  };
  const operand = (): Predicate => {
    const token = tokens[next];
    if (!token || token.mark === 'OR' || token.mark === ')')
      throw new FilterError(token?.position ?? end, "a word or '('");
    next += 1;
    if (token.mark === '') {
      words += 1;
      if (words > mostWords) throw new FilterError(token.position, `at most ${mostWords} words`);
      return parseWord(token, filterable, text);
    }
    depth += 1;
    if (depth > mostDepth)
      throw new FilterError(
        token.position,
        `at most ${mostDepth} groups and negations inside each other`,
      );
    let made: Predicate;
    if (token.mark === 'NOT') {
      const negated = operand();
      made = (row) => !negated(row);
    } else {
      made = alternatives();
      if (!isAt(')')) throw new FilterError(tokens[next]?.position ?? end, "')'");
      next += 1;
    }
    depth -= 1;
    return made;
  };

  const whole = alternatives();
  const rest = tokens[next];
  if (rest) throw new FilterError(rest.position, 'a word');
  return whole;
}

/** Keeps the states that were chosen by the chips above the table; none chosen means all. */
export function stateFilter(states: readonly string[]): Predicate {
  if (states.length === 0) return () => true;
  const chosen = new Set(states);
  return (trial) => chosen.has(trial.state);
}

/** The filter of the box and of the chips, for the server. */
export function joinFilters(...parts: readonly string[]): string {
  const used = parts.map((part) => part.trim()).filter(Boolean);
  return used.length > 1 ? used.map((part) => `(${part})`).join(' ') : (used[0] ?? '');
}

interface Token {
  /** The text without quotes; empty for a mark. */
  word: string;
  mark: '' | '(' | ')' | 'OR' | 'NOT';
  /** For each place in the word, whether it was in quotes. */
  inQuotes: boolean[];
  /** For each place in the word and for its end: the place in the filter, from 1. */
  places: number[];
  /** The whole word is in quotes. */
  quoted: boolean;
  position: number;
}

const space = /[ \t-\r]/;

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const add = (position: number, mark: Token['mark']): void => {
    const none = { word: '', inQuotes: [], places: [], quoted: false };
    tokens.push({ ...none, mark, position: position + 1 });
  };
  while (at < text.length) {
    const char = text[at] as string;
    const next = text[at + 1] ?? ' ';
    if (space.test(char)) {
      at += 1;
    } else if (char === '(' || char === ')') {
      add(at, char);
      at += 1;
    } else if (char === '-' && !space.test(next) && next !== ')') {
      add(at, 'NOT');
      at += 1;
    } else {
      const token = wordAt(text, at);
      const isMark = token.mark === '' && !text.slice(at, token.places.at(-1)).includes('"');
      if (isMark && (token.word === 'OR' || token.word === 'NOT')) add(at, token.word);
      else tokens.push(token);
      at = (token.places.at(-1) as number) - 1;
    }
  }
  return tokens;
}

/** Reads a word up to a space or a parenthesis outside quotes. */
function wordAt(text: string, begin: number): Token {
  const inQuotes: boolean[] = [];
  const places: number[] = [];
  let word = '';
  let quotes = 0;
  let at = begin;
  const take = (isQuoted: boolean): void => {
    word += text[at];
    inQuotes.push(isQuoted);
    places.push(at + 1);
    at += 1;
  };
  while (at < text.length && !/[ \t-\r()]/.test(text[at] as string)) {
    if (text[at] !== '"') {
      take(false);
      continue;
    }
    quotes += 1;
    for (at += 1; at < text.length && text[at] !== '"'; ) take(true);
    if (at === text.length) throw new FilterError(at + 1, "a closing '\"'");
    at += 1;
  }
  places.push(at + 1);
  const quoted = quotes === 1 && word.length === at - begin - 2 && text[begin] === '"';
  return { word, mark: '', inQuotes, places, quoted, position: begin + 1 };
}

/** The place of the first operator outside quotes after a name; -1: none. */
function findOperator({ word, inQuotes }: Token): number {
  for (let i = 1; i < word.length; i += 1) {
    if (inQuotes[i]) continue;
    if (/[<>=]/.test(word[i] as string)) return i;
    if (word[i] === '!' && word[i + 1] === '=' && !inQuotes[i + 1]) return i;
  }
  return -1;
}

/** The first place of a text outside quotes; -1: none. */
function findPlain({ word, inQuotes }: Token, text: string, begin: number): number {
  let place = word.indexOf(text, begin);
  while (place >= 0 && inQuotes[place]) place = word.indexOf(text, place + 1);
  return place;
}

const isTime = (name: string): boolean => name === 'created' || name === 'ended';

function parseWord(token: Token, columns: readonly ColumnData[], text: string): Predicate {
  const { word } = token;
  const lower = word.toLowerCase();
  if (token.quoted) return textFilter(lower, columns);
  if (isState(lower)) return (trial) => trial.state === lower;
  if (lower.startsWith('state:')) return parseStates(lower, token.places);
  if (lower.startsWith('tag:')) return parseTags(lower, token.places);
  if (/^#?[0-9]+$/.test(word)) {
    const number = Number(word.replace('#', ''));
    return (trial) => trial.number === number;
  }
  return (
    parseRange(token, columns) ??
    parseComparison(token, columns, text) ??
    textFilter(lower, columns)
  );
}

/** NAME:LOW..HIGH */
function parseRange(token: Token, columns: readonly ColumnData[]): Predicate | undefined {
  const { word, places } = token;
  const colon = findPlain(token, ':', 1);
  const operator = findOperator(token);
  if (colon < 0 || (operator >= 0 && operator < colon)) return undefined;
  const dots = findPlain(token, '..', colon + 1);
  if (dots < 0) return undefined;
  const name = word.slice(0, colon);
  const [low, high] = [word.slice(colon + 1, dots), word.slice(dots + 2)];
  if (isTime(name)) {
    const time = timeReader(name);
    return (trial) => {
      const value = time(trial);
      return value !== undefined && value >= low && (high === '' || value <= high);
    };
  }
  const first = low === '' ? -Infinity : numberAt(low, places[colon + 1] as number);
  const last = high === '' ? Infinity : numberAt(high, places[dots + 2] as number);
  const read = valueReader(name, columns);
  return (trial) => {
    const value = read(trial);
    if (low === '' && high === '') return value !== undefined;
    return typeof value === 'number' && value >= first && value <= last;
  };
}

/** NAME<VALUE, or with another operator */
function parseComparison(
  token: Token,
  columns: readonly ColumnData[],
  text: string,
): Predicate | undefined {
  const { word, inQuotes, places } = token;
  const place = findOperator(token);
  if (place < 0) return undefined;
  const hasEquals = word[place + 1] === '=' && !inQuotes[place + 1] && word[place] !== '=';
  const begin = place + (hasEquals ? 2 : 1);
  const operator = word.slice(place, begin);
  const operand = word.slice(begin);
  const at = places[begin] as number;
  // The operand "" in quotes is the empty text.
  if (operand === '' && text[at - 2] !== '"')
    throw new FilterError(at, `a value after ${operator}`);
  const name = word.slice(0, place);
  if (operator === '=' || operator === '!=') {
    const read = isTime(name) ? timeReader(name) : valueReader(name, columns);
    return compare(read, operator, operand);
  }
  if (isTime(name)) return compareTimes(timeReader(name), operator, operand);
  numberAt(operand, at);
  return compare(valueReader(name, columns), operator, operand);
}

const timeReader =
  (name: string) =>
  (trial: TrialRow): string | undefined =>
    trial[name as 'created'] ?? undefined;

function compareTimes(
  read: (trial: TrialRow) => string | undefined,
  operator: string,
  operand: string,
): Predicate {
  return (trial) => {
    const value = read(trial);
    if (value === undefined) return false;
    if (operator === '<') return value < operand;
    if (operator === '<=') return value <= operand;
    return operator === '>' ? value > operand : value >= operand;
  };
}

function parseStates(lower: string, places: readonly number[]): Predicate {
  let at = 'state:'.length;
  const states = lower.slice(at).split(',');
  for (const state of states) {
    if (!isState(state))
      throw new FilterError(places[at] as number, `a state: ${trialStates.join(', ')}`);
    at += state.length + 1;
  }
  return stateFilter(states);
}

function parseTags(lower: string, places: readonly number[]): Predicate {
  let at = 'tag:'.length;
  const tags = lower.slice(at).split(',');
  for (const tag of tags) {
    if (tag === '') throw new FilterError(places[at] as number, 'a tag');
    at += tag.length + 1;
  }
  return (trial) => trial.tags.some((tag) => tags.includes(tag.toLowerCase()));
}

const decimal = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^-?inf(inity)?$/i;

function numberAt(text: string, position: number): number {
  if (!decimal.test(text)) throw new FilterError(position, 'a number');
  return /inf/i.test(text) ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text);
}

function textFilter(lower: string, columns: readonly ColumnData[]): Predicate {
  return (trial) =>
    trial.origin.toLowerCase().includes(lower) ||
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
  const bare = name.replace(/^(config|metrics)\./, '');
  return ({ config, metrics }) => {
    const metric = metrics[bare];
    return config[bare] ?? (metric === undefined ? undefined : fromWire(metric));
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
