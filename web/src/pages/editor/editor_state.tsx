import type { JSX } from 'preact';

import { plural } from '../../model/numbers';
import type { Validation } from './use_validation';
import { FaultList } from './yaml_editor';

/** Says whether the file is valid, and lists its faults and warnings. */
export function EditorState({ validation }: { validation: Validation }): JSX.Element {
  const { valid, faults, trouble, busy } = validation;
  const rungs = valid?.rungs ?? [];
  return (
    <div id="editor-state" data-testid="editor-state">
      {busy && <p class="muted">Checking…</p>}
      {!busy && valid && (
        <p role="status">
          The file is valid.
          {rungs.length > 0 && ` It has ${plural(rungs.length, 'rung')}: ${rungs.join(', ')}.`}
        </p>
      )}
      {valid?.warm_start.map((text) => (
        <p key={text}>{text}</p>
      ))}
      {valid?.warnings?.map((text) => (
        <p key={text} class="notice">
          {text}
        </p>
      ))}
      {!busy && faults.length > 0 && <FaultList faults={faults} />}
      {!busy && trouble && (
        <p class="failure" role="alert">
          {trouble}
        </p>
      )}
    </div>
  );
}
