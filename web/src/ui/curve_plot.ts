import type { Curve } from '../model/curve';
import { emptyFrame, frameOf } from '../model/curve_frame';
import type { CurveStore, Trace } from '../model/curve_store';
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
import { DensityLayer, type Ramp } from './density';
import { GridPen, type Grid } from './grid';
import { nearestCurve, nearestTrace } from './nearest';
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

/** Many curves as a picture of how many of them cross each pixel; `lines` are drawn above it. */
export interface Density {
  store: CurveStore;
  /** The trials of the filter; undefined without a filter. */
  chosen: readonly { number: number }[] | undefined;
  /** Changes with the filter, but not if a trial begins to match it. */
  filter: string;
}

export interface CurveContent extends PlotContent {
  lines: readonly Line[];
  density?: Density | undefined;
  /** The line of any trial, to highlight it; by default one of `lines`. */
  lineOf?(number: number): Line | undefined;
  metric: string;
  logarithmic: boolean;
  /** Steps of decisions, drawn as thin vertical marks. */
  rungs: readonly number[];
  maxStep: number;
}

const hoverRadiusPx = 24;
/** How near the mouse must be to a curve that is only in the picture. */
const densityRadiusPx = 5;
const thinAbove = 300;
const aboveDensityAlpha = 0.4;
const dashPx = 3;

/**
 * Draws learning curves. uPlot does not draw the lines: curves of different trials share no steps, and
 * one path per trial keeps hundreds of them fast. Thousands of them are a density picture.
 */
export class CurvePainter implements Painter<CurveContent> {
  /** All curves, and those of the filter. */
  private all: DensityLayer | undefined;
  private chosen: DensityLayer | undefined;
  /** The number of curves in the picture. */
  pictured = 0;
  private points: { key: unknown; revision: number; sum: number } | undefined;

  attach(redraw: () => void): void {
    this.all = new DensityLayer(redraw);
    this.chosen = new DensityLayer(redraw);
  }

  destroy(): void {
    this.all?.stop();
    this.chosen?.stop();
  }

  axisKeys({ metric, logarithmic }: CurveContent): { x: string; y: string } {
    return { x: 'step', y: `${metric} ${logarithmic}` };
  }

  measure({ lines, density, maxStep, logarithmic }: CurveContent): Measured {
    const curves = lines.map((line) => line.curve);
    const frame = density ? density.store.frame(logarithmic) : frameOf(curves, logarithmic);
    const { min, max, clipped } = frame ?? emptyFrame(logarithmic);
    const [first, last] = density
      ? [density.store.firstStep, density.store.lastStep]
      : stepsOf(curves);
    return {
      x: {
        range: stepRange(first, last, maxStep),
        increments: wholeIncrements,
        labels: (splits) => splits.map((step) => (step === null ? '' : formatCount(step))),
      },
      y: {
        range: [min, max],
        logarithmic,
        labels: (splits) => axisLabels(splits, logarithmic),
      },
      clipped,
      counts: density
        ? { ...this.countDensity(density), strokes: lines.length }
        : {
            lines: lines.length,
            points: curves.reduce((sum, curve) => sum + curve.length, 0),
            strokes: lines.length,
          },
    };
  }

  private countDensity({ store, chosen }: Density): { lines: number; points: number } {
    if (!chosen) return { lines: store.size, points: store.points };
    const { revision } = store;
    if (this.points?.key !== chosen || this.points.revision !== revision) {
      const sum = chosen.reduce((total, { number }) => total + store.lengthOf(number), 0);
      this.points = { key: chosen, revision, sum };
    }
    const lines = chosen.reduce((count, { number }) => count + (store.has(number) ? 1 : 0), 0);
    return { lines, points: this.points.sum };
  }

  findNear({ x, top, toY }: Pointer, { lines, density }: CurveContent): number | undefined {
    const near = nearestCurve(lines, x, top, toY, hoverRadiusPx);
    if (near !== undefined || !density) return near;
    const { store, chosen } = density;
    const numbers = chosen ? chosen.map(({ number }) => number) : store.numbers();
    return nearestTrace(store, numbers, x, top, toY, densityRadiusPx);
  }

