import type { JSX } from 'preact';

import type { EmptyReason } from '../model/empty';
import { setQuery } from '../router';

/** Removes everything that hides trials: text, states and brushes. */
export function clearFilter(): void {
  setQuery({ q: undefined, state: undefined, brush: undefined });
}

/** Why there is nothing to see, and the next step. */
export function EmptyNote({ reason }: { reason: EmptyReason }): JSX.Element {
  return (
    <span class="empty-note">
      <b>{reason.text}</b>
      {reason.filtered ? (
        <button type="button" onClick={clearFilter}>
          Clear the filter
        </button>
      ) : (
        <span>{reason.next}</span>
      )}
    </span>
  );
}
