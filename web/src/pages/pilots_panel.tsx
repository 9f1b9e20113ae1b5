import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Executor, Hours, Pilot, PilotFleet } from '../api/types';
import { explain } from '../live/session';
import { hoursSentence } from '../model/pilots';
import { sentence } from '../model/reason';
import { formatDuration } from '../model/time';

/** Keepers say what they see every few seconds, and no event tells of it. */
const refreshMs = 3000;

/** The jobs that bring executors, if somebody keeps any: why they wait, and the hours that they cost. */
export function PilotsPanel({ executors }: { executors: Executor[] }): JSX.Element | null {
  const [fleets, setFleets] = useState<PilotFleet[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    const read = (): void => {
      api.pilots(abort.signal).then(setFleets, explain);
    };
    read();
    const timer = setInterval(read, refreshMs);
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, []);
  if (fleets.length === 0) return null;
  return (
    <>
      {fleets.map((fleet) => (
        <Fleet key={fleet.fleet} fleet={fleet} executors={executors} />
      ))}
    </>
  );
}

function Fleet({ fleet, executors }: { fleet: PilotFleet; executors: Executor[] }): JSX.Element {
  const { nodes_min: min, nodes_max: max, nodes_per_pilot: size } = fleet;
  return (
    <section class="panel pilots" aria-label={`Pilots of ${fleet.system}`}>
      <div class="card">
        <div class="card-head">
          <h2>Pilots</h2>
          <span class="muted">
            {fleet.system} partition {fleet.partition}, {min} to {max} nodes
            {size > 1 && `, ${size} a job`}; kept on {fleet.host}
          </span>
        </div>
        {fleet.stale ? (
          <p class="warn" role="status">
            Their keeper has been silent for {formatDuration(fleet.silent_seconds)}: nobody submits
            any, and this is how they were then.
          </p>
        ) : (
          fleet.hindrances.map(({ sweep, text }) => (
            <p class="warn" key={sweep + text}>
              {sweep && <b>{sweep} </b>}
              {sentence(text)}
            </p>
          ))
        )}
        <HoursLine hours={fleet.hours} />
      </div>
      {fleet.pilots.length > 0 && (
        <div class="table-scroll">
          <table class="data">
            <thead>
              <tr>
                <th scope="col">pilot</th>
                <th scope="col">job</th>
                <th scope="col">state</th>
                <th scope="col">nodes</th>
                <th scope="col">executors</th>
                <th scope="col">GPUs in use</th>
                <th scope="col">CPUs in use</th>
                <th scope="col">has run</th>
                <th scope="col">ends</th>
              </tr>
            </thead>
            <tbody>
              {fleet.pilots.map((pilot) => (
                <PilotRow key={pilot.name} pilot={pilot} executors={executors} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function HoursLine({ hours }: { hours: Hours }): JSX.Element | null {
  const text = hoursSentence(hours);
  return text ? <p class="muted hours">{text}</p> : null;
}

function PilotRow({ pilot, executors }: { pilot: Pilot; executors: Executor[] }): JSX.Element {
  const its = executors.filter(({ name }) => pilot.executors.includes(name));
  const use = (all: 'cpus' | 'gpus', free: 'cpus_free' | 'gpus_free'): string => {
    const total = its.reduce((sum, executor) => sum + executor[all], 0);
    const left = its.reduce((sum, executor) => sum + executor[free], 0);
    return total === 0 ? '–' : `${total - left} of ${total}`;
  };
  return (
    <tr>
      <th scope="row">{pilot.name}</th>
      <td class="mono">{pilot.job}</td>
      <td>
        {pilot.state}
        {pilot.reason && <div class="muted">{pilot.reason}</div>}
      </td>
      <td class="mono">{pilot.node || pilot.nodes}</td>
      <td>
        {pilot.executors.length} of {pilot.nodes}
      </td>
      <td>{use('gpus', 'gpus_free')}</td>
      <td>{use('cpus', 'cpus_free')}</td>
      <td>{pilot.ran_seconds > 0 ? formatDuration(pilot.ran_seconds) : '–'}</td>
      <td class="mono">
        {pilot.ends && pilot.ends !== 'N/A' ? pilot.ends.replace('T', ' ') : '–'}
      </td>
    </tr>
  );
}
