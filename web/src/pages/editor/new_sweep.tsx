import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { api } from '../../api/client';
import { explain, openStream } from '../../live/session';
import { navigate, place, sweepUrl } from '../../router';
import { readStored, writeStored } from '../../stored';
import { Pick } from '../../ui/parts';
import { EditorState } from './editor_state';
import { Forecast } from './forecast';
import { useValidation } from './use_validation';
import { YamlEditor } from './yaml_editor';

// The sweep files of examples/.
const examples = import.meta.glob<string>('../../../../examples/*/sweep.yaml', {
  query: '?raw',
  import: 'default',
});
const exampleNames = Object.keys(examples).map((path) => path.split('/').at(-2) as string);

interface Draft {
  file: string;
  directory: string;
}

const firstDraft: Draft = {
  file: `command: [python3, train.py]
metric: {name: loss, mode: min}
parameters:
  lr: {min: 0.0001, max: 0.1, scale: log}
scheduler: {name: asha, max: 10}
stop: {max_trials: 20}
`,
  directory: '',
};

/** What was typed stays in the browser until the sweep is created. */
function useDraft(from: string | undefined): [Draft, (draft: Draft) => void, () => void] {
  const key = `attune-draft-${from ?? ''}`;
  const [draft, setDraft] = useState<Draft>(() => parseDraft(readStored(key)) ?? firstDraft);
  const change = (next: Draft): void => {
    writeStored(key, JSON.stringify(next));
    setDraft(next);
  };
  useEffect(() => {
    if (from === undefined || readStored(key) !== undefined) return;
    api.sweep(from).then(({ resolved_file, file, path }) => {
      setDraft({ file: resolved_file || file, directory: path.replace(/\/[^/]*$/, '') });
    }, explain);
  }, [from]);
  return [draft, change, () => writeStored(key, undefined)];
}

function parseDraft(text: string | undefined): Draft | undefined {
  try {
    const { file, directory } = JSON.parse(text ?? '') as Partial<Draft>;
    if (typeof file === 'string' && typeof directory === 'string') return { file, directory };
  } catch {
    // It was stored by another version.
  }
  return undefined;
}

/** The form of a new sweep, or of a clone of another one. */
export function NewSweep(): JSX.Element {
  useEffect(() => openStream({ onEvents: () => {}, onResync: () => {}, onRefused: () => {} }), []);
  const from = place.value.query.get('from') ?? undefined;
  const [draft, setDraft, forget] = useDraft(from);
  const [key] = useState(() => `page-${Date.now()}-${Math.random().toString(36).slice(2)}`);
  const [refused, setRefused] = useState('');
  const validation = useValidation(draft.file, draft.directory);
  const choose = async (name: string): Promise<void> => {
    const [, read] = Object.entries(examples).find(([path]) => path.includes(`/${name}/`)) ?? [];
    if (read) setDraft({ ...draft, file: await read() });
  };
  const create = async (): Promise<void> => {
    setRefused('');
    try {
      const { id } = await api.createSweep(draft.file, draft.directory, key);
      forget();
      navigate(sweepUrl(id));
    } catch (error) {
      setRefused(explain(error)?.message ?? '');
    }
  };
  return (
    <>
      <div class="page-head">
        <h1>{from === undefined ? 'New sweep' : `Clone ${from}`}</h1>
        <div class="actions">
          <Pick
            label="example"
            value=""
            options={[['', 'choose…'], ...exampleNames.map((name) => [name, name] as const)]}
            onChange={(name) => void choose(name)}
          />
          <button
            type="button"
            class="primary"
            disabled={!validation.valid}
            onClick={() => void create()}
          >
            Create the sweep
          </button>
        </div>
      </div>
      {refused && (
        <p class="notice notice-bad" role="alert">
          {refused}
        </p>
      )}
      <div class="editor-page">
        <section class="panel card" aria-label="Sweep file">
          <label class="pick">
            folder on the hosts
            <input
              type="text"
              placeholder="/home/me/project"
              autocomplete="off"
              value={draft.directory}
              onInput={(event) => setDraft({ ...draft, directory: event.currentTarget.value })}
            />
          </label>
          <p class="muted small">
            Relative paths of the file start there. The folder must exist on every host.
          </p>
          <YamlEditor
            text={draft.file}
            faults={validation.faults}
            onChange={(file) => setDraft({ ...draft, file })}
          />
          <EditorState validation={validation} />
        </section>
        <Forecast file={draft.file} directory={draft.directory} />
      </div>
    </>
  );
}
