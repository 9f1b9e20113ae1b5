import uPlot from 'uplot';

import { frameOf, type Curve, type Frame } from '../model/curve';
import {
  alphaFor,
  axisLabels,
  dotAtEnd,
  faintAlpha,
  strokeClones,
  strokeCurve,
  strongAlpha,
} from './curve_drawing';
import { nearestCurve } from './nearest';
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
// A redraw may take this share of the time between two.
const drawShare = 0.25;
const dashPx = 3;

/**
 * Learning curves: axes, scales and zoom are uPlot's; the lines are drawn by us, because curves of
 * different trials share no steps and one path a trial keeps thousands of them fast. What is
 * highlighted lies on a second canvas, so that moving the mouse redraws one line and not all.
 */
export class CurvePlot {
  private plot: uPlot | undefined;
  private overlay: HTMLCanvasElement | undefined;
  private content: PlotContent | undefined;
  private frame: Frame | undefined;
  private zoom: [number, number] | undefined;
  private hovered: number | undefined;
  private pending: ReturnType<typeof setTimeout> | undefined;
  private lastCostMs = 0;
  private readonly resize: ResizeObserver;

  constructor(
    private readonly host: HTMLElement,
    private readonly events: PlotEvents,
  ) {
    this.resize = new ResizeObserver(() => {
      this.plot?.setSize(this.size());
      this.placeOverlay();
    });
    this.resize.observe(host);
  }

  destroy(): void {
    clearTimeout(this.pending);
    this.resize.disconnect();
    this.plot?.destroy();
  }

  update(content: PlotContent): void {
    const rebuild =
      this.content?.logarithmic !== content.logarithmic || this.content.metric !== content.metric;
    this.content = content;
    if (!this.plot || rebuild) this.rebuild();
    else this.schedule();
  }

  /** Colours have changed. */
  repaint(): void {
    if (this.content) this.rebuild();
  }

  highlight(number: number | undefined): void {
    if (this.hovered === number) return;
    this.hovered = number;
    this.drawOverlay();
  }

  private size(): { width: number; height: number } {
    return {
      width: Math.max(240, this.host.clientWidth),
      height: Math.max(160, this.host.clientHeight),
    };
  }

  // Drawing thousands of lines may cost more than a frame: leave the page time to breathe.
  private schedule(): void {
    if (this.pending !== undefined) return;
    this.pending = setTimeout(
      () => {
        this.pending = undefined;
        this.redraw();
      },
      this.lastCostMs / drawShare - this.lastCostMs,
    );
  }

