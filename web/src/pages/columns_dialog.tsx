import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { moved } from '../model/chosen_columns';
import { Dialog } from '../ui/dialog';

interface Entry {
  key: string;
  label: string;
}

/** Chooses the columns of the trial table and their order. */
export function ColumnsDialog({
  all,
  chosen,
  onYes,
  onClose,
}: {
  all: readonly Entry[];
  chosen: readonly string[];
  /** Undefined: the usual columns. */
  onYes(keys: readonly string[] | undefined): void;
  onClose(): void;
}): JSX.Element {
  const [order, setOrder] = useState<readonly string[]>(() => [
    ...chosen,
    ...all.map(({ key }) => key).filter((key) => !chosen.includes(key)),
  ]);
  const [shown, setShown] = useState<ReadonlySet<string>>(() => new Set(chosen));
  const [dragged, setDragged] = useState<number>();
  const labels = new Map(all.map(({ key, label }) => [key, label]));
  const toggle = (key: string): void => {
    const next = new Set(shown);
    if (!next.delete(key)) next.add(key);
    setShown(next);
  };
  const send = (): Promise<string> => {
    const keys = order.filter((key) => shown.has(key));
    if (keys.length === 0) return Promise.resolve('Choose at least one column.');
    onYes(keys);
    return Promise.resolve('');
  };
  return (
    <Dialog title="Columns" action="Show these columns" onYes={send} onClose={onClose}>
      <ol class="columns-list">
        {order.map((key, at) => (
          <li
            key={key}
            draggable
            class={at === dragged ? 'dragged' : ''}
            onDragStart={() => setDragged(at)}
            onDragEnd={() => setDragged(undefined)}
            onDragOver={(event) => {
              event.preventDefault();
              if (dragged === undefined || dragged === at) return;
              setOrder(moved(order, dragged, at - dragged));
              setDragged(at);
            }}
          >
            <label class="check">
              <input type="checkbox" checked={shown.has(key)} onChange={() => toggle(key)} />
              {labels.get(key)}
            </label>
            <button
              type="button"
              class="quiet"
              disabled={at === 0}
              aria-label={`Move ${labels.get(key)} up`}
              onClick={() => setOrder(moved(order, at, -1))}
            >
              ↑
            </button>
            <button
              type="button"
              class="quiet"
              disabled={at === order.length - 1}
              aria-label={`Move ${labels.get(key)} down`}
              onClick={() => setOrder(moved(order, at, 1))}
            >
              ↓
            </button>
          </li>
        ))}
      </ol>
      <button
        type="button"
        class="quiet"
        onClick={(event) => {
          onYes(undefined);
          event.currentTarget.closest('dialog')?.close();
        }}
      >
        Show the usual columns
      </button>
    </Dialog>
  );
}
