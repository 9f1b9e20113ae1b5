import type { JSX } from 'preact';

import type { Attempt, Decision, Metric, TrialDetail, Real } from '../api/contract';
import { formatMetric, fromWire } from '../model/numbers';
import {
  attemptOutcome,
  beginnings,
  decisionSentence,
  originSentence,
  splitFailure,
} from '../model/reason';
import { formatDuration, parseTime } from '../model/time';
import { trialUrl } from '../router';
import { DataTable, type TableColumn } from '../ui/data_table';
import { When } from '../ui/parts';
import { Environment } from './attempt_environment';

/** Why the trial has its configuration, with links to the trials it is based on. */
export function Origin({ trial }: { trial: TrialDetail }): JSX.Element {
  const from = trial.rationale?.from ?? [];
  return (
    <p class="small" data-testid="origin">
      {originSentence(trial)}{' '}
      {from.map((number) => (
        <a key={number} href={trialUrl(trial.sweep, number)}>
          trial {number}{' '}
        </a>
      ))}
      {trial.patch !== '' && (
        <>
          It runs patched code: <code title={trial.patch}>{trial.patch.slice(0, 12)}</code>.
        </>
      )}
    </p>
  );
}

export function Decisions({ trial, metric }: { trial: TrialDetail; metric: Metric }): JSX.Element {
  return (
    <section class="panel card" aria-labelledby="decisions-title" data-testid="decisions">
      <h2 id="decisions-title">Decisions</h2>
      {trial.decisions.length === 0 ? (
        <p class="muted">The scheduler has not judged this trial yet.</p>
      ) : (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of decisions">
          <DataTable
            stacks
            columns={decisionColumns(metric, trial.state)}
            rows={trial.decisions}
            rowKey={({ attempt, step, verdict }) => `${attempt}-${step}-${verdict}`}
            plainRows
          />
        </div>
      )}
    </section>
  );
}

const verdictState = {
  continue: 'completed',
  pause: 'paused',
  stop: 'stopped',
  exploit: 'running',
  resize: 'running',
  promote: 'running',
} as const;

// The scheduler also stops trials that have reached their last step, and that is a success.
function verdictClass(verdict: Decision['verdict'], of: TrialDetail['state']): string {
  const state = verdict === 'stop' && of === 'completed' ? 'completed' : verdictState[verdict];
  return `state state-${state}`;
}

function verdictText(verdict: Decision['verdict'], of: TrialDetail['state']): string {
  if (verdict === 'exploit') return 'clone';
  return verdict === 'stop' && of === 'completed' ? 'complete' : verdict;
}

function decisionColumns(metric: Metric, state: TrialDetail['state']): TableColumn<Decision>[] {
  const numberText = (value: Real | null): string =>
    value === null ? '' : formatMetric(fromWire(value));
  return [
    { label: 'step', numeric: true, cell: ({ step }) => step },
    {
      label: 'verdict',
      cell: ({ verdict }) => (
        <span class={verdictClass(verdict, state)}>
          <span class="dot" /> {verdictText(verdict, state)}
        </span>
      ),
    },
    { label: 'why', class: 'wrap', cell: (decision) => decisionSentence(decision, metric) },
    { label: 'rule', class: 'muted', cell: ({ rule }) => rule },
    { label: 'value', numeric: true, cell: ({ value }) => numberText(value) },
    { label: 'cutoff', numeric: true, cell: ({ cutoff }) => numberText(cutoff) },
    {
      label: 'rank',
      numeric: true,
      cell: ({ rank, peers }) => (peers ? `${rank} of ${peers}` : ''),
    },
    { label: 'when', class: 'muted', cell: ({ time }) => <When time={time} /> },
  ];
}

export function Attempts({ trial }: { trial: TrialDetail }): JSX.Element {
  const begun = beginnings(trial);
  return (
    <section class="panel card" aria-labelledby="attempts-title" data-testid="attempts">
      <h2 id="attempts-title">Attempts</h2>
      {trial.attempts.length === 0 && <p class="muted">It has not started yet.</p>}
      {trial.attempts.map((attempt, index) => (
        <AttemptCard
          key={attempt.number}
          trial={trial}
          attempt={attempt}
          why={begun[index] ?? ''}
        />
      ))}
    </section>
  );
}

const outcomeState: Record<Attempt['outcome'], string> = {
  '': 'running',
  finished: 'completed',
  stopped: 'stopped',
  paused: 'paused',
  failed: 'failed',
  lost: 'failed',
  killed: 'killed',
};

function AttemptCard({
  trial,
  attempt,
  why,
}: {
  trial: TrialDetail;
  attempt: Attempt;
  why: string;
}): JSX.Element {
  const failure = attempt.failure ? splitFailure(attempt.failure) : undefined;
  return (
    <article class="attempt">
      <div class="attempt-head">
        <h3>Attempt {attempt.number}</h3>
        {why && <span class="tag">{why}</span>}
        <span class={`state state-${outcomeState[attempt.outcome]}`}>
          <span class="dot" /> {attemptOutcome(attempt)}
        </span>
        <span class="muted">
          on {attempt.executor || 'no executor'} · lease epoch {attempt.epoch}
          {attempt.resumed_from !== null && ` · resumed from ${resumed(attempt.resumed_from)}`}
        </span>
      </div>
      {failure && (
        <>
          <p class="failure">{failure.sentence}</p>
          {failure.log && (
            <pre class="code failure-log" tabIndex={0}>
              {failure.log}
            </pre>
          )}
        </>
      )}
      <ol class="timeline">
        <Moment name="decided" time={attempt.decided} />
        <Moment name="started" time={attempt.started} since={attempt.decided} />
        <Moment name="first step" time={attempt.first_step} since={attempt.started} />
        <Moment name="ended" time={attempt.ended} since={attempt.first_step ?? attempt.started} />
      </ol>
      <ul class="ranks" aria-label="Ranks">
        {attempt.ranks.map((rank) => (
          <li key={rank.rank}>
            <b>rank {rank.rank}</b> {rank.executor} · {rank.cpus} {rank.cpus === 1 ? 'CPU' : 'CPUs'}
            {rank.gpus.length > 0 && ` · GPU ${rank.gpus.join(', ')}`}
            {attempt.pids[rank.rank] !== undefined && (
              <span class="muted"> · pid {attempt.pids[rank.rank]}</span>
            )}
          </li>
        ))}
      </ul>
      <Environment trial={trial} attempt={attempt} />
    </article>
  );
}

function resumed(from: number | string): string {
  return typeof from === 'number' ? `step ${from}` : from;
}

function Moment({
  name,
  time,
  since,
}: {
  name: string;
  time: string | null;
  since?: string | null;
}): JSX.Element | null {
  if (!time) return null;
  const after = since
    ? `+${formatDuration((parseTime(time) - parseTime(since)) / 1000)}`
    : undefined;
  return (
    <li>
      <span class="muted">{name}</span> <When time={time} />{' '}
      {after && <span class="muted">{after}</span>}
    </li>
  );
}
