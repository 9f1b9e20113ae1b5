import type { JSX } from 'preact';

import type { SweepDetail } from '../api/contract';
import { valuesText } from '../model/steering';
import { DataTable } from '../ui/data_table';
import { CopyButton } from '../ui/parts';

/** The sweep file, what is risky in it, and its search space. */
export function SweepFile({ sweep }: { sweep: SweepDetail }): JSX.Element {
  return (
    <div class="file-page">
      <section class="panel card" aria-labelledby="file-title">
        <div class="card-head">
          <h2 id="file-title">Sweep file</h2>
          <CopyButton text={sweep.file} what="sweep file" />
        </div>
        {sweep.warnings?.map((warning) => (
          <p key={warning} role="note">
            {warning}
          </p>
        ))}
        <pre class="code" tabIndex={0}>
          {sweep.file}
        </pre>
      </section>
      <section class="panel card" aria-labelledby="space-title">
        <h2 id="space-title">Search space</h2>
        <DataTable
          columns={[
            { label: 'parameter', cell: ({ name }) => name },
            { label: 'type', class: 'muted', cell: ({ type }) => type },
            { label: 'values', cell: valuesText },
          ]}
          rows={sweep.parameters}
          rowKey={({ name }) => name}
        />
      </section>
    </div>
  );
}
