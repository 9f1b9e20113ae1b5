import type { JSX } from 'preact';

import { Icon } from './icons';
import { cycleTheme, theme } from './theme';

const themeIcons = { system: 'system', light: 'sun', dark: 'moon' } as const;

export function ThemeButton(): JSX.Element {
  const label = `Theme: ${theme.value}`;
  return (
    <button
      type="button"
      class="quiet icon-button"
      onClick={cycleTheme}
      aria-label={label}
      title={`${label} (t)`}
    >
      <Icon name={themeIcons[theme.value]} />
    </button>
  );
}
