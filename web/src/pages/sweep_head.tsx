import type { JSX } from 'preact';

import type { Sweep, SweepDetail } from '../api/contract';
import { constraintsSummary } from '../model/front';
import { formatCount } from '../model/numbers';
import { sentence } from '../model/reason';
import { countEnded } from '../model/states';
import { limitsSummary, workersText } from '../model/summary';
import { formatAgo, formatDuration, parseTime } from '../model/time';
import { place, sweepUrl } from '../router';
import { Icon, StateLabel } from '../ui/icons';
import { Fact, StateBar, When } from '../ui/parts';
import { SweepActions } from './sweep_actions';

export function SweepHead({
  sweep,
  onActed,
}: {
  sweep: SweepDetail;
  onActed(): void;
}): JSX.Element {
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="/">Sweeps</a> <span aria-hidden="true">/</span>{' '}
        <span class="mono">{sweep.id}</span>
      </nav>
      <SweepActions key={sweep.id} sweep={sweep} onActed={onActed}>
        <h1>{sweep.name || sweep.id}</h1>
        <StateLabel state={sweep.state} large />
        {sweep.reason && <span class="muted head-reason">{sentence(sweep.reason)}</span>}
      </SweepActions>
      {sweep.end_state && (
        <p class="notice" role="status">
          <Icon name="hourglass" />
          <span>
            <b>Ending.</b> No new trial starts. The sweep ends as {sweep.end_state} when its running
            trials have ended.
          </span>
        </p>
      )}
      {sweep.waiting_reason && (
        <p class="notice" role="status">
          <Icon name="hourglass" />
          <span>
            <b>Waiting.</b> {sentence(sweep.waiting_reason)}
          </span>
        </p>
      )}
      {sweep.edited && (
        <p class="notice" role="status">
          <span>
            <b>Edited</b> by {sweep.edited.actor}, <When time={sweep.edited.time} />:{' '}
            {sweep.edited.changes.join(', ')}
          </span>
        </p>
      )}
      <Facts sweep={sweep} />
      <Tabs id={sweep.id} />
    </>
  );
}

function Facts({ sweep }: { sweep: Sweep }): JSX.Element {
  const created = parseTime(sweep.created);
  const end = sweep.ended ? parseTime(sweep.ended) : Date.now();
  const limits = limitsSummary(sweep.limits);
  const constraints = constraintsSummary(sweep.constraints);
  return (
    <dl class="facts">
      <Fact name={sweep.metrics.length > 1 ? 'Objectives' : 'Objective'}>
        {sweep.metrics.map(({ name, mode }, i) => (
          <span key={name}>
            {i > 0 && ', '}
            {mode === 'max' ? 'maximise' : 'minimise'} <b>{name}</b>
          </span>
        ))}
      </Fact>
      {constraints !== '' && <Fact name="Within">{constraints}</Fact>}
      {sweep.tags.length > 0 && <Fact name="Tags">{sweep.tags.join(', ')}</Fact>}
      <Fact name="Owner">{sweep.owner}</Fact>
      <Fact name="Search">
        {sweep.searcher} <span class="muted">·</span> {sweep.scheduler}
      </Fact>
      {sweep.warm_start.length > 0 && <Fact name="Warm start">{sweep.warm_start.join('; ')}</Fact>}
      {sweep.external ? (
        <Fact name="Program">external (ask and tell)</Fact>
      ) : (
        <Fact name="Gang">{workersText(sweep)} per trial</Fact>
      )}
      {sweep.priority !== 0 && <Fact name="Priority">{sweep.priority}</Fact>}
      {limits !== '' && <Fact name="Limits">{limits}</Fact>}
      <Fact name={sweep.ended ? 'Duration' : 'Started'}>
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
            {formatCount(countEnded(sweep.trials))}
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
