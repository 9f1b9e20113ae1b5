import { useLayoutEffect } from 'preact/hooks';

export type Keys = Record<string, (event: KeyboardEvent) => void>;

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/** Handles keys of the whole page; ignored while the user types and while a dialog is open. */
export function useKeys(keys: Keys): void {
  // Registers before the rows are visible, so that no early key press is lost.
  useLayoutEffect(() => {
    const handle = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
      // Enter belongs to the button or link that has the focus.
      if (event.key === 'Enter' && (event.target as Element).closest('a, button, summary')) return;
      keys[event.key]?.(event);
    };
    document.addEventListener('keydown', handle);
    return () => document.removeEventListener('keydown', handle);
  });
}

export const keyHelp: readonly [string, string][] = [
  ['/', 'Filter'],
  ['j  k', 'Next row, previous row'],
  ['Home  End', 'First row, last row'],
  ['Enter', 'Open the selected row'],
  ['Esc', 'Clear the selection, leave the filter'],
  ['u', 'Up one level'],
  ['t', 'Theme: system, light, dark'],
  ['?', 'This list'],
];
