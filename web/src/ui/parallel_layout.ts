import { placeOf, type Axis } from '../model/axes';
import type { Brush } from '../model/brush';

/** The positions of the axes of parallel coordinates, in pixels of the page. */
export interface Layout {
  width: number;
  height: number;
  xs: readonly number[];
  top: number;
  bottom: number;
  /** The height of the lane for trials without a value. */
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

/** Fills the width, or more if names and labels would not be readable. */
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

/** The height of a place on an axis; NaN is the lane. */
export function yOfPlace({ top, bottom, laneY }: Layout, place: number): number {
  return Number.isNaN(place) ? laneY : bottom - place * (bottom - top);
}

// A brush that ends this near to the end of its axis snaps to it.
const snapPx = 4;

/** The place at a height; below 0 is the lane. */
export function placeAtY({ top, bottom, laneY }: Layout, y: number): number {
  if (y > (bottom + laneY) / 2) return -1;
  if (y > bottom - snapPx) return 0;
  if (y < top + snapPx) return 1;
  return (bottom - y) / (bottom - top);
}

/** The places that a brush covers on its axis; undefined if it covers only the lane. */
export function brushPlaces(axis: Axis, { low, high }: Brush): [number, number] | undefined {
  if (low > high) return undefined;
  // A listed value covers an interval.
  const half = axis.kind === 'listed' ? 0.5 / axis.values.length : 0;
  const place = (end: number): number => placeOf(axis, end);
  return [
    low === -Infinity ? 0 : Math.max(0, place(low) - half),
    high === Infinity ? 1 : Math.min(1, place(high) + half),
  ];
}
