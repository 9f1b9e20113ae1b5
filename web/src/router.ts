import { signal } from '@preact/signals';

export type Route =
  | { page: 'sweeps' }
  | { page: 'sweep'; sweep: string }
  | { page: 'trial'; sweep: string; trial: number }
  | { page: 'executors' }
  | { page: 'missing' };

export interface Place {
  path: string;
  query: URLSearchParams;
}

export function parseRoute(path: string): Route {
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  const [first, sweep, third, trial] = parts;
  if (parts.length === 0) return { page: 'sweeps' };
  if (first === 'executors' && parts.length === 1) return { page: 'executors' };
  if (first === 'sweeps' && parts.length === 1) return { page: 'sweeps' };
  if (first === 'sweeps' && sweep !== undefined) {
    if (parts.length === 2) return { page: 'sweep', sweep };
    if (parts.length === 4 && third === 'trials' && /^\d+$/.test(trial ?? '')) {
      return { page: 'trial', sweep, trial: Number(trial) };
    }
  }
  return { page: 'missing' };
}

export const sweepUrl = (sweep: string): string => `/sweeps/${encodeURIComponent(sweep)}`;
export const trialUrl = (sweep: string, trial: number): string =>
  `${sweepUrl(sweep)}/trials/${trial}`;

/** Returns the query with changed keys; undefined and empty remove a key. */
export function withQuery(
  query: URLSearchParams,
  changes: Record<string, string | undefined>,
): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const [key, value] of Object.entries(changes)) {
    if (value) next.set(key, value);
    else next.delete(key);
  }
  next.sort();
  return next;
}

function read(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>({ path: '/', query: new URLSearchParams() });

export function navigate(url: string): void {
  history.pushState(null, '', url);
  place.value = read();
  scrollTo(0, 0);
}

/** Changes the state in the URL without a new entry in the history. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const { path, query } = place.peek();
  const text = withQuery(query, changes).toString();
  history.replaceState(null, '', text ? `${path}?${text}` : path);
  place.value = read();
}

/** Follows the address bar and plain clicks on links within the page. */
export function startRouter(): void {
  place.value = read();
  addEventListener('popstate', () => (place.value = read()));
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest('a');
    if (!link || link.target || link.origin !== location.origin || link.hasAttribute('download'))
      return;
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
