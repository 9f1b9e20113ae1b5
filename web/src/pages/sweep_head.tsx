import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { ApiError, api } from '../api/client';
import type { Sweep } from '../api/types';
import { explain } from '../live/session';
import { formatCount } from '../model/numbers';
import { sentence } from '../model/reason';
import { finished, isLive } from '../model/states';
import { confirmation } from '../model/summary';
import { formatAgo, formatDuration, parseTime } from '../model/time';
import { place, sweepUrl } from '../router';
import { Icon, StateLabel } from '../ui/icons';
import { Confirm, Fact, StateBar, When } from '../ui/parts';

type Verb = 'stop' | 'kill';

export function SweepHead({ sweep, onActed }: { sweep: Sweep; onActed(): void }): JSX.Element {
  const [asked, setAsked] = useState<Verb>();
  const [problem, setProblem] = useState<ApiError>();
  const act = async (verb: Verb): Promise<void> => {
    setAsked(undefined);
    try {
      await api.act(sweep.id, verb);
      setProblem(undefined);
    } catch (error) {
      setProblem(explain(error));
    }
    onActed();
  };
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="/">Sweeps</a> <span aria-hidden="true">/</span>{' '}
        <span class="mono">{sweep.id}</span>
      </nav>
      <div class="page-head">
        <h1>{sweep.name || sweep.id}</h1>
        <StateLabel state={sweep.state} large />
        {sweep.reason && <span class="muted head-reason">{sentence(sweep.reason)}</span>}
        {isLive(sweep.state) && (
          <div class="actions">
            <button type="button" onClick={() => setAsked('stop')}>
              Stop…
            </button>
            <button type="button" class="danger-quiet" onClick={() => setAsked('kill')}>
              Kill…
            </button>
          </div>
        )}
      </div>
      {problem && (
        <p class="notice notice-bad" role="alert">
          {problem.message}
        </p>
      )}
      {sweep.waiting && (
        <p class="notice" role="status">
          <Icon name="hourglass" />
          <span>
            <b>Waiting.</b> {sentence(sweep.waiting)}
          </span>
        </p>
      )}
      <Facts sweep={sweep} />
      <Tabs id={sweep.id} />
      {asked && (
        <Confirm
          title={
            asked === 'kill' ? `Kill ${sweep.name || sweep.id}?` : `Stop ${sweep.name || sweep.id}?`
          }
          text={confirmation(asked, sweep)}
          action={asked === 'kill' ? 'Kill now' : 'Stop the sweep'}
          danger={asked === 'kill'}
          onYes={() => void act(asked)}
          onNo={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

function Facts({ sweep }: { sweep: Sweep }): JSX.Element {
  const created = parseTime(sweep.created);
  const end = sweep.ended ? parseTime(sweep.ended) : Date.now();
  return (
    <dl class="facts">
      <Fact name="Objective">
        {sweep.metric.mode === 'max' ? 'maximise' : 'minimise'} <b>{sweep.metric.name}</b>
      </Fact>
      <Fact name="Search">
        {sweep.searcher} <span class="muted">·</span> {sweep.scheduler}
      </Fact>
      <Fact name="Gang">
        {sweep.workers} {sweep.workers === 1 ? 'worker' : 'workers'} a trial
      </Fact>
      <Fact name={sweep.ended ? 'Took' : 'Started'}>
        {sweep.ended ? (
          formatDuration((end - created) / 1000)
        ) : (
          <When time={sweep.created} label={formatAgo(created, Date.now())} />
        )}
      </Fact>
      <div class="fact fact-progress">
        <dt>
          Progress{' '}
          <span>
            {formatCount(finished(sweep.trials))}
            {sweep.max_trials > 0 && ` of ${formatCount(sweep.max_trials)}`} trials ended
          </span>
        </dt>
        <dd>
          <StateBar counts={sweep.trials} of={sweep.max_trials} />
        </dd>
      </div>
    </dl>
  );
}

function Tabs({ id }: { id: string }): JSX.Element {
  const file = place.value.query.get('tab') === 'file';
  return (
    <nav class="tabs" aria-label="Parts of the sweep">
      <a href={sweepUrl(id)} aria-current={file ? undefined : 'page'}>
        Overview
      </a>
      <a href={`${sweepUrl(id)}?tab=file`} aria-current={file ? 'page' : undefined}>
        Sweep file
      </a>
    </nav>
  );
}
