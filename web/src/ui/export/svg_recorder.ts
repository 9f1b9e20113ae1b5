import { pathTexts } from '../marks';

type Context = CanvasRenderingContext2D;

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => escapes[letter] as string);
}

const round = (value: number): number => Math.round(value * 100) / 100;

const anchors: Record<string, string> = { center: 'middle', right: 'end', end: 'end' };
// The distance from the given height to the baseline, as a share of the size of the font.
const baselines: Record<string, number> = { middle: 0.35, top: 0.8, hanging: 0.8, bottom: -0.2 };

/** Writes the marks that a drawing puts on a canvas as SVG elements. */
class Recorder {
  readonly elements: string[] = [];
  private path = '';
  private readonly clips: (string | undefined)[] = [undefined];
  private readonly images = new Map<CanvasImageSource, string>();
  private readonly gradients = new Map<CanvasGradient, string>();

  constructor(
    private readonly ctx: Context,
    /** Distinguishes the ids of several recordings in one document. */
    private readonly prefix: string,
  ) {}

  readonly handlers: Partial<Record<keyof Context, (...args: never[]) => void>> = {
    beginPath: () => (this.path = ''),
    closePath: () => (this.path += 'Z'),
    moveTo: (x: number, y: number) => (this.path += `M${round(x)} ${round(y)}`),
    lineTo: (x: number, y: number) =>
      (this.path += `${this.path ? 'L' : 'M'}${round(x)} ${round(y)}`),
    rect: (x: number, y: number, width: number, height: number) =>
      (this.path += `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}Z`),
    arc: (x: number, y: number, radius: number) => {
      // Plots draw whole circles only.
      const r = round(radius);
      this.path += `M${round(x - radius)} ${round(y)}a${r} ${r} 0 1 1 ${2 * r} 0a${r} ${r} 0 1 1 ${-2 * r} 0`;
    },
    save: () => this.clips.push(this.clips.at(-1)),
    restore: () => void (this.clips.length > 1 && this.clips.pop()),
    clip: () => this.clip(),
    fill: (path?: Path2D) => this.add(this.pathOf(path), this.fillStyle()),
    stroke: (path?: Path2D) => this.add(this.pathOf(path), this.strokeStyle()),
    fillRect: (x: number, y: number, width: number, height: number) =>
      this.add(
        `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}Z`,
        this.fillStyle(),
      ),
    fillText: (text: string, x: number, y: number) => this.text(text, x, y),
    drawImage: (image: HTMLCanvasElement, x: number, y: number, width?: number, height?: number) =>
      this.image(image, x, y, width ?? image.width, height ?? image.height),
  };

  private pathOf(path: Path2D | undefined): string {
    return path instanceof Path2D ? (pathTexts.get(path) ?? '') : this.path;
  }

  private add(path: string, style: string): void {
    if (path !== '' && style !== '')
      this.elements.push(`<path d="${path}"${style}${this.place()}/>`);
  }

  private place(): string {
    const { a, b, c, d, e, f } = this.ctx.getTransform();
    const matrix = [a, b, c, d, e, f].map(round).join(' ');
    const clip = this.clips.at(-1);
    return (
      (matrix === '1 0 0 1 0 0' ? '' : ` transform="matrix(${matrix})"`) +
      (clip === undefined ? '' : ` clip-path="url(#${clip})"`) +
      (this.ctx.globalAlpha === 1 ? '' : ` opacity="${round(this.ctx.globalAlpha)}"`)
    );
  }

  /** Writes a gradient, and its colours when they are added. */
  addGradient(gradient: CanvasGradient, [x1, y1, x2, y2]: readonly number[]): CanvasGradient {
    const id = `${this.prefix}-gradient-${this.gradients.size}`;
    this.gradients.set(gradient, id);
    const at = this.elements.length;
    const stops: string[] = [];
    const write = (): void => {
      this.elements[at] =
        `<linearGradient id="${id}" gradientUnits="userSpaceOnUse" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}">` +
        `${stops.join('')}</linearGradient>`;
    };
    write();
    const add = gradient.addColorStop.bind(gradient);
    gradient.addColorStop = (offset, color) => {
      stops.push(`<stop offset="${round(offset)}" stop-color="${color}"/>`);
      write();
      add(offset, color);
    };
    return gradient;
  }

