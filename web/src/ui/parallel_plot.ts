import { formatAt, placeOf, valuesOf, type Axis, type Strands } from '../model/axes';
import type { Chosen } from '../model/brush';
import { rampColors } from './colors';
import { alphaFor, type Opacity } from './curve_drawing';
import { paintShades } from './density';
import { Grid, GridPen } from './grid';
import { nearestBetween } from './nearest';
import { Pace } from './pace';
import { drawAxes, drawTag } from './parallel_drawing';
import { yOfPlace, type Layout } from './parallel_layout';
import { redraws } from './export/plot_export';
import { runInSlices } from './slices';
import { token } from './theme';

export interface ParallelContent {
  axes: readonly Axis[];
  strands: Strands;
  /** Trials in all brushes; undefined without brushes. */
  chosen: Chosen | undefined;
  layout: Layout;
  selected: number | undefined;
}

const hoverRadiusPx = 12;
const shades = 48;
// Browsers limit the width of a canvas.
const mostCanvasPx = 16_000;
const strandAlpha: Opacity = { few: 0.85, manyAt: 80, least: 0.12 };
const restAlpha: Opacity = { few: 0.3, manyAt: 60, least: 0.05 };
const strandsBetweenYields = 32;
const mostStrokes = 300;

/** A picture of many lines. It is drawn in slices; the newest request is drawn next. */
class Picture {
  readonly canvas = document.createElement('canvas');
  private grid: Grid | undefined;
  private next: (() => void) | undefined;
  private cancel: (() => void) | undefined;

  draw(
    width: number,
    height: number,
    lines: (grid: Grid) => Iterator<void>,
    done: () => void,
  ): void {
    const start = (): void => {
      if (this.grid?.width !== width || this.grid.height !== height)
        this.grid = new Grid(width, height);
      this.grid.clear();
      const { grid } = this;
      this.cancel = runInSlices(lines(grid), () => {
        this.cancel = undefined;
        done();
        const { next } = this;
        this.next = undefined;
        next?.();
      });
    };
    if (this.cancel) this.next = start;
    else start();
  }

  paint(colors: readonly string[], alpha: (count: number) => number): void {
    if (this.grid) paintShades(this.canvas, this.grid, colors, alpha);
  }

  stop(): void {
    this.cancel?.();
    this.cancel = this.next = undefined;
  }
}

/** Draws the lines, axes and labels of parallel coordinates; ParallelChart shows names and brushes. */
export class ParallelPlot {
  private content: ParallelContent | undefined;
  private places: Float64Array = new Float64Array();
  private placed: Strands | undefined;
  private hovered: number | undefined;
  private restStale = true;
  private readonly restPicture = new Picture();
  private readonly picture = new Picture();
  private readonly pace = new Pace(() => this.draw());

  /**
   * Three canvases lie above each other: all trials in grey, the trials in all brushes, and the
   * trial under the mouse. A brush redraws only the middle one.
   */
  constructor(
    private readonly rest: HTMLCanvasElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly overlay: HTMLCanvasElement,
  ) {
    redraws.set(overlay, () => this.drawOverlay());
  }

  destroy(): void {
    this.pace.stop();
    this.picture.stop();
    this.restPicture.stop();
  }

  /** `brushed`: only brushes changed; the drawing must follow the mouse at once. */
  update(content: ParallelContent, brushed: boolean): void {
    const { content: before } = this;
    const resized = before?.layout !== content.layout;
    this.content = content;
    this.place(content);
    if (!brushed || resized || before.strands !== content.strands) this.restStale = true;
    this.rest.hidden = content.chosen === undefined;
    if (content.chosen && this.restStale) this.drawRest(content);
    if (brushed || resized) this.pace.now();
    else this.pace.schedule();
  }

  highlight(number: number | undefined): void {
    if (this.hovered === number) return;
    this.hovered = number;
    this.drawOverlay();
  }

  /** The trial with the nearest line, among the trials in all brushes. */
  at(x: number, y: number): number | undefined {
    const { content } = this;
    if (!content) return undefined;
    const { layout, strands, chosen } = content;
    const yOf = (line: number, axis: number): number =>
      !chosen || chosen.mask[line] === 1 ? this.y(line, axis) : NaN;
    const line = nearestBetween(strands.numbers.length, layout.xs, yOf, x, y, hoverRadiusPx);
    return line === undefined ? undefined : strands.numbers[line];
  }

  private place({ axes, strands }: ParallelContent): void {
    if (this.placed === strands) return;
    this.placed = strands;
    this.places = strands.values.map((value, i) =>
      Number.isNaN(value) ? NaN : placeOf(axes[i % axes.length] as Axis, value),
    );
  }

  private y(line: number, axis: number): number {
    const { axes, layout } = this.content as ParallelContent;
    return yOfPlace(layout, this.places[line * axes.length + axis] as number);
  }

  private ratioOf({ width }: Layout): number {
    return Math.min(devicePixelRatio, mostCanvasPx / width);
  }

