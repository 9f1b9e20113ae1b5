import type { ComponentChildren, JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';

import type { ApiError } from '../api/client';
import type { TrialState } from '../api/contract';
import { formatCount } from '../model/numbers';
import { countsSummary } from '../model/summary';
import { countTrials, trialStates } from '../model/states';
import { formatClock } from '../model/time';
import { Icon } from './icons';
import { useKeys } from './keys';

/** Small parts that several pages share. */

export function Fact({
  name,
  children,
}: {
  name: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function Tags({ tags }: { tags: readonly string[] }): JSX.Element {
  return (
    <>
      {tags.map((tag) => (
        <span key={tag} class="tag">
          {tag}
        </span>
      ))}
    </>
  );
}

export function CopyButton({ text, what }: { text: string; what: string }): JSX.Element {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1600);
  };
  return (
    <button
      type="button"
      class="quiet icon-button"
      onClick={copy}
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
    >
      <Icon name={done ? 'check' : 'copy'} />
      <span class="visually-hidden" role="status">
        {done ? 'Copied' : ''}
      </span>
    </button>
  );
}

// Browsers offer the clipboard API only on https and localhost.
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** Trials by state as one bar; the part of trials not created yet is empty. */
export function StateBar({
  counts,
  of,
}: {
  counts: Record<TrialState, number>;
  of: number;
}): JSX.Element {
  const whole = Math.max(of, countTrials(counts), 1);
  const order: TrialState[] = [
    'completed',
    'stopped',
    'failed',
    'killed',
    'paused',
    'running',
    'pending',
  ];
  return (
    <div class="state-bar" role="img" aria-label={`${countsSummary(counts)} of ${whole} trials`}>
      {order
        .filter((state) => counts[state] > 0)
        .map((state) => (
          <span key={state} class={`fill-${state}`} style={{ flexGrow: counts[state] }} />
        ))}
      {whole > countTrials(counts) && (
        <span class="fill-none" style={{ flexGrow: whole - countTrials(counts) }} />
      )}
    </div>
  );
}

/** One chip per state with its count; pressed chips filter. */
export function StateChips({
  counts,
  chosen,
  onChange,
}: {
  counts: Record<TrialState, number>;
  chosen: readonly string[];
  onChange(states: string[]): void;
}): JSX.Element {
  const shown = trialStates.filter((state) => counts[state] > 0 || chosen.includes(state));
  const toggle = (state: string): void =>
    onChange(chosen.includes(state) ? chosen.filter((each) => each !== state) : [...chosen, state]);
  return (
    <div class="chips" role="group" aria-label="Show only these states">
      {shown.map((state) => (
        <button
          key={state}
          type="button"
          class={`chip state-${state}`}
          aria-pressed={chosen.includes(state)}
          onClick={() => toggle(state)}
        >
          <span class={`swatch fill-${state}`} />
          {state} <b>{formatCount(counts[state])}</b>
        </button>
      ))}
    </div>
  );
}

export function When({ time, label }: { time: string | null; label?: string }): JSX.Element {
  if (!time) return <span class="muted">–</span>;
  return (
    <time dateTime={time} title={time}>
      {label ?? formatClock(time)}
    </time>
  );
}

export function Trouble({ error }: { error: ApiError }): JSX.Element {
  const { problem } = error;
  return (
    <div class="trouble" role="alert">
      <h2>{problem.title}</h2>
      {problem.detail && <p>{problem.detail}</p>}
      {problem.status === 0 && <p>The page retries automatically. Is `attune serve` running?</p>}
      {problem.status === 404 && (
        <p>
          <a href="/">All sweeps</a>
        </p>
      )}
    </div>
  );
}

export function Loading({ what }: { what: string }): JSX.Element {
  return (
    <p class="loading" role="status">
      Reading {what}…
    </p>
  );
}

export function Sparkline({
  values,
  label,
}: {
  values: readonly number[];
  label: string;
}): JSX.Element | null {
  if (values.length < 2) return null;
  const [width, height, margin] = [112, 26, 3];
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const x = (i: number): number => margin + (i / (values.length - 1)) * (width - 2 * margin);
  const y = (value: number): number =>
    height - margin - ((value - low) / span) * (height - 2 * margin);
  const line = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={label}
    >
      <polyline points={line} />
      <circle cx={x(values.length - 1)} cy={y(values.at(-1) as number)} r="2.4" />
    </svg>
  );
}

/** A choice among options; an option is its text, or its value and its text. */
export function Pick({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  options: readonly (string | readonly [value: string, text: string])[];
  onChange(value: string): void;
}): JSX.Element {
  return (
    <label class="pick">
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => {
          const [key, text] = typeof option === 'string' ? [option, option] : option;
          return (
            <option key={key} value={key}>
              {text}
            </option>
          );
        })}
      </select>
    </label>
  );
}

/** The filter of a table; the key "/" moves the focus there. */
export function FilterBox({
  value,
  what,
  placeholder,
  error,
  onChange,
}: {
  value: string;
  what: string;
  placeholder: string;
  /** Why the filter cannot be used, shown below the box. */
  error?: string | undefined;
  onChange(text: string): void;
}): JSX.Element {
  const box = useRef<HTMLInputElement>(null);
  useKeys({
    '/': (event) => {
      event.preventDefault();
      box.current?.focus();
    },
  });
  return (
    <div class="filter">
      <Icon name="search" />
      <input
        ref={box}
        type="search"
        value={value}
        placeholder={placeholder}
        aria-label={`Filter ${what}`}
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : 'filter-error'}
        spellcheck={false}
        onInput={(event) => onChange(event.currentTarget.value)}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
      />
      {error && (
        <p id="filter-error" class="filter-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}