  private paintDensity(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    { store, chosen, filter }: Density,
    { metric, logarithmic }: CurveContent,
  ): void {
    const { all } = this;
    if (!all || !this.chosen) return;
    const width = Math.round(at.width);
    const height = Math.round(at.height);
    const y1 = at.toY(1) - at.top;
    const mapping: Mapping = logarithmic
      ? { ...xMapping(at), yScale: (at.toY(10) - at.toY(1)) / Math.LN10, yOrigin: y1, logarithmic }
      : {
          ...xMapping(at),
          yScale: at.toY(1) - at.toY(0),
          yOrigin: at.toY(0) - at.top,
          logarithmic,
        };
    const key = `${metric} ${width} ${height} ${Object.values(mapping).join()}`;
    const picture = { key, width, height, revision: store.revision as unknown };
    const finish = (): void => void (this.pictured = store.size);
    all.request({
      ...picture,
      lines: (grid) => traces(grid, store, [...store.numbers()], mapping, finish),
    });
    if (!all.isReady(key)) this.pictured = 0;
    all.draw(ctx, at, chosen ? restRamp() : densityRamp());
    if (!chosen) return this.chosen.stop();
    this.chosen.request({
      ...{ ...picture, key: `${key} ${filter}`, revision: chosen },
      lines: (grid) =>
        traces(
          grid,
          store,
          chosen.map(({ number }) => number),
          mapping,
        ),
    });
    this.chosen.draw(ctx, at, densityRamp());
  }

  paint(ctx: CanvasRenderingContext2D, at: Projection, content: CurveContent): void {
    const { toX, toY, ratio } = at;
    drawRungs(ctx, at, content.rungs);
    clipToArea(ctx, at);
    if (content.density) this.paintDensity(ctx, at, content.density, content);
    else {
      this.destroy();
      this.pictured = 0;
    }
    const curves = new Map(content.lines.map((line) => [line.number, line.curve]));
    const curveOf = (trial: number): Curve | undefined => curves.get(trial);
    ctx.lineJoin = 'round';
    // Faint ones first: what is alive or finished lies on top.
    for (const faint of [true, false]) {
      const group = content.lines.filter((line) => line.faint === faint);
      const alpha = alphaFor(group.length, faint ? faintAlpha : strongAlpha);
      ctx.lineWidth =
        (content.lines.length === 1 ? 2.2 : faint || group.length > thinAbove ? 1.1 : 1.5) * ratio;
      if (content.density) ctx.lineWidth = 1.1 * ratio;
      for (const line of group) {
        // The picture below must stay visible.
        ctx.globalAlpha = content.density && !line.live ? aboveDensityAlpha : alpha;
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
    { lines, density, lineOf }: CurveContent,
    { number, name, hovered }: Highlight,
  ): Label[] {
    const line = lines.find((each) => each.number === number) ?? lineOf?.(number);
    if (!line) return [];
    // Among many lines of one colour only another colour is visible.
    const color = density || lines.length > thinAbove ? token('--text') : line.color;
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

/** From steps and values to pixels of the picture. */
interface Mapping {
  xScale: number;
  xOrigin: number;
  yScale: number;
  yOrigin: number;
  logarithmic: boolean;
}

function xMapping({ toX, left }: Projection): { xScale: number; xOrigin: number } {
  return { xScale: toX(1) - toX(0), xOrigin: toX(0) - left };
}

const tracesBetweenYields = 16;

function* traces(
  grid: Grid,
  store: CurveStore,
  numbers: readonly number[],
  mapping: Mapping,
  finish?: () => void,
): IterableIterator<void> {
  const pen = new GridPen(grid);
  for (let i = 0; i < numbers.length; i += 1) {
    const trace = store.trace(numbers[i] as number);
    if (trace) drawTrace(pen, trace, mapping);
    if (i % tracesBetweenYields === 0) yield;
  }
  finish?.();
}

function drawTrace(pen: GridPen, trace: Trace, mapping: Mapping): void {
  const { steps, values, firstStep, firstValue, length, breaks } = trace;
  const { xScale, xOrigin, yScale, yOrigin, logarithmic } = mapping;
  pen.begin();
  let broken = 0;
  for (let i = 0; i < length; i += 1) {
    const value = values[firstValue + i] as number;
    const y = yOrigin + yScale * (logarithmic ? Math.log(value) : value);
    if (broken < breaks.length && breaks[broken] === i) {
      broken += 1;
      pen.lift();
    }
    if (Number.isFinite(y)) pen.to(xOrigin + xScale * (steps[firstStep + i] as number), y);
    else pen.lift();
  }
  pen.end();
}

const densityRamp = (): Ramp => ({
  colors: [1, 2, 3, 4].map((i) => token(`--density-${i}`)),
  few: 0.45,
  many: 1,
});
const restRamp = (): Ramp => ({ colors: [token('--rung')], few: 0.18, many: 0.6 });

function stepsOf(curves: readonly Curve[]): [first: number, last: number] {
  let first = Infinity;
  let last = 0;
  for (const { steps } of curves) {
    first = Math.min(first, steps[0] ?? Infinity);
    last = Math.max(last, steps.at(-1) ?? 0);
  }
  return [first, last];
}

function stepRange(first: number, last: number, maxStep: number): [number, number] {
  const high = Math.max(last, maxStep || 1);
  const low = first >= high ? 0 : first;
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
