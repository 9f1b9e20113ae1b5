import type { Axis } from '../../model/axes';
import { emptyFrame, frameOfValues, type Frame } from '../../model/curve_frame';
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
import { alphaFor, axisLabels, type Opacity } from '../curve_drawing';
import { fillDot, highlightDots } from '../dots';
import { nearestPoint } from '../nearest';
import type { Label } from '../plot_labels';
import { parameterScale } from './response_scale';
import { token } from '../theme';

/** The model at a coordinate: its mean and a band around it. */
export interface ModelPoint {
  x: number;
  mean: number;
  low: number;
  high: number;
}

export interface SliceContent extends PlotContent {
  axis: Axis;
  dots: readonly (Point & { number: number })[];
  model: readonly ModelPoint[];
}

const hoverRadiusPx = 12;
const dotAlpha: Opacity = { few: 0.75, manyAt: 200, least: 0.2 };

/** Draws the values of a metric over one parameter, with the model's mean and band. */
export class SlicePainter implements Painter<SliceContent> {
  private y: Frame = emptyFrame(false);

  axisKeys({ axis }: SliceContent): { x: string; y: string } {
    return { x: `${axis.key} ${axis.kind}`, y: '' };
  }

  measure({ axis, dots }: SliceContent): Measured {
    const values = Float64Array.from(dots, (dot) => dot.y);
    this.y = frameOfValues(values, false) ?? emptyFrame(false);
    return {
      x: parameterScale(axis),
      y: { range: [this.y.min, this.y.max], labels: (splits) => axisLabels(splits, false) },
      clipped: this.y.clipped,
      counts: { dots: dots.length },
    };
  }

  private placeOf(dot: Point, { toX, toY }: Pick<Projection, 'toX' | 'toY'>): Point {
    return { x: toX(dot.x), y: toY(Math.min(this.y.max, Math.max(this.y.min, dot.y))) };
  }

  findNear(pointer: Pointer, { dots }: SliceContent): number | undefined {
    const places = dots.map((dot) => this.placeOf(dot, pointer));
    const at = nearestPoint(places, pointer.left, pointer.top, hoverRadiusPx);
    return at === undefined ? undefined : dots[at]?.number;
  }

  paint(ctx: CanvasRenderingContext2D, at: Projection, content: SliceContent): void {
    clipToArea(ctx, at);
    ctx.globalAlpha = alphaFor(content.dots.length, dotAlpha);
    ctx.fillStyle = token('--accent');
    for (const dot of content.dots) fillDot(ctx, this.placeOf(dot, at), 2.4 * at.ratio);
    ctx.globalAlpha = 1;
    if (content.axis.kind === 'listed') this.paintMeans(ctx, at, content.model);
    else this.paintModel(ctx, at, content.model);
  }

  private paintModel(
    ctx: CanvasRenderingContext2D,
    { toX, toY, ratio }: Projection,
    model: readonly ModelPoint[],
  ): void {
    if (model.length === 0) return;
    ctx.beginPath();
    model.forEach(({ x, high }, i) => ctx[i === 0 ? 'moveTo' : 'lineTo'](toX(x), toY(high)));
    for (const { x, low } of [...model].reverse()) ctx.lineTo(toX(x), toY(low));
    ctx.closePath();
    ctx.globalAlpha = 0.16;
    ctx.fillStyle = token('--text');
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.beginPath();
    model.forEach(({ x, mean }, i) => ctx[i === 0 ? 'moveTo' : 'lineTo'](toX(x), toY(mean)));
    ctx.strokeStyle = token('--text');
    ctx.lineWidth = 1.8 * ratio;
    ctx.stroke();
  }

  private paintMeans(
    ctx: CanvasRenderingContext2D,
    { toX, toY, ratio }: Projection,
    model: readonly ModelPoint[],
  ): void {
    ctx.strokeStyle = token('--text');
    for (const { x, mean, low, high } of model) {
      ctx.lineWidth = 2.4 * ratio;
      ctx.beginPath();
      ctx.moveTo(toX(x - 0.3), toY(mean));
      ctx.lineTo(toX(x + 0.3), toY(mean));
      ctx.stroke();
      ctx.lineWidth = ratio;
      ctx.beginPath();
      ctx.moveTo(toX(x), toY(low));
      ctx.lineTo(toX(x), toY(high));
      ctx.stroke();
    }
  }

  highlight(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    { dots }: SliceContent,
    highlight: Highlight,
  ): Label[] {
    return highlightDots(
      ctx,
      dots,
      highlight,
      (dot) => this.placeOf(dot, at),
      (dot) => formatMetric(dot.y),
      { radius: 4.5, border: 2 },
      at.ratio,
    );
  }
}
