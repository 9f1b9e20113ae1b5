import { emptyFrame, frameOfValues, type Frame } from '../model/curve_frame';
import type { Missing, Dot, Point } from '../model/history';
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
import { drawMark, stateMarks } from './marks';
import { nearestPoint } from './nearest';
import type { Label } from './plot_labels';
import { token } from './theme';
import { wholeRange, xScale, type XUnit } from './x_axis';

export interface HistoryContent extends PlotContent {
  dots: readonly Dot[];
  /** The best value so far from left to right, or the corners of a front. */
  line: readonly Point[];
  x: XUnit;
  logarithmic: boolean;
}

const hoverRadiusPx = 14;
const lanePx = 19;
const asidePx = 11;
// The height that uPlot takes for the axis and the margin above.
const beyondAreaPx = 46;
const dotAlpha: Opacity = { few: 0.95, manyAt: 300, least: 0.45 };
const missingOrder: readonly Missing[] = ['NaN', 'outside', 'failed', 'none'];

/** Draws trials as points with the line of the best; trials without a value get lanes below. */
export class HistoryPainter implements Painter<HistoryContent> {
  private frame: Frame | undefined;
  private xRange: [number, number] = [0, 1];
  private lanes: Missing[] = [];
  /** Trials without an x lie side by side; the number of trials to the left of each. */
  private aside: Map<Dot, number> = new Map();

  axisKeys({ x, logarithmic }: HistoryContent): { x: string; y: string } {
    return { x, y: String(logarithmic) };
  }

  measure({ dots, x, logarithmic }: HistoryContent, height: number): Measured {
    const xs = Float64Array.from(dots, (dot) => dot.x);
    const ys = Float64Array.from(dots, (dot) => dot.y);
    this.frame = frameOfValues(ys, logarithmic);
    const xFrame = x === 'value' ? frameOfValues(xs, false) : undefined;
    this.xRange = xFrame ? [xFrame.min, xFrame.max] : wholeRange(xs);
    this.lanes = missingOrder.filter((kind) => dots.some(({ missing }) => missing === kind));
    this.aside = asideOf(dots);
    const { min, max } = this.frame ?? emptyFrame(logarithmic);
    return {
      x: xScale(x, this.xRange),
      y: {
        range: [this.belowLanes(min, max, logarithmic, height), max],
        floor: min,
        logarithmic,
        labels: (splits) => (this.frame ? axisLabels(splits, logarithmic) : splits.map(() => '')),
      },
      clipped: (this.frame?.clipped ?? 0) + (xFrame?.clipped ?? 0),
      counts: { dots: dots.length },
    };
  }

  // The axis continues below its values, as far as the lanes need.
  private belowLanes(min: number, max: number, logarithmic: boolean, height: number): number {
    const areaHeight = Math.max(120, height - beyondAreaPx);
    const share = Math.min(0.6, (this.lanes.length * lanePx) / areaHeight);
    if (!logarithmic) return (min - share * max) / (1 - share);
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
    const lane = dot.missing === undefined ? -1 : this.lanes.indexOf(dot.missing);
    if (lane >= 0) return { x, y: bottom - (this.lanes.length - lane - 0.5) * lanePx * ratio };
    return { x, y: toY(Math.min(max, Math.max(min, dot.y))) };
  }

  findNear(pointer: Pointer, { dots }: HistoryContent): number | undefined {
    const places = dots.map((dot) => this.placeOf(dot, pointer, pointer.height, 1));
    const at = nearestPoint(places, pointer.left, pointer.top, hoverRadiusPx);
    return at === undefined ? undefined : dots[at]?.number;
  }

  paint(ctx: CanvasRenderingContext2D, at: Projection, content: HistoryContent): void {
    this.paintLanes(ctx, at);
    clipToArea(ctx, at);
    const radius = dotRadius(content.dots.length) * at.ratio;
    ctx.globalAlpha = alphaFor(content.dots.length, dotAlpha);
    // A path for each of thousands of dots is slow, a small picture is not.
    const marks = new Map<string, HTMLCanvasElement>();
    const half = Math.ceil(radius * 1.4);
    for (const dot of content.dots) {
      let mark = marks.get(dot.state);
      if (!mark) marks.set(dot.state, (mark = markPicture(dot.state, radius, half)));
      const { x, y } = this.placeOf(dot, at, at.top + at.height, at.ratio);
      ctx.drawImage(mark, Math.round(x) - half, Math.round(y) - half);
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

  private paintLine(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    { line, x }: HistoryContent,
  ): void {
    const { toX, toY, ratio } = at;
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

  // A trial may have several points on a front.
  highlight(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    { dots }: HistoryContent,
    { number, name, hovered }: Highlight,
  ): Label[] {
    const radius = (dotRadius(dots.length) + 1.6) * at.ratio;
    return dots
      .filter((dot) => dot.number === number)
      .map((dot) => {
        const { x, y } = this.placeOf(dot, at, at.height, at.ratio);
        ctx.fillStyle = ctx.strokeStyle = token('--surface');
        drawMark(ctx, stateMarks.completed, x, y, radius + 2.5 * at.ratio);
        ctx.fillStyle = ctx.strokeStyle = token(`--state-${dot.state}`);
        drawMark(ctx, stateMarks[dot.state], x, y, radius);
        const value = dot.missing ?? formatMetric(dot.y);
        return { text: hovered ? `${name} · ${value}` : name, x, y };
      });
  }
}

function markPicture(state: Dot['state'], radius: number, half: number): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 2 * half;
  const ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
  ctx.fillStyle = ctx.strokeStyle = token(`--state-${state}`);
  drawMark(ctx, stateMarks[state], half, half, radius);
  return canvas;
}

function dotRadius(dots: number): number {
  return dots > 2000 ? 2.3 : dots > 400 ? 2.9 : 3.9;
}

function asideOf(dots: readonly Dot[]): Map<Dot, number> {
  const counts = new Map<Missing | undefined, number>();
  const aside = new Map<Dot, number>();
  for (const dot of dots) {
    if (Number.isFinite(dot.x)) continue;
    const before = counts.get(dot.missing) ?? 0;
    aside.set(dot, before);
    counts.set(dot.missing, before + 1);
  }
  return aside;
}
