import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface Question {
  title: string;
  /** What the button that goes ahead says. */
  action: string;
  danger?: boolean;
  /** Takes what was typed, by the fields' names. Resolves to why it was refused, or to ''. */
  onYes(typed: Record<string, string>): Promise<string>;
  /** The dialog has closed, whatever the answer was. */
  onClose(): void;
}

/** A modal question with a text. The harmless answer has the focus. */
export function Confirm({ text, ...question }: Question & { text: string }): JSX.Element {
  return (
    <Dialog {...question} describedBy="dialog-text" focusNo>
      <p id="dialog-text">{text}</p>
    </Dialog>
  );
}

/** A modal question with fields; its first field has the focus. It stays open when refused. */
export function Dialog({
  title,
  action,
  danger,
  onYes,
  onClose,
  describedBy,
  focusNo,
  children,
}: Question & {
  describedBy?: string;
  focusNo?: boolean;
  children: ComponentChildren;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  // Not `disabled`, which would take the focus from the button.
  const busy = useRef(false);
  const [refused, setRefused] = useState('');
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: JSX.TargetedSubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const typed = Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>;
    if (busy.current) return;
    busy.current = true;
    setRefused('');
    const refusal = await onYes(typed);
    busy.current = false;
    setRefused(refusal);
    // Closed, not just taken away: the focus goes back to where it came from.
    if (!refusal) dialog.current?.close();
  };
  return (
    <dialog
      ref={dialog}
      onClose={onClose}
      aria-labelledby="dialog-title"
      aria-describedby={describedBy}
    >
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        {refused && (
          <p class="notice notice-bad refusal" role="alert">
            {refused}
          </p>
        )}
        <div class="dialog-buttons">
          <button type="button" autofocus={focusNo} onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={danger ? 'danger' : 'primary'}>
            {action}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** A field of a dialog with its name and what may be typed. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint: string;
  children: JSX.Element;
}): JSX.Element {
  return (
    <label class="dialog-field">
      <span>
        {label} <span class="muted">{hint}</span>
      </span>
      {children}
    </label>
  );
}
