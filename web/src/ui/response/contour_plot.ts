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
import { nearestPoint } from '../nearest';
import { fillDot } from '../pair_plot';
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
      const place = this.placeOf(dot, at);
      ctx.fillStyle = token('--surface');
      fillDot(ctx, place, (dots.length > 500 ? 1.8 : 3) * ratio);
      ctx.fillStyle = token('--text');
      fillDot(ctx, place, (dots.length > 500 ? 1.2 : 2) * ratio);
    }
  }

  highlight(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    { dots }: ContourContent,
    { number, name, hovered }: Highlight,
  ): Label[] {
    return dots
      .filter((dot) => dot.number === number)
      .map((dot) => {
        const place = this.placeOf(dot, at);
        ctx.fillStyle = token('--surface');
        fillDot(ctx, place, 7 * at.ratio);
        ctx.fillStyle = token('--text');
        fillDot(ctx, place, 5 * at.ratio);
        return { text: hovered ? `${name} · ${formatMetric(dot.value)}` : name, ...place };
      });
  }
}
