import { formatTick, stateOfOutcome, timeTicks, type Bar, type Slot } from '../model/timeline';
import { lineToken } from './colors';
import { drawMark, stateMarks } from './marks';
import { token } from './theme';

export const headHeight = 24;
export const rowHeight = 20;

const labelWidth = 150;
const right = 12;
const markRadius = 4;
const day = 86_400_000;
const tickWidth = 90;

export interface TimelineView {
  slots: readonly Slot[];
  sweeps: ReadonlyMap<string, number>;
  since: number;
  until: number;
  width: number;
  height: number;
  /** How far the rows are scrolled. */
  top: number;
}

function xOf({ since, until, width }: TimelineView, time: number): number {
  const inner = Math.max(1, width - labelWidth - right);
  const at = (time - since) / Math.max(1, until - since);
  return labelWidth + Math.min(1, Math.max(0, at)) * inner;
}

/** The bar at a point of the canvas, and its slot. Short bars are found a few pixels around them. */
export function barAt(
  view: TimelineView,
  x: number,
  y: number,
): { bar: Bar; slot: Slot } | undefined {
  if (y < headHeight) return undefined;
  const slot = view.slots[Math.floor((y - headHeight + view.top) / rowHeight)];
  if (!slot) return undefined;
  const away = (bar: Bar): number => Math.max(xOf(view, bar.begin) - x, x - xOf(view, bar.end), 0);
  let nearest: Bar | undefined;
  for (const bar of slot.bars) {
    if (bar.end < view.since || bar.begin > view.until) continue;
    if (away(bar) <= 3 && (!nearest || away(bar) < away(nearest))) nearest = bar;
  }
  return nearest && { bar: nearest, slot };
}

/** Draws the rows in view, below the times. */
export function drawTimeline(
  canvas: HTMLCanvasElement,
  view: TimelineView,
  hovered: Bar | undefined,
): void {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(view.width * scale);
  canvas.height = Math.round(view.height * scale);
  const ctx = canvas.getContext('2d');
  if (!ctx) return;
  const reset = (): void => ctx.setTransform(scale, 0, 0, scale, 0, 0);
  reset();
  const colors = {
    text: token('--text'),
    muted: token('--muted'),
    grid: token('--grid'),
    border: token('--border'),
    surface: token('--surface'),
  };
  const font = token('--font');
  ctx.textBaseline = 'middle';

  const first = Math.floor(view.top / rowHeight);
  const last = Math.min(view.slots.length, Math.ceil((view.top + view.height) / rowHeight));
  const yOf = (row: number): number => headHeight + row * rowHeight - view.top;
  const ticks = timeTicks(view.since, view.until, (view.width - labelWidth) / tickWidth);

  ctx.fillStyle = colors.grid;
  for (const tick of ticks) ctx.fillRect(Math.round(xOf(view, tick)), headHeight, 1, view.height);

  const known = new Map<string, string>();
  const colorOf = (sweep: string): string => {
    const color = known.get(sweep) ?? token(lineToken(view.sweeps.get(sweep) ?? 0));
    known.set(sweep, color);
    return color;
  };
  for (let row = first; row < last; row += 1) {
    const slot = view.slots[row] as Slot;
    const y = yOf(row);
    if (row > 0 && view.slots[row - 1]?.executor !== slot.executor) {
      ctx.fillStyle = colors.border;
      ctx.fillRect(0, y, view.width, 1);
    }
    const begins = row === first || view.slots[row - 1]?.executor !== slot.executor;
    ctx.textAlign = 'left';
    if (begins) {
      ctx.font = `600 12px ${font}`;
      ctx.fillStyle = colors.text;
      ctx.fillText(shorten(ctx, slot.executor, labelWidth - 60), 12, y + rowHeight / 2);
    }
    ctx.font = `12px ${font}`;
    ctx.fillStyle = colors.muted;
    ctx.textAlign = 'right';
    ctx.fillText(slot.name, labelWidth - 8, y + rowHeight / 2);
    for (const bar of slot.bars) {
      if (bar.end < view.since || bar.begin > view.until) continue;
      const [x, end] = [xOf(view, bar.begin), xOf(view, bar.end)];
      ctx.fillStyle = colorOf(bar.attempt.sweep);
      ctx.globalAlpha = hovered && hovered.attempt !== bar.attempt ? 0.35 : 1;
      // A gap of one pixel separates neighbours.
      ctx.fillRect(x, y + 4, Math.max(1.5, end - x - 1), rowHeight - 8);
      ctx.globalAlpha = 1;
    }
    for (const bar of slot.bars) {
      const state = stateOfOutcome(bar.attempt.outcome);
      const x = xOf(view, bar.end);
      // A mark needs a bar that is wide enough to belong to it.
      if (!state || bar.end > view.until || x - xOf(view, bar.begin) < 3 * markRadius) continue;
      const center = { x: (x - markRadius - 3) * scale, y: (y + rowHeight / 2) * scale };
      ctx.fillStyle = colors.surface;
      ctx.beginPath();
      ctx.arc(x - markRadius - 3, y + rowHeight / 2, markRadius + 2, 0, 2 * Math.PI);
      ctx.fill();
      ctx.fillStyle = ctx.strokeStyle = token(`--state-${state}`);
      drawMark(ctx, stateMarks[state], center.x, center.y, markRadius * scale * 0.85);
      reset();
    }
  }

  ctx.fillStyle = colors.surface;
  ctx.fillRect(0, 0, view.width, headHeight);
  ctx.fillStyle = colors.border;
  ctx.fillRect(labelWidth, headHeight - 1, view.width - labelWidth, 1);
  ctx.fillStyle = colors.muted;
  ctx.font = `12px ${font}`;
  ctx.textAlign = 'center';
  const withDay = view.until - view.since > day;
  for (const tick of ticks) {
    const x = xOf(view, tick);
    if (x > labelWidth + 20 && x < view.width - 30)
      ctx.fillText(formatTick(tick, withDay), x, headHeight / 2);
  }
}

function shorten(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && ctx.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
