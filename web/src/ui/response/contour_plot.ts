import type { Axis } from '../../model/axes';
import type { Point } from '../../model/history';
import { formatMetric } from '../../model/numbers';
import {
  clipToArea,
  type Highlight,
  type Measured,
  type Painter,
  type PlotContent,
  type Pointer,
  type Projection,
} from '../axis_plot';
import { rampColors } from '../colors';
import { fillBordered, highlightDots } from '../dots';
import { nearestPoint } from '../nearest';
import type { Label } from '../plot_labels';
import { parameterScale } from './response_scale';
import { token } from '../theme';

/** A rectangle of the prediction, in coordinates, and its shade from 0 (worst) to 1. */
export interface Cell {
  left: number;
  right: number;
  bottom: number;
  top: number;
  shade: number;
}

export interface ContourContent extends PlotContent {
  across: Axis;
  up: Axis;
  cells: readonly Cell[];
  dots: readonly (Point & { number: number; value: number })[];
}

const hoverRadiusPx = 12;
const levels = 12;

/** Draws the prediction of a metric over two parameters as coloured levels, with the trials on it. */
export class ContourPainter implements Painter<ContourContent> {
  axisKeys({ across, up }: ContourContent): { x: string; y: string } {
    return { x: `${across.key} ${across.kind}`, y: `${up.key} ${up.kind}` };
  }

  measure({ across, up, cells, dots }: ContourContent): Measured {
    return {
      x: parameterScale(across),
      y: parameterScale(up),
      clipped: 0,
      counts: { dots: dots.length, cells: cells.length },
    };
  }

  private placeOf(dot: Point, { toX, toY }: Pick<Projection, 'toX' | 'toY'>): Point {
    return { x: toX(dot.x), y: toY(dot.y) };
  }

  findNear(pointer: Pointer, { dots }: ContourContent): number | undefined {
    const places = dots.map((dot) => this.placeOf(dot, pointer));
    const at = nearestPoint(places, pointer.left, pointer.top, hoverRadiusPx);
    return at === undefined ? undefined : dots[at]?.number;
  }

  paint(ctx: CanvasRenderingContext2D, at: Projection, { cells, dots }: ContourContent): void {
    clipToArea(ctx, at);
    const { toX, toY, ratio } = at;
    const colors = rampColors(levels);
    for (const { left, right, bottom, top, shade } of cells) {
      const level = Math.min(levels - 1, Math.floor(shade * levels));
      ctx.fillStyle = colors[level] as string;
      const [x, y] = [Math.floor(toX(left)), Math.floor(toY(top))];
      ctx.fillRect(x, y, Math.ceil(toX(right)) - x, Math.ceil(toY(bottom)) - y);
    }
    for (const dot of dots) {
      const size = dots.length > 500 ? { radius: 1.2, border: 0.6 } : { radius: 2, border: 1 };
      fillBordered(ctx, this.placeOf(dot, at), size, token('--text'), ratio);
    }
  }

  highlight(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    { dots }: ContourContent,
    highlight: Highlight,
  ): Label[] {
    return highlightDots(
      ctx,
      dots,
      highlight,
      (dot) => this.placeOf(dot, at),
      (dot) => formatMetric(dot.value),
      { radius: 5, border: 2 },
      at.ratio,
    );
  }
}
