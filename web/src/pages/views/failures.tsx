import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';

import { hasServer } from '../../api/client';
import type { FailedAttempt, Failures, FailureGroup, Sweep } from '../../api/contract';
import { SharedFailures } from '../../live/failures_live';
import {
  causeOf,
  culpritOf,
  failuresSummary,
  groupTitle,
  placeOfFailure,
} from '../../model/failures';
import { formatCount, plural } from '../../model/numbers';
import { logUrl, place, sweepUrl, trialUrl, withQuery } from '../../router';
import { DataTable } from '../../ui/data_table';
import { When } from '../../ui/parts';
import '../../styles/views.css';
import type { ViewProps } from './view';

/** Reads the failures of a sweep, and reads them again when another trial fails or restarts. */
function useFailures(sweep: Sweep, attempts: number): Failures | undefined {
  const shared = SharedFailures.of(sweep.id);
  useEffect(() => shared.refresh(), [sweep.id, sweep.state, sweep.trials.failed, attempts]);
  return shared.failures.value;
}

const logOf = (sweep: string, attempt: FailedAttempt): string =>
  logUrl(sweep, attempt.trial, attempt.attempt, culpritOf(attempt));

const viewUrl = (sweep: string): string => {
  const query = withQuery(place.value.query, { view: 'failures' });
  return `${sweepUrl(sweep)}?${query}`;
};

/** The first failure of a failed sweep, at the top of its page. */
export function FirstCause({ sweep }: { sweep: Sweep }): JSX.Element | null {
  const first = useFailures(sweep, 0)?.first;
  if (!first) return null;
  return (
    <section
      class="notice notice-bad first-cause"
      aria-labelledby="cause-title"
      data-testid="cause"
    >
      <div>
        <h2 id="cause-title">First cause</h2>
        <Cause sweep={sweep.id} attempt={first} />
      </div>
    </section>
  );
}

function Cause({ sweep, attempt }: { sweep: string; attempt: FailedAttempt }): JSX.Element {
  const { sentence, log } = causeOf(attempt);
  return (
    <>
      <p>
        <b>{sentence}</b>{' '}
        <span class="muted">
          {placeOfFailure(attempt)}, <When time={attempt.time} />.
        </span>{' '}
        {hasServer() && <a href={logOf(sweep, attempt)}>Its log</a>}
      </p>
      {log && (
        <pre class="code failure-log" tabIndex={0} aria-label="Last lines of the log">
          {log}
        </pre>
      )}
    </>
  );
}

const shownInCard = 3;

/** The most frequent failures of a sweep; absent if nothing has failed. */
export function FailuresCard({
  sweep,
  attempts,
}: {
  sweep: Sweep;
  /** The number of attempts of all trials: it grows with each restart. */
  attempts: number;
}): JSX.Element | null {
  const failures = useFailures(sweep, attempts);
  if (!failures || failures.attempts === 0) return null;
  return (
    <section class="panel card" aria-labelledby="failures-title" data-testid="failures-card">
      <div class="card-head">
        <h2 id="failures-title">Failures</h2>
        <a href={viewUrl(sweep.id)}>
          {plural(failures.attempts, 'attempt')} of {plural(failures.trials, 'trial')}
        </a>
      </div>
      <ul class="failure-groups">
        {failures.groups.slice(0, shownInCard).map((group) => (
          <li key={`${group.kind} ${group.pattern}`}>
            <b>{formatCount(group.attempts)} ×</b> {groupTitle(group)}{' '}
            <TrialLinks sweep={sweep.id} group={group} most={3} />
          </li>
        ))}
      </ul>
      {failures.groups.length > shownInCard && (
        <p class="muted small">
          and {plural(failures.groups.length - shownInCard, 'other message')}
        </p>
      )}
    </section>
  );
}

function TrialLinks({
  sweep,
  group,
  most,
}: {
  sweep: string;
  group: FailureGroup;
  most: number;
}): JSX.Element {
  const shown = group.some_trials.slice(0, most);
  return (
    <span class="small">
      {shown.map((number) => (
        <a key={number} href={trialUrl(sweep, number)}>
          trial {number}{' '}
        </a>
      ))}
      {group.trials > shown.length && (
        <span class="muted">and {formatCount(group.trials - shown.length)} more</span>
      )}
    </span>
  );
}

/** All failures of a sweep, grouped by message. */
export function FailuresView({ model, rows, views }: ViewProps): JSX.Element {
  const { sweep } = model;
  const attempts = rows.reduce((sum, row) => sum + row.attempt_count, 0);
  const failures = useFailures(sweep, attempts);
  return (
    <div class="chart" data-testid="failures">
      <div class="chart-head">
        {views}
        <h2>failures by message</h2>
      </div>
      {failures?.first && (
        <div class="first-cause">
          <h3>First</h3>
          <Cause sweep={sweep.id} attempt={failures.first} />
        </div>
      )}
      {failures && failures.groups.length > 0 && (
        <div class="table-scroll">
          <DataTable
            stacks
            plainRows
            columns={[
              {
                label: 'attempts',
                numeric: true,
                cell: (group: FailureGroup) => formatCount(group.attempts),
              },
              { label: 'kind', cell: ({ kind }) => kind },
              {
                label: 'message',
                class: 'wrap',
                cell: (group) => <span title={group.first.failure}>{groupTitle(group)}</span>,
              },
              { label: 'first', cell: ({ first }) => <When time={first.time} /> },
              { label: 'last', cell: ({ last }) => <When time={last} /> },
              {
                label: 'trials',
                class: 'wrap',
                cell: (group) => <TrialLinks sweep={sweep.id} group={group} most={10} />,
              },
              {
                label: '',
                cell: ({ first }) => hasServer() && <a href={logOf(sweep.id, first)}>first log</a>,
              },
            ]}
            rows={failures.groups}
            rowKey={({ kind, pattern }) => `${kind} ${pattern}`}
          />
        </div>
      )}
      <p class="muted failures-summary">
        {failures ? failuresSummary(failures) : 'Reading failures…'}
      </p>
    </div>
  );
}
