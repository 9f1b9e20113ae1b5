import type { ConfigValue, Metric, Real } from '../api/contract';

/** Parses a number of the API, which sends NaN and infinities as words. */
export function fromWire(value: Real): number {
  switch (value) {
    case 'nan':
      return NaN;
    case 'inf':
      return Infinity;
    case '-inf':
      return -Infinity;
    default:
      return value;
  }
}

/** Whether a is strictly better than b. NaN is worse than every number. */
export function better(mode: Metric['mode'], a: number, b: number): boolean {
  if (Number.isNaN(a)) return false;
  if (Number.isNaN(b)) return true;
  return mode === 'max' ? a > b : a < b;
}

/** For sorting: negative when a comes first, the best first and NaN last. */
export function compareByMode(mode: Metric['mode'], a: number, b: number): number {
  if (better(mode, a, b)) return -1;
  return better(mode, b, a) ? 1 : 0;
}

const significantDigits = 4;

/** A measured number, to four significant digits: 0.8714, 12.30, 4.1e-5, 1.203e6. */
export function formatMetric(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const magnitude = Math.abs(value);
  if (magnitude < 1e-3 || magnitude >= 1e6) return exponential(value, significantDigits - 1);
  if (Number.isInteger(value)) return minus(String(value));
  return minus(value.toPrecision(Math.max(significantDigits, wholeDigits(magnitude))));
}

/** A step: whole, or with two decimals if a value was logged between reports. */
export function formatStep(step: number): string {
  return Number.isInteger(step) ? String(step) : step.toFixed(2);
}

/** A value of a configuration: exact, because it is an input; only long fractions are shortened. */
export function formatConfig(value: ConfigValue | undefined): string {
  if (value === undefined) return '';
  if (typeof value !== 'number') return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return minus(String(value));
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-3 || magnitude >= 1e6)) return exponential(value, 3);
  return minus(String(Number(value.toPrecision(5))));
}

export function formatCount(value: number): string {
  return value.toLocaleString('en-GB');
}

/** A share from 0 to 1: "42%". */
export function formatPercent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** "1 trial", "3 trials". */
export function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : many}`;
}

function wholeDigits(magnitude: number): number {
  return magnitude < 1 ? 1 : Math.floor(Math.log10(magnitude)) + 1;
}

function exponential(value: number, digits: number): string {
  const [mantissa = '', exponent = ''] = value.toExponential(digits).split('e');
  const trimmed = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
  return minus(`${trimmed}e${exponent.replace('+', '')}`);
}

// A true minus sign has the width of a digit, so columns stay aligned.
function minus(text: string): string {
  return text.replaceAll('-', '−');
}
