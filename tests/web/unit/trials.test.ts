import { describe, expect, it } from 'vitest';

import type { Metric, Trial } from '../../../web/src/api/contract';
import {
  defaultSort,
  formatSort,
  parseSort,
  pressColumn,
  searchedParameters,
  sortTrials,
} from '../../../web/src/model/columns';
import { parseFilter, stateFilter } from '../../../web/src/model/filter';
import { SweepModel, type TrialRow } from '../../../web/src/model/sweep_model';
import { trialColumns, type Column } from '../../../web/src/pages/trial_columns';
import { World } from '../mock/world';
import { row, wireTrial } from './row';

const highest = { name: 'accuracy', mode: 'max' } as const;
const lowest = { name: 'loss', mode: 'min' } as const;

function columnsOf(trials: readonly Partial<Trial>[], metric: Metric = highest): Column[] {
  const world = new World();
  const names = new Set(trials.flatMap(({ config }) => Object.keys(config ?? {})));
  const parameters = [...names].map((name) => ({ name, type: 'float' as const }));
  const sweep = world.addSweep({ id: 's1', metric, parameters });
  const all = trials.map((changes, number) => wireTrial(number, changes));
  const curves = { metric: metric.name, seq: 0, next_page_token: '', trials: [] };
  return trialColumns(new SweepModel(sweep, all, curves, metric.name), 'trial');
}

const numbers = (rows: readonly TrialRow[]): number[] => rows.map((each) => each.number);

describe('sorting trials', () => {
  const trials: Partial<Trial>[] = [
    { best: 0.5, config: { lr: 0.1, optimizer: 'sgd' }, state: 'stopped' },
    { best: null, config: { lr: 0.01 }, state: 'pending' },
    { best: 0.9, config: { lr: 0.3, optimizer: 'adamw' }, state: 'running' },
    { best: 'nan', config: { lr: 0.2, optimizer: 'sgd' }, state: 'failed' },
  ];
  const rows = trials.map((changes, number) => row(number, changes));
  const columns = columnsOf(trials);
  const sorted = (key: string, descending = false, by = columns): number[] =>
    numbers(sortTrials(rows, { key, descending }, by));

  it('by best puts the best first, NaN after all numbers, and nothing last', () => {
    expect(sorted('best')).toEqual([2, 0, 3, 1]);
    expect(sorted('best', false, columnsOf(trials, lowest))).toEqual([0, 2, 3, 1]);
  });

  it('in reverse still leaves rows without a value last', () => {
    expect(sorted('best', true)).toEqual([3, 0, 2, 1]);
  });

  it('by a parameter leaves trials where it is inactive last, ties by number', () => {
    expect(sorted('config.optimizer')).toEqual([2, 0, 3, 1]);
    expect(sorted('config.lr', true)).toEqual([2, 3, 0, 1]);
  });

  it('by state puts what is alive first', () => {
    expect(sorted('state')).toEqual([2, 1, 0, 3]);
  });

  it('ignores a column that is unknown or not sortable', () => {
    expect(sorted('elsewhere')).toEqual([0, 1, 2, 3]);
    const fixed = columns.map((column) => ({ ...column, sortable: false }));
    expect(sorted('best', false, fixed)).toEqual([0, 1, 2, 3]);
  });

  it('does not touch the rows it was given', () => {
    sortTrials(rows, defaultSort, columns);
    expect(numbers(rows)).toEqual([0, 1, 2, 3]);
  });

  it('of ten thousand rows takes a fraction of a second', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => row(i, { best: (i * 7919) % 10_007 }));
    const started = process.cpuUsage();
    sortTrials(many, defaultSort, columns);
    expect(process.cpuUsage(started).user).toBeLessThan(500_000);
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

type Part = 'key' | 'label' | 'value' | 'cell' | 'sortable' | 'filterable' | 'widthPx';

// tsc rejects this table if a part of a column is optional.
const parts: { [P in Part]: Omit<Column, P> extends Column ? 'optional' : 'required' } = {
  key: 'required',
  label: 'required',
  value: 'required',
  cell: 'required',
  sortable: 'required',
  filterable: 'required',
  widthPx: 'required',
};

describe('columns', () => {
  it('have all their parts and a key of their own', () => {
    const columns = columnsOf([{ config: { lr: 0.1 } }]);
    for (const column of columns)
      expect(Object.keys(column)).toEqual(expect.arrayContaining(Object.keys(parts)));
    expect(columns.map(({ key }) => key)).toEqual([
      ...['number', 'state', 'best', 'step', 'seconds', 'config.lr', 'reason'],
    ]);
  });

  it('of parameters follow the sweep file and leave constants out', () => {
    const parameters = [
      { name: 'width', type: 'int' },
      { name: 'batch', type: 'constant', value: 128 },
      { name: 'lr', type: 'float' },
    ] as const;
    expect(searchedParameters(parameters)).toEqual(['width', 'lr']);
  });
});

describe('the filter', () => {
  const changes: Partial<Trial> = {
    state: 'stopped',
    reason: 'stopped at step 3: rank 9 of 11',
    config: { lr: 0.005, optimizer: 'AdamW', nested: true },
    metrics: { loss: 'inf', accuracy: 0.41 },
    best: 0.412,
    step: 3,
    seconds: 90,
    attempt_count: 2,
  };
  const trial = row(17, changes);
  const columns = columnsOf([changes]);
  const matches = (text: string, by = columns): boolean => parseFilter(text, by)(trial);

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
    'accuracy>0.411',
    'time>60',
    'config.lr<0.01',
    'attempts=2',
    'state:failed,stopped',
    'rank',
    'adam',
    'stopped lr<0.01 best>0.4',
  ])('"%s" keeps the trial', (text) => expect(matches(text)).toBe(true));

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
  ])('"%s" drops it', (text) => expect(matches(text)).toBe(false));

  it('ignores columns that are not filterable', () => {
    const fixed = columns.map((column) => ({ ...column, filterable: false }));
    expect(matches('rank', fixed)).toBe(false);
    expect(matches('step=3', fixed)).toBe(false);
  });

  it('of states keeps all when none is chosen', () => {
    expect(stateFilter([])(trial)).toBe(true);
    expect(stateFilter(['stopped', 'failed'])(trial)).toBe(true);
    expect(stateFilter(['running'])(trial)).toBe(false);
  });
});
