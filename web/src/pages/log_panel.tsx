import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { TrialDetail } from '../api/contract';
import { LiveLog, type LogPlace } from '../live/log_live';
import { formatBytes } from '../model/numbers';
import { place, setQuery } from '../router';
import { onDemand } from '../ui/on_demand';
import { Pick } from '../ui/parts';
import { useLive } from './use_live';

const LogSearchBar = onDemand<{ at: LogPlace }>('the search', async () => {
  return (await import('./log_search')).LogSearchBar;
});

const nearEndPx = 24;

/** The end of the log of one rank of one attempt; follows the log while the rank runs and is visible. */
export function LogPanel({
  trial,
  reports,
}: {
  trial: TrialDetail;
  reports: number;
}): JSX.Element | null {
  const { query } = place.value;
  const wanted = Number(query.get('attempt') ?? trial.attempt_count);
  const attempt = trial.attempts.find((each) => each.number === wanted) ?? trial.attempts.at(-1);
  if (!attempt) return null;
  const ranks = attempt.ranks.map((each) => each.rank);
  const rank = Math.min(Number(query.get('rank') ?? 0), Math.max(0, ranks.length - 1));
  return (
    <section class="panel card" aria-labelledby="log-title">
      <div class="log-head">
        <h2 id="log-title">Log</h2>
        <div class="segments" role="group" aria-label="Rank">
          {ranks.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === rank}
              onClick={() => setQuery({ rank: each === 0 ? undefined : String(each) })}
            >
              rank {each}
            </button>
          ))}
        </div>
        {trial.attempts.length > 1 && (
          <Pick
            label="attempt"
            value={String(attempt.number)}
            options={trial.attempts.map((each) => String(each.number))}
            onChange={(chosen) => setQuery({ attempt: chosen })}
          />
        )}
      </div>
      <LogSearchBar
        key={`search ${attempt.number}/${rank}`}
        at={{ sweep: trial.sweep, trial: trial.number, attempt: attempt.number, rank }}
      />
      <LogView
        key={`${attempt.number}/${rank}`}
        trial={trial}
        attempt={attempt.number}
        rank={rank}
        running={attempt.state !== 'ended'}
        reports={reports}
      />
    </section>
  );
}

function LogView({
  trial,
  attempt,
  rank,
  running,
  reports,
}: {
  trial: TrialDetail;
  attempt: number;
  rank: number;
  running: boolean;
  reports: number;
}): JSX.Element {
  const log = useLive(
    () => new LiveLog({ sweep: trial.sweep, trial: trial.number, attempt, rank }),
    [],
  );
  const [visible, setVisible] = useState(false);
  const view = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);

  useEffect(() => watchVisibility(view.current as HTMLElement, setVisible), []);
  useEffect(() => log?.follow(running && visible), [log, running, visible]);
  // A report usually comes with lines in the log; the end of the attempt always does.
  useEffect(() => {
    if (visible) log?.nudge();
  }, [reports, running]);

  const text = log?.text.value ?? '';
  const begin = log?.begin.value ?? 0;
  useLayoutEffect(() => {
    const element = view.current;
    if (element && atEnd.current) element.scrollTop = element.scrollHeight;
  }, [text]);

  const earlier = async (): Promise<void> => {
    const element = view.current;
    if (!element || !log) return;
    const fromEnd = element.scrollHeight - element.scrollTop;
    await log.readEarlier();
    requestAnimationFrame(() => (element.scrollTop = element.scrollHeight - fromEnd));
  };

  const error = log?.error.value;
  return (
    <>
      {error && (
        <p class="notice notice-bad" role="alert">
          {error.message}
        </p>
      )}
      {begin > 0 && (
        <button type="button" class="quiet" onClick={() => void earlier()}>
          Earlier lines ({formatBytes(begin)})
        </button>
      )}
      <pre
        ref={view}
        class="code log"
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={`Log of rank ${rank}, attempt ${attempt}`}
        data-testid="log"
        onScroll={(event) => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
          atEnd.current = scrollHeight - scrollTop - clientHeight < nearEndPx;
        }}
      >
        {text || (error ? '' : 'The log is empty so far.')}
      </pre>
      {running && (
        <p class="muted small following">{visible ? 'Following while the rank runs.' : ''}</p>
      )}
    </>
  );
}

// Visible means on the screen and in a visible tab.
function watchVisibility(element: HTMLElement, set: (visible: boolean) => void): () => void {
  let onScreen = false;
  const tell = (): void => set(onScreen && !document.hidden);
  const observer = new IntersectionObserver((entries) => {
    onScreen = entries.at(-1)?.isIntersecting ?? false;
    tell();
  });
  observer.observe(element);
  document.addEventListener('visibilitychange', tell);
  return () => {
    observer.disconnect();
    document.removeEventListener('visibilitychange', tell);
  };
}
