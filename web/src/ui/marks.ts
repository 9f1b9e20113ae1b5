import type { TrialState } from '../api/contract';

/** A mark on a plot: an SVG path in a box from -1 to 1, filled or stroked. */
export interface Mark {
  path: string;
  filled: boolean;
}

// One shape per state, like the icons of the states, but readable at a few pixels.
export const stateMarks: Record<TrialState, Mark> = {
  pending: { path: 'M-.5 0A.5 .5 0 1 1 .5 0A.5 .5 0 1 1-.5 0', filled: false },
  running: { path: 'M-.9 0A.9 .9 0 1 1 .9 0A.9 .9 0 1 1-.9 0', filled: false },
  paused: { path: 'M-.8-.9H-.2V.9H-.8ZM.2-.9H.8V.9H.2Z', filled: true },
  completed: { path: 'M-.95 0A.95 .95 0 1 1 .95 0A.95 .95 0 1 1-.95 0', filled: true },
  stopped: { path: 'M-.8-.8H.8V.8H-.8Z', filled: true },
  failed: { path: 'M0-1.1L1.1 .9H-1.1Z', filled: true },
  killed: { path: 'M-.85-.85L.85 .85M.85-.85L-.85 .85', filled: false },
};

const paths = new Map<string, Path2D>();
/** The text of each path, which the browser does not return. */
export const pathTexts = new WeakMap<Path2D, string>();

/** Draws a mark around a point in the colour of the context. */
export function drawMark(
  ctx: CanvasRenderingContext2D,
  { path, filled }: Mark,
  x: number,
  y: number,
  radius: number,
): void {
  let made = paths.get(path);
  if (!made) {
    paths.set(path, (made = new Path2D(path)));
    pathTexts.set(made, path);
  }
  ctx.setTransform(radius, 0, 0, radius, x, y);
  if (filled) {
    ctx.fill(made);
  } else {
    ctx.lineWidth = 0.55;
    ctx.stroke(made);
  }
  ctx.resetTransform();
}
