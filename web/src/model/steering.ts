import type { Annotation, Config, ConfigValue, Parameter, Sweep } from '../api/contract';
import { formatConfig } from './numbers';

// The text that users type into dialogs, and the requests made from it.

/** The body of `:extend`. */
export interface Extension {
  max_trials?: number;
  max_step?: number;
  max_time?: string;
  max_gpu_hours?: number;
}

export type Typed = Record<string, string>;

/** The limits of a sweep as a user would type them. */
export function typedLimits(sweep: Sweep): Record<keyof Extension, string> {
  return {
    max_trials: String(sweep.max_trials),
    max_step: String(sweep.max_step),
    max_time: durationText(sweep.limits.max_time),
    max_gpu_hours: String(sweep.limits.max_gpu_hours),
  };
}

/** The limits that the user changed. */
export function extension(before: Record<keyof Extension, string>, typed: Typed): Extension {
  const changed = (name: keyof Extension): string | undefined => {
    const text = typed[name]?.trim();
    return text && text !== before[name] ? text : undefined;
  };
  const limits: Extension = {};
  for (const name of ['max_trials', 'max_step', 'max_gpu_hours'] as const) {
    const text = changed(name);
    if (text !== undefined) limits[name] = Number(text);
  }
  const time = changed('max_time');
  // The server requires a unit, also for "no limit".
  if (time !== undefined) limits.max_time = time === '0' ? '0s' : time;
  return limits;
}

/** A duration in the form of a sweep file: "1d", "90m"; 0 for none. */
export function durationText(seconds: number): string {
  if (seconds === 0) return '0';
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
  ] as const;
  const fit = units.find(([, length]) => seconds % length === 0);
  return fit ? `${seconds / fit[1]}${fit[0]}` : `${seconds}s`;
}

/** The note and the tags of a sweep or a trial. */
export interface Annotated {
  note: string;
  tags: readonly string[];
}

/** The tags in a text that separates them by commas or blanks. Known tags may contain blanks. */
export function typedTags(text: string, known: readonly string[]): string[] {
  const parts = text.split(',').map((part) => part.trim());
  const tags = parts.flatMap((part) => (known.includes(part) ? [part] : part.split(/\s+/)));
  return [...new Set(tags)].filter(Boolean);
}

/** The changes that the user made; undefined: none. Tags that others add meanwhile stay. */
export function annotation({ note, tags }: Annotated, typed: Typed): Annotation | undefined {
  const typedNote = (typed.note ?? note).replaceAll('\r\n', '\n');
  const now = typedTags(typed.tags ?? tags.join(', '), tags);
  const added = now.filter((tag) => !tags.includes(tag));
  const removed = tags.filter((tag) => !now.includes(tag));
  const changes: Annotation = {};
  if (typedNote !== note) changes.note = typedNote;
  if (added.length > 0) changes.add_tags = added;
  if (removed.length > 0) changes.remove_tags = removed;
  return Object.keys(changes).length > 0 ? changes : undefined;
}

/** A parameter's value as a user would type it; for a choice, the index of the value. */
export function typedValue(parameter: Parameter, value: ConfigValue | undefined): string {
  if (value === undefined) return '';
  return String(parameter.values ? parameter.values.indexOf(value) : value);
}

/** The configuration that the user typed, without empty fields. */
export function typedConfig(parameters: readonly Parameter[], typed: Typed): Config {
  const config: Config = {};
  for (const { name, values } of parameters) {
    const text = typed[name];
    if (!text) continue;
    const value = values ? values[Number(text)] : Number(text);
    if (value !== undefined) config[name] = value;
  }
  return config;
}

/** The values of a parameter: "0.001 … 0.5, log", "8 … 64 by 8", "sgd, adamw", "128". */
export function valuesText({ type, value, values, min, max, scale, step }: Parameter): string {
  if (value !== undefined) return formatConfig(value);
  if (values) return values.map((each) => formatConfig(each)).join(', ');
  if (min === undefined || max === undefined) return '';
  const by =
    step !== undefined && !(type === 'int' && step === 1) ? ` by ${formatConfig(step)}` : '';
  return `${formatConfig(min)} … ${formatConfig(max)}${by}${scale === 'log' ? ', log' : ''}`;
}
