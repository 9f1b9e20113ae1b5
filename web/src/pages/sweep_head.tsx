import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api, hasServer } from '../api/client';
import type { Sweep } from '../api/contract';
import { constraintsSummary } from '../model/front';
import { formatCount, plural } from '../model/numbers';
import { sentence } from '../model/reason';
import { countEnded } from '../model/states';
import { limitsSummary, workersText } from '../model/summary';
import { formatAgo, formatDuration, parseTime } from '../model/time';
import { compareSweepsUrl, place, sweepUrl } from '../router';
import { readStored, writeStored } from '../stored';
import { Icon, StateLabel } from '../ui/icons';
import { Fact, StateBar, When } from '../ui/parts';
import { DeletionBar } from './deletion_bar';
import { Notes } from './notes/notes';
import { SweepActions } from './sweep_actions';

export function SweepHead({
  sweep,
  ...actions
}: Omit<Parameters<typeof SweepActions>[0], 'children'>): JSX.Element {
  return (
    <>
      {hasServer() && (
        <nav class="crumbs" aria-label="Breadcrumb">
          <a href="/">Sweeps</a> <span aria-hidden="true">/</span>{' '}
          <span class="mono">{sweep.id}</span>
        </nav>
      )}
      <SweepActions key={sweep.id} sweep={sweep} {...actions}>
        <h1>{sweep.name || sweep.id}</h1>
        <StateLabel state={sweep.state} large />
        <FailedMark sweep={sweep} />
        {sweep.reason && <span class="muted head-reason">{sentence(sweep.reason)}</span>}
      </SweepActions>
      <DeletionBar sweep={sweep} onUndone={actions.onActed} />
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
      {sweep.edited && <EditNotice key={sweep.edited.time} id={sweep.id} edit={sweep.edited} />}
      <Facts sweep={sweep} />
      <Notes
        key={`notes ${sweep.id}`}
        title={sweep.name || sweep.id}
        of={sweep}
        isClosed={sweep.deletion !== undefined}
        save={(changes) => api.steerSweep(sweep.id, 'annotate', changes)}
      />
      <Tabs id={sweep.id} />
    </>
  );
}

/** A link to the failed trials. */
function FailedMark({ sweep }: { sweep: Sweep }): JSX.Element | null {
  const { failed } = sweep.trials;
  if (failed === 0) return null;
  return (
    <a class="failed-mark" href={`${sweepUrl(sweep.id)}?state=failed`}>
      <Icon name="warning" /> {plural(failed, 'trial')} failed
    </a>
  );
}

type Edit = NonNullable<Sweep['edited']>;

/** The newest edit, until the user dismisses it. The facts keep it. */
function EditNotice({ id, edit }: { id: string; edit: Edit }): JSX.Element | null {
  const key = `attune-seen-edit-${id}`;
  const [seen, setSeen] = useState(() => readStored(key) === edit.time);
  if (seen) return null;
  const dismiss = (): void => {
    writeStored(key, edit.time);
    setSeen(true);
  };
  return (
    <div class="notice notice-done outcome" role="status">
      <span>
        <b>Edited</b> by {edit.actor}, <When time={edit.time} />: {edit.changes.join(', ')}
      </span>
      <button type="button" class="quiet" onClick={dismiss}>
        Dismiss
      </button>
    </div>
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
      {sweep.code && (
        <Fact name="Code">
          <span class="mono" title={sweep.code.digest}>
            {sweep.code.commit.slice(0, 9) || sweep.code.digest.slice(7, 16)}
          </span>
          {sweep.code.dirty && ' with changes'}
        </Fact>
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
      {sweep.edited && (
        <Fact name="Last edit">
          <a href={`${sweepUrl(sweep.id)}?tab=file`} title={sweep.edited.changes.join(', ')}>
            <When
              time={sweep.edited.time}
              label={formatAgo(parseTime(sweep.edited.time), Date.now())}
            />
          </a>{' '}
          by {sweep.edited.actor}
        </Fact>
      )}
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
      {hasServer() && <a href={compareSweepsUrl([id])}>Compare with…</a>}
    </nav>
  );
}
