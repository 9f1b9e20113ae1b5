import { useRef } from 'preact/hooks';

export interface Cursor {
  to(index: number): void;
  by(step: number): void;
  /** Where it is now, which may be further than what was drawn; -1: nowhere. */
  at(): number;
}

/**
 * Moves a selection through a list. Keys may come faster than the page is drawn, so the cursor
 * counts by itself and does not wait for its new place to come back as `at` (-1: nothing selected).
 */
export function useCursor(count: number, at: number, choose: (index: number) => void): Cursor {
  const current = useRef(at);
  current.current = at;
  const to = (index: number): void => {
    if (count === 0) return;
    current.current = Math.max(0, Math.min(count - 1, index));
    choose(current.current);
  };
  return {
    to,
    by: (step) => to(current.current < 0 ? 0 : current.current + step),
    at: () => current.current,
  };
}
