import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { authorised, executors, streamState } from './live/session';
import { plural } from './model/numbers';
import { ExecutorsPage } from './pages/executors_page';
import { LoginPage } from './pages/login_page';
import { SweepPage } from './pages/sweep_page';
import { SweepsPage } from './pages/sweeps_page';
import { TrialPage } from './pages/trial_page';
import { navigate, parseRoute, place, sweepUrl, type Route } from './router';
import { Icon, Logo } from './ui/icons';
import { keyHelp, useKeys } from './ui/keys';
import { cycleTheme, theme } from './ui/theme';

export function App(): JSX.Element {
  const route = parseRoute(place.value.path);
  const [help, setHelp] = useState(false);
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
          <a href="/" aria-current={route.page === 'executors' ? undefined : 'page'}>
            Sweeps
          </a>
          <a href="/executors" aria-current={route.page === 'executors' ? 'page' : undefined}>
            Executors
          </a>
        </nav>
        <div class="top-right">
          {authorised.value && <ExecutorStrip />}
          {authorised.value && <StreamLight />}
          <ThemeButton />
          <button
            type="button"
            class="quiet icon-button"
            onClick={() => setHelp(true)}
            aria-label="Keyboard help"
            title="Keyboard help (?)"
          >
            <kbd>?</kbd>
          </button>
          {authorised.value && <LogOutButton />}
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {authorised.value ? <Page route={route} /> : <LoginPage />}
      </main>
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

function LogOutButton(): JSX.Element {
  const logOut = (): void => {
    void fetch('/logout', { method: 'POST' }).finally(() => location.reload());
  };
  return (
    <button type="button" class="quiet" onClick={logOut} title="End the session of this browser">
      Log out
    </button>
  );
}

function Page({ route }: { route: Route }): JSX.Element {
  useEffect(() => {
    document.title = title(route);
  }, [title(route)]);
  switch (route.page) {
    case 'sweeps':
      return <SweepsPage />;
    case 'sweep':
      return <SweepPage key={route.sweep} id={route.sweep} />;
    case 'trial':
      return (
        <TrialPage key={`${route.sweep}/${route.trial}`} sweep={route.sweep} number={route.trial} />
      );
    case 'executors':
      return <ExecutorsPage />;
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

function parentUrl(route: Route): string {
  return route.page === 'trial' ? sweepUrl(route.sweep) : '/';
}

function title(route: Route): string {
  switch (route.page) {
    case 'sweep':
      return `${route.sweep} · Attune`;
    case 'trial':
      return `${route.sweep} trial ${route.trial} · Attune`;
    case 'executors':
      return 'Executors · Attune';
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

const themeIcons = { system: 'system', light: 'sun', dark: 'moon' } as const;

function ThemeButton(): JSX.Element {
  const label = `Theme: ${theme.value}`;
  return (
    <button
      type="button"
      class="quiet icon-button"
      onClick={cycleTheme}
      aria-label={label}
      title={`${label} (t)`}
    >
      <Icon name={themeIcons[theme.value]} />
    </button>
  );
}

function Help({ onClose }: { onClose(): void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {keyHelp.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              {keys.split('  ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <h3>Filter</h3>
      <p class="muted">
        Words that must all hold: <code>stopped</code>, <code>#17</code>, <code>lr&lt;0.01</code>,{' '}
        <code>best&gt;=0.8</code>, <code>optimizer=sgd</code>, or any part of a text in the row.
      </p>
      <div class="dialog-buttons">
        <a class="notices" href="/third-party.txt" target="_blank">
          Third-party licences
        </a>
        <button type="button" autofocus onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
