import { describe, expect, it } from 'vitest';

import { CurveFormatError, decodeCurves } from '../../../web/src/api/curves';
import { CurveStore } from '../../../web/src/model/curve_store';
import { encodeCurves, thinned, type PackedTrial } from '../mock/curve_pages';

function trial(number: number, steps: number[], values: number[] = steps): PackedTrial {
  const segments = steps.slice(0, 1).map((step) => ({ attempt: 1, step }));
  return { number, steps, values, segments, clones: [] };
}

function storeOf(trials: readonly PackedTrial[], points = 64): CurveStore {
  const store = new CurveStore();
  store.add(decodeCurves(encodeCurves(trials, 1)), points);
  return store;
}

describe('a page of curves', () => {
  it('has its trials, values, segments and clones', () => {
    const buffer = encodeCurves(
      [
        trial(3, [1, 2, 3], [0.5, NaN, Infinity]),
        trial(7, [1, 2, 3], [0.25, 0.5, 0.75]),
        { ...trial(9, [0.5]), clones: [{ donor: 3, step: 2 }] },
      ],
      2 ** 40,
      12,
    );
    const page = decodeCurves(buffer);
    expect([page.seq, page.next, page.count]).toEqual([2 ** 40, 12, 3]);
    // Trials with the same steps share a list.
    expect([...page.listStarts]).toEqual([0, 3, 4]);
    expect([...page.steps]).toEqual([1, 2, 3, 0.5]);
    expect([...page.values]).toEqual([0.5, NaN, Infinity, 0.25, 0.5, 0.75, 0.5]);
    expect(page.segments[2]).toEqual({ trial: 9, attempt: 1, step: 0.5 });
    expect(page.clones).toEqual([{ trial: 9, donor: 3, step: 2 }]);
    expect(page.values.buffer).toBe(buffer);
  });

  it('may be empty, and the last one', () => {
    const page = decodeCurves(encodeCurves([], 5));
    expect([page.count, page.next, page.seq]).toEqual([0, undefined, 5]);
  });

  it('is refused if it is something else, or cut off', () => {
    expect(() => decodeCurves(new ArrayBuffer(8))).toThrow(CurveFormatError);
    expect(() => decodeCurves(new ArrayBuffer(64))).toThrow(CurveFormatError);
    const whole = encodeCurves([trial(0, [1, 2, 3])], 1);
    expect(() => decodeCurves(whole.slice(0, whole.byteLength - 8))).toThrow(CurveFormatError);
  });

  it('of the mock keeps the ends and the spikes of a thinned curve', () => {
    const steps = Array.from({ length: 1000 }, (_, i) => i);
    const values = steps.map((step) => (step === 500 ? 9 : 1));
    const thin = thinned({ steps, values }, 64);
    expect(thin.steps.length).toBeLessThanOrEqual(64);
    expect([thin.steps[0], thin.steps.at(-1)]).toEqual([0, 999]);
    expect(thin.values).toContain(9);
  });
});

describe('the store of curves', () => {
  it('counts curves and points, also of curves that events add', () => {
    const store = storeOf([trial(0, [1, 2]), trial(1, []), trial(2, [1, 2, 3])]);
    expect([store.size, store.points, store.firstStep, store.lastStep]).toEqual([2, 5, 1, 3]);
    store.change(1, (curve) => curve.append(1, 0.5, 1));
    store.change(2, (curve) => curve.append(4, 0.5, 1));
    expect([store.size, store.points, store.lastStep]).toEqual([3, 7, 4]);
    expect([...store.numbers()].sort()).toEqual([0, 1, 2]);
  });

  it('replaces coarse curves by finer ones, but not the reverse', () => {
    const store = storeOf([trial(0, [1, 9])], 64);
    store.add(decodeCurves(encodeCurves([trial(0, [1, 5, 9])], 2)), 256);
    store.add(decodeCurves(encodeCurves([trial(0, [1, 9])], 3)), 64);
    expect(store.get(0)?.steps).toEqual([1, 5, 9]);
    expect(store.points).toBe(3);
  });

  it('has the parts of attempts and the clones of a curve', () => {
    const store = storeOf([
      {
        ...trial(4, [1, 2, 3, 4]),
        segments: [
          { attempt: 2, step: 1 },
          { attempt: 1, step: 3 },
        ],
        clones: [{ donor: 1, step: 1 }],
      },
    ]);
    expect(store.get(4)?.seams).toEqual([3]);
    expect(store.trace(4)?.breaks).toEqual([1, 2]);
    expect(store.clonesOf(4)).toEqual([{ donor: 1, step: 1 }]);
  });

  it('has a frame that a point within does not change, and a point outside does', () => {
    const store = storeOf([trial(0, [1, 2], [0, 1]), trial(1, [1, 2], [0.5, 1])]);
    const frame = store.frame(false);
    store.change(0, (curve) => curve.append(3, 0.7, 1));
    expect(store.frame(false)).toBe(frame);
    store.change(0, (curve) => curve.append(4, 3, 1));
    expect(store.frame(false)?.max).toBeGreaterThan(3);
  });
});
