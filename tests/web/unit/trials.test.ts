import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import type { Metric, Trial } from '../../../web/src/api/contract';
import {
  defaultSort,
  formatSort,
  parseSort,
  pressColumn,
  type Sort,
  searchedParameters,
} from '../../../web/src/model/columns';
import { FilterError, joinFilters, parseFilter, stateFilter } from '../../../web/src/model/filter';
import { RowView, sortRows } from '../../../web/src/model/row_view';
import { SweepModel, type TrialRow } from '../../../web/src/model/sweep_model';
import { trialColumns, type Column } from '../../../web/src/pages/trial_columns';
import { randomStream } from '../mock/random';
import { World } from '../mock/world';
import { row, wireTrial } from './support/row';

/** Cases that the server's tests use, too. */
const filters = JSON.parse(
  readFileSync(new URL('../../data/trial_filters.json', import.meta.url), 'utf8'),
) as { malformed: [text: string, position: number, expected: string][]; valid: string[] };

const highest = { name: 'accuracy', mode: 'max' } as const;
const lowest = { name: 'loss', mode: 'min' } as const;

function columnsOf(trials: readonly Partial<Trial>[], metric: Metric = highest): Column[] {
  const world = new World();
  const names = new Set(trials.flatMap(({ config }) => Object.keys(config ?? {})));
  const parameters = [...names].map((name) => ({ name, type: 'float' as const }));
  const sweep = world.addSweep({ id: 's1', metric, parameters });
  return trialColumns(new SweepModel(sweep, 0), 'trial');
}

