// A drawing may take this share of the time between two.
const drawShare = 0.25;

/** Draws soon, and no more often than leaves the page time to breathe: thousands of lines may cost
    more than a frame. */
export class Pace {
  private pending: ReturnType<typeof setTimeout> | undefined;
  private lastCostMs = 0;

  constructor(private readonly draw: () => void) {}

  schedule(): void {
    if (this.pending !== undefined) return;
    this.pending = setTimeout(() => this.now(), this.lastCostMs / drawShare - this.lastCostMs);
  }

  now(): void {
    this.stop();
    const started = performance.now();
    this.draw();
    this.lastCostMs = performance.now() - started;
  }

  stop(): void {
    clearTimeout(this.pending);
    this.pending = undefined;
  }
}
