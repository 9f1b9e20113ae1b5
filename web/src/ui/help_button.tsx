import type { JSX } from 'preact';

export function HelpButton({ onClick }: { onClick: () => void }): JSX.Element {
  return (
    <button
      type="button"
      class="quiet icon-button help-button"
      onClick={onClick}
      aria-label="Keyboard help"
      title="Keyboard help (?)"
    >
      <kbd>?</kbd>
    </button>
  );
}
