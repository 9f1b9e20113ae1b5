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

/** The CSS variable with the colour of a trial. */
export function colorToken(trial: Pick<TrialRow, 'number' | 'state'>, by: ColorBy): string {
  return by === 'state' ? `--state-${trial.state}` : `--line-${(trial.number % paletteSize) + 1}`;
}

export function linesOf(
  trials: Iterable<TrialRow>,
  curves: ReadonlyMap<number, Curve>,
  by: ColorBy,
): Line[] {
  const colors = new Map<string, string>();
  const lines: Line[] = [];
  for (const trial of trials) {
    const curve = curves.get(trial.number);
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
    return `rgb(${mixed?.join(' ')})`;
  });
}

function channels(hex: string): number[] {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}
