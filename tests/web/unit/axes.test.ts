import { describe, expect, it } from 'vitest';

import type { Parameter, SweepDetail, Trial } from '../../../web/src/api/contract';
import {
  axesOf,
  axisReader,
  placeOf,
  strandsOf,
  ticksOf,
  valuesOf,
  valueAt,
  type Axis,
} from '../../../web/src/model/axes';
import { nearestBetween } from '../../../web/src/ui/nearest';
import { World } from '../mock/world';
import { row } from './support/row';

const parameters: Parameter[] = [
  { name: 'lr', type: 'float', min: 0.001, max: 1, scale: 'log' },
  { name: 'layers', type: 'int', min: 1, max: 8, scale: 'linear' },
  { name: 'optimizer', type: 'categorical', values: ['sgd', 'adamw'] },
  { name: 'momentum', type: 'float', min: 0.5, max: 0.9, scale: 'linear' },
  { name: 'batch', type: 'constant', value: 128 },
];

const sweepOf = (changes: Partial<SweepDetail> = {}): SweepDetail =>
  new World().addSweep({ id: 's1', parameters, ...changes });

const trial = (number: number, config: Trial['config'], best: Trial['best']) =>
  row(number, { config: { lr: 0.1, layers: 2, batch: 128, ...config }, best });

const rows = [
  trial(0, { optimizer: 'sgd', momentum: 0.9 }, 0.5),
  trial(1, { optimizer: 'adamw' }, 0.9),
  trial(2, { optimizer: 'adamw', lr: 0.01 }, 'nan'),
];

function axis(name: string, of = axesOf(sweepOf(), rows, false)): Axis {
  return of.find((each) => each.name === name) as Axis;
}

describe('the axes', () => {
  it('are the searched parameters in their order, and the metric last', () => {
    const axes = axesOf(sweepOf(), rows, false);
    expect(axes.map(({ key, kind }) => [key, kind])).toEqual([
      ['config.lr', 'log'],
      ['config.layers', 'linear'],
      ['config.optimizer', 'listed'],
      ['config.momentum', 'linear'],
      ['metrics.accuracy', 'linear'],
    ]);
  });

  it('have a lane only where a trial has no value', () => {
    const axes = axesOf(sweepOf(), rows, false);
    expect(axes.filter(({ lane }) => lane).map(({ name }) => name)).toEqual([
      'momentum',
      'accuracy',
    ]);
  });

  it('include trials from before an edit', () => {
    const before = [...rows, trial(3, { lr: 10, optimizer: 'lion' }, 0.1)];
    const axes = axesOf(sweepOf(), before, false);
    expect(axis('lr', axes)).toMatchObject({ min: 0.001, max: 10 });
    expect(axis('optimizer', axes).values).toEqual(['sgd', 'adamw', 'lion']);
  });

  it('keep an outlying result from flattening the others', () => {
    const many = Array.from({ length: 40 }, (_, i) => trial(i, {}, 0.5 + i / 100));
    const axes = axesOf(sweepOf(), [...many, trial(40, {}, -1e6)], false);
    expect(axis('accuracy', axes)).toMatchObject({ min: 0.5, max: 0.89 });
    expect(placeOf(axis('accuracy', axes), -1e6)).toBe(0);
  });

  it('have one axis for each of several metrics, with the newest report', () => {
    const metrics = [
      { name: 'accuracy', mode: 'max' as const, target: null },
      { name: 'latency', mode: 'min' as const, target: null },
    ];
    const sweep = sweepOf({ metrics });
    const reported = [row(0, { best: 0.9, metrics: { accuracy: 0.8, latency: 5 } })];
    const axes = axesOf(sweep, reported, false).filter(({ mode }) => mode);
    expect(axes.map((each) => axisReader(each, sweep)(reported[0] as never))).toEqual([0.8, 5]);
  });

  it('exist before the first trial', () => {
    expect(axesOf(sweepOf(), [], true).map(({ min, max }) => min <= max)).toEqual(
      Array(5).fill(true),
    );
  });
});

