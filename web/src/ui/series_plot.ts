import { emptyFrame, frameOf } from '../model/curve_frame';
import type { Point } from '../model/history';
import { formatMetric } from '../model/numbers';
import {
  clipToArea,
  type Highlight,
  type Measured,
  type Painter,
  type PlotContent,
  type Pointer,
  type Projection,
} from './axis_plot';
import { axisLabels } from './curve_drawing';
import type { Label } from './plot_labels';
import { token } from './theme';
import { wholeRange, xScale, type XUnit } from './x_axis';

/** A stair: between two points it keeps the value of the left one. */
export interface Series {
  /** Distinguishes the series of a plot. */
  number: number;
  name: string;
  /** A CSS variable. */
  color: string;
  /** In the order of x. */
  points: readonly Point[];
  /** The x up to which the last value holds. */
  end?: number;
}

export interface SeriesContent extends PlotContent {
  series: readonly Series[];
  x: XUnit;
  /** The range of the y axis; by default that of the values. */
  yRange?: readonly [number, number];
  logarithmic: boolean;
}

const hoverRadiusPx = 20;

/** Draws several stairs over one axis. */
export class SeriesPainter implements Painter<SeriesContent> {
  axisKeys({ x, logarithmic }: SeriesContent): { x: string; y: string } {
    return { x, y: String(logarithmic) };
  }

  measure({ series, x, yRange, logarithmic }: SeriesContent): Measured {
    const valued = (of: 'x' | 'y'): { values: number[] }[] =>
      series.map(({ points }) => ({ values: points.map((point) => point[of]) }));
    const frame = frameOf(valued('y'), logarithmic) ?? emptyFrame(logarithmic);
    const xFrame = x === 'value' ? frameOf(valued('x'), false) : undefined;
    const ends = series.flatMap(({ points, end }) => [
      ...points.map((point) => point.x),
      ...(end === undefined ? [] : [end]),
    ]);
    return {
      x: xScale(x, xFrame ? [xFrame.min, xFrame.max] : wholeRange(Float64Array.from(ends))),
      y: {
        range: yRange ?? [frame.min, frame.max],
        logarithmic,
        labels: (splits) => axisLabels(splits, logarithmic),
      },
      clipped: (yRange ? 0 : frame.clipped) + (xFrame?.clipped ?? 0),
      counts: { series: series.length },
    };
  }

  findNear({ x, top, toY }: Pointer, { series }: SeriesContent): number | undefined {
    let nearest: number | undefined;
    let distance = hoverRadiusPx;
    for (const { number, points, end } of series) {
      const value = valueAt(points, x);
      if (value === undefined || (end !== undefined && x > end)) continue;
      const off = Math.abs(toY(value) - top);
      if (off > distance) continue;
      distance = off;
      nearest = number;
    }
    return nearest;
  }

  paint(ctx: CanvasRenderingContext2D, at: Projection, { series }: SeriesContent): void {
    clipToArea(ctx, at);
    for (const each of series) strokeStair(ctx, at, each, token(each.color), 1.8);
  }

  highlight(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    { series }: SeriesContent,
    { number }: Highlight,
  ): Label[] {
    const found = series.find((each) => each.number === number);
    const last = found?.points.at(-1);
    if (!found || !last) return [];
    strokeStair(ctx, at, found, token('--surface'), 5.5);
    strokeStair(ctx, at, found, token(found.color), 3);
    return [
      {
        text: `${found.name} · ${formatMetric(last.y)}`,
        x: at.toX(found.end ?? last.x),
        y: at.toY(last.y),
      },
    ];
  }
}

function strokeStair(
  ctx: CanvasRenderingContext2D,
  { toX, toY, ratio }: Projection,
  { points, end }: Series,
  color: string,
  width: number,
): void {
  ctx.strokeStyle = color;
  ctx.lineWidth = width * ratio;
  ctx.lineJoin = 'round';
  ctx.beginPath();
  points.forEach((point, i) => {
    const before = points[i - 1];
    if (before) ctx.lineTo(toX(point.x), toY(before.y));
    ctx[i === 0 ? 'moveTo' : 'lineTo'](toX(point.x), toY(point.y));
  });
  const last = points.at(-1);
  if (last && end !== undefined) ctx.lineTo(toX(end), toY(last.y));
  ctx.stroke();
}

/** The value of the stair at a place; undefined before its first point. */
export function valueAt(points: readonly Point[], x: number): number | undefined {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle] as Point).x > x) high = middle;
    else low = middle + 1;
  }
  return points[low - 1]?.y;
}
