/**
 * Counts for each pixel of a picture how many lines cross it, and which line was last.
 *
 * A cell has the count in its lower 24 bits and the shade of the newest line in the upper 8.
 */
export class Grid {
  readonly cells: Uint32Array;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.cells = new Uint32Array(width * height);
  }

  clear(): void {
    this.cells.fill(0);
  }

  /** The largest count. */
  get most(): number {
    let most = 0;
    for (const cell of this.cells) {
      const count = cell & countMask;
      if (count > most) most = count;
    }
    return most;
  }
}

export const countMask = 0xffffff;

/**
 * Draws lines into a grid. Each line counts at most once in a pixel. A pixel of a line is a column
 * of the grid with the range of rows that the line covers in it.
 */
export class GridPen {
  private column = -1;
  private low = 0;
  private high = 0;
  private x = NaN;
  private y = NaN;
  private shade = 0;

  constructor(private readonly grid: Grid) {}

  /** Begins a line. `shade`: a number from 0 to 255. */
  begin(shade = 0): void {
    this.shade = shade << 24;
    this.x = NaN;
    this.column = -1;
  }

  /** Interrupts the line. */
  lift(): void {
    this.flush();
    this.x = NaN;
    this.column = -1;
  }

  end(): void {
    this.flush();
    this.column = -1;
  }

  /** Continues the line to a place at the same x or to the right. */
  to(x: number, y: number): void {
    const { width } = this.grid;
    const fromX = this.x;
    const fromY = this.y;
    this.x = x;
    this.y = y;
    if (Number.isNaN(fromX)) {
      if (x >= 0 && x < width) this.cover(Math.floor(x), y, y);
      return;
    }
    if (x < 0 || fromX >= width) return;
    let column = Math.max(0, Math.floor(fromX));
    const last = Math.min(width - 1, Math.floor(x));
    if (column === last) {
      this.cover(column, fromY, y);
      return;
    }
    const slope = (y - fromY) / (x - fromX);
    let entry = fromX < column ? fromY + slope * (column - fromX) : fromY;
    const exit = fromY + slope * (column + 1 - fromX);
    this.cover(column, entry, exit);
    this.flush();
    this.column = -1;
    entry = this.passColumns(column + 1, last, exit, slope);
    this.cover(last, entry, x < last + 1 ? y : entry + slope);
  }

  // Covers whole columns. It is the inner loop of all drawing, so it calls nothing.
  private passColumns(from: number, to: number, entry: number, slope: number): number {
    const { shade } = this;
    const { width, height, cells } = this.grid;
    let y = entry;
    for (let column = from; column < to; column += 1) {
      const next = y + slope;
      const low = slope > 0 ? y : next;
      const high = slope > 0 ? next : y;
      y = next;
      if (high < 0 || low >= height) continue;
      const last = (high < height ? high | 0 : height - 1) * width + column;
      for (let cell = (low > 0 ? low | 0 : 0) * width + column; cell <= last; cell += width)
        cells[cell] = (((cells[cell] as number) & countMask) + 1) | shade;
    }
    return y;
  }

  private cover(column: number, from: number, to: number): void {
    const low = from < to ? from : to;
    const high = from < to ? to : from;
    if (column === this.column) {
      if (low < this.low) this.low = low;
      if (high > this.high) this.high = high;
      return;
    }
    this.flush();
    this.column = column;
    this.low = low;
    this.high = high;
  }

  private flush(): void {
    const { column, shade } = this;
    if (column < 0) return;
    const { width, height, cells } = this.grid;
    if (!(this.high >= 0 && this.low < height)) return;
    const first = this.low > 0 ? Math.floor(this.low) : 0;
    const last = this.high < height - 1 ? Math.floor(this.high) : height - 1;
    for (let cell = first * width + column; cell <= last * width + column; cell += width)
      cells[cell] = (((cells[cell] as number) & countMask) + 1) | shade;
  }
}
