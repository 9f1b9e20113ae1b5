import type {
  Activity,
  AccessToken,
  AnyObject,
  AttemptEnvironment,
  Branch,
  CheckpointDetail,
  Config,
  CreatedToken,
  Curves,
  DeletedSweep,
  Executor,
  ExecutorOccupancy,
  Failures,
  Importance,
  LoggedPoint,
  Metric,
  Fleet,
  Lineage,
  NewToken,
  Problem,
  Queue,
  Replay,
  ResolvedSweep,
  RevokedToken,
  Schedule,
  Session,
  SimulatedOutcome,
  SteeredExecutor,
  SteeredSweep,
  SteeredTrial,
  Sweep,
  SweepCost,
  SweepDetail,
  Timeline,
  Trial,
  TrialDetail,
  ValidatedSweep,
} from './contract';
import { curvesType, decodeCurves, type CurvePage } from './curves';

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

export type SweepVerb = 'pause' | 'resume' | 'stop' | 'kill' | 'extend' | 'annotate' | 'undelete';
export type TrialVerb = 'kill' | 'retry' | 'continue' | 'annotate';

/** Answers requests to the API. */
export interface Source {
  /** Whether its answers change, and requests can change something. */
  isServer: boolean;
  /** Whether a GET of the path has an answer. */
  has(path: string): boolean;
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

const server: Source = {
  isServer: true,
  has: () => true,
  fetch: (path, init) => fetch(`/api/v1${path}`, { credentials: 'same-origin', ...init }),
};
let source = server;

/** Replaces the server as the source of all answers. */
export function answerFrom(other: Source): void {
  source = other;
}

/** Whether a server answers. Without one, controls that need it are not shown. */
export const hasServer = (): boolean => source.isServer;

async function request(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await source.fetch(path, init);
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

async function postFile<T>(
  path: string,
  file: string,
  options: { headers?: Record<string, string>; signal?: AbortSignal | undefined } = {},
): Promise<T> {
  const response = await request(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/yaml', ...options.headers },
    body: file,
    signal: options.signal ?? null,
  });
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

/** A page of trials in an order of the server. */
export interface TrialPage {
  trials: Trial[];
  /** Empty on the last page. */
  next_page_token: string;
  /** The last event that the page includes. */
  seq: number;
  /** The number of trials that match the filter. */
  total_size: number;
}

export interface TrialQuery {
  order_by?: string | undefined;
  filter?: string | undefined;
  page_size: number;
  page_token?: string;
}

/** Which curves to read: the best, some trials, or all in pages. */
export interface CurveQuery {
  metric?: string | undefined;
  /** The most points of a curve. */
  points: number;
  best?: number;
  trials?: readonly number[];
  /** The range of a zoom; only with `trials`. */
  first_step?: number;
  last_step?: number;
  /** The first trial of a further page. */
  from?: number;
}

function queryText(fields: Record<string, string | number | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && value !== '') query.set(name, String(value));
  return query.toString();
}

const sweepPath = (id: string): string => `/sweeps/${encodeURIComponent(id)}`;

const importancePath = (id: string, metric: string, mode?: Metric['mode']): string =>
  `${sweepPath(id)}/importance?${queryText({ metric, mode })}`;

export interface CheckpointName {
  sweep: string;
  trial: number;
  attempt: number;
  step: number;
}

const checkpointPath = ({ sweep, trial, attempt, step }: CheckpointName): string =>
  `${sweepPath(sweep)}/trials/${trial}/checkpoints/${attempt}-${step}`;

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
  /** The newest sweeps, at most fifty. */
  async newestSweeps(): Promise<Sweep[]> {
    return (await getJson<{ sweeps: Sweep[] }>('/sweeps?page_size=50')).sweeps;
  },
  sweep(id: string, signal?: AbortSignal): Promise<SweepDetail> {
    return getJson(sweepPath(id), signal);
  },
  trials(id: string, query: TrialQuery, signal?: AbortSignal): Promise<TrialPage> {
    return getJson(`${sweepPath(id)}/trials?${queryText({ ...query })}`, signal);
  },
  /** Delivers all trials by number, in pages. */
  allTrials(id: string, onPage: (trials: Trial[]) => void, signal?: AbortSignal): Promise<void> {
    return pages(`${sweepPath(id)}/trials`, 1000, 'trials', onPage, signal);
  },
  trial(id: string, number: number, signal?: AbortSignal): Promise<TrialDetail> {
    return getJson(`${sweepPath(id)}/trials/${number}`, signal);
  },
  hasTrial(id: string, number: number): boolean {
    return source.has(`${sweepPath(id)}/trials/${number}`);
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
  async curvePage(id: string, query: CurveQuery, signal?: AbortSignal): Promise<CurvePage> {
    const { trials, from, ...others } = query;
    const text = queryText({ ...others, trials: trials?.join(','), page_token: from });
    const init = { headers: { Accept: curvesType }, ...(signal ? { signal } : {}) };
    const response = await request(`${sweepPath(id)}/curves?${text}`, init);
    return decodeCurves(await response.arrayBuffer());
  },
  /** Whether there are curves of a metric; undefined: the first objective. */
  hasCurves(id: string, metric: string | undefined): boolean {
    return source.has(`${sweepPath(id)}/curves?${queryText({ metric })}`);
  },
  /** A metric that is not an objective needs a mode. */
  importance(
    id: string,
    metric: string,
    mode?: Metric['mode'],
    signal?: AbortSignal,
  ): Promise<Importance> {
    return getJson(importancePath(id, metric, mode), signal);
  },
  hasImportance(id: string, metric: string, mode?: Metric['mode']): boolean {
    return source.has(importancePath(id, metric, mode));
  },
  cost(id: string, signal?: AbortSignal): Promise<SweepCost> {
    return getJson(`${sweepPath(id)}/cost`, signal);
  },
  replay(id: string, changes: object): Promise<Replay> {
    return postJson(`${sweepPath(id)}:replay`, changes);
  },
  environment(id: string, number: number, attempt: number, signal?: AbortSignal) {
    const path = `${sweepPath(id)}/trials/${number}/environment?attempt=${attempt}`;
    return getJson<AttemptEnvironment>(path, signal);
  },
  schedule(id: string, number: number, signal?: AbortSignal): Promise<Schedule> {
    return getJson(`${sweepPath(id)}/trials/${number}/schedule`, signal);
  },
  session(): Promise<Session> {
    return getJson('/session');
  },
  async executors(signal?: AbortSignal): Promise<Executor[]> {
    return (await getJson<{ executors: Executor[] }>('/executors', signal)).executors;
  },
  async occupancy(signal?: AbortSignal): Promise<ExecutorOccupancy[]> {
    return (await getJson<{ executors: ExecutorOccupancy[] }>('/occupancy', signal)).executors;
  },
  /** The newest attempts that held slots from `since` to now. */
  timeline(of: { since: string; limit: number }, signal?: AbortSignal): Promise<Timeline> {
    const query = new URLSearchParams({ since: of.since, limit: String(of.limit) });
    return getJson(`/timeline?${query}`, signal);
  },
  /** The first entries of the queue. */
  queue(size: number, signal?: AbortSignal): Promise<Queue> {
    return getJson(`/queue?page_size=${size}`, signal);
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
  /** Checks a sweep file; relative paths in it start from the directory. */
  validate(file: string, directory: string, signal?: AbortSignal): Promise<ValidatedSweep> {
    return postFile(`/sweeps:validate?${new URLSearchParams({ directory })}`, file, { signal });
  },
  /** Simulates a sweep file on this number of slots. */
  simulate(
    file: string,
    of: { directory: string; slots: number; step_seconds: number },
  ): Promise<SimulatedOutcome> {
    const query = new URLSearchParams(Object.entries(of).map(([k, v]) => [k, String(v)]));
    return postFile(`/sweeps:simulate?${query}`, file);
  },
  /** Creates a sweep. A second request with the same key creates nothing. */
  createSweep(file: string, directory: string, key: string): Promise<SweepDetail> {
    const headers = { 'Idempotency-Key': key };
    return postFile(`/sweeps?${new URLSearchParams({ directory })}`, file, { headers });
  },
  /** Edits a sweep by a merge patch. A dry run only checks it and lists the changes. */
  editSweep(id: string, patch: object, dryRun: boolean): Promise<SteeredSweep> {
    return postJson(`${sweepPath(id)}:edit?dry_run=${dryRun}`, patch);
  },
  steerSweep(id: string, verb: SweepVerb, body: object = {}): Promise<SteeredSweep> {
    return postJson(`${sweepPath(id)}:${verb}`, body);
  },
  /** The server deletes the sweep after `delay` seconds; until then `undelete` keeps it. */
  async deleteSweep(id: string, delay: number): Promise<DeletedSweep> {
    const response = await request(`${sweepPath(id)}?delay=${delay}`, { method: 'DELETE' });
    return (await response.json()) as DeletedSweep;
  },
  async tokens(signal?: AbortSignal): Promise<AccessToken[]> {
    return (await getJson<{ tokens: AccessToken[] }>('/tokens', signal)).tokens;
  },
  /** The only answer with the secret. */
  createToken(token: NewToken): Promise<CreatedToken> {
    return postJson('/tokens', token);
  },
  async revokeToken(name: string): Promise<RevokedToken> {
    const response = await request(`/tokens/${encodeURIComponent(name)}`, { method: 'DELETE' });
    return (await response.json()) as RevokedToken;
  },
  /** The name and the role of this browser's token. */
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
  async resolved(id: string, signal?: AbortSignal): Promise<AnyObject> {
    return (await getJson<ResolvedSweep>(`${sweepPath(id)}/resolved`, signal)).resolved;
  },
  /** The page of a sweep as one HTML file. */
  async report(id: string): Promise<Blob> {
    return (await request(`${sweepPath(id)}/report`)).blob();
  },
  failures(id: string, signal?: AbortSignal): Promise<Failures> {
    return getJson(`${sweepPath(id)}/failures`, signal);
  },
  /** The newest actions of users on a sweep. */
  activity(id: string, most: number, signal?: AbortSignal): Promise<Activity> {
    return getJson(`${sweepPath(id)}/activity?page_size=${most}`, signal);
  },
  /** The clones and promotions of a sweep, at most `most` of them and a few more. */
  async lineage(id: string, most: number, signal?: AbortSignal): Promise<Branch[]> {
    const branches: Branch[] = [];
    let token = '';
    do {
      const query = token && `?${new URLSearchParams({ page_token: token })}`;
      const page: Lineage = await getJson(`${sweepPath(id)}/lineage${query}`, signal);
      branches.push(...page.branches);
      token = page.next_page_token;
    } while (token && branches.length < most);
    return branches;
  },
  checkpoint(name: CheckpointName, signal?: AbortSignal): Promise<CheckpointDetail> {
    return getJson(checkpointPath(name), signal);
  },
  /** A piece of a file of a checkpoint, from a byte on, and the size of the file. */
  async checkpointFile(
    name: CheckpointName,
    file: string,
    offset: number,
    signal?: AbortSignal,
  ): Promise<{ bytes: Uint8Array<ArrayBuffer>; size: number }> {
    const query = new URLSearchParams({ file, offset: String(offset), limit: String(4 << 20) });
    const response = await request(
      `${checkpointPath(name)}/content?${query}`,
      signal ? { signal } : undefined,
    );
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { bytes, size: Number(response.headers.get('X-File-Size') ?? bytes.length) };
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
