import type { Projection } from './axis_plot';
import { token } from './theme';

export interface Label {
  text: string;
  /** What it names, in the canvas's pixels. */
  x: number;
  y: number;
}

/** Names beside what they name, moved apart where they would cover one another. */
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
  for (const { text, x: at, y: beside } of labels) {
    const textWidth = ctx.measureText(text).width;
    const x = Math.min(at + 9 * ratio, width - textWidth - 6 * ratio);
    let y = beside - 10 * ratio;
    if (y < 10 * ratio) y = beside + 20 * ratio;
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
