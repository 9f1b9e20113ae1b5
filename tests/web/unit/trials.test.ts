import { describe, expect, it } from 'vitest';

import {
  defaultSort,
  formatSort,
  parseSort,
  pressColumn,
  searchedParameters,
  sortTrials,
} from '../../../web/src/model/columns';
import { parseFilter, stateFilter } from '../../../web/src/model/filter';
import type { TrialRow } from '../../../web/src/model/sweep_model';
import { row } from './row';

const highest = { name: 'accuracy', mode: 'max' } as const;
const lowest = { name: 'loss', mode: 'min' } as const;
const numbers = (rows: readonly TrialRow[]): number[] => rows.map((each) => each.number);

describe('sorting trials', () => {
  const rows = [
    row(0, {
      best: 0.5,
      config: { lr: 0.1, optimizer: 'sgd' },
      state: 'stopped',
    }),
    row(1, { best: null, config: { lr: 0.01 }, state: 'pending' }),
    row(2, {
      best: 0.9,
      config: { lr: 0.3, optimizer: 'adamw' },
      state: 'running',
    }),
    row(3, {
      best: 'nan',
      config: { lr: 0.2, optimizer: 'sgd' },
      state: 'failed',
    }),
  ];

  it('by best puts the best first, NaN after all numbers, and nothing last', () => {
    expect(numbers(sortTrials(rows, { key: 'best', descending: false }, highest))).toEqual([
      2, 0, 3, 1,
    ]);
    expect(numbers(sortTrials(rows, { key: 'best', descending: false }, lowest))).toEqual([
      0, 2, 3, 1,
    ]);
  });

  it('turned round still leaves rows without a value last', () => {
    expect(numbers(sortTrials(rows, { key: 'best', descending: true }, highest))).toEqual([
      3, 0, 2, 1,
    ]);
  });

  it('by a parameter leaves trials where it is inactive last, ties by number', () => {
    const sorted = sortTrials(rows, { key: 'config.optimizer', descending: false }, highest);
    expect(numbers(sorted)).toEqual([2, 0, 3, 1]);
    expect(numbers(sortTrials(rows, { key: 'config.lr', descending: true }, highest))).toEqual([
      2, 3, 0, 1,
    ]);
  });

  it('by state puts what is alive first', () => {
    expect(numbers(sortTrials(rows, { key: 'state', descending: false }, highest))).toEqual([
      2, 1, 0, 3,
    ]);
  });

  it('does not touch the rows it was given', () => {
    sortTrials(rows, { key: 'best', descending: false }, highest);
    expect(numbers(rows)).toEqual([0, 1, 2, 3]);
  });

  it('of ten thousand rows takes a fraction of a second', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => row(i, { best: (i * 7919) % 10_007 }));
    const started = performance.now();
    sortTrials(many, { key: 'best', descending: false }, highest);
    expect(performance.now() - started).toBeLessThan(500);
  });
});

describe('the sort in the URL', () => {
  it('goes there and back', () => {
    for (const text of ['-best', 'config.lr', '-config.lr', 'number']) {
      expect(formatSort(parseSort(text))).toBe(text);
    }
  });

  it('is left out when it is the usual one', () => {
    expect(parseSort(undefined)).toEqual(defaultSort);
    expect(formatSort(defaultSort)).toBeUndefined();
  });

  it('turns round when the same header is pressed again', () => {
    const once = pressColumn(defaultSort, 'step');
    expect(once).toEqual({ key: 'step', descending: false });
    expect(pressColumn(once, 'step')).toEqual({
      key: 'step',
      descending: true,
    });
    expect(pressColumn(once, 'best')).toEqual({
      key: 'best',
      descending: false,
    });
  });
});

describe('columns of parameters', () => {
  it('follow the sweep file and leave constants out', () => {
    const parameters = [
      { name: 'width', type: 'int' },
      { name: 'batch', type: 'constant', value: 128 },
      { name: 'lr', type: 'float' },
    ] as const;
    expect(searchedParameters(parameters, [])).toEqual(['width', 'lr']);
  });
});

describe('the filter', () => {
  const trial = row(17, {
    state: 'stopped',
    reason: 'stopped at step 3: rank 9 of 11',
    config: { lr: 0.005, optimizer: 'AdamW', nested: true },
    metrics: { loss: 'inf', accuracy: 0.41 },
    best: 0.412,
    step: 3,
  });

  it.each([
    '',
    'stopped',
    '17',
    '#17',
    'lr<0.01',
    'lr<=0.005',
    'lr>=5e-3',
    'optimizer=adamw',
    'optimizer!=sgd',
    'nested=true',
    'best>0.4',
    'loss>1000',
    'step=3',
    'trial>16',
    'state:failed,stopped',
    'rank',
    'adam',
    'stopped lr<0.01 best>0.4',
  ])('"%s" keeps the trial', (text) => expect(parseFilter(text)(trial)).toBe(true));

  it.each([
    'running',
    '18',
    'lr>0.01',
    'lr<words',
    'momentum>0',
    'optimizer=sgd',
    'optimizer<sgd',
    'state:failed',
    'sgd',
    'stopped lr>0.01',
  ])('"%s" drops it', (text) => expect(parseFilter(text)(trial)).toBe(false));

  it('of states keeps all when none is chosen', () => {
    expect(stateFilter([])(trial)).toBe(true);
    expect(stateFilter(['stopped', 'failed'])(trial)).toBe(true);
    expect(stateFilter(['running'])(trial)).toBe(false);
  });
});