  private data(): uPlot.AlignedData {
    const [low, high] = this.fullX();
    const frame = this.frame ?? { min: 0, max: 1 };
    return [
      [low, high],
      [frame.min, frame.max],
    ];
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

  private measure(): void {
    const { content } = this;
    if (!content) return;
    this.frame = frameOf(
      content.lines.map((line) => line.curve),
      content.logarithmic,
    );
    this.events.clip(this.frame?.clipped ?? 0);
  }

  private redraw(): void {
    const started = performance.now();
    this.measure();
    this.plot?.setData(this.data(), true);
    this.lastCostMs = performance.now() - started;
    this.host.dataset.lines = String(this.content?.lines.length ?? 0);
    this.host.dataset.points = String(
      this.content?.lines.reduce((sum, line) => sum + line.curve.length, 0) ?? 0,
    );
  }

  private rebuild(): void {
    const { content } = this;
    if (!content) return;
    this.plot?.destroy();
    this.measure();
    const font = `11px ${token('--font')}`;
    const axis: uPlot.Axis = {
      stroke: token('--muted'),
      font,
      grid: { stroke: token('--grid'), width: 1 },
      ticks: { stroke: token('--grid'), width: 1, size: 4 },
    };
    const options: uPlot.Options = {
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
        x: { time: false, range: () => this.zoom ?? this.fullX() },
        y: {
          distr: content.logarithmic ? 3 : 1,
          range: () => [this.frame?.min ?? 0, this.frame?.max ?? 1],
        },
      },
      axes: [
        {
          ...axis,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6],
          size: 28,
          gap: 2,
        },
        {
          ...axis,
          size: 56,
          values: (_, splits) => axisLabels(splits, content.logarithmic),
        },
      ],
      series: [{}, { scale: 'y', stroke: 'transparent', width: 0, points: { show: false } }],
      hooks: {
        draw: [() => this.drawLines()],
        setCursor: [() => this.followCursor()],
        setSelect: [(plot) => this.takeSelection(plot)],
        setSize: [() => this.placeOverlay()],
      },
    };
    this.plot = new uPlot(options, this.data(), this.host);
    this.overlay = document.createElement('canvas');
    this.overlay.className = 'plot-overlay';
    this.plot.over.append(this.overlay);
    this.plot.over.addEventListener('click', () => {
      if (this.hovered !== undefined) this.events.select(this.hovered);
    });
    this.plot.over.addEventListener('dblclick', () => {
      this.zoom = undefined;
      this.redraw();
    });
    this.plot.over.addEventListener('mouseleave', () => this.setHovered(undefined));
    this.placeOverlay();
    this.redraw();
  }

  private takeSelection(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 6) return;
    this.zoom = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.redraw();
  }

  private followCursor(): void {
    const { plot, content } = this;
    if (!plot || !content) return;
    const { left = -1, top = -1 } = plot.cursor;
    if (left < 0 || top < 0) return this.setHovered(undefined);
    const toPx = (value: number): number => plot.valToPos(value, 'y');
    const near = nearestCurve(content.lines, plot.posToVal(left, 'x'), top, toPx, hoverRadiusPx);
    this.setHovered(near);
  }

  private setHovered(number: number | undefined): void {
    if (this.hovered === number) return;
    this.highlight(number);
    this.events.hover(number);
  }

  private drawLines(): void {
    const { plot, content } = this;
    if (!plot || !content) return;
    const { ctx, bbox } = plot;
    ctx.save();
    this.drawRungs(ctx, plot, content);
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const toX = (value: number): number => plot.valToPos(value, 'x', true);
    const toY = (value: number): number => plot.valToPos(value, 'y', true);
    const ratio = uPlot.pxRatio;
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
    ctx.restore();
    this.drawOverlay();
  }

  private drawRungs(ctx: CanvasRenderingContext2D, plot: uPlot, content: PlotContent): void {
    const { bbox } = plot;
    const ratio = uPlot.pxRatio;
    ctx.strokeStyle = token('--rung');
    ctx.fillStyle = token('--muted');
    ctx.lineWidth = ratio;
    ctx.font = `${10.5 * ratio}px ${token('--font')}`;
    ctx.textAlign = 'center';
    ctx.setLineDash([dashPx * ratio, dashPx * ratio]);
    let labelledUpTo = -Infinity;
    for (const rung of content.rungs) {
      const x = plot.valToPos(rung, 'x', true);
      if (x < bbox.left || x > bbox.left + bbox.width + 1) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (x - labelledUpTo < 48 * ratio) continue;
      ctx.fillText(`rung ${rung}`, x, bbox.top - 6 * ratio);
      labelledUpTo = x;
    }
    ctx.setLineDash([]);
  }

  private placeOverlay(): void {
    const { plot, overlay } = this;
    if (!plot || !overlay) return;
    const ratio = uPlot.pxRatio;
    overlay.width = plot.over.clientWidth * ratio;
    overlay.height = plot.over.clientHeight * ratio;
    this.drawOverlay();
  }

  private drawOverlay(): void {
    const { plot, overlay, content } = this;
    const ctx = overlay?.getContext('2d');
    if (!plot || !overlay || !ctx || !content) return;
    const ratio = uPlot.pxRatio;
    ctx.clearRect(0, 0, overlay.width, overlay.height);
    const toX = (value: number): number => plot.valToPos(value, 'x') * ratio;
    const toY = (value: number): number => plot.valToPos(value, 'y') * ratio;
    ctx.lineJoin = 'round';
    const { best, selected } = content;
    const shown: Line[] = [];
    for (const number of new Set([best, selected, this.hovered])) {
      const line = content.lines.find((each) => each.number === number);
      if (!line) continue;
      // Among many lines of one colour only another colour stands out.
      const own = content.lines.length > thinAbove ? token('--text') : line.color;
      for (const [color, width] of [
        [token('--surface'), 5.5],
        [own, number === this.hovered ? 3.2 : 2.4],
      ] as const) {
        ctx.strokeStyle = ctx.fillStyle = color;
        ctx.lineWidth = width * ratio;
        strokeCurve(ctx, line.curve, toX, toY, ratio);
        dotAtEnd(ctx, line.curve, toX, toY, (width / 2 + 2) * ratio);
      }
      shown.push(line);
    }
    this.drawLabels(ctx, overlay, shown, toX, toY);
  }

  // Names at the ends of lines, moved apart where they would cover one another.
  private drawLabels(
    ctx: CanvasRenderingContext2D,
    overlay: HTMLCanvasElement,
    lines: readonly Line[],
    toX: (value: number) => number,
    toY: (value: number) => number,
  ): void {
    const ratio = uPlot.pxRatio;
    const height = 17 * ratio;
    const taken: number[] = [];
    ctx.font = `600 ${11.5 * ratio}px ${token('--font')}`;
    for (const line of lines) {
      const last = line.curve.length - 1;
      const value = line.curve.values[last];
      if (value === undefined || !Number.isFinite(value)) continue;
      const label =
        line.number === this.content?.best ? `best · trial ${line.number}` : `trial ${line.number}`;
      const room = overlay.width - ctx.measureText(label).width - 6 * ratio;
      const x = Math.min(toX(line.curve.steps[last] as number) + 9 * ratio, room);
      let y = toY(value) - 10 * ratio;
      if (y < 10 * ratio) y = toY(value) + 20 * ratio;
      while (taken.some((other) => Math.abs(other - y) < height)) y += height / 4;
      taken.push(y);
      ctx.globalAlpha = 0.85;
      ctx.fillStyle = token('--surface');
      const margin = 3 * ratio;
      ctx.fillRect(
        x - margin,
        y - 11 * ratio,
        ctx.measureText(label).width + 2 * margin,
        15 * ratio,
      );
      ctx.globalAlpha = 1;
      ctx.fillStyle = token('--text');
      ctx.fillText(label, x, y);
    }
  }
}
