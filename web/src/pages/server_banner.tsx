import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { executors, silentSince } from '../live/session';
import { plural } from '../model/numbers';
import { formatClock, formatDuration } from '../model/time';
import { Icon } from '../ui/icons';

// A short break of the connection needs no banner.
const graceMs = 2000;

/** Says since when the server does not answer, and what continues without it. */
export function ServerBanner(): JSX.Element | null {
  const since = silentSince.value;
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (since === undefined) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [since]);
  if (since === undefined || now - since < graceMs) return null;
  return (
    <div class="server-banner" data-testid="server-banner">
      <Icon name="warning" />
      <p role="alert">
        <b>The server has not answered since {clock(since)}.</b> {running()} The page shows the
        state of that time, and continues when the server is back.
      </p>
      <span class="server-banner-time" aria-hidden="true">
        {formatDuration((now - since) / 1000)}
      </span>
    </div>
  );
}

function clock(time: number): string {
  return formatClock(new Date(time).toISOString());
}

function running(): string {
  const parts = executors.value?.flatMap((executor) => executor.running) ?? [];
  const trials = new Set(parts.map(({ sweep, trial }) => `${sweep}/${trial}`)).size;
  const lease = 'until the lease of their executor runs out; executors keep the reports.';
  if (trials === 0) return `Gangs that run train on without it, ${lease}`;
  return `${plural(trials, 'trial')} ran then: ${trials === 1 ? 'its gang trains' : 'their gangs train'} on without it, ${lease}`;
}
