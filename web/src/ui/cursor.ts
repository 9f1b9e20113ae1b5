import { useRef } from 'preact/hooks';

export interface Cursor {
  to(index: number): void;
  by(step: number): void;
  /** The current index, which may be ahead of the drawn one; -1: none. */
  at(): number;
}

/**
 * Moves a selection through a list. Keys may arrive faster than the page is drawn, so the cursor
 * keeps its own index and does not wait for the new `at` (-1: nothing selected).
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
