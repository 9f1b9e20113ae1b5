import { describe, expect, it } from 'vitest';

import type { Parameter } from '../../../web/src/api/contract';
import { axesOf, strandsOf, type Axis } from '../../../web/src/model/axes';
import {
  absentOnly,
  brushBetween,
  brushFilter,
  brushQuery,
  brushText,
  chosenStrands,
  formatBrushes,
  parseBrushes,
  isWithin,
  type Brush,
} from '../../../web/src/model/brush';
import { brushPlaces, layOut, placeAtY, yOfPlace } from '../../../web/src/ui/parallel_layout';
import { World } from '../mock/world';
import { row } from './support/row';

const parameters: Parameter[] = [
  { name: 'lr', type: 'float', min: 0.001, max: 1, scale: 'log' },
  { name: 'layers', type: 'int', min: 1, max: 9, scale: 'linear' },
  { name: 'optimizer', type: 'categorical', values: ['sgd', 'adamw', 'lion', 'adam'] },
  { name: 'momentum', type: 'float', min: 0.5, max: 0.9, scale: 'linear' },
];
const rows = [
  row(0, { config: { lr: 0.1, layers: 2, optimizer: 'sgd', momentum: 0.9 }, best: 0.5 }),
  row(1, { config: { lr: 0.01, layers: 4, optimizer: 'adamw' }, best: 0.9 }),
  row(2, { config: { lr: 0.002, layers: 9, optimizer: 'lion' }, best: 'nan' }),
];
const sweep = new World().addSweep({ id: 's1', parameters });
const axes = axesOf(sweep, rows, false);
const axis = (name: string) => axes.find((each) => each.name === name) as Axis;
const range = (low: number, high: number, absent = false): Brush => ({ low, high, absent });

describe('a brush', () => {
  it('covers the values between two places, whichever was first', () => {
    expect(brushBetween(axis('lr'), 1 / 3, 2 / 3)).toEqual(range(0.01, 0.1));
    expect(brushBetween(axis('lr'), 2 / 3, 1 / 3)).toEqual(range(0.01, 0.1));
  });

  it('to an end of its axis is open, so that it selects future values', () => {
    expect(brushBetween(axis('accuracy'), 0.5, 1)).toEqual(range(0.7, Infinity));
    expect(brushBetween(axis('lr'), 0, 1 / 3)).toEqual(range(-Infinity, 0.01));
  });

  it('of whole numbers and of listed values covers whole ones, or nothing', () => {
    expect(brushBetween(axis('layers'), 0.1, 0.3)).toEqual(range(2, 3));
    expect(brushBetween(axis('layers'), 0.13, 0.2)).toBeUndefined();
    expect(brushBetween(axis('optimizer'), 0.3, 0.7)).toEqual(range(1, 2));
    expect(brushBetween(axis('optimizer'), 0.3, 0.35)).toBeUndefined();
  });

  it('into the lane selects trials without a value, too', () => {
    expect(brushBetween(axis('momentum'), -1, 0.5)).toEqual(range(-Infinity, 0.7, true));
    expect(brushBetween(axis('momentum'), -1, -1)).toEqual(absentOnly);
    expect(brushBetween(axis('lr'), -1, -1)).toBeUndefined();
  });

  it('includes its ends, and trials without a value only if `absent` is set', () => {
    expect([0, 1, 2, 3].map((value) => isWithin(range(1, 2), value))).toEqual([
      ...[false, true, true, false],
    ]);
    expect(isWithin(range(1, 2), undefined)).toBe(false);
    expect(isWithin(range(1, 2, true), undefined)).toBe(true);
    expect(isWithin(absentOnly, 5)).toBe(false);
    expect(isWithin(absentOnly, undefined)).toBe(true);
  });

  it('has a text', () => {
    expect(brushText(axis('lr'), range(0.01, 0.1))).toBe('lr 0.01 … 0.1');
    expect(brushText(axis('lr'), range(-Infinity, 0.1))).toBe('lr ≤ 0.1');
    expect(brushText(axis('accuracy'), range(0.7, Infinity))).toBe('accuracy ≥ 0.7000');
    expect(brushText(axis('optimizer'), range(1, 2))).toBe('optimizer adamw, lion');
    expect(brushText(axis('momentum'), range(0.6, 0.7, true))).toBe('momentum 0.6 … 0.7 or absent');
    expect(brushText(axis('momentum'), absentOnly)).toBe('momentum absent');
    expect(brushText(axis('momentum'), range(-Infinity, Infinity))).toBe('momentum present');
  });
});

