import type { TrialRow } from '../model/sweep_model';
import type { Line } from './curve_plot';
import type { Curve } from '../model/curve';
import { token } from './theme';

export type ColorBy = 'trial' | 'state';

// With more trials, seven colours repeat too often to distinguish trials.
const mostTrialsByColor = 28;
const paletteSize = 7;

export function chooseColorBy(wanted: string | null, trials: number): ColorBy {
  if (wanted === 'trial' || wanted === 'state') return wanted;
  return trials <= mostTrialsByColor ? 'trial' : 'state';
}

/** The CSS variable with the colour of a line. The colours repeat. */
export const lineToken = (number: number): string => `--line-${(number % paletteSize) + 1}`;

/** The CSS variable with the colour of a trial. */
export function colorToken(trial: Pick<TrialRow, 'number' | 'state'>, by: ColorBy): string {
  return by === 'state' ? `--state-${trial.state}` : lineToken(trial.number);
}

/** The lines of trials that have a curve. */
export function linesOf(
  trials: Iterable<TrialRow>,
  curveOf: (trial: number) => Curve | undefined,
  by: ColorBy,
): Line[] {
  const colors = new Map<string, string>();
  const lines: Line[] = [];
  for (const trial of trials) {
    const curve = curveOf(trial.number);
    if (!curve || curve.length === 0) continue;
    const name = colorToken(trial, by);
    let color = colors.get(name);
    if (color === undefined) colors.set(name, (color = token(name)));
    const faint = trial.state === 'stopped' || trial.state === 'failed' || trial.state === 'killed';
    lines.push({ number: trial.number, curve, color, faint, live: trial.state === 'running' });
  }
  return lines;
}

/** `count` colours from the worst to the best, interpolated between those of tokens.css. */
export function rampColors(count: number): string[] {
  const stops = [1, 2, 3, 4, 5].map((i) => channels(token(`--ramp-${i}`)));
  return Array.from({ length: count }, (_, i) => {
    const at = (i / Math.max(1, count - 1)) * (stops.length - 1);
    const [from, to] = [stops[Math.floor(at)], stops[Math.ceil(at)]];
    const mixed = from?.map((c, k) => Math.round(c + ((to?.[k] ?? c) - c) * (at % 1)));
    return hexOf(mixed ?? []);
  });
}

/** Red, green and blue of #rrggbb. */
export function channels(hex: string): number[] {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function hexOf(mixed: readonly number[]): string {
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}
