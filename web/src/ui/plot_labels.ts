import type { Projection } from './axis_plot';
import { token } from './theme';

export interface Label {
  text: string;
  /** The labelled point, in pixels of the canvas. */
  x: number;
  y: number;
}

/** Draws labels next to their points, and moves them apart where they would overlap. */
export function drawLabels(
  ctx: CanvasRenderingContext2D,
  { width, ratio }: Pick<Projection, 'width' | 'ratio'>,
  labels: readonly Label[],
): void {
  const height = 17 * ratio;
  const margin = 3 * ratio;
  const taken: number[] = [];
  ctx.font = `600 ${11.5 * ratio}px ${token('--font')}`;
  ctx.textAlign = 'left';
  for (const { text, x: at, y: anchor } of labels) {
    const textWidth = ctx.measureText(text).width;
    const x = Math.min(at + 9 * ratio, width - textWidth - 6 * ratio);
    let y = anchor - 10 * ratio;
    if (y < 10 * ratio) y = anchor + 20 * ratio;
    while (taken.some((other) => Math.abs(other - y) < height)) y += height / 4;
    taken.push(y);
    ctx.globalAlpha = 0.85;
    ctx.fillStyle = token('--surface');
    ctx.fillRect(x - margin, y - 11 * ratio, textWidth + 2 * margin, 15 * ratio);
    ctx.globalAlpha = 1;
    ctx.fillStyle = token('--text');
    ctx.fillText(text, x, y);
  }
}
