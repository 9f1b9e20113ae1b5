import uPlot from 'uplot';

import { labelRoom } from './label_room';
import { Pace } from './pace';
import { drawLabels, type Label } from './plot_labels';
import { redraws } from './export/plot_export';
import { printing, token } from './theme';

export interface Scale {
  range: readonly [number, number];
  logarithmic?: boolean;
  labels(splits: readonly (number | null)[]): string[];
  /** Distances that labels may have; by default those of decimal numbers. */
  increments?: number[];
  /** Values below it get neither labels nor grid lines. */
  floor?: number;
}

/** From values to pixels of a canvas; `ratio` of them make one pixel of the page. */
export interface Projection {
  toX(value: number): number;
  toY(value: number): number;
  ratio: number;
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Where the mouse is, in pixels of the page within the axes, with a projection to such pixels. */
export interface Pointer extends Pick<Projection, 'toX' | 'toY'> {
  left: number;
  top: number;
  /** The value under the mouse. */
  x: number;
  /** The height of the area within the axes. */
  height: number;
}

export interface PlotContent {
  best: number | undefined;
  selected: number | undefined;
}

export interface Measured {
  x: Scale;
  y: Scale;
  /** How many curves or trials leave the frame, because they diverge far from all others. */
  clipped: number;
  /** Counts for the data attributes of the host. */
  counts: Record<string, number>;
}

/** A trial to highlight, and the name for its label. */
export interface Highlight {
  number: number;
  name: string;
  hovered: boolean;
}

/** Draws one kind of chart between the axes. */
export interface Painter<Content extends PlotContent> {
  /** Takes a function that draws again, for parts that are drawn in the background. */
  attach?(redraw: () => void): void;
  destroy?(): void;
  /** The number of curves that are a picture and not lines. */
  readonly pictured?: number;
  /** What the axes show. A new `y` needs new axes; a new `x` also resets the zoom. */
  axisKeys(content: Content): { x: string; y: string };
  /** Called before each drawing, with the height of the host in pixels. */
  measure(content: Content, height: number): Measured;
  paint(ctx: CanvasRenderingContext2D, at: Projection, content: Content): void;
  /** Draws a highlighted trial on the canvas above and returns its labels. */
  highlight(
    ctx: CanvasRenderingContext2D,
    at: Projection,
    content: Content,
    trial: Highlight,
  ): Label[];
  /** The trial that the mouse points at. */
  findNear(at: Pointer, content: Content): number | undefined;
}

export interface PlotEvents {
  /** The mouse points at another trial, or at none. */
  hover(number: number | undefined): void;
  click(number: number): void;
  /** See `Measured.clipped`. */
  clip(count: number): void;
  /** The user has chosen a range of the x axis; undefined: all of it. */
  zoom?(range: readonly [number, number] | undefined): void;
}

const smallestZoomPx = 6;

export function clipToArea(ctx: CanvasRenderingContext2D, at: Projection): void {
  ctx.beginPath();
  ctx.rect(at.left, at.top, at.width, at.height);
  ctx.clip();
}

/** A chart of trials. uPlot does axes, grid, zoom and cursor; the painter draws between the axes. */
export class AxisPlot<Content extends PlotContent> {
  private content: Content | undefined;
  private epoch = 0;
  private hovered: number | undefined;
  private plot: uPlot | undefined;
  private overlay: HTMLCanvasElement | undefined;
  private scales: Measured | undefined;
  private zoom: [number, number] | undefined;
  private readonly resize: ResizeObserver;
  private readonly pace = new Pace(() => this.redraw());

  constructor(
    private readonly host: HTMLElement,
    private readonly painter: Painter<Content>,
    private readonly events: PlotEvents,
  ) {
    painter.attach?.(() => this.pace.schedule());
    this.resize = new ResizeObserver(() => {
      this.plot?.setSize(this.size());
      this.placeOverlay();
      if (this.plot) this.pace.now();
    });
    this.resize.observe(host);
  }

  destroy(): void {
    this.pace.stop();
    this.resize.disconnect();
    this.plot?.destroy();
    this.painter.destroy?.();
  }

  /** Draws new content soon; a new `epoch` means that colours may have changed. */
  update(content: Content, epoch: number): void {
    const before = this.content && this.painter.axisKeys(this.content);
    const { x, y } = this.painter.axisKeys(content);
    const isStale = before?.x !== x || before.y !== y || this.epoch !== epoch;
    if (before && before.x !== x) this.zoomTo(undefined);
    this.content = content;
    this.epoch = epoch;
    if (isStale) this.rebuild(content);
    else this.pace.schedule();
  }

  highlight(number: number | undefined): void {
    if (this.hovered === number) return;
    this.hovered = number;
    this.drawOverlay();
  }

  private rebuild(content: Content): void {
    this.plot?.destroy();
    this.scales = this.measure(content);
    this.plot = new uPlot(this.options(this.scales), this.data(this.scales), this.host);
    this.overlay = document.createElement('canvas');
    this.overlay.className = 'plot-overlay';
    const { over, ctx } = this.plot;
    redraws.set(ctx.canvas, () => this.plot?.batch(() => this.plot?.redraw(false)));
    redraws.set(this.overlay, () => this.drawOverlay());
    over.append(this.overlay);
    over.addEventListener('click', () => {
      if (this.hovered !== undefined) this.events.click(this.hovered);
    });
    over.addEventListener('dblclick', () => {
      this.zoomTo(undefined);
      this.pace.now();
    });
    over.addEventListener('mouseleave', () => this.point(undefined));
    this.placeOverlay();
    this.pace.now();
  }

