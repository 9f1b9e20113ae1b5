import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { api, hasServer } from '../api/client';
import type { Attempt, AttemptEnvironment, TrialDetail } from '../api/contract';
import { explain } from '../live/session';
import {
  environmentFacts,
  environmentGroups,
  environmentLine,
  requirements,
  type EnvironmentGroup,
} from '../model/environment';
import { plural } from '../model/numbers';

/** With which versions an attempt ran. Earlier attempts than the newest are read when opened. */
export function Environment({
  trial,
  attempt,
}: {
  trial: TrialDetail;
  attempt: Attempt;
}): JSX.Element | null {
  const [isOpen, setOpen] = useState(false);
  const [environment, setEnvironment] = useState<AttemptEnvironment>();
  const isRead = hasServer() && (isOpen || attempt.number === trial.attempt_count);
  useEffect(() => {
    if (!isRead) return undefined;
    const abort = new AbortController();
    api
      .environment(trial.sweep, trial.number, attempt.number, abort.signal)
      .then(setEnvironment, (error: unknown) => void explain(error));
    return () => abort.abort();
    // Executors record the environment soon after the start.
  }, [isRead, trial.sweep, trial.number, attempt.number, attempt.first_step, attempt.ended]);
  if (!hasServer()) return null;
  const groups = environmentGroups(environment?.executors ?? []);
  const lines = groups.map(({ record }) => environmentLine(record));
  return (
    <details
      class="environment small"
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>{[...new Set(lines)].filter(Boolean).join('; ') || 'Environment'}</summary>
      {environment && groups.length === 0 && <p class="muted">It was not recorded.</p>}
      {groups.map((group) => (
        <Record key={group.executors[0]} group={group} />
      ))}
    </details>
  );
}

function Record({ group: { executors, record } }: { group: EnvironmentGroup }): JSX.Element {
  const packages = requirements(record);
  return (
    <section>
      <h4>{executors.join(', ')}</h4>
      <ul>
        {environmentFacts(record).map(([name, value]) => (
          <li key={name}>
            <span class="muted">{name}</span> {value}
          </li>
        ))}
      </ul>
      {packages.length > 0 && (
        <>
          <p class="muted">{plural(packages.length, 'package')}</p>
          <pre class="code" tabIndex={0}>
            {packages.join('\n')}
          </pre>
        </>
      )}
    </section>
  );
}
