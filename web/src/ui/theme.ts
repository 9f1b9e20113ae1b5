import { effect, signal } from '@preact/signals';

import { writeStored } from '../stored';

export type Theme = 'system' | 'light' | 'dark';

const key = 'attune-theme'; // also read by public/theme.js

function stored(): Theme {
  const value = document.documentElement.dataset.theme;
  return value === 'light' || value === 'dark' ? value : 'system';
}

export const theme = signal<Theme>('system');

/** Whether the page is being printed. */
export const printing = signal(false);

/** Grows whenever colours may have changed, so that canvases draw again. */
export const paintEpoch = signal(0);

const next: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

export function cycleTheme(): void {
  theme.value = next[theme.value];
}

export function startTheme(): void {
  theme.value = stored();
  const bump = (): void => void (paintEpoch.value = paintEpoch.peek() + 1);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', bump);
  matchMedia('print').addEventListener('change', ({ matches }) => {
    printing.value = matches;
    bump();
    // The browser prints as soon as this event has ended. A second render runs the effects of the
    // first, which draw the charts in the colours of paper.
    queueMicrotask(bump);
  });
  effect(() => {
    const chosen = theme.value;
    if (chosen === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    writeStored(key, chosen === 'system' ? undefined : chosen);
    bump();
  });
}

/** The current value of a colour or number of tokens.css. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