  private colorOf(style: string | CanvasGradient | CanvasPattern): string {
    if (typeof style === 'string') return isVisible(style) ? style : '';
    const id = style instanceof CanvasGradient ? this.gradients.get(style) : undefined;
    return id === undefined ? '' : `url(#${id})`;
  }

  private fillStyle(): string {
    const color = this.colorOf(this.ctx.fillStyle);
    return color ? ` fill="${color}"` : '';
  }

  private strokeStyle(): string {
    const { ctx } = this;
    const color = this.colorOf(ctx.strokeStyle);
    if (!color || ctx.lineWidth === 0) return '';
    const dashes = ctx.getLineDash();
    return (
      ` fill="none" stroke="${color}" stroke-width="${round(ctx.lineWidth)}"` +
      ` stroke-linejoin="${ctx.lineJoin}" stroke-linecap="${ctx.lineCap}"` +
      (dashes.length > 0 ? ` stroke-dasharray="${dashes.map(round).join(' ')}"` : '')
    );
  }

  private clip(): void {
    const id = `${this.prefix}-clip-${this.elements.length}`;
    this.elements.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.clips[this.clips.length - 1] = id;
  }

  private text(text: string, x: number, y: number): void {
    const { ctx } = this;
    if (text === '') return;
    const size = Number(/([\d.]+)px/.exec(ctx.font)?.[1] ?? 10);
    const down = (baselines[ctx.textBaseline] ?? 0) * size;
    const anchor = anchors[ctx.textAlign];
    this.elements.push(
      `<text x="${round(x)}" y="${round(y + down)}" style="font:${escapeXml(ctx.font)}"` +
        (anchor ? ` text-anchor="${anchor}"` : '') +
        `${this.fillStyle()}${this.place()}>${escapeXml(text)}</text>`,
    );
  }

  // Thousands of dots may show the same image.
  private image(
    image: HTMLCanvasElement,
    x: number,
    y: number,
    width: number,
    height: number,
  ): void {
    if (image.width === 0 || image.height === 0) return;
    let id = this.images.get(image);
    if (id === undefined) {
      id = `${this.prefix}-image-${this.images.size}`;
      this.images.set(image, id);
      this.elements.push(
        `<defs><image id="${id}" width="${round(width)}" height="${round(height)}"` +
          ` preserveAspectRatio="none" href="${image.toDataURL()}"/></defs>`,
      );
    }
    this.elements.push(`<use href="#${id}" x="${round(x)}" y="${round(y)}"${this.place()}/>`);
  }
}

function isVisible(color: string): boolean {
  return color !== 'transparent' && color !== 'rgba(0, 0, 0, 0)';
}

/**
 * Runs `draw`, which draws on the context, and returns what it has drawn as SVG elements, in pixels
 * of the canvas.
 */
export function recordSvg(ctx: Context, draw: () => void, prefix: string): string {
  const recorder = new Recorder(ctx, prefix);
  // Own members hide those of the class until they are deleted.
  const shadow = ctx as unknown as Record<string, unknown>;
  const names = [...Object.keys(recorder.handlers), 'createLinearGradient'];
  for (const name of names) {
    const real = shadow[name] as (...args: never[]) => unknown;
    const record = recorder.handlers[name as keyof Context];
    shadow[name] = (...args: never[]) => {
      record?.(...args);
      return real.apply(ctx, args);
    };
  }
  const create = Object.getPrototypeOf(ctx).createLinearGradient as Context['createLinearGradient'];
  shadow.createLinearGradient = (...at: Parameters<typeof create>) =>
    recorder.addGradient(create.apply(ctx, at), at);
  try {
    draw();
  } finally {
    for (const name of names) delete shadow[name];
  }
  return recorder.elements.join('\n');
}
