import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';

import { ApiError, api } from '../../api/client';
import type { AnyObject, SweepDetail } from '../../api/contract';
import { explain, openStream } from '../../live/session';
import { mergePatch } from '../../model/editor/merge_patch';
import { navigate, sweepUrl } from '../../router';
import { readStored, writeStored } from '../../stored';
import { Loading, Trouble } from '../../ui/parts';
import { EditorState } from './editor_state';
import { useValidation } from './use_validation';
import { YamlEditor } from './yaml_editor';

interface Read {
  sweep: SweepDetail;
  resolved: AnyObject;
}

/** The file of a sweep, to edit the keys that may change, with a preview of the changes. */
export function EditSweep({ id }: { id: string }): JSX.Element {
  const [read, setRead] = useState<Read>();
  const [trouble, setTrouble] = useState<ApiError>();
  useEffect(() => openStream({ onEvents: () => {}, onResync: () => {}, onRefused: () => {} }), []);
  useEffect(() => {
    Promise.all([api.sweep(id), api.resolved(id)]).then(
      ([sweep, resolved]) => setRead({ sweep, resolved }),
      (error) => setTrouble(explain(error)),
    );
  }, [id]);
  if (trouble) return <Trouble error={trouble} />;
  if (!read) return <Loading what={`sweep ${id}`} />;
  return <Editor {...read} />;
}

function Editor({ sweep, resolved }: Read): JSX.Element {
  const key = `attune-draft-edit-${sweep.id}`;
  const [file, setFile] = useState(() => readStored(key) ?? (sweep.resolved_file || sweep.file));
  const directory = sweep.path.replace(/\/[^/]*$/, '');
  const validation = useValidation(file, directory);
  const { valid } = validation;
  const patch = useMemo(
    () => (valid ? mergePatch(resolved, valid.resolved) : undefined),
    [resolved, valid],
  );
  const isChanged = patch !== undefined && Object.keys(patch).length > 0;
  const [effect, setEffect] = useState('');
  const [refused, setRefused] = useState('');

  useEffect(() => {
    setEffect('');
    setRefused('');
    if (!patch || !isChanged) return undefined;
    let isCurrent = true;
    api.editSweep(sweep.id, patch, true).then(
      (answer) => isCurrent && setEffect(answer.effect),
      (error) => isCurrent && setRefused(explain(error)?.message ?? ''),
    );
    return () => void (isCurrent = false);
  }, [patch]);

  const change = (next: string): void => {
    writeStored(key, next);
    setFile(next);
  };
  const leave = (): void => {
    writeStored(key, undefined);
    navigate(sweepUrl(sweep.id));
  };
  const send = async (): Promise<void> => {
    if (!patch) return;
    try {
      await api.editSweep(sweep.id, patch, false);
      leave();
    } catch (error) {
      setRefused(explain(error)?.message ?? '');
    }
  };
  return (
    <>
      <div class="page-head">
        <h1>Edit {sweep.name || sweep.id}</h1>
        <div class="actions">
          <button type="button" onClick={leave}>
            Cancel
          </button>
          <button
            type="button"
            class="primary"
            disabled={!isChanged || refused !== '' || effect === ''}
            onClick={() => void send()}
          >
            Save the changes
          </button>
        </div>
      </div>
      <div class="editor-page">
        <section class="panel card" aria-label="Sweep file">
          <YamlEditor text={file} faults={validation.faults} onChange={change} />
          <EditorState validation={validation} />
        </section>
        <section class="panel card" aria-labelledby="changes-title" data-testid="changes">
          <h2 id="changes-title">Changes</h2>
          {!isChanged && <p class="muted">Nothing is changed yet.</p>}
          {effect && <p role="status">{effect}</p>}
          {refused && (
            <p class="failure" role="alert">
              {refused}
            </p>
          )}
          <p class="muted small">
            Running trials continue. New trials, limits and decisions follow the edited file from
            now on.
            {sweep.ended !== null && ' The sweep has ended; if more trials can run, it runs again.'}
          </p>
        </section>
      </div>
    </>
  );
}
