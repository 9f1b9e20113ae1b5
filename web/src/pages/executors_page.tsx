import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';

import type { Executor } from '../api/types';
import { executors, openStream } from '../live/session';
import { formatBytes } from '../model/numbers';
import { Loading } from '../ui/parts';

/** The hosts: who is online and what is free. Kept current by the shared strip's refresh. */
export function ExecutorsPage(): JSX.Element {
  useEffect(() => openStream({ onEvents: () => {}, onResync: () => {}, onRefused: () => {} }), []);
  const all = executors.value;
  return (
    <>
      <div class="page-head">
        <h1>Executors</h1>
      </div>
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
              </tr>
            </thead>
            <tbody>
              {all.map((executor) => (
                <ExecutorRow key={executor.name} executor={executor} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function ExecutorRow({ executor }: { executor: Executor }): JSX.Element {
  const online = executor.state === 'online';
  return (
    <tr>
      <th scope="row">{executor.name}</th>
      <td>
        <span class={online ? 'state state-completed' : 'state state-failed'}>
          <span class="dot" /> {executor.state}
        </span>
      </td>
      <td class="mono">{executor.address}</td>
      <Use online={online} free={executor.cpus_free} all={executor.cpus} format={String} />
      <Use online={online} free={executor.gpus_free} all={executor.gpus} format={String} />
      <Use
        online={online}
        free={executor.memory_free}
        all={executor.memory_bytes}
        format={formatBytes}
      />
    </tr>
  );
}

function Use({
  online,
  free,
  all,
  format,
}: {
  online: boolean;
  free: number;
  all: number;
  format(value: number): string;
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
    </td>
  );
}
