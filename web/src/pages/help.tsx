import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { hasServer } from '../api/client';
import { keyHelp } from '../ui/keys';

/** The keys and the words of a filter. */
export function Help({
  licences,
  onClose,
}: {
  /** Those of the libraries that the page contains. */
  licences: ComponentChildren;
  onClose(): void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {keyHelp
          .filter(({ needsServer }) => hasServer() || !needsServer)
          .map(({ keys, meaning }) => (
            <div key={keys}>
              <dt>
                {keys.split('  ').map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
      </dl>
      <h3>Filter</h3>
      <p class="muted">
        Words that must all hold: <code>stopped</code>, <code>#17</code>, <code>lr&lt;0.01</code>,{' '}
        <code>best&gt;=0.8</code>, <code>lr:1e-4..1e-2</code>, <code>optimizer=sgd</code>, or any
        part of a text in the row, such as <code>"rank 1"</code>. Combine them with <code>OR</code>,
        parentheses, and <code>-</code> or <code>NOT</code>.
      </p>
      <div class="dialog-buttons">
        {licences}
        <button type="button" autofocus onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