  private measure(content: Content): Measured {
    const measured = this.painter.measure(content, this.host.clientHeight);
    this.events.clip(measured.clipped);
    for (const [name, count] of Object.entries(measured.counts))
      this.host.dataset[name] = String(count);
    return measured;
  }

  // Moving the mouse draws only this canvas, which lies above the plot. On paper it would be opaque, so
  // the plot has the highlights there.
  private drawOverlay(): void {
    const { plot, overlay } = this;
    const ctx = overlay?.getContext('2d');
    if (!plot || !overlay || !ctx) return;
    if (printing.peek()) return void (overlay.width = 0);
    const ratio = uPlot.pxRatio;
    ctx.clearRect(0, 0, overlay.width, overlay.height);
    this.drawHighlights(ctx, {
      toX: (value) => plot.valToPos(value, 'x') * ratio,
      toY: (value) => plot.valToPos(value, 'y') * ratio,
      ratio,
      left: 0,
      top: 0,
      width: overlay.width,
      height: overlay.height,
    });
  }

  private drawHighlights(ctx: CanvasRenderingContext2D, at: Projection): void {
    const { content } = this;
    if (!content) return;
    ctx.lineJoin = 'round';
    const labels: Label[] = [];
    for (const number of new Set([content.best, content.selected, this.hovered])) {
      if (number === undefined) continue;
      const name = number === content.best ? `best · trial ${number}` : `trial ${number}`;
      const trial = { number, name, hovered: number === this.hovered };
      labels.push(...this.painter.highlight(ctx, at, content, trial));
    }
    drawLabels(ctx, { width: at.left + at.width, ratio: at.ratio }, labels);
  }

  private size(): { width: number; height: number } {
    // A picture of another size would not be ready before the page is printed.
    if (printing.peek() && this.plot) {
      const { width, height } = this.plot;
      return { width, height };
    }
    return {
      width: Math.max(240, this.host.clientWidth),
      height: Math.max(160, this.host.clientHeight),
    };
  }

  private data({ x, y }: Measured): uPlot.AlignedData {
    return [[...x.range], [...y.range]];
  }

  private redraw(): void {
    if (!this.content) return;
    this.scales = this.measure(this.content);
    this.plot?.setData(this.data(this.scales), true);
  }

  private options(scales: Measured): uPlot.Options {
    const axis = (of: 'x' | 'y', size: uPlot.Axis.Size): uPlot.Axis => {
      const { increments } = scales[of];
      const above = (value: number): boolean => value >= (this.scales?.[of].floor ?? -Infinity);
      const filter: uPlot.Axis.Filter = (_, splits) => splits.map((v) => (above(v) ? v : null));
      return {
        stroke: token('--muted'),
        font: `11px ${token('--font')}`,
        size,
        grid: { stroke: token('--grid'), width: 1, filter },
        ticks: { stroke: token('--grid'), width: 1, size: 4, filter },
        values: (_, splits) =>
          (this.scales?.[of].labels(splits) ?? []).map((text, i) =>
            above(splits[i] as number) ? text : '',
          ),
        ...(increments ? { incrs: increments } : {}),
      };
    };
    return {
      ...this.size(),
      padding: [18, 12, 0, 0],
      legend: { show: false },
      cursor: {
        x: true,
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
      },
      select: { show: true, left: 0, top: 0, width: 0, height: 0 },
      scales: {
        x: { time: false, range: () => this.zoom ?? [...(this.scales?.x.range ?? [0, 1])] },
        y: {
          distr: scales.y.logarithmic ? 3 : 1,
          range: () => [...(this.scales?.y.range ?? [0, 1])],
        },
      },
      axes: [{ ...axis('x', 28), gap: 2 }, axis('y', (_, labels) => labelRoom(labels))],
      series: [{}, { scale: 'y', stroke: 'transparent', width: 0, points: { show: false } }],
      hooks: {
        draw: [(plot) => this.draw(plot)],
        setCursor: [(plot) => this.followCursor(plot)],
        setSelect: [(plot) => this.takeSelection(plot)],
        setSize: [() => this.placeOverlay()],
      },
    };
  }

  private draw(plot: uPlot): void {
    if (!this.content) return;
    const { ctx, bbox } = plot;
    ctx.save();
    const at: Projection = {
      toX: (value) => plot.valToPos(value, 'x', true),
      toY: (value) => plot.valToPos(value, 'y', true),
      ratio: uPlot.pxRatio,
      ...bbox,
    };
    this.painter.paint(ctx, at, this.content);
    ctx.restore();
    if (printing.peek()) this.drawHighlights(ctx, at);
    this.host.dataset.density = String(this.painter.pictured ?? 0);
    this.drawOverlay();
  }

  private followCursor(plot: uPlot): void {
    const { left = -1, top = -1 } = plot.cursor;
    if (left < 0 || top < 0) return this.point(undefined);
    this.point({
      left,
      top,
      x: plot.posToVal(left, 'x'),
      height: plot.over.clientHeight,
      toX: (value) => plot.valToPos(value, 'x'),
      toY: (value) => plot.valToPos(value, 'y'),
    });
  }

  private point(at: Pointer | undefined): void {
    const number = at && this.content && this.painter.findNear(at, this.content);
    if (this.hovered === number) return;
    this.highlight(number);
    this.events.hover(number);
  }

  private takeSelection(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < smallestZoomPx) return;
    this.zoomTo([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]);
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.pace.now();
  }

  private zoomTo(range: [number, number] | undefined): void {
    this.zoom = range;
    this.events.zoom?.(range);
  }

  private placeOverlay(): void {
    const { plot, overlay } = this;
    if (!plot || !overlay) return;
    const ratio = uPlot.pxRatio;
    overlay.width = plot.over.clientWidth * ratio;
    overlay.height = plot.over.clientHeight * ratio;
    this.drawOverlay();
  }
}
