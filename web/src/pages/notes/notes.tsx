import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import type { Annotation } from '../../api/contract';
import { mayChange } from '../../live/session';
import { annotation, type Annotated } from '../../model/steering';
import { Dialog } from '../../ui/dialog';
import { Tags } from '../../ui/parts';
import { useSteering } from '../steering';

/** The note and the tags of a sweep or a trial, and a button to change them. */
export function Notes({
  title,
  of: { note, tags },
  isClosed,
  save,
}: {
  /** The sweep or the trial, for the title of the dialog. */
  title: string;
  of: Annotated;
  /** Nothing can change. */
  isClosed: boolean;
  save(changes: Annotation): Promise<{ effect: string }>;
}): JSX.Element | null {
  const [isOpen, setOpen] = useState(false);
  const { outcome, answer } = useSteering();
  const isLocked = isClosed || !mayChange.value;
  if (isLocked && note === '' && tags.length === 0) return null;
  return (
    <section class="notes" aria-label="Note and tags">
      <div class="chips">
        <Tags tags={tags} />
        {!isLocked && (
          <button type="button" class="quiet" onClick={() => setOpen(true)}>
            Note and tags…
          </button>
        )}
      </div>
      {note && <p class="note">{note}</p>}
      {outcome}
      {isOpen && (
        <NotesDialog
          title={title}
          of={{ note, tags }}
          onYes={(changes) => answer(() => save(changes))}
          onClose={() => setOpen(false)}
        />
      )}
    </section>
  );
}

function NotesDialog({
  title,
  of,
  onYes,
  onClose,
}: {
  title: string;
  of: Annotated;
  onYes(changes: Annotation): Promise<string>;
  onClose(): void;
}): JSX.Element {
  // As they were when the dialog opened: a field must not change while the user types.
  const [before] = useState(of);
  const send = (typed: Record<string, string>): Promise<string> => {
    const changes = annotation(before, typed);
    return changes ? onYes(changes) : Promise.resolve('');
  };
  return (
    <Dialog title={`Note and tags of ${title}`} action="Save" onYes={send} onClose={onClose}>
      <label class="dialog-text">
        Note
        <textarea name="note" rows={6} maxLength={16_384} defaultValue={before.note} />
      </label>
      <label class="dialog-text">
        <span>
          Tags <span class="muted">such as best, lr-1</span>
        </span>
        <input name="tags" type="text" autocomplete="off" defaultValue={before.tags.join(', ')} />
      </label>
    </Dialog>
  );
}
