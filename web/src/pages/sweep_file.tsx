import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';

import type { SweepDetail } from '../api/contract';
import { diffLines } from '../model/line_diff';
import { valuesText } from '../model/steering';
import { DataTable } from '../ui/data_table';
import { CopyButton, Pick, When } from '../ui/parts';

/** The sweep file, what is risky in it, and its search space. */
export function SweepFile({ sweep }: { sweep: SweepDetail }): JSX.Element {
  return (
    <div class="file-page">
      {sweep.resolved_file === '' ? <SentFile sweep={sweep} /> : <EditedFile sweep={sweep} />}
      <section class="panel card" aria-labelledby="space-title">
        <h2 id="space-title">Search space</h2>
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of parameters">
          <DataTable
            columns={[
              { label: 'parameter', cell: ({ name }) => name },
              { label: 'type', class: 'muted', cell: ({ type }) => type },
              { label: 'values', cell: valuesText },
            ]}
            rows={sweep.parameters}
            rowKey={({ name }) => name}
          />
        </div>
      </section>
    </div>
  );
}

function SentFile({ sweep }: { sweep: SweepDetail }): JSX.Element {
  return (
    <section class="panel card" aria-labelledby="file-title">
      <div class="card-head">
        <h2 id="file-title">Sweep file</h2>
        <CopyButton text={sweep.file} what="sweep file" />
      </div>
      <Warnings sweep={sweep} />
      <pre class="code" tabIndex={0} data-testid="file">
        {sweep.file}
      </pre>
    </section>
  );
}

type Shown = 'difference' | 'current' | 'sent';

/** The file of an edited sweep as it is now, with its differences from the sent file. */
function EditedFile({ sweep }: { sweep: SweepDetail }): JSX.Element {
  const [shown, setShown] = useState<Shown>('difference');
  const { resolved_file: now, resolved_file_as_sent: before, edited } = sweep;
  return (
    <section class="panel card" aria-labelledby="file-title">
      <div class="card-head">
        <h2 id="file-title">{shown === 'sent' ? 'Sweep file as sent' : 'Sweep file now'}</h2>
        <Pick
          label="show"
          value={shown}
          options={[
            ['difference', 'now, with changes marked'],
            ['current', 'now'],
            ['sent', 'as sent'],
          ]}
          onChange={(chosen) => setShown(chosen as Shown)}
        />
        <CopyButton text={shown === 'sent' ? sweep.file : now} what="sweep file" />
      </div>
      <Warnings sweep={sweep} />
      {edited && shown !== 'sent' && (
        <p class="muted small file-note">
          Last edit by {edited.actor}, <When time={edited.time} />: {edited.changes.join(', ')}.
          Defaults are written out.
        </p>
      )}
      {shown === 'difference' ? (
        <Difference before={before} after={now} />
      ) : (
        <pre class="code" tabIndex={0} data-testid="file">
          {shown === 'current' ? now : sweep.file}
        </pre>
      )}
    </section>
  );
}

const signs = { same: ' ', removed: '−', added: '+' } as const;

function Difference({ before, after }: { before: string; after: string }): JSX.Element {
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  return (
    <pre class="code diff" tabIndex={0} data-testid="file">
      {lines.map(({ kind, text }, i) => (
        <span key={i} class={`diff-line diff-${kind}`}>
          <span aria-hidden="true">{signs[kind]} </span>
          {kind !== 'same' && <span class="visually-hidden">{kind}: </span>}
          {`${text}\n`}
        </span>
      ))}
    </pre>
  );
}

function Warnings({ sweep }: { sweep: SweepDetail }): JSX.Element {
  return (
    <>
      {sweep.warnings?.map((warning) => (
        <p key={warning} role="note">
          {warning}
        </p>
      ))}
    </>
  );
}
