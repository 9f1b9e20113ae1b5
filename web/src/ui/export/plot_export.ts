import { escapeXml, recordSvg } from './svg_recorder';
import { token } from '../theme';

/** The function that draws a canvas again at once, if it has one. */
export const redraws = new WeakMap<HTMLCanvasElement, () => void>();

/** The data of a plot. */
export interface PlotData {
  columns: readonly string[];
  rows: Iterable<readonly (string | number | undefined)[]>;
}

interface Layout {
  width: number;
  height: number;
  canvases: { canvas: HTMLCanvasElement; x: number; y: number; width: number; height: number }[];
  /** Names of axes, which are elements and not drawn on a canvas. */
  texts: { text: string; x: number; y: number; font: string; color: string }[];
}

const titleHeight = 34;
const margin = 12;

function layOut(figure: HTMLElement): Layout {
  const visible = [...figure.querySelectorAll('canvas')].filter(
    (canvas) => canvas.width > 0 && canvas.getBoundingClientRect().width > 0,
  );
  const names = [...figure.querySelectorAll<HTMLElement>('[data-plot-text]')];
  const boxes = [...visible, ...names].map((element) => element.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left)) - margin;
  const top = Math.min(...boxes.map((box) => box.top)) - titleHeight;
  const canvases = visible.map((canvas) => {
    const box = canvas.getBoundingClientRect();
    return { canvas, x: box.left - left, y: box.top - top, width: box.width, height: box.height };
  });
  const texts = names.map((element) => {
    const box = element.getBoundingClientRect();
    const { font, color } = getComputedStyle(element);
    const text = element.dataset.plotText ?? '';
    return { text, x: box.left - left, y: box.bottom - top - 4, font, color };
  });
  const width = Math.ceil(Math.max(...boxes.map((box) => box.right)) - left + margin);
  const height = Math.ceil(Math.max(...boxes.map((box) => box.bottom)) - top + margin);
  return { width, height, canvases, texts };
}

const titleFont = (): string => `600 15px ${token('--font')}`;

/** The plots of a figure as an SVG document, in the colours of the page. */
export function plotToSvg(figure: HTMLElement, title: string): string {
  const { width, height, canvases, texts } = layOut(figure);
  const parts = canvases.map(({ canvas, x, y, width: wide, height: high }, index) => {
    const place = `transform="translate(${x} ${y}) scale(${wide / canvas.width} ${high / canvas.height})"`;
    const ctx = canvas.getContext('2d');
    const redraw = redraws.get(canvas);
    const content =
      ctx && redraw
        ? recordSvg(ctx, redraw, `plot-${index}`)
        : `<image width="${canvas.width}" height="${canvas.height}" href="${canvas.toDataURL()}"/>`;
    return `<g ${place}>\n${content}\n</g>`;
  });
  const label = (text: string, x: number, y: number, font: string, color: string): string =>
    `<text x="${x}" y="${y}" style="font:${escapeXml(font)}" fill="${color}">${escapeXml(text)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<rect width="100%" height="100%" fill="${token('--surface')}"/>`,
    label(title, margin, 22, titleFont(), token('--text')),
    ...parts,
    ...texts.map(({ text, x, y, font, color }) => label(text, x, y, font, color)),
    '</svg>\n',
  ].join('\n');
}

/** The plots of a figure as a picture. */
export async function plotToPng(figure: HTMLElement, title: string): Promise<Blob> {
  const { width, height, canvases, texts } = layOut(figure);
  const ratio = Math.max(2, devicePixelRatio);
  const picture = document.createElement('canvas');
  picture.width = width * ratio;
  picture.height = height * ratio;
  const ctx = picture.getContext('2d') as CanvasRenderingContext2D;
  ctx.scale(ratio, ratio);
  ctx.fillStyle = token('--surface');
  ctx.fillRect(0, 0, width, height);
  ctx.fillStyle = token('--text');
  ctx.font = titleFont();
  ctx.fillText(title, margin, 22);
  for (const { canvas, x, y, width: wide, height: high } of canvases)
    ctx.drawImage(canvas, x, y, wide, high);
  for (const { text, x, y, font, color } of texts) {
    ctx.font = font;
    ctx.fillStyle = color;
    ctx.fillText(text, x, y);
  }
  return new Promise((resolve, reject) =>
    picture.toBlob((blob) =>
      blob ? resolve(blob) : reject(new Error('the browser cannot make a picture of this size')),
    ),
  );
}

/** The data of a plot as CSV (RFC 4180). Missing values are empty. */
export function plotToCsv({ columns, rows }: PlotData): string {
  const cell = (value: string | number | undefined): string => {
    const text = value === undefined ? '' : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns, ...rows].map((row) => row.map(cell).join(','));
  return lines.join('\r\n') + '\r\n';
}

/** The name of an exported file: the place of the page and the title of the chart. */
export function fileName(path: string, title: string, ending: string): string {
  const parts = path.split('/').filter((part) => part && part !== 'sweeps' && part !== 'trials');
  const slug = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-');
  const name = [...parts, slug.replace(/^-|-$/g, '')].filter(Boolean).join('-');
  return `${name || 'chart'}.${ending}`;
}
