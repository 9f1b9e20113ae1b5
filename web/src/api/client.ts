import type {
  Config,
  Curves,
  Executor,
  Importance,
  LoggedPoint,
  Fleet,
  Problem,
  Replay,
  Schedule,
  SteeredExecutor,
  SteeredSweep,
  SteeredTrial,
  Sweep,
  SweepDetail,
  Trial,
  TrialDetail,
} from './contract';

/** The server answered a request with a problem, or did not answer (status 0). */
export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(messageOf(problem));
  }
  get status(): number {
    return this.problem.status;
  }
}

/** A problem that the page itself finds. */
export function localProblem(title: string, status: number): Problem {
  return { type: 'about:blank', title, status, detail: '' };
}

// Lists each error of a request body with its place: "config.lr: expected a number".
function messageOf({ title, detail, errors }: Problem): string {
  if (!errors?.length) return detail || title;
  const lines = errors.map(({ pointer, message }) =>
    [pointer.slice(1).replaceAll('/', '.'), message].filter(Boolean).join(': '),
  );
  return lines.join('\n');
}

export type SweepVerb = 'pause' | 'resume' | 'stop' | 'kill' | 'extend';
export type TrialVerb = 'kill' | 'retry' | 'continue';

const base = '/api/v1';

async function request(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(base + path, { credentials: 'same-origin', ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(localProblem('The server does not answer', 0));
  }
  if (response.ok) return response;
  throw new ApiError(await readProblem(response));
}

async function readProblem(response: Response): Promise<Problem> {
  const fallback = localProblem(`The server answered ${response.status}`, response.status);
  try {
    const problem = (await response.json()) as Partial<Problem>;
    return { ...fallback, ...problem, status: response.status };
  } catch {
    return fallback;
  }
}

async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, signal ? { signal } : undefined);
  return (await response.json()) as T;
}

async function postJson<T>(path: string, body: object): Promise<T> {
  const headers = { 'Content-Type': 'application/json' };
  const response = await request(path, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await response.json()) as T;
}

// Follows next_page_token to the end and delivers each page.
async function pages<T>(
  path: string,
  pageSize: number,
  key: string,
  onPage: (items: T[]) => void,
  signal?: AbortSignal,
): Promise<void> {
  let token = '';
  do {
    const query = new URLSearchParams({ page_size: String(pageSize) });
    if (token) query.set('page_token', token);
    const page = await getJson<Record<string, unknown>>(`${path}?${query}`, signal);
    onPage(page[key] as T[]);
    token = (page.next_page_token as string | undefined) ?? '';
  } while (token);
}

const sweepPath = (id: string): string => `/sweeps/${encodeURIComponent(id)}`;

export interface LogChunk {
  bytes: Uint8Array<ArrayBuffer>;
  offset: number;
  size: number;
  /** Bytes that are missing because the log reached its limit. */
  gap?: { begin: number; end: number };
}