function sortTrials(rows: readonly TrialRow[], sort: Sort, columns: readonly Column[]) {
  const column = columns.find(({ key, sortable }) => sortable && key === sort.key);
  return sortRows(rows, column, sort.descending);
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

describe('the rows of the table', () => {
  const everything = (): boolean => true;

  /** A model of many trials, and a function that reports for some of them. */
  function changing(count: number) {
    const world = new World();
    const parameters = [{ name: 'lr', type: 'float' as const }];
    world.addSweep({ id: 's1', parameters });
    const model = new SweepModel(world.sweep('s1'), world.seq);
    const random = randomStream(7);
    model.addTrials(
      Array.from({ length: count }, (_, i) => wireTrial(i, { best: random(), config: { lr: i } })),
      world.seq,
    );
    model.completeTrials();
    model.commit();
    const report = (trial: number, accuracy: number): void => {
      const event = { sweep: 's1', trial, attempt: 1, step: 1, seconds: 1, metrics: { accuracy } };
      const seq = model.seq + 1;
      const time = '2026-11-21T10:00:00.000000Z';
      model.apply([{ kind: 'trial_reported', seq, time, actor: 'box', ...event }]);
    };
    return { model, report, random, columns: trialColumns(model, 'state') };
  }

  it('have the same order when changes are inserted as when all are sorted', () => {
    const { model, report, random, columns } = changing(1000);
    const view = new RowView();
    view.update(model, everything, defaultSort, columns);
    for (let round = 0; round < 20; round += 1) {
      for (let i = 0; i < 7; i += 1) report(Math.floor(random() * 1000), random());
      model.commit();
      const rows = view.update(model, everything, defaultSort, columns);
      const again = new RowView().update(model, everything, defaultSort, columns);
      expect(numbers(rows)).toEqual(numbers(again));
    }
  });

  it('are the same array until something changes', () => {
    const { model, report, columns } = changing(100);
    const view = new RowView();
    const rows = view.update(model, everything, defaultSort, columns);
    expect(view.update(model, everything, defaultSort, columns)).toBe(rows);
    report(3, 2);
    // The order follows with the next commit.
    expect(view.update(model, everything, defaultSort, columns)).toBe(rows);
    model.commit();
    expect(numbers(view.update(model, everything, defaultSort, columns))[0]).toBe(3);
  });

  it('leave when they no longer match, and come when they do', () => {
    const { model, report, columns } = changing(100);
    const view = new RowView();
    const good = (each: TrialRow): boolean => (each.best ?? 0) > 1;
    expect(view.update(model, good, defaultSort, columns)).toEqual([]);
    report(5, 2);
    model.commit();
    expect(numbers(view.update(model, good, defaultSort, columns))).toEqual([5]);
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
    const usual = columns.filter(({ isOptional }) => !isOptional);
    expect(usual.map(({ key }) => key)).toEqual([
      ...['number', 'state', 'best', 'step', 'seconds', 'config.lr', 'reason'],
    ]);
  });

  it('of parameters follow the sweep file and leave constants out', () => {
    const parameters = [
      { name: 'width', type: 'int' },
      { name: 'batch', type: 'constant', value: 128 },
      { name: 'lr', type: 'float' },
    ] as const;
    expect(searchedParameters(parameters).map(({ name }) => name)).toEqual(['width', 'lr']);
  });
});

describe('the filter', () => {
  const changes: Partial<Trial> = {
    state: 'stopped',
    reason: 'stopped at step 3: rank 9 of 11',
    tags: ['Best', 'lr-1'],
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
    'tag:best',
    'tag:slow,LR-1',
    '-tag:lr',
    'rank',
    'adam',
    'stopped lr<0.01 best>0.4',
    'failed OR stopped',
    'failed OR stopped lr<0.01',
    '(failed OR stopped) (lr>1 OR best>0.4)',
    '-failed',
    'NOT failed',
    '-(failed OR lr>1)',
    'lr:1e-3..1e-2',
    'lr:0.005..',
    'lr:..0.005',
    'optimizer:..',
    '-momentum:..',
    '"step 3: rank"',
    'optimizer="AdamW"',
    'random',
  ])('"%s" keeps the trial', (text) => expect(matches(text)).toBe(true));

  it.each([
    'running',
    '18',
    'lr>0.01',
    'momentum>0',
    'optimizer=sgd',
    'state:failed',
    'tag:lr',
    'tag:bes,slow',
    'sgd',
    'stopped lr>0.01',
    'failed OR running',
    'stopped (failed OR lr>1)',
    '-stopped',
    'NOT (stopped)',
    'lr:0.01..1',
    'momentum:..',
    '"rank step"',
  ])('"%s" drops it', (text) => expect(matches(text)).toBe(false));

  it.each(filters.malformed)('"%s" has an error at %d: expected %s', (text, position, expected) => {
    const parse = (): unknown => parseFilter(text, columns);
    expect(parse).toThrow(FilterError);
    expect(parse).toThrow(`At position ${position}: expected ${expected}`);
  });

  it.each(filters.valid)('"%s" is valid', (text) => {
    expect(() => parseFilter(text, columns)).not.toThrow();
  });

  it('compares times', () => {
    const at = row(1, { created: '2026-11-29T10:00:00.000000Z', ended: null });
    const keeps = (text: string): boolean => parseFilter(text, columns)(at);
    expect(keeps('created>2026-11-29')).toBe(true);
    expect(keeps('created<2026-11-29T11')).toBe(true);
    expect(keeps('created:2026-11-28..2026-11-30')).toBe(true);
    expect(keeps('created<2026-11-29')).toBe(false);
    expect(keeps('ended>2026')).toBe(false);
  });

  it('has bounds', () => {
    const throws = (text: string): void => expect(() => parseFilter(text, columns)).toThrow();
    throws('a '.repeat(101));
    throws(`${'('.repeat(33)}a${')'.repeat(33)}`);
    throws('a'.repeat(4097));
    expect(parseFilter('a '.repeat(100), columns)(trial)).toBe(true);
  });

  it('of several parts joins them for the server', () => {
    expect(joinFilters('', ' ')).toBe('');
    expect(joinFilters('a OR b', '')).toBe('a OR b');
    expect(joinFilters('a OR b', 'state:failed')).toBe('(a OR b) (state:failed)');
  });

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
