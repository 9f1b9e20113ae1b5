import { emptyFrame, frameOfValues, type Frame } from '../model/curve_frame';
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
import { alphaFor, axisLabels, type Opacity } from './curve_drawing';
import { fillBordered, fillDot, highlightDots } from './dots';
import { nearestPoint } from './nearest';
import type { Label } from './plot_labels';
import { token } from './theme';

/** A report of a trial in two metrics. */
export interface PairDot extends Point {
  number: number;
  /** No other report is better in all metrics of the sweep. */
  onFront: boolean;
}

export interface PairContent extends PlotContent {
  dots: readonly PairDot[];
}

const hoverRadiusPx = 12;
const dotAlpha: Opacity = { few: 0.7, manyAt: 200, least: 0.25 };

/** Draws reports in two of several metrics; those on the front are larger and coloured. */
export class PairPainter implements Painter<PairContent> {
  private x: Frame = emptyFrame(false);
  private y: Frame = emptyFrame(false);

  axisKeys(): { x: string; y: string } {
    return { x: '', y: '' };
  }

  measure({ dots }: PairContent): Measured {
    const framed = (of: 'x' | 'y'): Frame =>
      frameOfValues(
        Float64Array.from(dots, (dot) => dot[of]),
        false,
      ) ?? emptyFrame(false);
    this.x = framed('x');
    this.y = framed('y');
    const labels = (splits: readonly (number | null)[]): string[] => axisLabels(splits, false);
    return {
      x: { range: [this.x.min, this.x.max], labels },
      y: { range: [this.y.min, this.y.max], labels },
      clipped: this.x.clipped + this.y.clipped,
      counts: { dots: dots.length, front: dots.filter(({ onFront }) => onFront).length },
    };
  }

  /** Dots outside the frame are drawn at its edge. */
  private placeOf(dot: PairDot, { toX, toY }: Pick<Projection, 'toX' | 'toY'>): Point {
    return {
      x: toX(Math.min(this.x.max, Math.max(this.x.min, dot.x))),
      y: toY(Math.min(this.y.max, Math.max(this.y.min, dot.y))),
    };
  }

  findNear(pointer: Pointer, { dots }: PairContent): number | undefined {
    const places = dots.map((dot) => this.placeOf(dot, pointer));
    const at = nearestPoint(places, pointer.left, pointer.top, hoverRadiusPx);
    return at === undefined ? undefined : dots[at]?.number;
  }

  paint(ctx: CanvasRenderingContext2D, at: Projection, { dots }: PairContent): void {
    clipToArea(ctx, at);
    ctx.globalAlpha = alphaFor(dots.length, dotAlpha);
    ctx.fillStyle = token('--border-strong');
    for (const dot of dots) if (!dot.onFront) fillDot(ctx, this.placeOf(dot, at), 2.4 * at.ratio);
    ctx.globalAlpha = 1;
    for (const dot of dots) {
      if (!dot.onFront) continue;
      const size = { radius: 3.8, border: 1.2 };
      fillBordered(ctx, this.placeOf(dot, at), size, token('--accent'), at.ratio);
    }
  }

  highlight(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    { dots }: PairContent,
    highlight: Highlight,
  ): Label[] {
    return highlightDots(
      ctx,
      dots,
      highlight,
      (dot) => this.placeOf(dot, at),
      (dot) => `${formatMetric(dot.x)}, ${formatMetric(dot.y)}`,
      { radius: 5, border: 2 },
      at.ratio,
    );
  }
}
