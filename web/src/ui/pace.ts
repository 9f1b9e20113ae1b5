// The largest share of time spent drawing.
const drawShare = 0.25;

/** Draws soon, but leaves the page time to respond: drawing thousands of lines may take longer than
    a frame. */
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
