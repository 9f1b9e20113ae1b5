import { channels } from './colors';
import { countMask, Grid } from './grid';
import { runInSlices } from './slices';

/** A picture to draw: how many lines cross each pixel. */
export interface Picture {
  /** If it changes, the old picture is wrong, and the new one is drawn at once. */
  key: string;
  /** If only this changes, the old picture is shown until the new one is drawn a little later. */
  revision: unknown;
  width: number;
  height: number;
  /** Draws the lines and yields often. */
  lines(grid: Grid): Iterator<unknown>;
}

/** Colours from few lines to many, with the opacity of a single line. */
export interface Ramp {
  colors: readonly string[];
  few: number;
  many: number;
}

const refreshMs = 1000;

/** A density picture, drawn in slices and kept until its data changes. */
export class DensityLayer {
  private readonly canvas = document.createElement('canvas');
  private grid: Grid | undefined;
  private shown: Pick<Picture, 'key' | 'revision'> | undefined;
  private drawing: (Pick<Picture, 'key' | 'revision'> & { cancel(): void }) | undefined;
  private finishedAt = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private coloredBy = '';

  /** `onReady` is called when a picture is drawn, and when it must be drawn again. */
  constructor(private readonly onReady: () => void) {}

  /** Draws the picture in the background if it is not there yet. */
  request(picture: Picture): void {
    const { key, revision } = picture;
    const newest = this.drawing ?? this.shown;
    if (newest?.key === key && newest.revision === revision) return;
    if (newest?.key === key) {
      // The lines of the old picture are almost right.
      if (this.drawing) return;
      const wait = this.finishedAt + refreshMs - performance.now();
      if (wait > 0) {
        this.timer ??= setTimeout(() => {
          this.timer = undefined;
          this.onReady();
        }, wait);
        return;
      }
    } else if (this.shown?.key !== key) {
      this.shown = undefined;
    }
    this.drawing?.cancel();
    const grid = new Grid(Math.max(1, picture.width), Math.max(1, picture.height));
    const cancel = runInSlices(picture.lines(grid), () => {
      this.grid = grid;
      this.shown = { key, revision };
      this.drawing = undefined;
      this.coloredBy = '';
      this.finishedAt = performance.now();
      this.onReady();
    });
    this.drawing = { key, revision, cancel };
  }

  stop(): void {
    this.drawing?.cancel();
    this.drawing = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** Whether the picture with this key is there. */
  isReady(key: string): boolean {
    return this.shown?.key === key;
  }

  /** The revision of the picture that is there. */
  get revision(): unknown {
    return this.shown?.revision;
  }

  draw(
    ctx: CanvasRenderingContext2D,
    { left, top }: { left: number; top: number },
    ramp: Ramp,
  ): void {
    const { grid, canvas } = this;
    if (!grid || !this.shown) return;
    const by = JSON.stringify(ramp);
    if (this.coloredBy !== by) {
      this.coloredBy = by;
      paintCounts(canvas, grid, ramp);
    }
    ctx.drawImage(canvas, left, top);
  }
}

const tableSize = 1024;

// The colour grows with the logarithm of the count, so that single lines stay visible.
function paintCounts(canvas: HTMLCanvasElement, grid: Grid, ramp: Ramp): void {
  const most = Math.max(2, grid.most);
  const table = new Uint32Array(tableSize);
  const stops = ramp.colors.map(channels);
  for (let i = 0; i < tableSize; i += 1) {
    const share = i / (tableSize - 1);
    table[i] = pixel(mix(stops, share), ramp.few + (ramp.many - ramp.few) * share);
  }
  const small = new Uint32Array(Math.min(most, 0xffff) + 1);
  const colorOf = (count: number): number =>
    table[Math.round((Math.log(count) / Math.log(most)) * (tableSize - 1))] as number;
  for (let count = 1; count < small.length; count += 1) small[count] = colorOf(count);
  paint(canvas, grid, (cell) => {
    const count = cell & countMask;
    return count < small.length ? (small[count] as number) : colorOf(count);
  });
}

/** Paints each cell in its shade; the opacity grows with the count. */
export function paintShades(
  canvas: HTMLCanvasElement,
  grid: Grid,
  shades: readonly string[],
  alpha: (count: number) => number,
): void {
  const colors = Uint32Array.from(shades, (color) => pixel(channels(color), 0));
  const alphas = Uint32Array.from({ length: 256 }, (_, count) => Math.round(alpha(count) * 255));
  paint(canvas, grid, (cell) => {
    const count = cell & countMask;
    const opacity = alphas[count < 256 ? count : 255] as number;
    return ((opacity << 24) | (colors[cell >>> 24] as number)) >>> 0;
  });
}

function paint(canvas: HTMLCanvasElement, grid: Grid, colorOf: (cell: number) => number): void {
  const { width, height, cells } = grid;
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const pixels = new Uint32Array(cells.length);
  for (let i = 0; i < cells.length; i += 1) {
    const cell = cells[i] as number;
    if (cell !== 0) pixels[i] = colorOf(cell);
  }
  const bytes = new Uint8ClampedArray(pixels.buffer);
  canvas.getContext('2d')?.putImageData(new ImageData(bytes, width, height), 0, 0);
}

// The bytes of a pixel are red, green, blue and opacity.
function pixel([red = 0, green = 0, blue = 0]: readonly number[], alpha: number): number {
  return ((Math.round(alpha * 255) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function mix(stops: readonly (readonly number[])[], share: number): number[] {
  const at = share * (stops.length - 1);
  const from = stops[Math.floor(at)] ?? [0, 0, 0];
  const to = stops[Math.ceil(at)] ?? from;
  return from.map((channel, i) => Math.round(channel + ((to[i] as number) - channel) * (at % 1)));
}
