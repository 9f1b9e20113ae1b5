import { frameOf, type Curve } from '../model/curve';
import { formatCount } from '../model/numbers';
import {
  clipToArea,
  type Highlight,
  type Measured,
  type Painter,
  type PlotContent,
  type Pointer,
  type Projection,
} from './axis_plot';
import {
  alphaFor,
  axisLabels,
  dotAtEnd,
  faintAlpha,
  strokeClones,
  strokeCurve,
  strokeSeams,
  strongAlpha,
  wholeIncrements,
} from './curve_drawing';
import { nearestCurve } from './nearest';
import type { Label } from './plot_labels';
import { token } from './theme';

export interface Line {
  number: number;
  curve: Curve;
  color: string;
  /** Stopped early, failed or killed: drawn behind and fainter. */
  faint: boolean;
  /** Running: its newest point is marked. */
  live: boolean;
}

export interface CurveContent extends PlotContent {
  lines: readonly Line[];
  metric: string;
  logarithmic: boolean;
  /** Steps of decisions, drawn as thin vertical marks. */
  rungs: readonly number[];
  maxStep: number;
}

const hoverRadiusPx = 24;
const thinAbove = 300;
const dashPx = 3;

/**
 * Draws learning curves. uPlot does not draw the lines: curves of different trials share no steps, and
 * one path per trial keeps thousands of them fast.
 */
export class CurvePainter implements Painter<CurveContent> {
  axisKeys({ metric, logarithmic }: CurveContent): { x: string; y: string } {
    return { x: 'step', y: `${metric} ${logarithmic}` };
  }

  measure({ lines, maxStep, logarithmic }: CurveContent): Measured {
    const curves = lines.map((line) => line.curve);
    const { min, max, clipped } = frameOf(curves, logarithmic) ?? { min: 0, max: 1, clipped: 0 };
    return {
      x: {
        range: stepRange(curves, maxStep),
        increments: wholeIncrements,
        labels: (splits) => splits.map((step) => (step === null ? '' : formatCount(step))),
      },
      y: {
        range: [min, max],
        logarithmic,
        labels: (splits) => axisLabels(splits, logarithmic),
      },
      clipped,
      counts: {
        lines: lines.length,
        points: curves.reduce((sum, curve) => sum + curve.length, 0),
      },
    };
  }

  findNear({ x, top, toY }: Pointer, { lines }: CurveContent): number | undefined {
    return nearestCurve(lines, x, top, toY, hoverRadiusPx);
  }

  paint(ctx: CanvasRenderingContext2D, at: Projection, content: CurveContent): void {
    const { toX, toY, ratio } = at;
    drawRungs(ctx, at, content.rungs);
    clipToArea(ctx, at);
    const curves = new Map(content.lines.map((line) => [line.number, line.curve]));
    const curveOf = (trial: number): Curve | undefined => curves.get(trial);
    ctx.lineJoin = 'round';
    // Faint ones first: what is alive or finished lies on top.
    for (const faint of [true, false]) {
      const group = content.lines.filter((line) => line.faint === faint);
      ctx.globalAlpha = alphaFor(group.length, faint ? faintAlpha : strongAlpha);
      ctx.lineWidth =
        (content.lines.length === 1 ? 2.2 : faint || group.length > thinAbove ? 1.1 : 1.5) * ratio;
      for (const line of group) {
        ctx.strokeStyle = ctx.fillStyle = line.color;
        strokeCurve(ctx, line.curve, toX, toY, ratio);
        strokeSeams(ctx, line.curve, toX, toY, ratio);
        strokeClones(ctx, line.curve, curveOf, toX, toY, ratio);
        if (line.live || line.curve.length === 1) dotAtEnd(ctx, line.curve, toX, toY, 2.4 * ratio);
      }
    }
  }

  highlight(
    ctx: CanvasRenderingContext2D,
    { toX, toY, ratio }: Projection,
    { lines }: CurveContent,
    { number, name, hovered }: Highlight,
  ): Label[] {
    const line = lines.find((each) => each.number === number);
    if (!line) return [];
    // Among many lines of one colour only another colour is visible.
    const color = lines.length > thinAbove ? token('--text') : line.color;
    for (const [stroke, width] of [
      [token('--surface'), 5.5],
      [color, hovered ? 3.2 : 2.4],
    ] as const) {
      ctx.strokeStyle = ctx.fillStyle = stroke;
      ctx.lineWidth = width * ratio;
      strokeCurve(ctx, line.curve, toX, toY, ratio);
      dotAtEnd(ctx, line.curve, toX, toY, (width / 2 + 2) * ratio);
    }
    const last = line.curve.length - 1;
    const value = line.curve.values[last];
    if (value === undefined || !Number.isFinite(value)) return [];
    return [{ text: name, x: toX(line.curve.steps[last] as number), y: toY(value) }];
  }
}

function stepRange(curves: readonly Curve[], maxStep: number): [number, number] {
  let low = Infinity;
  let high = maxStep || 1;
  for (const { steps } of curves) {
    low = Math.min(low, steps[0] ?? Infinity);
    high = Math.max(high, steps.at(-1) ?? 0);
  }
  if (low >= high) low = 0;
  const margin = (high - low) * 0.02;
  return [low - margin, high + margin];
}

function drawRungs(
  ctx: CanvasRenderingContext2D,
  { toX, ratio, left, top, width, height }: Projection,
  rungs: readonly number[],
): void {
  ctx.strokeStyle = token('--rung');
  ctx.fillStyle = token('--muted');
  ctx.lineWidth = ratio;
  ctx.font = `${10.5 * ratio}px ${token('--font')}`;
  ctx.textAlign = 'center';
  ctx.setLineDash([dashPx * ratio, dashPx * ratio]);
  let labelledUpTo = -Infinity;
  for (const rung of rungs) {
    const x = toX(rung);
    if (x < left || x > left + width + 1) continue;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    if (x - labelledUpTo < 48 * ratio) continue;
    ctx.fillText(`rung ${rung}`, x, top - 6 * ratio);
    labelledUpTo = x;
  }
  ctx.setLineDash([]);
}
