import type { JSX } from 'preact';
import { useCallback, useState } from 'preact/hooks';

import { canNotify, notifying, toggleNotifying } from './live/notifier';
import { authorised, executors, mayChange, session, streamState } from './live/session';
import { plural } from './model/numbers';
import { ExecutorsPage } from './pages/executors/executors_page';
import { Help } from './pages/help';
import { LoginPage } from './pages/login_page';
import { ServerBanner } from './pages/server_banner';
import { SweepPage } from './pages/sweep_page';
import { SweepsPage } from './pages/sweeps_page';
import { TrialPage } from './pages/trial_page';
import { useTitle } from './pages/use_title';
import { navigate, parseRoute, place, sweepUrl, type Route } from './router';
import { HelpButton } from './ui/help_button';
import { Icon, Logo } from './ui/icons';
import { useKeys, usePaletteKey } from './ui/keys';
import { onDemand } from './ui/on_demand';
import { cycleTheme } from './ui/theme';
import { ThemeButton } from './ui/theme_button';

const QueuePage = onDemand('the queue', async () => {
  return (await import('./pages/queue_page')).QueuePage;
});
const TokensPage = onDemand('the tokens', async () => {
  return (await import('./pages/tokens_page')).TokensPage;
});
const CompareTrials = onDemand('the comparison', async () => {
  return (await import('./pages/compare/compare_trials')).CompareTrials;
});
const CompareSweeps = onDemand('the comparison', async () => {
  return (await import('./pages/compare/compare_sweeps')).CompareSweeps;
});

const NewSweep = onDemand('the editor', async () => {
  return (await import('./pages/editor/new_sweep')).NewSweep;
});
const EditSweep = onDemand<{ id: string }>('the editor', async () => {
  return (await import('./pages/editor/edit_sweep')).EditSweep;
});
const Palette = onDemand<{ onClose(): void }>('the commands', async () => {
  return (await import('./pages/palette')).Palette;
});

export function App(): JSX.Element {
  const route = parseRoute(place.value.path);
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = useState(false);
  usePaletteKey(useCallback(() => setPalette(true), []));
  useKeys({
    '?': () => setHelp(true),
    t: cycleTheme,
    u: () => navigate(parentUrl(route)),
  });
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <Logo /> Attune
        </a>
        <nav aria-label="Pages">
          <PageLink href="/" shown={!['executors', 'queue', 'tokens'].includes(route.page)}>
            Sweeps
          </PageLink>
          <PageLink href="/queue" shown={route.page === 'queue'}>
            Queue
          </PageLink>
          <PageLink href="/executors" shown={route.page === 'executors'}>
            Executors
          </PageLink>
          {mayChange.value && (
            <PageLink href="/tokens" shown={route.page === 'tokens'}>
              Tokens
            </PageLink>
          )}
        </nav>
        <div class="top-right">
          {authorised.value && <ExecutorStrip />}
          {authorised.value && <StreamLight />}
          {authorised.value && <NotifyButton />}
          <ThemeButton />
          {authorised.value && (
            <button
              type="button"
              class="quiet icon-button help-button"
              onClick={() => setPalette(true)}
              aria-label="Commands"
              title="Commands (Ctrl K)"
            >
              <Icon name="search" />
            </button>
          )}
          <HelpButton onClick={() => setHelp(true)} />
          {authorised.value && <LogOutButton />}
        </div>
      </header>
      {authorised.value && <ServerBanner />}
      <main id="main" tabIndex={-1}>
        {authorised.value ? <Page route={route} /> : <LoginPage />}
      </main>
      {help && <Help licences={<Licences />} onClose={() => setHelp(false)} />}
      {palette && authorised.value && <Palette onClose={() => setPalette(false)} />}
    </>
  );
}

function PageLink({
  href,
  shown,
  children,
}: {
  href: string;
  shown: boolean;
  children: string;
}): JSX.Element {
  return (
    <a href={href} aria-current={shown ? 'page' : undefined}>
      {children}
    </a>
  );
}

function LogOutButton(): JSX.Element {
  const logOut = (): void => {
    void fetch('/logout', { method: 'POST' }).finally(() => location.reload());
  };
  return (
    <button
      type="button"
      class="quiet"
      onClick={logOut}
      title={`End the session of ${session.value?.name ?? 'this browser'}`}
    >
      Log out
    </button>
  );
}

