import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { api } from '../../api/client';
import type { Executor } from '../../api/contract';
import { executors, mayChange, openStream } from '../../live/session';
import { formatBytes } from '../../model/numbers';
import { sentence } from '../../model/reason';
import { trialUrl } from '../../router';
import { DataTable, type TableColumn } from '../../ui/data_table';
import { Dialog, Field } from '../../ui/dialog';
import { onDemand } from '../../ui/on_demand';
import { Loading } from '../../ui/parts';
import { PilotsPanel } from './pilots_panel';
import { useSteering } from '../steering';

/** The executors: their state, free resources and running trials. The stream refreshes them. */
export function ExecutorsPage(): JSX.Element {
  useEffect(() => openStream({ onEvents: () => {}, onResync: () => {}, onRefused: () => {} }), []);
  const all = executors.value;
  const [asked, setAsked] = useState<Executor>();
  const { outcome, press, answer } = useSteering();
  const resume = ({ name }: Executor): void => {
    void press(() => api.steerExecutor(name, 'resume'));
  };
  const columns = mayChange.value
    ? [...executorColumns, actionColumn(setAsked, resume)]
    : executorColumns;
  return (
    <>
      <div class="page-head">
        <h1>Executors</h1>
      </div>
      {outcome}
      {!all && <Loading what="executors" />}
      {all?.length === 0 && (
        <div class="empty">
          <h2>No executor has connected</h2>
          <p>
            Start one on each host: <code>attune executor --server HOST:PORT</code>
          </p>
        </div>
      )}
      {all && all.length > 0 && (
        <div class="panel table-scroll" tabIndex={0} role="region" aria-label="Executors">
          <DataTable stacks columns={columns} rows={all} rowKey={({ name }) => name} />
        </div>
      )}
      {all && all.length > 0 && <Usage />}
      {all && <PilotsPanel executors={all} />}
      {asked && (
        <DrainDialog
          executor={asked}
          onYes={(body) => answer(() => api.steerExecutor(asked.name, 'drain', body))}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

const Usage = onDemand('the timeline', async () => {
  return (await import('./usage_panel')).UsagePanel;
});

/** Asks for a reason, and whether running trials should leave. */
function DrainDialog({
  executor,
  onYes,
  onClose,
}: {
  executor: Executor;
  onYes(body: { reason?: string; now: boolean }): Promise<string>;
  onClose(): void;
}): JSX.Element {
  return (
    <Dialog
      title={`Drain ${executor.name}?`}
      action="Drain"
      onYes={({ reason, now }) => onYes({ ...(reason && { reason }), now: now === 'on' })}
      onClose={onClose}
    >
      <Field label="Reason" hint="optional">
        <input name="reason" type="text" autocomplete="off" maxLength={1000} />
      </Field>
      <label class="check">
        <input type="checkbox" name="now" />
        <span>
          Running trials save a checkpoint at their next report and continue on other executors
        </span>
      </label>
      <p class="muted dialog-note">No trial starts there until you resume it.</p>
    </Dialog>
  );
}

const stateClasses: Record<Executor['state'], string> = {
  online: 'state state-completed',
  draining: 'state state-paused',
  drained: 'state state-paused',
  unhealthy: 'state state-failed',
  quarantined: 'state state-paused',
  lost: 'state state-failed',
};

const executorColumns: TableColumn<Executor>[] = [
  { label: 'name', cell: ({ name }) => name },
  { label: 'state', cell: (executor) => <State executor={executor} /> },
  { label: 'address', class: 'mono', cell: ({ address }) => address },
  {
    label: 'CPUs reserved',
    cell: ({ state, cpus, cpus_free }) => <Use state={state} all={cpus} free={cpus_free} />,
  },
  {
    label: 'GPUs reserved',
    cell: ({ state, gpus, gpus_free }) => <Use state={state} all={gpus} free={gpus_free} />,
  },
  {
    label: 'memory reserved',
    hint: 'Memory that sweeps request with resources.memory_per_worker. Gangs without a request may use memory, too',
    cell: ({ state, memory_bytes, memory_free_bytes }) => (
      <Use state={state} all={memory_bytes} free={memory_free_bytes} format={formatBytes} />
    ),
  },
  {
    label: 'free on the host',
    hint: 'Measured by the executor: memory that programs can still take, and space for its data',
    cell: ({ state, memory_available_bytes: memory, disk_free_bytes: disk }) => (
      <>
        {state !== 'lost' && memory !== null && <div>{formatBytes(memory)} of memory</div>}
        {state !== 'lost' && disk !== null && <div>{formatBytes(disk)} of disk</div>}
      </>
    ),
  },
  {
    label: 'labels',
    class: 'mono',
    cell: ({ labels }) =>
      Object.entries(labels).map(([name, value]) => (
        <div key={name}>
          {name}={value}
        </div>
      )),
  },
  {
    label: 'runs',
    cell: ({ running }) =>
      running.map(({ sweep, trial, ranks: [first, last] }) => (
        <div key={`${sweep}/${trial}`}>
          <a href={trialUrl(sweep, trial)}>
            {sweep}/{trial}
          </a>{' '}
          <span class="muted">{first === last ? `rank ${first}` : `ranks ${first}–${last}`}</span>
        </div>
      )),
  },
];

function actionColumn(
  onDrain: (executor: Executor) => void,
  onResume: (executor: Executor) => void,
): TableColumn<Executor> {
  return {
    label: <span class="visually-hidden">actions</span>,
    cell: (executor) => {
      const closed = executor.drain ?? executor.quarantine;
      return (
        <button
          type="button"
          class="quiet"
          aria-label={`${closed ? 'Resume' : 'Drain'} ${executor.name}`}
          onClick={() => (closed ? onResume : onDrain)(executor)}
        >
          {closed ? 'Resume' : 'Drain…'}
        </button>
      );
    },
  };
}

function State({ executor }: { executor: Executor }): JSX.Element {
  const { state, drain, health_problem, storage_problem, quarantine } = executor;
  const paused = storage_problem && `uploads are paused: ${storage_problem}`;
  return (
    <>
      <span class={stateClasses[state]}>
        <span class="dot" /> {state}
      </span>
      {[drain?.reason, health_problem, quarantine?.reason, paused].map(
        (reason) =>
          reason && (
            <div class="muted executor-reason" key={reason}>
              {sentence(reason)}
            </div>
          ),
      )}
    </>
  );
}

function Use({
  state,
  all,
  free,
  format = String,
}: {
  state: Executor['state'];
  all: number;
  free: number;
  format?(value: number): string;
}): JSX.Element {
  if (all === 0) return <span class="muted">none</span>;
  // The use of a lost executor is unknown until it comes back.
  if (state === 'lost') return <span class="muted">{format(all)} in total</span>;
  const used = all - free;
  return (
    <div class="use">
      <div class="bar" aria-hidden="true">
        <span style={{ width: `${(used / all) * 100}%` }} />
      </div>
      {used === 0 ? 'none' : format(used)} of {format(all)}
    </div>
  );
}
