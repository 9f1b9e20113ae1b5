import { describe, expect, it } from 'vitest';

import {
  better,
  compareByMode,
  formatBytes,
  formatConfig,
  formatMetric,
  fromWire,
  plural,
} from '../../../web/src/model/numbers';
import { formatAgo, formatDuration } from '../../../web/src/model/time';

describe('numbers of the wire', () => {
  it('come as words where JSON has none', () => {
    expect(fromWire('nan')).toBeNaN();
    expect(fromWire('inf')).toBe(Infinity);
    expect(fromWire('-inf')).toBe(-Infinity);
    expect(fromWire(0.5)).toBe(0.5);
  });

  it('rank NaN as the worst, whichever way the metric goes', () => {
    for (const mode of ['min', 'max'] as const) {
      expect(better(mode, NaN, 1)).toBe(false);
      expect(better(mode, 1, NaN)).toBe(true);
      expect(better(mode, NaN, NaN)).toBe(false);
      expect([NaN, 1, NaN, 2].sort((a, b) => compareByMode(mode, a, b)).slice(2)).toEqual([
        NaN,
        NaN,
      ]);
    }
    expect(better('min', 1, 2)).toBe(true);
    expect(better('max', 1, 2)).toBe(false);
    expect(better('max', 2, 2)).toBe(false);
  });
});

describe('a measured number', () => {
  it.each([
    [0.871363, '0.8714'],
    [0.5, '0.5000'],
    [12.3, '12.30'],
    [123456.7, '123457'],
    [3, '3'],
    [0, '0'],
    [-1.25, '−1.250'],
    [0.0000412, '4.12e−5'],
    [1234567, '1.235e6'],
    [1e-4, '1e−4'],
    [NaN, 'NaN'],
    [Infinity, '∞'],
    [-Infinity, '−∞'],
  ])('%f reads %s', (value, text) => expect(formatMetric(value)).toBe(text));
});

describe("a configuration's value", () => {
  it.each([
    [0.1, '0.1'],
    [32, '32'],
    [0.04824973, '0.04825'],
    [0.00001, '1e−5'],
    [0, '0'],
    [-8, '−8'],
    ['adamw', 'adamw'],
    [true, 'true'],
    [undefined, ''],
  ])('%s reads %s', (value, text) => expect(formatConfig(value)).toBe(text));
});

describe('other quantities', () => {
  it('bytes are in binary units', () => {
    expect(formatBytes(0)).toBe('0 B');
    expect(formatBytes(1023)).toBe('1023 B');
    expect(formatBytes(1024)).toBe('1.0 KiB');
    expect(formatBytes(431_232)).toBe('421 KiB');
    expect(formatBytes(25_165_824_000)).toBe('23.4 GiB');
  });

  it('counts agree with their nouns', () => {
    expect(plural(1, 'trial')).toBe('1 trial');
    expect(plural(1200, 'trial')).toBe('1,200 trials');
  });

  it('durations have two units at most', () => {
    expect(formatDuration(0.84)).toBe('0.8 s');
    expect(formatDuration(59.9)).toBe('59 s');
    expect(formatDuration(245)).toBe('4 min 05 s');
    expect(formatDuration(3600 * 3 + 720)).toBe('3 h 12 min');
    expect(formatDuration(86_400 * 2 + 3600 * 4)).toBe('2 d 4 h');
    expect(formatDuration(NaN)).toBe('–');
  });

  it('moments in the past are rounded, and clocks that differ do no harm', () => {
    const now = Date.parse('2026-11-21T10:00:00Z');
    expect(formatAgo(now + 5000, now)).toBe('just now');
    expect(formatAgo(now - 5 * 60_000, now)).toBe('5 min ago');
    expect(formatAgo(now - 3 * 3_600_000, now)).toBe('3 h ago');
    expect(formatAgo(now - 49 * 3_600_000, now)).toBe('2 d ago');
  });
});
