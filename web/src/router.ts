import { signal } from '@preact/signals';

export type Route =
  | { page: 'sweeps' }
  | { page: 'sweep'; sweep: string }
  | { page: 'trial'; sweep: string; trial: number }
  | { page: 'compare'; sweep: string }
  | { page: 'compare-sweeps' }
  | { page: 'executors' }
  | { page: 'queue' }
  | { page: 'new' }
  | { page: 'edit'; sweep: string }
  | { page: 'tokens' }
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
  if (first === 'queue' && parts.length === 1) return { page: 'queue' };
  if (first === 'new' && parts.length === 1) return { page: 'new' };
  if (first === 'tokens' && parts.length === 1) return { page: 'tokens' };
  if (first === 'compare' && parts.length === 1) return { page: 'compare-sweeps' };
  if (first === 'sweeps' && parts.length === 1) return { page: 'sweeps' };
  if (first === 'sweeps' && sweep !== undefined) {
    if (parts.length === 2) return { page: 'sweep', sweep };
    if (parts.length === 3 && third === 'compare') return { page: 'compare', sweep };
    if (parts.length === 3 && third === 'edit') return { page: 'edit', sweep };
    if (parts.length === 4 && third === 'trials' && /^\d+$/.test(trial ?? '')) {
      return { page: 'trial', sweep, trial: Number(trial) };
    }
  }
  return { page: 'missing' };
}

/** The first place of a page that keeps its place in the fragment; undefined: in the path. */
let firstPlace: string | undefined;

export const sweepUrl = (sweep: string): string =>
  `${firstPlace === undefined ? '' : '#'}/sweeps/${encodeURIComponent(sweep)}`;
export const trialUrl = (sweep: string, trial: number): string =>
  `${sweepUrl(sweep)}/trials/${trial}`;

/** The form of a new sweep; `from`: begins with the file of that sweep. */
export const newSweepUrl = (from?: string): string =>
  from === undefined ? '/new' : `/new?${new URLSearchParams({ from })}`;
export const editUrl = (sweep: string): string => `${sweepUrl(sweep)}/edit`;

/** The page of a trial with the log of one rank. */
export function logUrl(sweep: string, trial: number, attempt: number, rank = 0): string {
  const query = withQuery(new URLSearchParams(), {
    attempt: String(attempt),
    rank: rank === 0 ? undefined : String(rank),
  });
  return `${trialUrl(sweep, trial)}?${query}`;
}

// A comma in a query needs no escape.
const plainCommas = (query: URLSearchParams): string => String(query).replaceAll('%2C', ',');

/** The comparison of trials; `query` has further parts of the URL to keep. */
export function compareUrl(
  sweep: string,
  trials: readonly string[],
  query = new URLSearchParams(),
): string {
  const next = withQuery(query, { trials: trials.join(',') });
  return `${sweepUrl(sweep)}/compare?${plainCommas(next)}`;
}

export function compareSweepsUrl(sweeps: readonly string[], query = new URLSearchParams()): string {
  return `/compare?${plainCommas(withQuery(query, { sweeps: sweeps.join(',') }))}`;
}

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
  if (firstPlace === undefined)
    return { path: location.pathname, query: new URLSearchParams(location.search) };
  const [path = '', query] = (location.hash.slice(1) || firstPlace).split('?');
  return { path, query: new URLSearchParams(query) };
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
  const url = (firstPlace === undefined ? '' : '#') + path;
  history.replaceState(null, '', text ? `${url}?${text}` : url);
  place.value = read();
}

/**
 * Follows the address bar and plain clicks on links within the page. With `first`, the place is in
 * the fragment of the URL, because the page is a file; without a fragment it is `first`.
 */
export function startRouter(first?: string): void {
  firstPlace = first;
  place.value = read();
  addEventListener('popstate', () => (place.value = read()));
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest('a');
    if (!link || link.target || link.origin !== location.origin || link.hasAttribute('download'))
      return;
    const isPlace = firstPlace !== undefined && link.hash.startsWith('#/');
    if (link.hash && link.pathname === location.pathname && !isPlace) return;
    event.preventDefault();
    navigate(isPlace ? link.hash : link.pathname + link.search);
  });
}
