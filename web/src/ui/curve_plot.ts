import { frameOf, type Curve, type Frame } from '../model/curve';
import { formatCount } from '../model/numbers';
import { AxisPlot, type Pointer, type Projection, type Scale } from './axis_plot';
import {
  alphaFor,
  axisLabels,
  dotAtEnd,
  faintAlpha,
  strokeClones,
  strokeCurve,
  strongAlpha,
  wholeIncrements,
} from './curve_drawing';
import { nearestCurve } from './nearest';
import { drawLabels, type Label } from './plot_labels';
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

export interface PlotContent {
  lines: readonly Line[];
  metric: string;
  logarithmic: boolean;
  /** Steps of decisions, drawn as thin vertical marks. */
  rungs: readonly number[];
  maxStep: number;
  best: number | undefined;
  selected: number | undefined;
}

export interface PlotEvents {
  hover(number: number | undefined): void;
  select(number: number): void;
  /** So many curves leave the frame, because they diverge far from all others. */
  clip(curves: number): void;
}

const hoverRadiusPx = 24;
const thinAbove = 300;
const dashPx = 3;

/**
 * Learning curves. The lines are drawn by us, because curves of different trials share no steps and
 * one path a trial keeps thousands of them fast.
 */
export class CurvePlot {
  private readonly axes: AxisPlot;
  private content: PlotContent | undefined;
  private frame: Frame | undefined;

  constructor(
    private readonly host: HTMLElement,
    private readonly events: PlotEvents,
  ) {
    this.axes = new AxisPlot(host, {
      measure: () => this.measure(),
      paint: (ctx, at) => this.paint(ctx, at),
      paintOver: (ctx, at) => this.paintOver(ctx, at),
      near: (pointer) => this.near(pointer),
      hover: (number) => this.events.hover(number),
      click: (number) => this.events.select(number),
    });
  }

  destroy(): void {
    this.axes.destroy();
  }

  update(content: PlotContent): void {
    const rebuild =
      this.content?.logarithmic !== content.logarithmic || this.content.metric !== content.metric;
    this.content = content;
    if (!this.axes.built || rebuild) this.axes.rebuild();
    else this.axes.schedule();
  }

  /** Colours have changed. */
  repaint(): void {
    if (this.content) this.axes.rebuild();
  }

  highlight(number: number | undefined): void {
    this.axes.highlight(number);
  }

  private measure(): { x: Scale; y: Scale } {
    const { lines = [], logarithmic = false } = this.content ?? {};
    this.frame = frameOf(
      lines.map((line) => line.curve),
      logarithmic,
    );
    this.events.clip(this.frame?.clipped ?? 0);
    this.host.dataset.lines = String(lines.length);
    this.host.dataset.points = String(lines.reduce((sum, line) => sum + line.curve.length, 0));
    return {
      x: {
        range: this.fullX(),
        increments: wholeIncrements,
        labels: (splits) => splits.map((step) => (step === null ? '' : formatCount(step))),
      },
      y: {
        range: [this.frame?.min ?? 0, this.frame?.max ?? 1],
        logarithmic,
        labels: (splits) => axisLabels(splits, logarithmic),
      },
    };
  }

  private fullX(): [number, number] {
    let low = Infinity;
    let high = this.content?.maxStep || 1;
    for (const { curve } of this.content?.lines ?? []) {
      low = Math.min(low, curve.steps[0] ?? Infinity);
      high = Math.max(high, curve.steps.at(-1) ?? 0);
    }
    if (low >= high) low = 0;
    const margin = (high - low) * 0.02;
    return [low - margin, high + margin];
  }

  private near({ x, top, toY }: Pointer): number | undefined {
    return nearestCurve(this.content?.lines ?? [], x, top, toY, hoverRadiusPx);
  }

  private paint(ctx: CanvasRenderingContext2D, at: Projection): void {
    const { content } = this;
    if (!content) return;
    const { toX, toY, ratio } = at;
    this.drawRungs(ctx, at, content.rungs);
    ctx.beginPath();
    ctx.rect(at.left, at.top, at.width, at.height);
    ctx.clip();
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
        strokeClones(ctx, line.curve, curveOf, toX, toY, ratio);
        if (line.live || line.curve.length === 1) dotAtEnd(ctx, line.curve, toX, toY, 2.4 * ratio);
      }
    }
  }

  private drawRungs(
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

  private paintOver(ctx: CanvasRenderingContext2D, at: Projection): void {
    const { content } = this;
    if (!content) return;
    const { toX, toY, ratio } = at;
    const { best, selected } = content;
    const labels: Label[] = [];
    for (const number of new Set([best, selected, this.axes.hovered])) {
      const line = content.lines.find((each) => each.number === number);
      if (!line) continue;
      // Among many lines of one colour only another colour stands out.
      const own = content.lines.length > thinAbove ? token('--text') : line.color;
      for (const [color, width] of [
        [token('--surface'), 5.5],
        [own, number === this.axes.hovered ? 3.2 : 2.4],
      ] as const) {
        ctx.strokeStyle = ctx.fillStyle = color;
        ctx.lineWidth = width * ratio;
        strokeCurve(ctx, line.curve, toX, toY, ratio);
        dotAtEnd(ctx, line.curve, toX, toY, (width / 2 + 2) * ratio);
      }
      const last = line.curve.length - 1;
      const value = line.curve.values[last];
      if (value === undefined || !Number.isFinite(value)) continue;
      const text = number === best ? `best · trial ${number}` : `trial ${number}`;
      labels.push({ text, x: toX(line.curve.steps[last] as number), y: toY(value) });
    }
    drawLabels(ctx, at, labels);
  }
}
