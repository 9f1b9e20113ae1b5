import uPlot from 'uplot';

import { Pace } from './pace';
import { token } from './theme';

export interface Scale {
  range: readonly [number, number];
  logarithmic?: boolean;
  labels(splits: readonly (number | null)[]): string[];
  /** Distances that labels may have; by default those of decimal numbers. */
  increments?: number[];
  /** Below it lies something else: neither labels nor lines of the grid. */
  floor?: number;
}

/** From values to pixels of a canvas, of which `ratio` make one of the page's. */
export interface Projection {
  toX(value: number): number;
  toY(value: number): number;
  ratio: number;
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Where the mouse is, in the page's pixels within the axes, with the projection to such ones. */
export interface Pointer extends Pick<Projection, 'toX' | 'toY'> {
  left: number;
  top: number;
  /** The value under it. */
  x: number;
  /** Of the area within the axes. */
  height: number;
}

/** What is drawn between the axes. */
export interface Painter {
  /** Called before each drawing. */
  measure(): { x: Scale; y: Scale };
  paint(ctx: CanvasRenderingContext2D, at: Projection): void;
  /** What is highlighted, on a canvas above: moving the mouse draws this and nothing else. */
  paintOver(ctx: CanvasRenderingContext2D, at: Projection): void;
  /** The trial that the mouse points at. */
  near(at: Pointer): number | undefined;
  /** It points at another, or at none. */
  hover(number: number | undefined): void;
  click(number: number): void;
}

const smallestZoomPx = 6;

/** Axes, grid, zoom and cursor are uPlot's; what lies between the axes is drawn by the painter. */
export class AxisPlot {
  /** The trial that is highlighted. */
  hovered: number | undefined;
  private plot: uPlot | undefined;
  private overlay: HTMLCanvasElement | undefined;
  private scales: { x: Scale; y: Scale } | undefined;
  private zoom: [number, number] | undefined;
  private readonly resize: ResizeObserver;
  private readonly pace = new Pace(() => this.redraw());

  constructor(
    private readonly host: HTMLElement,
    private readonly painter: Painter,
  ) {
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
  }

  /** Begins anew, as it must where axes or colours have changed; `keepZoom` where x means the same. */
  rebuild(keepZoom = true): void {
    if (!keepZoom) this.zoom = undefined;
    this.plot?.destroy();
    this.scales = this.painter.measure();
    this.plot = new uPlot(this.options(this.scales), this.data(), this.host);
    this.overlay = document.createElement('canvas');
    this.overlay.className = 'plot-overlay';
    const { over } = this.plot;
    over.append(this.overlay);
    over.addEventListener('click', () => {
      if (this.hovered !== undefined) this.painter.click(this.hovered);
    });
    over.addEventListener('dblclick', () => {
      this.zoom = undefined;
      this.pace.now();
    });
    over.addEventListener('mouseleave', () => this.point(undefined));
    this.placeOverlay();
    this.pace.now();
  }

  get built(): boolean {
    return this.plot !== undefined;
  }

  schedule(): void {
    this.pace.schedule();
  }

  highlight(number: number | undefined): void {
    if (this.hovered === number) return;
    this.hovered = number;
    this.drawOverlay();
  }

  drawOverlay(): void {
    const { plot, overlay } = this;
    const ctx = overlay?.getContext('2d');
    if (!plot || !overlay || !ctx) return;
    const ratio = uPlot.pxRatio;
    ctx.clearRect(0, 0, overlay.width, overlay.height);
    ctx.lineJoin = 'round';
    this.painter.paintOver(ctx, {
      toX: (value) => plot.valToPos(value, 'x') * ratio,
      toY: (value) => plot.valToPos(value, 'y') * ratio,
      ratio,
      left: 0,
      top: 0,
      width: overlay.width,
      height: overlay.height,
    });
  }

  private size(): { width: number; height: number } {
    return {
      width: Math.max(240, this.host.clientWidth),
      height: Math.max(160, this.host.clientHeight),
    };
  }

  private data(): uPlot.AlignedData {
    const { x, y } = this.scales as { x: Scale; y: Scale };
    return [[...x.range], [...y.range]];
  }

  private redraw(): void {
    this.scales = this.painter.measure();
    this.plot?.setData(this.data(), true);
  }

  private options(scales: { x: Scale; y: Scale }): uPlot.Options {
    const axis = (of: 'x' | 'y', size: number): uPlot.Axis => {
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
      axes: [{ ...axis('x', 28), gap: 2 }, axis('y', 56)],
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
    const { ctx, bbox } = plot;
    ctx.save();
    this.painter.paint(ctx, {
      toX: (value) => plot.valToPos(value, 'x', true),
      toY: (value) => plot.valToPos(value, 'y', true),
      ratio: uPlot.pxRatio,
      ...bbox,
    });
    ctx.restore();
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
    const number = at && this.painter.near(at);
    if (this.hovered === number) return;
    this.highlight(number);
    this.painter.hover(number);
  }

  private takeSelection(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < smallestZoomPx) return;
    this.zoom = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.pace.now();
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
