import { firstMetric, formatAt, placeOf, ticksOf, type Axis } from '../model/axes';
import { rampColors } from './colors';
import { axisLabels } from './curve_drawing';
import { yOfPlace, type Layout } from './parallel_layout';
import { token } from './theme';

/** Draws the axes of parallel coordinates; ParallelPlot draws the trials. */

const tickApartPx = 60;

export function drawAxes(
  ctx: CanvasRenderingContext2D,
  axes: readonly Axis[],
  layout: Layout,
): void {
  ctx.font = `11px ${token('--font')}`;
  ctx.textBaseline = 'middle';
  axes.forEach((axis, i) => {
    const x = layout.xs[i] as number;
    ctx.strokeStyle = token('--border-strong');
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(x, layout.top);
    ctx.lineTo(x, layout.bottom);
    ctx.stroke();
    if (axis.mode !== undefined && i === firstMetric(axes)) drawRamp(ctx, axis, x, layout);
    const about = Math.max(2, Math.floor((layout.bottom - layout.top) / tickApartPx));
    const most = axis.kind === 'listed' ? about * 2 : about;
    const ticks = ticksOf(axis, most);
    const labels =
      axis.kind === 'listed'
        ? ticks.map((tick) => formatAt(axis, tick))
        : axisLabels(ticks, axis.kind === 'log');
    ticks.forEach((tick, at) => {
      const y = yOfPlace(layout, placeOf(axis, tick));
      ctx.beginPath();
      ctx.moveTo(x - 3, y);
      ctx.lineTo(x + 3, y);
      ctx.stroke();
      drawLabel(ctx, layout, labels[at] as string, i, y, token('--text'));
    });
    if (axis.lane) {
      const word = axis.mode === undefined ? 'absent' : 'no value';
      ctx.setLineDash([2, 3]);
      ctx.beginPath();
      ctx.moveTo(x, layout.bottom);
      ctx.lineTo(x, layout.laneY + 6);
      ctx.stroke();
      ctx.setLineDash([]);
      drawLabel(ctx, layout, word, i, layout.laneY, token('--muted'));
    }
  });
}

// The outline in the colour of the background separates the text from the lines below.
function drawLabel(
  ctx: CanvasRenderingContext2D,
  { xs, width }: Layout,
  text: string,
  axis: number,
  y: number,
  color: string,
): void {
  const x = (xs[axis] as number) + 8;
  const room = (xs[axis + 1] ?? width) - x - 8;
  ctx.strokeStyle = token('--surface');
  ctx.lineWidth = 3.5;
  ctx.strokeText(text, x, y, room);
  ctx.fillStyle = color;
  ctx.fillText(text, x, y, room);
  ctx.strokeStyle = token('--border-strong');
  ctx.lineWidth = 1;
}

/** Draws a highlighted value on an axis. */
export function drawTag(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  ctx.fillStyle = token('--text');
  ctx.beginPath();
  ctx.roundRect(x + 6, y - 9, ctx.measureText(text).width + 10, 18, 4);
  ctx.fill();
  ctx.fillStyle = token('--surface');
  ctx.fillText(text, x + 11, y + 0.5);
}

// Draws the meaning of the colours along the axis of the metric.
function drawRamp(
  ctx: CanvasRenderingContext2D,
  { mode }: Axis,
  x: number,
  { top, bottom }: Layout,
): void {
  const [worst, best] = mode === 'min' ? [top, bottom] : [bottom, top];
  const gradient = ctx.createLinearGradient(0, worst, 0, best);
  rampColors(9).forEach((color, i) => gradient.addColorStop(i / 8, color));
  ctx.fillStyle = gradient;
  ctx.fillRect(x - 2.5, top, 5, bottom - top);
}