export const api = {
  sweeps(onPage: (sweeps: Sweep[]) => void, signal?: AbortSignal): Promise<void> {
    return pages('/sweeps', 100, 'sweeps', onPage, signal);
  },
  sweep(id: string, signal?: AbortSignal): Promise<SweepDetail> {
    return getJson(sweepPath(id), signal);
  },
  trials(id: string, onPage: (trials: Trial[]) => void, signal?: AbortSignal): Promise<void> {
    return pages(`${sweepPath(id)}/trials`, 1000, 'trials', onPage, signal);
  },
  trial(id: string, number: number, signal?: AbortSignal): Promise<TrialDetail> {
    return getJson(`${sweepPath(id)}/trials/${number}`, signal);
  },
  /** The values that a trial logged between reports, in events after `after`. */
  async logged(id: string, number: number, after: number, signal?: AbortSignal) {
    const most = 10_000;
    const points: LoggedPoint[] = [];
    for (;;) {
      const from = points.at(-1)?.seq ?? after;
      const { logged } = await getJson<{ logged: LoggedPoint[] }>(
        `${sweepPath(id)}/trials/${number}/logged?after=${from}&limit=${most}`,
        signal,
      );
      points.push(...logged);
      if (logged.length < most) return points;
    }
  },
  /** All pages of curves as one. Its `seq` is the first page's, so events repeat later pages in part. */
  async curves(id: string, metric?: string, signal?: AbortSignal): Promise<Curves> {
    const path = `${sweepPath(id)}/curves`;
    const query = new URLSearchParams(metric ? { metric } : {});
    const curves: Curves = await getJson(metric ? `${path}?${query}` : path, signal);
    while (curves.next_page_token) {
      query.set('page_token', curves.next_page_token);
      const { trials, next_page_token }: Curves = await getJson(`${path}?${query}`, signal);
      curves.trials.push(...trials);
      curves.next_page_token = next_page_token;
    }
    return curves;
  },
  importance(id: string, metric: string, signal?: AbortSignal): Promise<Importance> {
    return getJson(`${sweepPath(id)}/importance?metric=${encodeURIComponent(metric)}`, signal);
  },
  replay(id: string, changes: object): Promise<Replay> {
    return postJson(`${sweepPath(id)}:replay`, changes);
  },
  schedule(id: string, number: number, signal?: AbortSignal): Promise<Schedule> {
    return getJson(`${sweepPath(id)}/trials/${number}/schedule`, signal);
  },
  async executors(signal?: AbortSignal): Promise<Executor[]> {
    return (await getJson<{ executors: Executor[] }>('/executors', signal)).executors;
  },
  async pilots(signal?: AbortSignal): Promise<Fleet[]> {
    return (await getJson<{ fleets: Fleet[] }>('/pilots', signal)).fleets;
  },
  steerExecutor(
    name: string,
    verb: 'drain' | 'resume',
    body: object = {},
  ): Promise<SteeredExecutor> {
    return postJson(`/executors/${encodeURIComponent(name)}:${verb}`, body);
  },
  steerSweep(id: string, verb: SweepVerb, body: object = {}): Promise<SteeredSweep> {
    return postJson(`${sweepPath(id)}:${verb}`, body);
  },
  async deleteSweep(id: string): Promise<{ effect: string }> {
    const response = await request(sweepPath(id), { method: 'DELETE' });
    return (await response.json()) as { effect: string };
  },
  enqueue(id: string, config: Config): Promise<TrialDetail> {
    return postJson(`${sweepPath(id)}/trials`, { config });
  },
  steerTrial(
    id: string,
    number: number,
    verb: TrialVerb,
    body: object = {},
  ): Promise<SteeredTrial> {
    return postJson(`${sweepPath(id)}/trials/${number}:${verb}`, body);
  },
  pinCheckpoint(
    id: string,
    number: number,
    at: { attempt: number; step: number },
    pinned: boolean,
  ): Promise<SteeredTrial> {
    const checkpoint = `${sweepPath(id)}/trials/${number}/checkpoints/${at.attempt}-${at.step}`;
    return postJson(`${checkpoint}:${pinned ? 'pin' : 'unpin'}`, {});
  },
  /** A piece of a rank's log; a negative offset counts from the end. */
  async log(
    sweep: string,
    trial: number,
    at: { attempt: number; rank: number; offset: number; limit: number },
    signal?: AbortSignal,
  ): Promise<LogChunk> {
    const query = new URLSearchParams(Object.entries(at).map(([k, v]) => [k, String(v)]));
    const response = await request(
      `${sweepPath(sweep)}/trials/${trial}/logs?${query}`,
      signal ? { signal } : undefined,
    );
    const bytes = new Uint8Array(await response.arrayBuffer());
    const offset = Number(response.headers.get('X-Log-Offset') ?? 0);
    const size = Number(response.headers.get('X-Log-Size') ?? offset + bytes.length);
    const gap = /^(\d+)-(\d+)$/.exec(response.headers.get('X-Log-Gap') ?? '');
    if (!gap) return { bytes, offset, size };
    return { bytes, offset, size, gap: { begin: Number(gap[1]), end: Number(gap[2]) } };
  },
};
