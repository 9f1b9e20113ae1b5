import { frameOf, type Frame } from '../model/curve';
import type { Beside, Dot, Point } from '../model/history';
import { formatCount, formatMetric } from '../model/numbers';
import { formatSpan } from '../model/time';
import { AxisPlot, type Pointer, type Projection, type Scale } from './axis_plot';
import { alphaFor, axisLabels, wholeIncrements, type Opacity } from './curve_drawing';
import { drawMark, stateMarks } from './marks';
import { nearestPoint } from './nearest';
import { drawLabels, type Label } from './plot_labels';
import { token } from './theme';

export interface HistoryContent {
  dots: readonly Dot[];
  /** What is best: the best so far from left to right, or the corners of a front. */
  line: readonly Point[];
  x: 'number' | 'seconds' | 'value';
  logarithmic: boolean;
  best: number | undefined;
  selected: number | undefined;
}

export interface HistoryEvents {
  hover(number: number | undefined): void;
  open(number: number): void;
  /** So many trials lie beyond the frame and are drawn at its edge. */
  clip(trials: number): void;
}

const hoverRadiusPx = 14;
const lanePx = 19;
const asidePx = 11;
// What uPlot takes of the height for the axis and the margin above.
const beyondAreaPx = 46;
const dotAlpha: Opacity = { few: 0.95, manyAt: 300, least: 0.45 };
const besideOrder: readonly Beside[] = ['NaN', 'outside', 'failed', 'none'];
const secondIncrements = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800],
  ...[1, 2, 4, 8, 16, 48, 120, 240].map((halfDays) => halfDays * 43_200),
];

/** Trials as points, with the line of the best; those without a value in lanes of their own below. */
export class HistoryPlot {
  private readonly axes: AxisPlot;
  private content: HistoryContent | undefined;
  private frame: Frame | undefined;
  private xRange: [number, number] = [0, 1];
  private lanes: Beside[] = [];
  /** Those without a place along x lie side by side: how many are left of each. */
  private aside: Map<Dot, number> = new Map();

  constructor(
    private readonly host: HTMLElement,
    private readonly events: HistoryEvents,
  ) {
    this.axes = new AxisPlot(host, {
      measure: () => this.measure(),
      paint: (ctx, at) => this.paint(ctx, at),
      paintOver: (ctx, at) => this.paintOver(ctx, at),
      near: (pointer) => this.near(pointer),
      hover: (number) => this.events.hover(number),
      click: (number) => this.events.open(number),
    });
  }

  destroy(): void {
    this.axes.destroy();
  }

  update(content: HistoryContent): void {
    const { content: before } = this;
    this.content = content;
    const otherX = before?.x !== content.x;
    if (!this.axes.built || otherX || before.logarithmic !== content.logarithmic)
      this.axes.rebuild(!otherX);
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
    const { dots = [], x = 'number', logarithmic = false } = this.content ?? {};
    const framed = (values: readonly number[], log: boolean): Frame | undefined =>
      frameOf(
        values.map((value) => ({ values: [value] })),
        log,
      );
    this.frame = framed(
      dots.map((dot) => dot.y),
      logarithmic,
    );
    const xFrame =
      x === 'value'
        ? framed(
            dots.map((dot) => dot.x),
            false,
          )
        : undefined;
    this.xRange = xFrame ? [xFrame.min, xFrame.max] : wholeRange(dots.map((dot) => dot.x));
    this.lanes = besideOrder.filter((kind) => dots.some(({ beside }) => beside === kind));
    this.aside = asideOf(dots);
    this.events.clip((this.frame?.clipped ?? 0) + (xFrame?.clipped ?? 0));
    this.host.dataset.dots = String(dots.length);
    const { min, max } = this.frame ?? { min: 0, max: 1 };
    return {
      x: {
        range: this.xRange,
        labels: (splits) => xLabels(x, splits),
        ...(x === 'number' ? { increments: wholeIncrements } : {}),
        ...(x === 'seconds' ? { increments: secondIncrements } : {}),
      },
      y: {
        range: [this.belowLanes(min, max), max],
        floor: min,
        logarithmic,
        labels: (splits) => (this.frame ? axisLabels(splits, logarithmic) : splits.map(() => '')),
      },
    };
  }

  // The axis goes on below its values, as far as the lanes need.
  private belowLanes(min: number, max: number): number {
    const height = Math.max(120, this.host.clientHeight - beyondAreaPx);
    const share = Math.min(0.6, (this.lanes.length * lanePx) / height);
    if (!this.content?.logarithmic) return (min - share * max) / (1 - share);
    return Math.exp((Math.log(min) - share * Math.log(max)) / (1 - share));
  }

  /** Where a trial is drawn, in the pixels of the projection. */
  private placeOf(
    dot: Dot,
    { toX, toY }: Pick<Projection, 'toX' | 'toY'>,
    bottom: number,
    ratio: number,
  ): Point {
    const { min, max } = this.frame ?? { min: 0, max: 1 };
    const [left, right] = this.xRange;
    const aside = this.aside.get(dot);
    const x =
      aside === undefined
        ? toX(Math.min(right, Math.max(left, dot.x)))
        : toX(left) + (aside + 0.7) * asidePx * ratio;
    const lane = dot.beside === undefined ? -1 : this.lanes.indexOf(dot.beside);
    if (lane >= 0) return { x, y: bottom - (this.lanes.length - lane - 0.5) * lanePx * ratio };
    return { x, y: toY(Math.min(max, Math.max(min, dot.y))) };
  }

