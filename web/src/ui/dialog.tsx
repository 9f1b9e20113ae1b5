import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface Question {
  title: string;
  /** The text of the button that confirms. */
  action: string;
  danger?: boolean;
  /** Takes the typed text by field name. Resolves to the reason of a refusal, or to ''. */
  onYes(typed: Record<string, string>): Promise<string>;
  /** Called when the dialog has closed, whatever the answer. */
  onClose(): void;
}

/** A modal question with a text. The button "Cancel" has the focus. */
export function Confirm({ text, ...question }: Question & { text: string }): JSX.Element {
  return (
    <Dialog {...question} describedBy="dialog-text" focusNo>
      <p id="dialog-text">{text}</p>
    </Dialog>
  );
}

/** A modal question with fields. The first field has the focus. A refusal keeps the dialog open. */
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
  // `disabled` would take the focus from the button.
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
    // Closing before removal returns the focus to its former place.
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

/** A field of a dialog with its name and a hint. */
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
