import { placeOf, type Axis } from '../model/axes';
import type { Brush } from '../model/brush';

/** Where the axes of parallel coordinates stand, in the page's pixels. */
export interface Layout {
  width: number;
  height: number;
  xs: readonly number[];
  top: number;
  bottom: number;
  /** Of trials without a value. */
  laneY: number;
}

const leftPx = 22;
const rightPx = 78;
const namePx = 30;
// A long name takes up to three lines.
const longNamePx = 62;
const longName = 13;
const lanePx = 30;
const leastApartPx = 92;

/** As wide as there is room for, and wider where names and labels would not be readable. */
export function layOut(axes: readonly Axis[], width: number, height: number): Layout {
  const gaps = Math.max(1, axes.length - 1);
  const wide = Math.max(width, leftPx + rightPx + gaps * leastApartPx);
  const apart = (wide - leftPx - rightPx) / gaps;
  const lane = axes.some((axis) => axis.lane) ? lanePx : 0;
  const top = axes.some((axis) => axis.name.length > longName) ? longNamePx : namePx;
  const bottom = Math.max(top + 60, height - 14 - lane);
  return {
    width: wide,
    height,
    xs: axes.map((_, i) => leftPx + i * apart),
    top,
    bottom,
    laneY: bottom + 20,
  };
}

/** The height of a place; that of a trial without one is NaN. */
export function yOfPlace({ top, bottom, laneY }: Layout, place: number): number {
  return Number.isNaN(place) ? laneY : bottom - place * (bottom - top);
}

// So near to its end a brush goes to the end.
const snapPx = 4;

/** The place at a height; below 0: in the lane. */
export function placeAtY({ top, bottom, laneY }: Layout, y: number): number {
  if (y > (bottom + laneY) / 2) return -1;
  if (y > bottom - snapPx) return 0;
  if (y < top + snapPx) return 1;
  return (bottom - y) / (bottom - top);
}

/** The places that a brush covers on its axis; undefined where it covers the lane alone. */
export function brushPlaces(axis: Axis, { low, high }: Brush): [number, number] | undefined {
  if (low > high) return undefined;
  // The place of a listed value is a stretch.
  const half = axis.kind === 'listed' ? 0.5 / axis.values.length : 0;
  const place = (end: number): number => placeOf(axis, end);
  return [
    low === -Infinity ? 0 : Math.max(0, place(low) - half),
    high === Infinity ? 1 : Math.min(1, place(high) + half),
  ];
}
