import type { JSX } from 'preact';

import { api } from '../../api/client';
import type { Executor, Hours, Pilot, Fleet } from '../../api/contract';
import { hoursSentence } from '../../model/pilots';
import { sentence } from '../../model/reason';
import { formatDuration } from '../../model/time';
import { DataTable, type TableColumn } from '../../ui/data_table';
import { useAnswer } from '../use_answer';

/** Managers of pilots report every few seconds, and no event announces it. */
const refreshMs = 3000;

/** The jobs that provide executors: their state, why they wait, and the hours that they cost. */
export function PilotsPanel({ executors }: { executors: Executor[] }): JSX.Element | null {
  const { answer: fleets = [] } = useAnswer((signal) => api.pilots(signal), {
    about: [],
    leastMs: 1000,
    everyMs: refreshMs,
  });
  if (fleets.length === 0) return null;
  return (
    <>
      {fleets.map((fleet) => (
        <Fleet key={fleet.fleet} fleet={fleet} executors={executors} />
      ))}
    </>
  );
}

function Fleet({ fleet, executors }: { fleet: Fleet; executors: Executor[] }): JSX.Element {
  const { nodes_min: min, nodes_max: max, nodes_per_pilot: size } = fleet;
  return (
    <section class="panel pilots" aria-label={`Pilots of ${fleet.system}`}>
      <div class="card">
        <div class="card-head">
          <h2>Pilots</h2>
          <span class="muted">
            {fleet.system} {fleet.system === 'Kubernetes' ? 'namespace' : 'partition'}{' '}
            {fleet.partition}, {min} to {max} nodes
            {size > 1 && `, ${size} per job`}; kept on {fleet.host}
          </span>
        </div>
        {fleet.stale ? (
          <p class="warn" role="status">
            Their manager has been silent for {formatDuration(fleet.seconds_since_report)}: it
            submits no pilots, and this table may be outdated.
          </p>
        ) : (
          fleet.blockers.map(({ sweep, text }) => (
            <p class="warn" key={sweep + text}>
              {sweep && <b>{sweep} </b>}
              {sentence(text)}
            </p>
          ))
        )}
        <HoursLine hours={fleet.hours} />
      </div>
      {fleet.pilots.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of pilots">
          <DataTable
            stacks
            columns={pilotColumns(executors)}
            rows={fleet.pilots}
            rowKey={({ name }) => name}
          />
        </div>
      )}
    </section>
  );
}

function HoursLine({ hours }: { hours: Hours }): JSX.Element | null {
  const text = hoursSentence(hours);
  return text ? <p class="muted hours">{text}</p> : null;
}

function pilotColumns(executors: readonly Executor[]): TableColumn<Pilot>[] {
  const useOf = (pilot: Pilot, all: 'cpus' | 'gpus', free: 'cpus_free' | 'gpus_free'): string => {
    const joined = executors.filter(({ name }) => pilot.executors.includes(name));
    const total = joined.reduce((sum, executor) => sum + executor[all], 0);
    const left = joined.reduce((sum, executor) => sum + executor[free], 0);
    return total === 0 ? '–' : `${total - left} of ${total}`;
  };
  return [
    { label: 'pilot', cell: ({ name }) => name },
    { label: 'job', class: 'mono', cell: ({ job }) => job },
    {
      label: 'state',
      cell: ({ state, reason }) => (
        <>
          {state}
          {reason && <div class="muted executor-reason">{reason}</div>}
        </>
      ),
    },
    { label: 'nodes', class: 'mono', cell: ({ node_list, nodes }) => node_list || nodes },
    { label: 'executors', cell: (pilot) => `${pilot.executors.length} of ${pilot.nodes}` },
    { label: 'GPUs in use', cell: (pilot) => useOf(pilot, 'gpus', 'gpus_free') },
    { label: 'CPUs in use', cell: (pilot) => useOf(pilot, 'cpus', 'cpus_free') },
    {
      label: 'has run',
      cell: ({ ran_seconds: ran }) => (ran > 0 ? formatDuration(ran) : '–'),
    },
    {
      label: 'ends',
      class: 'mono',
      cell: ({ end_time: ends }) => (ends && ends !== 'N/A' ? ends.replace('T', ' ') : '–'),
    },
  ];
}