function Page({ route }: { route: Route }): JSX.Element {
  useTitle(title(route));
  if ((route.page === 'new' || route.page === 'edit') && session.value && !mayChange.value)
    return <ReadOnly />;
  switch (route.page) {
    case 'sweeps':
      return <SweepsPage />;
    case 'sweep':
      return <SweepPage key={route.sweep} id={route.sweep} />;
    case 'trial':
      return (
        <TrialPage key={`${route.sweep}/${route.trial}`} sweep={route.sweep} number={route.trial} />
      );
    case 'compare':
      return <CompareTrials key={route.sweep} sweep={route.sweep} />;
    case 'compare-sweeps':
      return <CompareSweeps />;
    case 'new':
      return <NewSweep key={place.value.query.get('from')} />;
    case 'edit':
      return <EditSweep key={route.sweep} id={route.sweep} />;
    case 'executors':
      return <ExecutorsPage />;
    case 'queue':
      return <QueuePage />;
    case 'tokens':
      return <TokensPage />;
    case 'missing':
      return (
        <div class="trouble">
          <h1>No such page</h1>
          <p>
            <a href="/">All sweeps</a>
          </p>
        </div>
      );
  }
}

function ReadOnly(): JSX.Element {
  return (
    <div class="trouble">
      <h1>Your token can only read</h1>
      <p>To create or edit a sweep, log in with the token of an administrator.</p>
    </div>
  );
}

function parentUrl(route: Route): string {
  const { page } = route;
  return page === 'trial' || page === 'compare' || page === 'edit' ? sweepUrl(route.sweep) : '/';
}

function title(route: Route): string {
  switch (route.page) {
    case 'sweep':
      return `${route.sweep} · Attune`;
    case 'trial':
      return `${route.sweep} trial ${route.trial} · Attune`;
    case 'compare':
      return `${route.sweep} comparison · Attune`;
    case 'compare-sweeps':
      return 'Comparison of sweeps · Attune';
    case 'new':
      return 'New sweep · Attune';
    case 'edit':
      return `Edit ${route.sweep} · Attune`;
    case 'executors':
      return 'Executors · Attune';
    case 'queue':
      return 'Queue · Attune';
    case 'tokens':
      return 'Tokens · Attune';
    default:
      return 'Attune';
  }
}

function ExecutorStrip(): JSX.Element | null {
  const all = executors.value;
  if (!all) return null;
  const online = all.filter((executor) => executor.state === 'online');
  const sum = (key: 'cpus' | 'cpus_free' | 'gpus' | 'gpus_free'): number =>
    online.reduce((count, executor) => count + executor[key], 0);
  const lost = all.filter((executor) => executor.state === 'lost').length;
  const closed = all.length - online.length - lost;
  return (
    <a class="strip" href="/executors" title="Executors and their free resources">
      <Icon name="host" />
      <span>
        {online.length === 0 ? 'no executor online' : plural(online.length, 'executor')}
        {lost > 0 && <span class="warn"> ({lost} lost)</span>}
        {closed > 0 && <span class="warn"> ({closed} out of service)</span>}
      </span>
      {online.length > 0 && (
        <span>
          <b>{sum('cpus_free')}</b>/{sum('cpus')} CPUs free
        </span>
      )}
      {sum('gpus') > 0 && (
        <span>
          <b>{sum('gpus_free')}</b>/{sum('gpus')} GPUs free
        </span>
      )}
    </a>
  );
}

const streamWords = {
  live: 'live',
  connecting: 'connecting…',
  reconnecting: 'reconnecting…',
  closed: '',
} as const;

function StreamLight(): JSX.Element {
  const state = streamState.value;
  return (
    <span class={`light light-${state}`} role="status" data-testid="stream">
      {streamWords[state]}
    </span>
  );
}

function NotifyButton(): JSX.Element | null {
  if (!canNotify()) return null;
  const on = notifying.value;
  const label = `Notifications: ${on ? 'on' : 'off'}`;
  return (
    <button
      type="button"
      class="quiet icon-button"
      onClick={() => void toggleNotifying()}
      aria-label={label}
      aria-pressed={on}
      title={`${label}. They tell when a sweep ends or waits, and when trials fail.`}
    >
      <Icon name="bell" />
    </button>
  );
}

function Licences(): JSX.Element {
  return (
    <a class="notices" href="/third-party.txt" target="_blank">
      Third-party licences
    </a>
  );
}
