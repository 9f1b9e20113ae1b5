import { formatAt, placeOf, type Axis, type Strand } from '../model/axes';
import { rampColors } from './colors';
import { alphaFor, type Opacity } from './curve_drawing';
import { nearestBetween } from './nearest';
import { Pace } from './pace';
import { drawAxes, drawTag } from './parallel_drawing';
import { yOfPlace, type Layout } from './parallel_layout';
import { token } from './theme';

export interface ParallelContent {
  axes: readonly Axis[];
  /** Sorted with the worst first, so that the best lies on top. */
  strands: readonly Strand[];
  /** Trials in all brushes; undefined without brushes. */
  chosen: ReadonlySet<number> | undefined;
  layout: Layout;
  selected: number | undefined;
}

const hoverRadiusPx = 12;
const shades = 48;
// Browsers limit the width of a canvas.
const mostCanvasPx = 16_000;
const strandAlpha: Opacity = { few: 0.85, manyAt: 80, least: 0.1 };
const restAlpha: Opacity = { few: 0.3, manyAt: 60, least: 0.05 };

/** Draws the lines, axes and labels of parallel coordinates; ParallelChart shows names and brushes. */
export class ParallelPlot {
  private content: ParallelContent | undefined;
  private places: Float64Array = new Float64Array();
  private placed: readonly Strand[] | undefined;
  private hovered: number | undefined;
  private restStale = true;
  private readonly pace = new Pace(() => this.draw());

  /** Three canvases lie above each other. A brush redraws only the middle one, the mouse the top. */
  constructor(
    private readonly rest: HTMLCanvasElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly overlay: HTMLCanvasElement,
  ) {}

  destroy(): void {
    this.pace.stop();
  }

  /** `brushed`: only brushes changed; the drawing must follow the mouse at once. */
  update(content: ParallelContent, brushed: boolean): void {
    const { content: before } = this;
    const resized = before?.layout !== content.layout;
    this.content = content;
    this.place(content);
    if (!brushed || resized || before.strands !== content.strands) this.restStale = true;
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
      !chosen || chosen.has((strands[line] as Strand).number) ? this.y(line, axis) : NaN;
    const line = nearestBetween(strands.length, layout.xs, yOf, x, y, hoverRadiusPx);
    return line === undefined ? undefined : strands[line]?.number;
  }

  private place({ axes, strands }: ParallelContent): void {
    if (this.placed === strands) return;
    this.placed = strands;
    this.places = new Float64Array(axes.length * strands.length);
    strands.forEach(({ values }, line) => {
      axes.forEach((axis, i) => {
        const value = values[i];
        this.places[line * axes.length + i] = value === undefined ? NaN : placeOf(axis, value);
      });
    });
  }

  private y(line: number, axis: number): number {
    const { axes, layout } = this.content as ParallelContent;
    return yOfPlace(layout, this.places[line * axes.length + axis] as number);
  }

  private prepare(canvas: HTMLCanvasElement, { width, height }: Layout): CanvasRenderingContext2D {
    const ratio = Math.min(devicePixelRatio, mostCanvasPx / width);
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

  private draw(): void {
    const { content } = this;
    if (!content) return;
    const { strands, chosen, layout } = content;
    this.rest.hidden = chosen === undefined;
    if (chosen && this.restStale) this.drawRest(content);
    const ctx = this.prepare(this.canvas, layout);
    this.drawStrands(ctx, content);
    drawAxes(ctx, content.axes, layout);
    this.drawOverlay();
    this.canvas.dataset.strands = String(strands.length);
    this.canvas.dataset.chosen = String(chosen?.size ?? strands.length);
  }

  // Draws all trials, also outside of the brushes.
  private drawRest(content: ParallelContent): void {
    this.restStale = false;
    const ctx = this.prepare(this.rest, content.layout);
    ctx.globalAlpha = alphaFor(content.strands.length, restAlpha);
    ctx.strokeStyle = token('--rung');
    content.strands.forEach((_, line) => this.strokeStrand(ctx, content, line));
  }

  private drawStrands(ctx: CanvasRenderingContext2D, content: ParallelContent): void {
    const { strands, chosen } = content;
    const ramp = rampColors(shades);
    const [none, failed] = [token('--rung'), token('--state-failed')];
    const inside = chosen?.size ?? strands.length;
    ctx.lineWidth = inside > 1000 ? 1 : 1.3;
    ctx.globalAlpha = alphaFor(inside, strandAlpha);
    strands.forEach(({ number, merit, failed: ended }, line) => {
      if (chosen && !chosen.has(number)) return;
      const color = merit === undefined ? (ended ? failed : none) : ramp[shadeOf(merit)];
      ctx.strokeStyle = color as string;
      this.strokeStrand(ctx, content, line);
    });
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
    const ramp = rampColors(shades);
    for (const number of new Set([selected, this.hovered])) {
      const line = strands.findIndex((each) => each.number === number);
      const strand = strands[line];
      if (!strand) continue;
      const own = strand.merit === undefined ? token('--muted') : ramp[shadeOf(strand.merit)];
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
      axes.forEach((axis, i) => {
        const value = strand.values[i];
        if (value !== undefined)
          drawTag(ctx, formatAt(axis, value), layout.xs[i] as number, this.y(line, i));
      });
    }
  }
}

function shadeOf(merit: number): number {
  return Math.round(merit * (shades - 1));
}
