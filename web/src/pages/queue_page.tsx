import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { api, type ApiError } from '../api/client';
import type { Queue, QueuedGang } from '../api/contract';
import { isMeasured } from '../api/events';
import { openStream } from '../live/session';
import { formatCount, formatPercent, plural } from '../model/numbers';
import { sentence } from '../model/reason';
import { sweepUrl, trialUrl } from '../router';
import { DataTable, type TableColumn } from '../ui/data_table';
import { Loading, Trouble, When } from '../ui/parts';
import { useAnswer } from './use_answer';

const refreshMs = 2000;
const pageSize = 100;
const mostRows = 500;

/** The trials of all sweeps that wait, in the order in which they would start, and why. */
export function QueuePage(): JSX.Element {
  const [rows, setRows] = useState(pageSize);
  const { queue, error } = useQueue(rows);
  if (error) return <Trouble error={error} />;
  const waiting = queue?.gangs.filter(({ ready }) => ready) ?? [];
  const others = queue?.gangs.filter(({ ready }) => !ready) ?? [];
  return (
    <>
      <div class="page-head">
        <h1>Queue</h1>
        {queue && queue.total_size > 0 && (
          <span class="muted">{plural(queue.total_size, 'entry', 'entries')}</span>
        )}
      </div>
      {!queue && <Loading what="the queue" />}
      {queue?.gangs.length === 0 && (
        <div class="empty">
          <h2>Nothing waits</h2>
          <p>Each trial that could run has its slots.</p>
        </div>
      )}
      {waiting.length > 0 && (
        <section class="panel" aria-labelledby="ready-title">
          <div class="table-head">
            <h2 id="ready-title">Wait for free slots</h2>
            <span class="muted small">
              In the order in which they would start: priority, then the smallest share, then the
              trial. A smaller gang may start before one that does not fit.
            </span>
          </div>
          <div class="table-scroll">
            <DataTable
              stacks
              columns={[placeColumn, ...columns]}
              rows={waiting}
              rowKey={({ place }) => place}
            />
          </div>
        </section>
      )}
      {others.length > 0 && (
        <section class="panel" aria-labelledby="others-title">
          <div class="table-head">
            <h2 id="others-title">Wait for something else</h2>
          </div>
          <div class="table-scroll">
            <DataTable stacks columns={columns} rows={others} rowKey={({ place }) => place} />
          </div>
        </section>
      )}
      {queue && queue.gangs.length < queue.total_size && (
        <p class="muted">
          The first {formatCount(queue.gangs.length)} of {formatCount(queue.total_size)}.{' '}
          {rows < mostRows && (
            <button type="button" onClick={() => setRows(mostRows)}>
              Show up to {mostRows}
            </button>
          )}
        </p>
      )}
    </>
  );
}

const placeColumn: TableColumn<QueuedGang> = {
  label: 'place',
  numeric: true,
  cell: ({ place }) => place,
};

const columns: TableColumn<QueuedGang>[] = [
  {
    label: 'trial',
    cell: ({ sweep, trial, gangs }) =>
      trial === null ? (
        <span title="The sweep creates it when it gets slots">
          {gangs === 1 ? 'a new trial' : `up to ${formatCount(gangs)} new trials`}
        </span>
      ) : (
        <a href={trialUrl(sweep, trial)}>
          {sweep}/{trial}
        </a>
      ),
  },
  {
    label: 'sweep',
    cell: ({ sweep, sweep_name }) => (
      <a href={sweepUrl(sweep)}>
        {sweep} <span class="muted">{sweep_name}</span>
      </a>
    ),
  },
  { label: 'needs', cell: needs },
  { label: 'priority', numeric: true, cell: ({ priority }) => priority },
  {
    label: 'share',
    numeric: true,
    hint: 'The largest of the shares of CPUs, GPUs and memory that the owner uses now',
    cell: ({ share, sweep_share }) => (
      <span title={`this sweep: ${formatPercent(sweep_share)}`}>{formatPercent(share)}</span>
    ),
  },
  { label: 'owner', cell: ({ owner }) => owner },
  {
    label: 'why it waits',
    class: 'reason',
    cell: ({ reason, not_before }) => (
      <>
        {sentence(reason)}
        {not_before && (
          <span class="muted">
            {' '}
            Not before <When time={not_before} />.
          </span>
        )}
      </>
    ),
  },
];

function needs({ workers, cpus_per_worker, gpus_per_worker }: QueuedGang): string {
  const each = [
    gpus_per_worker > 0 && plural(gpus_per_worker, 'GPU'),
    cpus_per_worker > 0 && plural(cpus_per_worker, 'CPU'),
  ].filter(Boolean);
  return workers === 1 ? each.join(', ') : `${workers} × ${each.join(', ')}`;
}

/** The first entries; read again when an event may have changed them. */
function useQueue(rows: number): { queue: Queue | undefined; error: ApiError | undefined } {
  const { answer, error, refresh } = useAnswer((signal) => api.queue(rows, signal), {
    about: [rows],
    leastMs: refreshMs,
  });
  useEffect(
    () =>
      openStream({
        onEvents: (events) => {
          if (!events.every(isMeasured)) refresh();
        },
        onResync: refresh,
        onRefused: refresh,
      }),
    [],
  );
  return { queue: answer, error };
}
