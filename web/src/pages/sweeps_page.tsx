import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import type { Sweep } from '../api/contract';
import { LiveList } from '../live/list_live';
import { mayChange } from '../live/session';
import { formatMetric, fromWire } from '../model/numbers';
import { countsSummary, workersText } from '../model/summary';
import { countEnded } from '../model/states';
import { formatAgo, parseTime } from '../model/time';
import { navigate, newSweepUrl, place, setQuery, sweepUrl } from '../router';
import { useCursor } from '../ui/cursor';
import { Icon, StateLabel } from '../ui/icons';
import { useKeys } from '../ui/keys';
import { FilterBox, Loading, Sparkline, StateBar, Trouble, When } from '../ui/parts';
import { DeletionBar } from './deletion_bar';
import { useLive } from './use_live';

export function SweepsPage(): JSX.Element {
  const live = useLive(() => new LiveList(), []);
  const { query } = place.value;
  const text = query.get('q') ?? '';
  const all = live?.sweeps.value;
  const shown = all?.filter((sweep) => matches(sweep, text)) ?? [];
  const selected = shown.findIndex((sweep) => sweep.id === query.get('sweep'));
  const cursor = useCursor(shown.length, selected, (index) =>
    setQuery({ sweep: shown[index]?.id }),
  );
  useKeys({
    j: () => cursor.by(1),
    k: () => cursor.by(-1),
    Home: () => cursor.to(0),
    End: () => cursor.to(shown.length - 1),
    Escape: () => setQuery({ sweep: undefined }),
    Enter: () => {
      const sweep = shown[cursor.at()];
      if (sweep) navigate(sweepUrl(sweep.id));
    },
  });

  return (
    <>
      <div class="page-head">
        <h1>Sweeps</h1>
        {all && all.length > 0 && (
          <FilterBox
            value={text}
            what="sweeps"
            placeholder="Filter by name, state or tag  ( / )"
            onChange={(q) => setQuery({ q })}
          />
        )}
        {mayChange.value && (
          <div class="actions">
            <a class="button" href={newSweepUrl()}>
              New sweep
            </a>
          </div>
        )}
      </div>
      {all?.map((sweep) => (
        <DeletionBar key={sweep.id} sweep={sweep} onUndone={() => live?.readAgain(sweep.id)} />
      ))}
      {live?.error.value && <Trouble error={live.error.value} />}
      {!all && !live?.error.value && <Loading what="sweeps" />}
      {all?.length === 0 && <NoSweeps />}
      {all && all.length > 0 && (
        <div class="panel table-scroll" tabIndex={0} role="region" aria-label="Sweeps">
          <table class="data sweeps">
            <thead>
              <tr>
                <th scope="col">sweep</th>
                <th scope="col">state</th>
                <th scope="col" class="number">
                  best
                </th>
                <th scope="col">best so far</th>
                <th scope="col">trials</th>
                <th scope="col">search</th>
                <th scope="col">created</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((sweep, i) => (
                <SweepRow
                  key={sweep.id}
                  sweep={sweep}
                  selected={i === selected}
                  spark={live?.sparks.value.get(sweep.id)}
                  onSeen={() => live?.wantSpark(sweep.id)}
                />
              ))}
            </tbody>
          </table>
          {shown.length === 0 && <p class="muted none">No sweep matches “{text}”.</p>}
        </div>
      )}
    </>
  );
}

function matches(sweep: Sweep, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const haystack = [
    sweep.id,
    sweep.name,
    ...sweep.tags,
    sweep.state,
    sweep.searcher,
    sweep.scheduler,
  ]
    .join(' ')
    .toLowerCase();
  const tags = sweep.tags.map((tag) => tag.toLowerCase());
  return words.every((word) =>
    word.startsWith('tag:')
      ? word
          .slice(4)
          .split(',')
          .some((tag) => tags.includes(tag))
      : haystack.includes(word),
  );
}

function SweepRow({
  sweep,
  selected,
  spark,
  onSeen,
}: {
  sweep: Sweep;
  selected: boolean;
  spark: number[] | undefined;
  onSeen(): void;
}): JSX.Element {
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      onSeen();
    });
    seen.observe(row.current as HTMLTableRowElement);
    return () => seen.disconnect();
  }, []);
  useEffect(() => {
    if (selected) row.current?.scrollIntoView({ block: 'nearest' });
  }, [selected]);

  const { best, metric, trials } = sweep;
  const open = (event: MouseEvent): void => {
    if (!(event.target as Element).closest('a')) navigate(sweepUrl(sweep.id));
  };
  return (
    <tr ref={row} class="openable" aria-current={selected} onClick={open}>
      <th scope="row">
        <a href={sweepUrl(sweep.id)}>{sweep.name || sweep.id}</a>
        <span class="muted id">{sweep.id}</span>
        {sweep.tags.length > 0 && (
          <div class="tags">
            {sweep.tags.map((tag) => (
              <a
                key={tag}
                class="tag"
                href={`/?q=${encodeURIComponent(`tag:${tag}`)}`}
                title={`Sweeps with the tag ${tag}`}
              >
                {tag}
              </a>
            ))}
          </div>
        )}
      </th>
      <td>
        <StateLabel state={sweep.state} />
        {trials.failed > 0 && (
          <div class="failed-mark">
            <Icon name="warning" /> {trials.failed} failed
          </div>
        )}
        {sweep.end_state && (
          <div class="waiting-small" title={`it ends as ${sweep.end_state}`}>
            <Icon name="hourglass" /> ending
          </div>
        )}
        {sweep.waiting_reason && (
          <div class="waiting-small" title={sweep.waiting_reason}>
            <Icon name="hourglass" /> waiting
          </div>
        )}
      </td>
      <td class="number">
        {best ? (
          <b class="value">{formatMetric(fromWire(best.value))}</b>
        ) : (
          <span class="muted">–</span>
        )}
        <div class="muted small">
          {metric.name} {metric.mode === 'max' ? '↑' : '↓'}
        </div>
      </td>
      <td>
        {spark && (
          <Sparkline
            values={spark}
            label={`Best ${metric.name} so far, over ${spark.length} trials`}
          />
        )}
      </td>
      <td class="progress">
        <StateBar counts={trials} of={sweep.max_trials} />
        <div class="small">
          <b>{countEnded(trials)}</b>
          {sweep.max_trials > 0 && <span class="muted"> of {sweep.max_trials}</span>}{' '}
          <span class="muted">ended · {countsSummary(trials)}</span>
        </div>
      </td>
      <td class="muted">
        {sweep.searcher} · {sweep.scheduler}
        <div class="small">{workersText(sweep)} per trial</div>
      </td>
      <td class="muted">
        <When time={sweep.created} label={formatAgo(parseTime(sweep.created), Date.now())} />
      </td>
    </tr>
  );
}

function NoSweeps(): JSX.Element {
  return (
    <div class="empty">
      <h2>No sweep yet</h2>
      <p>A sweep file names a program, its parameters and a search method. Start one:</p>
      <pre class="code">attune run sweep.yaml</pre>
      {mayChange.value && (
        <p>
          Or <a href={newSweepUrl()}>write one here</a>.
        </p>
      )}
    </div>
  );
}
