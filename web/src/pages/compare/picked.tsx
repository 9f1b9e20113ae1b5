import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { hasServer } from '../../api/client';
import { mostCompared, parseCompared } from '../../model/compare';
import { compareUrl, place, setQuery } from '../../router';

/** Which trials of the table are chosen for a comparison; the URL holds them as `pick=3,17`. */
function picked(): string[] {
  return parseCompared(place.value.query.get('pick'));
}

/** Adds a trial to those to compare, or removes it. There are at most five. */
export function togglePicked(number: number): void {
  if (!hasServer()) return;
  const before = picked();
  const key = String(number);
  const next = before.includes(key) ? before.filter((each) => each !== key) : [...before, key];
  if (next.length <= mostCompared) setQuery({ pick: next.join(',') });
}

export function PickBox({ number }: { number: number }): JSX.Element | null {
  if (!hasServer()) return null;
  const chosen = picked();
  const checked = chosen.includes(String(number));
  return (
    <input
      type="checkbox"
      class="pick-box"
      checked={checked}
      disabled={!checked && chosen.length >= mostCompared}
      tabIndex={-1}
      aria-label={`Compare trial ${number}`}
      title="Choose for a comparison (also: Shift-click on the row)"
      onClick={(event) => event.stopPropagation()}
      onDblClick={(event) => event.stopPropagation()}
      onChange={(event) => {
        togglePicked(number);
        // The keys of the page do not work while a field has the focus.
        event.currentTarget.blur();
      }}
    />
  );
}

/** Opens the comparison of the chosen trials; absent before a choice. */
export function CompareButton({ sweep }: { sweep: string }): JSX.Element | null {
  const chosen = picked();
  if (chosen.length === 0) return null;
  return (
    <span class="compare-chosen">
      <a class="button" href={compareUrl(sweep, chosen)}>
        Compare {chosen.length === 1 ? `trial ${chosen[0]}…` : `${chosen.length} trials`}
      </a>
      <button type="button" class="quiet" onClick={() => setQuery({ pick: undefined })}>
        Clear
      </button>
    </span>
  );
}

/** A field that adds a number or a name to a comparison. */
export function AddField({
  label,
  options,
  onAdd,
}: {
  label: string;
  /** The values to choose from; any number if absent. */
  options?: readonly (readonly [value: string, text: string])[];
  onAdd(value: string): void;
}): JSX.Element {
  const [text, setText] = useState('');
  const add = (event: Event): void => {
    event.preventDefault();
    if (text) onAdd(text);
    setText('');
  };
  return (
    <form class="controls" onSubmit={add}>
      <label class="pick">
        {label}
        {options ? (
          <select value={text} onChange={(event) => setText(event.currentTarget.value)}>
            <option value="" />
            {options.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        ) : (
          <input
            type="number"
            min={0}
            style={{ width: '6em' }}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </label>
      <button type="submit" disabled={!text}>
        Add
      </button>
    </form>
  );
}

/** The compared things as chips that remove them. */
export function ComparedChips({
  items,
  onRemove,
}: {
  items: readonly { key: string; name: string; href: string; color: string }[];
  onRemove(key: string): void;
}): JSX.Element {
  return (
    <ul class="compared-chips" aria-label="Compared">
      {items.map(({ key, name, href, color }) => (
        <li key={key}>
          <span class="line-swatch" style={{ background: `var(${color})` }} />
          <a href={href}>{name}</a>
          <button
            type="button"
            class="quiet icon-button"
            aria-label={`Remove ${name}`}
            title={`Remove ${name}`}
            onClick={() => onRemove(key)}
          >
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}
