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

/** Handles Ctrl+K, and ⌘K on a Mac, also while the user types. */
export function usePaletteKey(open: () => void): void {
  useLayoutEffect(() => {
    const handle = (event: KeyboardEvent): void => {
      if (event.key !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      if (document.querySelector('dialog[open]')) return;
      event.preventDefault();
      open();
    };
    document.addEventListener('keydown', handle);
    return () => document.removeEventListener('keydown', handle);
  }, [open]);
}

/** The keys of the page; some do nothing in a page without a server. */
export const keyHelp: readonly { keys: string; meaning: string; needsServer?: true }[] = [
  { keys: 'Ctrl K', meaning: 'Find a command, a page, a sweep or a trial', needsServer: true },
  { keys: '/', meaning: 'Filter' },
  { keys: 'j  k', meaning: 'Next row, previous row' },
  { keys: 'Home  End', meaning: 'First row, last row' },
  { keys: 'Enter', meaning: 'Open the selected row' },
  { keys: 'x', meaning: 'Choose the selected row for a comparison', needsServer: true },
  { keys: 'e', meaning: 'Enqueue a copy of the selected trial', needsServer: true },
  { keys: 'Esc', meaning: 'Clear the selection, leave the filter' },
  { keys: 'u', meaning: 'Up one level' },
  { keys: 't', meaning: 'Theme: system, light, dark' },
  { keys: '?', meaning: 'This list' },
];
