import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Executor } from '../api/types';
import { executors, openStream } from '../live/session';
import { formatBytes } from '../model/numbers';
import { sentence } from '../model/reason';
import { trialUrl } from '../router';
import { Dialog, Field } from '../ui/dialog';
import { Loading } from '../ui/parts';
import { PilotsPanel } from './pilots_panel';
import { useSteering } from './steering';

/** The hosts: who is online, what is free, what runs where, who is drained. Kept current by the shared strip's refresh. */
export function ExecutorsPage(): JSX.Element {
  useEffect(() => openStream({ onEvents: () => {}, onResync: () => {}, onRefused: () => {} }), []);
  const all = executors.value;
  const [asked, setAsked] = useState<Executor>();
  const { outcome, press, answer } = useSteering();
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
        <div class="panel table-scroll">
          <table class="data">
            <thead>
              <tr>
                <th scope="col">name</th>
                <th scope="col">state</th>
                <th scope="col">address</th>
                <th scope="col">CPUs in use</th>
                <th scope="col">GPUs in use</th>
                <th scope="col">memory in use</th>
                <th scope="col">labels</th>
                <th scope="col">runs</th>
                <th scope="col">
                  <span class="visually-hidden">actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {all.map((executor) => (
                <ExecutorRow
                  key={executor.name}
                  executor={executor}
                  onDrain={() => setAsked(executor)}
                  onResume={() => void press(() => api.steerExecutor(executor.name, 'resume'))}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
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

/** Asks whether what runs there is to leave, and why. */
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
      <Field label="Reason" hint="for people; may be empty">
        <input name="reason" type="text" autocomplete="off" maxLength={1000} />
      </Field>
      <label class="check">
        <input type="checkbox" name="now" />
        <span>What runs there saves a checkpoint at its next report and goes on elsewhere</span>
      </label>
      <p class="muted dialog-note">Nothing starts there before it is resumed.</p>
    </Dialog>
  );
}

const stateClasses: Record<Executor['state'], string> = {
  online: 'state state-completed',
  draining: 'state state-paused',
  drained: 'state state-paused',
  unwell: 'state state-failed',
  set_aside: 'state state-paused',
  lost: 'state state-failed',
};

function ExecutorRow({
  executor,
  onDrain,
  onResume,
}: {
  executor: Executor;
  onDrain(): void;
  onResume(): void;
}): JSX.Element {
  const online = executor.state !== 'lost';
  const { drain, problem, set_aside } = executor;
  const closed = drain ?? set_aside;
  return (
    <tr>
      <th scope="row">{executor.name}</th>
      <td>
        <span class={stateClasses[executor.state]}>
          <span class="dot" /> {executor.state.replace('_', ' ')}
        </span>
        {[drain?.reason, problem, set_aside?.reason].map(
          (reason) =>
            reason && (
              <div class="muted executor-reason" key={reason}>
                {sentence(reason)}
              </div>
            ),
        )}
      </td>
      <td class="mono">{executor.address}</td>
      <Use online={online} free={executor.cpus_free} all={executor.cpus} format={String} />
      <Use online={online} free={executor.gpus_free} all={executor.gpus} format={String} />
      <Use
        online={online}
        free={executor.memory_free}
        all={executor.memory_bytes}
        format={formatBytes}
        note={
          executor.disk_free_bytes === null
            ? ''
            : `${formatBytes(executor.disk_free_bytes)} of disk free`
        }
      />
      <td class="mono">
        {Object.entries(executor.labels).map(([name, value]) => (
          <div key={name}>
            {name}={value}
          </div>
        ))}
      </td>
      <td>
        {executor.running.map(({ sweep, trial, ranks: [first, last] }) => (
          <div key={`${sweep}/${trial}`}>
            <a href={trialUrl(sweep, trial)}>
              {sweep}/{trial}
            </a>{' '}
            <span class="muted">{first === last ? `rank ${first}` : `ranks ${first}–${last}`}</span>
          </div>
        ))}
      </td>
      <td>
        <button
          type="button"
          class="quiet"
          aria-label={`${closed ? 'Resume' : 'Drain'} ${executor.name}`}
          onClick={closed ? onResume : onDrain}
        >
          {closed ? 'Resume' : 'Drain…'}
        </button>
      </td>
    </tr>
  );
}

function Use({
  online,
  free,
  all,
  format,
  note = '',
}: {
  online: boolean;
  free: number;
  all: number;
  format(value: number): string;
  /** Below it, while it is online. */
  note?: string;
}): JSX.Element {
  if (all === 0) return <td class="muted">none</td>;
  // What a lost executor uses is unknown until it comes back.
  if (!online) return <td class="muted">{format(all)} in all</td>;
  const used = all - free;
  return (
    <td>
      <div class="use">
        <div class="bar" aria-hidden="true">
          <span style={{ width: `${(used / all) * 100}%` }} />
        </div>
        {format(used)} of {format(all)}
      </div>
      {note && <div class="muted">{note}</div>}
    </td>
  );
}