  private near(pointer: Pointer): number | undefined {
    const { dots = [] } = this.content ?? {};
    const places = dots.map((dot) => this.placeOf(dot, pointer, pointer.height, 1));
    const at = nearestPoint(places, pointer.left, pointer.top, hoverRadiusPx);
    return at === undefined ? undefined : dots[at]?.number;
  }

  private paint(ctx: CanvasRenderingContext2D, at: Projection): void {
    const { content } = this;
    if (!content) return;
    this.paintLanes(ctx, at);
    ctx.beginPath();
    ctx.rect(at.left, at.top, at.width, at.height);
    ctx.clip();
    const radius = dotRadius(content.dots.length) * at.ratio;
    ctx.globalAlpha = alphaFor(content.dots.length, dotAlpha);
    const colors = new Map<string, string>();
    for (const dot of content.dots) {
      let color = colors.get(dot.state);
      if (!color) colors.set(dot.state, (color = token(`--state-${dot.state}`)));
      ctx.fillStyle = ctx.strokeStyle = color;
      const { x, y } = this.placeOf(dot, at, at.top + at.height, at.ratio);
      drawMark(ctx, stateMarks[dot.state], x, y, radius);
    }
    ctx.globalAlpha = 1;
    this.paintLine(ctx, at, content);
  }

  private paintLanes(ctx: CanvasRenderingContext2D, at: Projection): void {
    const { left, top, width, height, ratio } = at;
    const size = lanePx * ratio;
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    ctx.font = `${10 * ratio}px ${token('--font')}`;
    this.lanes.forEach((kind, i) => {
      const y = top + height - (this.lanes.length - i) * size;
      ctx.fillStyle = token('--sunken');
      ctx.fillRect(left, y + ratio, width, size - ratio);
      ctx.fillStyle = token('--muted');
      ctx.fillText(kind, left - 8 * ratio, y + size / 2);
    });
    ctx.textBaseline = 'alphabetic';
  }

  private paintLine(ctx: CanvasRenderingContext2D, at: Projection, content: HistoryContent): void {
    const { toX, toY, ratio } = at;
    const { line, x } = content;
    if (line.length === 0) return;
    ctx.strokeStyle = token('--accent');
    ctx.lineWidth = 1.8 * ratio;
    ctx.lineJoin = 'round';
    ctx.beginPath();
    line.forEach((point, i) => {
      const before = line[i - 1];
      if (before && x !== 'value') ctx.lineTo(toX(point.x), toY(before.y));
      ctx[i === 0 ? 'moveTo' : 'lineTo'](toX(point.x), toY(point.y));
    });
    if (x !== 'value') ctx.lineTo(at.left + at.width, toY((line.at(-1) as Point).y));
    ctx.stroke();
  }

  private paintOver(ctx: CanvasRenderingContext2D, at: Projection): void {
    const { content } = this;
    if (!content) return;
    const { best, selected, dots } = content;
    const labels: Label[] = [];
    const radius = (dotRadius(dots.length) + 1.6) * at.ratio;
    for (const number of new Set([best, selected, this.axes.hovered])) {
      for (const dot of dots) {
        if (dot.number !== number) continue;
        const { x, y } = this.placeOf(dot, at, at.height, at.ratio);
        ctx.fillStyle = ctx.strokeStyle = token('--surface');
        drawMark(ctx, { ...stateMarks.completed }, x, y, radius + 2.5 * at.ratio);
        ctx.fillStyle = ctx.strokeStyle = token(`--state-${dot.state}`);
        drawMark(ctx, stateMarks[dot.state], x, y, radius);
        const value = dot.beside ?? formatMetric(dot.y);
        const named = number === best ? `best · trial ${number}` : `trial ${number}`;
        labels.push({ text: number === this.axes.hovered ? `${named} · ${value}` : named, x, y });
      }
    }
    drawLabels(ctx, at, labels);
  }
}

function dotRadius(dots: number): number {
  return dots > 2000 ? 2.3 : dots > 400 ? 2.9 : 3.9;
}

function asideOf(dots: readonly Dot[]): Map<Dot, number> {
  const counts = new Map<Beside | undefined, number>();
  const aside = new Map<Dot, number>();
  for (const dot of dots) {
    if (Number.isFinite(dot.x)) continue;
    const before = counts.get(dot.beside) ?? 0;
    aside.set(dot, before);
    counts.set(dot.beside, before + 1);
  }
  return aside;
}

function wholeRange(values: readonly number[]): [number, number] {
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  if (low > high) return [0, 1];
  const margin = (high - low) * 0.025 || 0.5;
  return [low - margin, high + margin];
}

function xLabels(x: HistoryContent['x'], splits: readonly (number | null)[]): string[] {
  if (x === 'value') return axisLabels(splits, false);
  const apart = Math.abs((splits[1] ?? 0) - (splits[0] ?? 0));
  return splits.map((value) => {
    // A margin may reach below the first.
    if (value === null || value < 0) return '';
    return x === 'number' ? formatCount(value) : formatSpan(value, apart);
  });
}
