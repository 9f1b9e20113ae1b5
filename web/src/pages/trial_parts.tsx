import type { JSX } from 'preact';

import type { Attempt, Decision, Metric, TrialDetail } from '../api/types';
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
import { When } from '../ui/parts';

/** Why the trial has its configuration, with a way to the trials that it came from. */
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
        <div class="table-scroll">
          <table class="data">
            <thead>
              <tr>
                <th scope="col" class="number">
                  step
                </th>
                <th scope="col">verdict</th>
                <th scope="col">why</th>
                <th scope="col">rule</th>
                <th scope="col" class="number">
                  value
                </th>
                <th scope="col" class="number">
                  cutoff
                </th>
                <th scope="col" class="number">
                  rank
                </th>
                <th scope="col">when</th>
              </tr>
            </thead>
            <tbody>
              {trial.decisions.map((decision) => (
                <DecisionRow
                  key={`${decision.attempt}-${decision.step}-${decision.verdict}`}
                  decision={decision}
                  metric={metric}
                />
              ))}
            </tbody>
          </table>
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

function DecisionRow({ decision, metric }: { decision: Decision; metric: Metric }): JSX.Element {
  const { value, cutoff, rank, peers } = decision;
  return (
    <tr>
      <td class="number">{decision.step}</td>
      <td>
        <span class={`state state-${verdictState[decision.verdict]}`}>
          <span class="dot" /> {decision.verdict === 'exploit' ? 'clone' : decision.verdict}
        </span>
      </td>
      <td class="wrap">{decisionSentence(decision, metric)}</td>
      <td class="muted">{decision.rule}</td>
      <td class="number">{value === null ? '' : formatMetric(fromWire(value))}</td>
      <td class="number">{cutoff === null ? '' : formatMetric(fromWire(cutoff))}</td>
      <td class="number">{!peers ? '' : `${rank} of ${peers}`}</td>
      <td class="muted">
        <When time={decision.time} />
      </td>
    </tr>
  );
}

export function Attempts({ trial }: { trial: TrialDetail }): JSX.Element {
  const begun = beginnings(trial);
  return (
    <section class="panel card" aria-labelledby="attempts-title" data-testid="attempts">
      <h2 id="attempts-title">Attempts</h2>
      {trial.attempts_list.length === 0 && <p class="muted">It has not been started yet.</p>}
      {trial.attempts_list.map((attempt, index) => (
        <AttemptCard key={attempt.number} attempt={attempt} why={begun[index] ?? ''} />
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

function AttemptCard({ attempt, why }: { attempt: Attempt; why: string }): JSX.Element {
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
