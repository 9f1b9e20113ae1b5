import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { TrialDetail } from '../../api/contract';
import { LiveLog } from '../../live/log_live';
import { logUrl, place, setQuery } from '../../router';
import { lineToken } from '../../ui/colors';
import { Pick } from '../../ui/parts';
import { useLive } from '../use_live';

const nearEndPx = 24;

/** The last lines of the logs of several trials next to each other. They scroll together. */
export function LogsTogether({ trials }: { trials: readonly TrialDetail[] }): JSX.Element | null {
  const [together, setTogether] = useState(true);
  const views = useRef(new Set<HTMLElement>());
  // The position that another log has given to a log, so that its own event is ignored.
  const given = useRef(new Map<HTMLElement, number>());
  const started = trials.filter(({ attempts }) => attempts.some(({ ranks }) => ranks.length > 0));
  if (started.length === 0) return null;
  const most = Math.max(...started.map((trial) => trial.attempts.at(-1)?.ranks.length ?? 1));
  const rank = Math.min(Number(place.value.query.get('rank') ?? 0), most - 1);

  const follow = (moved: HTMLElement): void => {
    const expected = given.current.get(moved);
    given.current.delete(moved);
    if (!together || (expected !== undefined && Math.abs(expected - moved.scrollTop) < 2)) return;
    const share = moved.scrollTop / Math.max(1, moved.scrollHeight - moved.clientHeight);
    for (const other of views.current) {
      if (other === moved) continue;
      const top = share * (other.scrollHeight - other.clientHeight);
      if (Math.abs(other.scrollTop - top) < 1) continue;
      other.scrollTop = top;
      given.current.set(other, other.scrollTop);
    }
  };
  return (
    <section class="panel card" aria-labelledby="logs-title" data-testid="logs">
      <div class="log-head">
        <h2 id="logs-title">Logs</h2>
        {most > 1 && (
          <Pick
            label="rank"
            value={String(rank)}
            options={Array.from({ length: most }, (_, each) => String(each))}
            onChange={(chosen) => setQuery({ rank: chosen === '0' ? undefined : chosen })}
          />
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={together}
            onChange={(event) => setTogether(event.currentTarget.checked)}
          />
          scroll together
        </label>
      </div>
      <div class="side-by-side">
        {trials.map((trial, i) => {
          const attempt = trial.attempts.at(-1);
          if (!attempt || attempt.ranks.length === 0) return null;
          return (
            <OneLog
              key={`${trial.number}/${attempt.number}/${rank}`}
              trial={trial}
              color={lineToken(i)}
              attempt={attempt.number}
              rank={Math.min(rank, attempt.ranks.length - 1)}
              running={attempt.state !== 'ended'}
              views={views.current}
              onScroll={follow}
            />
          );
        })}
      </div>
    </section>
  );
}

function OneLog({
  trial,
  color,
  attempt,
  rank,
  running,
  views,
  onScroll,
}: {
  trial: TrialDetail;
  color: string;
  attempt: number;
  rank: number;
  running: boolean;
  views: Set<HTMLElement>;
  onScroll(view: HTMLElement): void;
}): JSX.Element {
  const log = useLive(
    () => new LiveLog({ sweep: trial.sweep, trial: trial.number, attempt, rank }),
    [],
  );
  const view = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    const element = view.current as HTMLElement;
    views.add(element);
    return () => void views.delete(element);
  }, []);
  useEffect(() => log?.follow(running), [log, running]);
  // A log that shows its end keeps showing it.
  const text = log?.text.value ?? '';
  useLayoutEffect(() => {
    const element = view.current;
    if (element && atEnd.current) element.scrollTop = element.scrollHeight;
  }, [text]);
  const error = log?.error.value;
  return (
    <div class="one-log">
      <h3>
        <span class="line-swatch" style={{ background: `var(${color})` }} />{' '}
        <a href={logUrl(trial.sweep, trial.number, attempt, rank)}>trial {trial.number}</a>{' '}
        <span class="muted">
          attempt {attempt}, rank {rank}
        </span>
      </h3>
      <pre
        ref={view}
        class="code log"
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={`Log of trial ${trial.number}`}
        onScroll={({ currentTarget }) => {
          const { scrollHeight, scrollTop, clientHeight } = currentTarget;
          atEnd.current = scrollHeight - scrollTop - clientHeight < nearEndPx;
          onScroll(currentTarget);
        }}
      >
        {text || (error ? error.message : 'The log is empty so far.')}
      </pre>
    </div>
  );
}