describe('a place on an axis', () => {
  it.each([
    ['lr', 0.001, 0],
    ['lr', 1, 1],
    ['lr', 0.01, 1 / 3],
    ['layers', 1, 0],
    ['layers', 8, 1],
    ['optimizer', 0, 0.25],
    ['optimizer', 1, 0.75],
  ])('of %s %d is %d, and leads back', (name, value, place) => {
    expect(placeOf(axis(name), value)).toBeCloseTo(place, 12);
    expect(valueAt(axis(name), place)).toBeCloseTo(value, 12);
  });

  it('of a parameter with one value is the middle', () => {
    const one = { ...axis('layers'), min: 3, max: 3 };
    expect(placeOf(one, 3)).toBe(0.5);
    expect(ticksOf(one, 5)).toEqual([3]);
  });
});

describe('ticks', () => {
  const ticks = (changes: Partial<Axis>, about = 5) =>
    ticksOf({ ...axis('momentum'), ...changes }, about);

  it('are round numbers within the range', () => {
    expect(ticks({ min: 0.5, max: 0.9 })).toEqual([0.5, 0.6, 0.7, 0.8, 0.9]);
    expect(ticks({ min: 3, max: 97 })).toEqual([20, 40, 60, 80]);
  });

  it('of whole numbers are whole', () => {
    expect(ticks({ min: 1, max: 3, whole: true }, 8)).toEqual([1, 2, 3]);
  });

  it('of a logarithmic axis are decades, or parts of few', () => {
    expect(ticks({ kind: 'log', min: 1e-4, max: 1 })).toEqual([1e-4, 1e-3, 0.01, 0.1, 1]);
    expect(ticks({ kind: 'log', min: 1e-9, max: 1 })).toEqual([1e-9, 1e-7, 1e-5, 1e-3, 0.1]);
    expect(ticks({ kind: 'log', min: 0.01, max: 0.1 })).toEqual([0.01, 0.02, 0.05, 0.1]);
    expect(ticks({ kind: 'log', min: 0.03, max: 0.04 }).length).toBeGreaterThan(1);
  });

  it('of listed values are all of them, or some if there are many', () => {
    expect(ticksOf(axis('optimizer'), 5)).toEqual([0, 1]);
    const values = Array.from({ length: 30 }, (_, i) => i);
    expect(ticks({ kind: 'listed', values }, 10)).toEqual([0, 3, 6, 9, 12, 15, 18, 21, 24, 27]);
  });
});

describe('the lines across the axes', () => {
  it('are sorted with trials without a value first, then the worst', () => {
    const sweep = sweepOf();
    const strands = strandsOf(axesOf(sweep, rows, false), rows, sweep);
    expect([...strands.numbers]).toEqual([2, 0, 1]);
    expect([...strands.merits]).toEqual([NaN, 0, 1]);
    expect([...valuesOf(strands, 1)]).toEqual([0.1, 2, 0, 0.9, 0.5]);
    expect([...valuesOf(strands, 2)]).toEqual([0.1, 2, 1, NaN, 0.9]);
  });

  it('are better if lower when the metric is minimised', () => {
    const metric = { name: 'accuracy', mode: 'min' as const };
    const sweep = sweepOf({ metric, metrics: [{ ...metric, target: null }] });
    const strands = strandsOf(axesOf(sweep, rows, false), rows, sweep);
    expect([...strands.numbers]).toEqual([2, 1, 0]);
  });

  it('are found between two axes by the distance across their slope', () => {
    const heights = [
      [0, 100, 0],
      [50, 50, 50],
      [NaN, NaN, NaN],
    ];
    const at = (x: number, y: number) =>
      nearestBetween(3, [0, 100, 200], (line, i) => heights[line]?.[i] as number, x, y, 12);
    expect(at(20, 22)).toBe(0);
    expect(at(20, 45)).toBe(1);
    expect(at(150, 44)).toBe(0);
    expect(at(20, 80)).toBeUndefined();
    expect(at(-5, 50)).toBe(1);
    expect(at(300, 50)).toBeUndefined();
  });
});