describe('brushes', () => {
  const kept = (brushes: Record<string, Brush>) =>
    rows.filter(brushFilter(brushes, axes, sweep)).map(({ number }) => number);

  it('select the trials that are in all of them', () => {
    expect(kept({})).toEqual([0, 1, 2]);
    expect(kept({ 'config.lr': range(0.01, Infinity) })).toEqual([0, 1]);
    expect(kept({ 'config.lr': range(0.01, Infinity), 'config.momentum': absentOnly })).toEqual([
      1,
    ]);
    expect(kept({ 'config.optimizer': range(1, 2) })).toEqual([1, 2]);
    expect(kept({ 'metrics.accuracy': absentOnly })).toEqual([2]);
  });

  it('select the same strands', () => {
    const strands = strandsOf(axes, rows, sweep);
    const chosen = (brushes: Record<string, Brush>) => {
      const { mask, count } = chosenStrands(brushes, axes, strands) ?? { mask: [], count: -1 };
      return [count, [...strands.numbers].filter((_, line) => mask[line] === 1)];
    };
    expect(chosenStrands({}, axes, strands)).toBeUndefined();
    expect(chosen({ 'config.lr': range(0.01, Infinity) })).toEqual([2, [0, 1]]);
    expect(chosen({ 'config.momentum': absentOnly })).toEqual([2, [2, 1]]);
    expect(chosen({ 'config.optimizer': range(1, 2) })).toEqual([2, [2, 1]]);
  });

  it('are a filter for the server', () => {
    const query = (brushes: Record<string, Brush>) => brushQuery(brushes, axes);
    expect(query({ 'config.lr': range(0.01, Infinity) })).toBe('(config.lr:0.01..)');
    expect(query({ 'config.momentum': absentOnly })).toBe('-config.momentum:..');
    expect(query({ 'config.momentum': range(0.6, 0.7, true) })).toBe(
      '(config.momentum:0.6..0.7 OR -config.momentum:..)',
    );
    expect(query({ 'config.optimizer': range(1, 2) })).toBe(
      '(config.optimizer="adamw" OR config.optimizer="lion")',
    );
  });

  it('of axes that no longer exist are ignored', () => {
    expect(kept({ 'config.gone': range(1, 2) })).toEqual([0, 1, 2]);
  });

  it('are parsed from the URL without a change', () => {
    const brushes = {
      'config.lr': range(0.01, 0.1),
      'config.a~b, c': range(-Infinity, -3),
      'config.momentum': absentOnly,
      'config.width': range(8, Infinity, true),
    };
    const text = formatBrushes(brushes);
    expect(text).toBe(
      'config.lr~0.01~0.1,config.a%7Eb%2C%20c~~-3,config.momentum~absent,config.width~8~~absent',
    );
    expect(parseBrushes(text)).toEqual(brushes);
    expect(parseBrushes(null)).toEqual({});
  });

  it('that cannot be parsed are skipped', () => {
    const wrong = 'config.a~x~2,config.b~1,config.c~3~2,config.d~1~2~3,%~1~2,~1~2,config.e~1~2';
    expect(parseBrushes(wrong)).toEqual({ 'config.e': range(1, 2) });
  });
});

describe('the layout', () => {
  it('is as wide as its container, and wider if names would not be readable', () => {
    expect(layOut(axes, 1000, 400).width).toBe(1000);
    expect(layOut(axes, 300, 400).width).toBeGreaterThan(450);
    expect(layOut(axes.slice(0, 1), 300, 400).xs).toHaveLength(1);
  });

  it('converts a place to a height and back', () => {
    const layout = layOut(axes, 1000, 400);
    for (const place of [0, 0.25, 0.5, 1])
      expect(placeAtY(layout, yOfPlace(layout, place))).toBeCloseTo(place, 12);
    expect(placeAtY(layout, yOfPlace(layout, NaN))).toBe(-1);
    expect(placeAtY(layout, layout.top + 3)).toBe(1);
    expect(placeAtY(layout, -50)).toBe(1);
  });

  it('draws a brush over all values that it covers', () => {
    expect(brushPlaces(axis('layers'), range(3, Infinity))).toEqual([0.25, 1]);
    expect(brushPlaces(axis('optimizer'), range(1, 2))).toEqual([0.25, 0.75]);
    expect(brushPlaces(axis('momentum'), absentOnly)).toBeUndefined();
  });
});