  private prepare(canvas: HTMLCanvasElement, layout: Layout): CanvasRenderingContext2D {
    const { width, height } = layout;
    const ratio = this.ratioOf(layout);
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide) canvas.width = wide;
    if (canvas.height !== high) canvas.height = high;
    const ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.globalAlpha = 1;
    ctx.lineJoin = 'round';
    return ctx;
  }

  // Few lines are drawn at once, many in slices.
  private draw(): void {
    const { content } = this;
    if (!content) return;
    const { strands, chosen, layout } = content;
    const inside = chosen?.count ?? strands.numbers.length;
    if (strands.numbers.length <= mostStrokes) {
      this.picture.stop();
      this.finish(content, (ctx) => this.strokeStrands(ctx, content));
      return;
    }
    const ratio = this.ratioOf(layout);
    const [wide, high] = [Math.round(layout.width * ratio), Math.round(layout.height * ratio)];
    const lines = (grid: Grid): Iterator<void> => this.lines(grid, content, ratio, chosen);
    this.picture.draw(wide, high, lines, () => {
      const alpha = alphaFor(inside, strandAlpha);
      this.picture.paint(this.shadeColors(), (count) => 1 - (1 - alpha) ** count);
      this.finish(content, (ctx) =>
        ctx.drawImage(this.picture.canvas, 0, 0, layout.width, layout.height),
      );
    });
  }

  private finish(content: ParallelContent, strands: (ctx: CanvasRenderingContext2D) => void): void {
    const { layout, axes, chosen } = content;
    redraws.set(this.canvas, () => this.finish(content, strands));
    const ctx = this.prepare(this.canvas, layout);
    strands(ctx);
    drawAxes(ctx, axes, layout);
    this.drawOverlay();
    const count = content.strands.numbers.length;
    this.canvas.dataset.strands = String(count);
    this.canvas.dataset.chosen = String(chosen?.count ?? count);
  }

  private *lines(
    grid: Grid,
    { layout, axes, strands }: ParallelContent,
    ratio: number,
    chosen: Chosen | undefined,
  ): IterableIterator<void> {
    const pen = new GridPen(grid);
    const { places } = this;
    const xs = layout.xs.map((x) => x * ratio);
    for (let line = 0; line < strands.numbers.length; line += 1) {
      if (chosen && chosen.mask[line] === 0) continue;
      pen.begin(shadeAt(strands, line));
      for (let axis = 0; axis < axes.length; axis += 1) {
        const place = places[line * axes.length + axis] as number;
        pen.to(xs[axis] as number, yOfPlace(layout, place) * ratio);
      }
      pen.end();
      if (line % strandsBetweenYields === 0) yield;
    }
  }

  // Draws all trials, also outside of the brushes.
  private drawRest(content: ParallelContent): void {
    this.restStale = false;
    const { layout, strands } = content;
    const ratio = this.ratioOf(layout);
    const [wide, high] = [Math.round(layout.width * ratio), Math.round(layout.height * ratio)];
    const lines = (grid: Grid): Iterator<void> => this.lines(grid, content, ratio, undefined);
    this.restPicture.draw(wide, high, lines, () => {
      const alpha = alphaFor(strands.numbers.length, restAlpha);
      const colors = Array<string>(shades + 2).fill(token('--rung'));
      this.restPicture.paint(colors, (count) => 1 - (1 - alpha) ** count);
      const ctx = this.prepare(this.rest, layout);
      ctx.drawImage(this.restPicture.canvas, 0, 0, layout.width, layout.height);
    });
  }

  // The last two shades are for trials without a value.
  private shadeColors(): string[] {
    return [...rampColors(shades), token('--state-failed'), token('--rung')];
  }

  private strokeStrands(ctx: CanvasRenderingContext2D, content: ParallelContent): void {
    const { strands, chosen } = content;
    const colors = this.shadeColors();
    const count = strands.numbers.length;
    ctx.lineWidth = 1.3;
    ctx.globalAlpha = alphaFor(chosen?.count ?? count, strandAlpha);
    for (let line = 0; line < count; line += 1) {
      if (chosen && chosen.mask[line] === 0) continue;
      ctx.strokeStyle = colors[shadeAt(strands, line)] as string;
      this.strokeStrand(ctx, content, line);
    }
    ctx.globalAlpha = 1;
  }

  private strokeStrand(
    ctx: CanvasRenderingContext2D,
    { layout: { xs } }: ParallelContent,
    line: number,
  ): void {
    ctx.beginPath();
    for (let axis = 0; axis < xs.length; axis += 1) {
      ctx[axis === 0 ? 'moveTo' : 'lineTo'](xs[axis] as number, this.y(line, axis));
    }
    ctx.stroke();
  }

  private drawOverlay(): void {
    const { content } = this;
    if (!content) return;
    const { strands, selected, axes, layout } = content;
    const ctx = this.prepare(this.overlay, layout);
    const colors = this.shadeColors();
    for (const number of new Set([selected, this.hovered])) {
      const line = number === undefined ? -1 : strands.numbers.indexOf(number);
      if (line < 0) continue;
      const hasValue = !Number.isNaN(strands.merits[line]);
      const own = hasValue ? colors[shadeAt(strands, line)] : token('--muted');
      for (const [color, width] of [
        [token('--surface'), 7],
        [token('--text'), 4],
        [own as string, 2.2],
      ] as const) {
        ctx.strokeStyle = color;
        ctx.lineWidth = width;
        this.strokeStrand(ctx, content, line);
      }
      if (number !== this.hovered) continue;
      ctx.font = `600 11px ${token('--font')}`;
      ctx.textBaseline = 'middle';
      const values = valuesOf(strands, line);
      axes.forEach((axis, i) => {
        const value = values[i] as number;
        if (!Number.isNaN(value))
          drawTag(ctx, formatAt(axis, value), layout.xs[i] as number, this.y(line, i));
      });
    }
  }
}

function shadeAt({ merits, failed }: Strands, line: number): number {
  const merit = merits[line] as number;
  if (!Number.isNaN(merit)) return Math.round(merit * (shades - 1));
  return failed[line] === 1 ? shades : shades + 1;
}
