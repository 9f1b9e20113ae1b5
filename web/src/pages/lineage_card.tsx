import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Schedule, TrialDetail } from '../api/contract';
import { explain } from '../live/session';
import { formatConfig } from '../model/numbers';
import { trialUrl } from '../router';
import { DataTable } from '../ui/data_table';

/** Which trials trained the weights of a trial, from which step, with which configuration. */
export function LineageCard({
  trial,
  parts,
}: {
  trial: TrialDetail;
  parts: Schedule['schedule'];
}): JSX.Element | null {
  if (parts.length < 2) return null;
  return (
    <section class="panel card" aria-labelledby="lineage-title" data-testid="lineage">
      <h2 id="lineage-title">Lineage</h2>
      <DataTable
        class="narrow"
        columns={[
          { label: 'from step', cell: ({ step }) => step },
          {
            label: 'trained by',
            cell: ({ trial: number }) =>
              number === trial.number ? (
                'itself'
              ) : (
                <a href={trialUrl(trial.sweep, number)}>trial {number}</a>
              ),
          },
          {
            label: 'with',
            cell: ({ config, workers }) =>
              [
                ...Object.entries(config).map(([name, value]) => `${name} ${formatConfig(value)}`),
                ...(workers > 1 ? [`${workers} workers`] : []),
              ].join(', '),
          },
        ]}
        rows={parts}
        rowKey={({ step }) => step}
        plainRows
      />
    </section>
  );
}

/** The parts of a trial's schedule; empty before the second attempt. Only a new attempt changes it. */
export function useSchedule(sweep: string, number: number, attempts: number): Schedule['schedule'] {
  const [parts, setParts] = useState<Schedule['schedule']>([]);
  useEffect(() => {
    const abort = new AbortController();
    setParts([]);
    if (attempts > 1) {
      api.schedule(sweep, number, abort.signal).then(
        ({ schedule }) => setParts(schedule),
        (error: unknown) => void explain(error),
      );
    }
    return () => abort.abort();
  }, [sweep, number, attempts]);
  return parts;
}
