import type { Point } from '../model/history';
import type { Highlight } from './axis_plot';
import type { Label } from './plot_labels';
import { token } from './theme';

export function fillDot(ctx: CanvasRenderingContext2D, { x, y }: Point, radius: number): void {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 2 * Math.PI);
  ctx.fill();
}

/** The size of a dot with its border, in CSS pixels. */
export interface BorderedDot {
  radius: number;
  border: number;
}

/** Fills a dot with a border in the color of the background. */
export function fillBordered(
  ctx: CanvasRenderingContext2D,
  place: Point,
  { radius, border }: BorderedDot,
  color: string,
  ratio: number,
): void {
  ctx.fillStyle = token('--surface');
  fillDot(ctx, place, (radius + border) * ratio);
  ctx.fillStyle = color;
  fillDot(ctx, place, radius * ratio);
}

/** Draws the dots of a trial, and returns their labels. With `hovered`, a label has the values. */
export function highlightDots<Dot extends { number: number }>(
  ctx: CanvasRenderingContext2D,
  dots: readonly Dot[],
  { number, name, hovered }: Highlight,
  placeOf: (dot: Dot) => Point,
  valuesOf: (dot: Dot) => string,
  size: BorderedDot,
  ratio: number,
): Label[] {
  return dots
    .filter((dot) => dot.number === number)
    .map((dot) => {
      const place = placeOf(dot);
      fillBordered(ctx, place, size, token('--text'), ratio);
      return { text: hovered ? `${name} · ${valuesOf(dot)}` : name, ...place };
    });
}
