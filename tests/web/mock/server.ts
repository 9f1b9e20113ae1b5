import { readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { gzipSync } from 'node:zlib';

import { curvesType } from '../../../web/src/api/curves';
import type { AttuneEvent } from '../../../web/src/api/events';
import type { NewToken, Problem, TrialDetail } from '../../../web/src/api/contract';
import { leastZipped, zipped } from './curve_pages';
import { BadQuery, listedTrials } from './listing';
import { toWire } from './random';
import { branchesOf, checkpointFile, checkpointOf, failuresOf, resolvedOf } from './analysis';
import { created, edited, simulated, validated } from './files';
import { Refusal, deleteSweep, steer } from './steering';
import { noCost } from './no_cost';
import { logKey, type World } from './world';

export const token = 'test-token';

// Equal to the server's policy, so that a page that it blocks fails here, too.
const contentSecurityPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'";

const mimeTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
};

/** Serves docs/reference/rest-api.md from a World, and the files of the built page. */
export class MockServer {
  /** The answered requests, such as `GET /api/v1/sweeps`. */
  readonly requests: string[] = [];
  /** The bodies of requests that change something. */
  readonly bodies: unknown[] = [];
  private readonly server: Server;
  private readonly streams = new Set<ServerResponse>();

  private constructor(
    private readonly world: World,
    /** The folder of the built page. */
    readonly pages: string,
  ) {
    this.server = createServer((request, response) => this.answer(request, response));
  }

  static async start(world: World, pages: string, port = 0): Promise<MockServer> {
    const mock = new MockServer(world, pages);
    await new Promise<void>((done) => mock.server.listen(port, '127.0.0.1', done));
    return mock;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The name of the session cookie. */
  get cookie(): string {
    return `attune_session_${this.port}`;
  }

  private get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get openStreams(): number {
    return this.streams.size;
  }

  /** Closes every event stream, like a network failure. */
  dropStreams(): void {
    for (const stream of this.streams) stream.destroy();
  }

  async close(): Promise<void> {
    this.dropStreams();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    if (url.pathname === '/login') return this.login(url, request, response);
    if (url.pathname === '/logout') return this.logout(response);
    if (!url.pathname.startsWith('/api/v1/')) return this.file(url.pathname, response);
    const path = url.pathname.slice('/api/v1'.length);
    this.requests.push(`${request.method} ${path}${url.search}`);
    if (!request.headers.cookie?.includes(`${this.cookie}=${token}`)) {
      return problem(response, 401, 'Not authorised', 'No token, or a wrong one.');
    }
    if (this.world.role === 'viewer' && request.method !== 'GET') {
      return problem(response, 403, 'The token is read-only', 'The token has the role viewer.');
    }
    if (path.startsWith('/tokens')) return void this.answerTokens(path, request, response);
    if (path === '/events') return this.stream(url, request, response);
    if (path === '/session') {
      const { role } = this.world;
      return json(response, 200, { name: 'ada', role });
    }
    if (path === '/executors') return json(response, 200, { executors: this.world.executors });
    if (path === '/occupancy') {
      return json(response, 200, { time: new Date(), executors: this.world.occupancy });
    }
    if (path === '/timeline') return this.timeline(url, response);
    if (path === '/queue') {
      const { items, next } = page(this.world.queue, url);
      const total_size = this.world.queue.length;
      return json(response, 200, { gangs: items, total_size, next_page_token: next });
    }
    if (path === '/pilots') return json(response, 200, { fleets: this.world.pilots });
    const executor = /^\/executors\/([^/:]+):(drain|resume)$/.exec(path);
    if (executor) return void this.steerExecutor(executor, request, response);
    const file = /^\/sweeps(?::(validate|simulate))?$/.exec(path);
    if (file && request.method === 'POST')
      return void this.sweepFile(file[1], url, request, response);
    const sweeps = /^\/sweeps(?:\/([^/:]+)(\/[^:]*)?(?::(\w+))?)?$/.exec(path);
    if (!sweeps) return problem(response, 404, 'Not found', `There is no ${path}.`);
    const [, id, rest, verb] = sweeps;
    if (id === undefined) return this.listSweeps(url, response);
    if (!this.world.sweeps.has(id)) {
      return problem(response, 404, 'No such sweep', `There is no sweep ${id}.`);
    }
    if (request.method === 'DELETE') {
      const delay = Number(url.searchParams.get('delay') ?? 0);
      return json(response, 202, deleteSweep(this.world, id, delay));
    }
    if (verb === 'replay') return void this.replay(id, request, response);
    const steers = verb ?? (request.method === 'POST' ? 'enqueue' : undefined);
    if (steers) return void this.steer(id, rest ?? '', steers, url, request, response);
    return this.sweepPart(id, rest ?? '', url, request, response);
  }

  private async answerTokens(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { tokens } = this.world;
    if (request.method === 'GET') return json(response, 200, { tokens });
    if (request.method === 'DELETE') {
      const name = path.slice('/tokens/'.length);
      this.world.tokens = tokens.filter((each) => each.name !== name);
      return json(response, 200, { name, effect: 'revoked; its requests get 401' });
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { name, role = 'viewer' } = JSON.parse(Buffer.concat(chunks).toString()) as NewToken;
    if (tokens.some((each) => each.name === name))
      return problem(response, 409, 'Conflict', `${name} already has a token`);
    const made = { name, role, expires: '2027-01-01T00:00:00Z', expired: false };
    tokens.push(made);
    return json(response, 201, { ...made, secret: 'shown-only-once' });
  }

  private sweepPart(
    id: string,
    rest: string,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    if (rest === '') return json(response, 200, this.world.sweep(id));
    if (rest === '/trials') return this.listTrials(id, url, response);
    if (rest === '/importance') return this.importance(id, url, response);
    if (rest === '/cost') {
      return json(response, 200, this.world.costs.get(id) ?? { ...noCost, sweep: id });
    }
    if (rest === '/curves') {
      if (request.headers.accept?.includes(curvesType)) return this.packedCurves(id, url, response);
      return this.curves(id, url, response);
    }
    if (rest === '/resolved') return json(response, 200, resolvedOf(this.world, id));
    if (rest === '/failures') return json(response, 200, failuresOf(this.world, id));
    if (rest === '/activity') {
      const actions = this.world.actions.get(id) ?? [];
      return json(response, 200, { actions, next_page_token: '' });
    }
    if (rest === '/lineage')
      return json(response, 200, { branches: branchesOf(this.world, id), next_page_token: '' });
    const checkpoint = /^\/trials\/(\d+)\/checkpoints\/([\d-]+)(\/content)?$/.exec(rest);
    if (checkpoint) return this.checkpoint(id, checkpoint, url, response);
    const trial = /^\/trials\/(\d+)(\/logs|\/logged|\/schedule|\/environment)?$/.exec(rest);
    const found = trial && this.world.trialsOf(id)[Number(trial[1])];
    if (!found)
      return problem(response, 404, 'No such trial', `Sweep ${id} has no ${rest.slice(1)}.`);
    if (trial[2] === '/logs') return this.log(found, url, response);
    if (trial[2] === '/logged') {
      const after = Number(url.searchParams.get('after'));
      const points = this.world.logged.get(`${id}/${found.number}`) ?? [];
      return json(response, 200, { logged: points.filter(({ seq }) => seq > after) });
    }
    if (trial[2] === '/environment') {
      const attempt = Number(url.searchParams.get('attempt') ?? found.attempt_count);
      const executors = this.world.environments.get(`${id}/${found.number}/${attempt}`) ?? [];
      return json(response, 200, { attempt, executors });
    }
    if (trial[2] === '/schedule') {
      const alone = { schedule: [{ step: 0, trial: found.number, config: found.config }] };
      return json(response, 200, this.world.schedules.get(`${id}/${found.number}`) ?? alone);
    }
    return json(response, 200, found);
  }

  private checkpoint(
    id: string,
    [, number, name = '', content]: RegExpExecArray,
    url: URL,
    response: ServerResponse,
  ): void {
    const found = checkpointOf(this.world, id, Number(number), name);
    if (!found) return problem(response, 404, 'No such checkpoint', `There is no ${name}.`);
    if (!content) return json(response, 200, found);
    const file = checkpointFile(url.searchParams.get('file') ?? '');
    if (!file) return problem(response, 404, 'No such file', 'The checkpoint has no such file.');
    response.writeHead(200, {
      'Content-Type': 'application/octet-stream',
      'X-File-Size': file.length,
    });
    response.end(file.subarray(Number(url.searchParams.get('offset') ?? 0)));
  }

  private listSweeps(url: URL, response: ServerResponse): void {
    const newestFirst = [...this.world.sweeps.values()].reverse();
    const { items, next } = page(newestFirst, url);
    const sweeps = items.map(
      ({
        note: _note,
        file: _file,
        path: _path,
        parameters: _parameters,
        resolved_file: _now,
        resolved_file_as_sent: _sent,
        ...sweep
      }) => sweep,
    );
    json(response, 200, { sweeps, next_page_token: next });
  }

  private listTrials(id: string, url: URL, response: ServerResponse): void {
    try {
      json(response, 200, listedTrials(this.world, id, url.searchParams));
    } catch (error) {
      if (!(error instanceof BadQuery)) throw error;
      problem(response, 400, 'Bad request', error.message);
    }
  }

  // The message of the server for too few trials; otherwise the data of the test.
  private importance(id: string, url: URL, response: ServerResponse): void {
    const metric = url.searchParams.get('metric') ?? this.world.sweep(id).metric.name;
    const few = {
      metric,
      mode: 'max',
      step: 1,
      trials: 9,
      best: 0,
      reason: 'importance needs 20 trials',
      parameters: [],
    };
    json(response, 200, this.world.importances.get(metric) ?? few);
  }

  private timeline(url: URL, response: ServerResponse): void {
    const limit = Number(url.searchParams.get('limit') ?? 1000);
    json(response, 200, {
      since: url.searchParams.get('since'),
      until: new Date(),
      attempts: this.world.held.slice(0, limit),
      more: this.world.held.length > limit,
    });
  }

  // Two pages, if a sweep has several trials.
  private curves(id: string, url: URL, response: ServerResponse): void {
    const metric = url.searchParams.get('metric') ?? this.world.sweep(id).metric.name;
    const all = this.world.trialsOf(id);
    const half = Math.ceil(all.length / 2);
    const first = url.searchParams.get('page_token') === null;
    const page = first ? all.slice(0, half) : all.slice(half);
    const trials = page.map((trial) => {
      const { steps, values } = this.world.pointsOf(trial, metric);
      const first_step = steps[0];
      return {
        number: trial.number,
        steps,
        values: values.map(toWire),
        segments: first_step === undefined ? [] : [{ attempt: 1, first_step }],
        clones: this.world.clones.get(`${id}/${trial.number}`) ?? [],
      };
    });
    const next_page_token = first && half < all.length ? 'second' : '';
    json(response, 200, { metric, seq: this.world.seq, next_page_token, trials });
  }

  private packedCurves(id: string, url: URL, response: ServerResponse): void {
    const body = this.world.packed.answer(this.world, id, url.searchParams);
    response.writeHead(200, { 'Content-Type': curvesType, ...(body.zipped ? zipped : {}) });
    response.end(body.bytes);
  }

  private log(trial: TrialDetail, url: URL, response: ServerResponse): void {
    const ask = (name: string, otherwise: number): number =>
      Number(url.searchParams.get(name) ?? otherwise);
    const key = logKey(
      trial.sweep,
      trial.number,
      ask('attempt', trial.attempt_count),
      ask('rank', 0),
    );
    const bytes = Buffer.from(this.world.logs.get(key) ?? '');
    const wanted = ask('offset', -65536);
    const offset = Math.min(bytes.length, wanted < 0 ? Math.max(0, bytes.length + wanted) : wanted);
    const piece = bytes.subarray(offset, offset + ask('limit', 65536));
    response.writeHead(200, {
      'Content-Type': 'text/plain; charset=utf-8',
      'X-Log-Offset': offset,
      'X-Log-Size': bytes.length,
    });
    response.end(piece);
  }

  private async replay(
    id: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
    const replay = this.world.replays.get(id);
    if (replay) return json(response, 200, replay);
    problem(response, 422, 'Unprocessable', 'no trial has reported a result that counts');
  }

  private async steerExecutor(
    [, name, verb]: RegExpExecArray,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Record<string, unknown>;
    this.bodies.push(body);
    const executor = this.world.drain(name ?? '', verb === 'drain' ? body : null);
    if (!executor) return problem(response, 404, 'Not found', `there is no executor ${name}`);
    json(response, 202, { ...executor, effect: `${verb} was heard` });
  }

  private async steer(
    id: string,
    rest: string,
    verb: string,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const dryRun = url.searchParams.get('dry_run') === 'true';
    await this.change(request, response, dryRun ? 200 : 202, (text) => {
      const body = JSON.parse(text || '{}') as Record<string, unknown>;
      if (!dryRun) this.bodies.push(body);
      if (verb === 'edit') return edited(this.world, id, body, dryRun);
      return steer(this.world, id, rest, verb, body);
    });
  }

  /** Creates, checks or simulates a sweep file. */
  private async sweepFile(
    verb: string | undefined,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const key = String(request.headers['idempotency-key']);
    await this.change(request, response, verb ? 200 : 201, (file) => {
      if (verb === 'validate') return validated(this.world, file);
      if (verb === 'simulate') return simulated(file, url.searchParams);
      return created(this.world, file, key);
    });
  }

  /** Answers a request with the result of its body, or with a refusal. */
  private async change(
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    answer: (body: string) => object,
  ): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    try {
      json(response, status, answer(Buffer.concat(chunks).toString()));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      problem(response, error.status, 'Refused', error.message, error.errors);
    }
  }

  private stream(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const sweep = url.searchParams.get('sweep');
    const from = request.headers['last-event-id'] ?? url.searchParams.get('after');
    // The same as in the server: only the last event of a fact carries its number.
    const write = (event: AttuneEvent, lastOfFact: boolean): void => {
      if (sweep !== null && 'sweep' in event && event.sweep !== sweep) return;
      const { kind, ...data } = event;
      const id = lastOfFact ? `id: ${event.seq}\n` : '';
      response.write(`${id}event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`);
    };
    if (Number(from ?? 0) > this.world.seq)
      return problem(response, 410, 'Gone', 'The log has no such event.');
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
    });
    response.write('retry: 50\n\n');
    if (from !== null && from !== undefined)
      for (const [event, last] of this.world.eventsAfter(Number(from))) write(event, last);
    const forget = this.world.onEvent(write);
    this.streams.add(response);
    response.on('close', () => {
      forget();
      this.streams.delete(response);
    });
  }

  private login(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const shown =
      url.searchParams.get('token') ?? request.headers.authorization?.slice('Bearer '.length);
    if (shown !== token) {
      return problem(response, 401, 'Not authorised', 'A wrong token.');
    }
    response.writeHead(302, {
      Location: '/',
      'Set-Cookie': `${this.cookie}=${token}; HttpOnly; SameSite=Strict; Path=/`,
    });
    response.end();
  }

  private logout(response: ServerResponse): void {
    response.writeHead(204, { 'Set-Cookie': `${this.cookie}=; Path=/; Max-Age=0` });
    response.end();
  }

  // A path that is not a file is a view of the page.
  private file(path: string, response: ServerResponse): void {
    const wanted = join(this.pages, normalize(path));
    const isFile =
      wanted.startsWith(this.pages) && statSync(wanted, { throwIfNoEntry: false })?.isFile();
    const name = isFile ? wanted : join(this.pages, 'index.html');
    response.writeHead(200, {
      'Content-Type': mimeTypes[extname(name)] ?? 'application/octet-stream',
      'Content-Security-Policy': contentSecurityPolicy,
    });
    const bytes = readFileSync(name);
    response.end(bytes);
  }
}

function page<T>(all: readonly T[], url: URL): { items: T[]; next: string } {
  const size = Number(url.searchParams.get('page_size') ?? 100);
  const from = Number(url.searchParams.get('page_token') ?? 0);
  const next = from + size < all.length ? String(from + size) : '';
  return { items: all.slice(from, from + size), next };
}

// The server compresses large answers.
function json(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  const isLarge = text.length > leastZipped;
  response.writeHead(status, { 'Content-Type': 'application/json', ...(isLarge ? zipped : {}) });
  response.end(isLarge ? gzipSync(text, { level: 1 }) : text);
}

function problem(
  response: ServerResponse,
  status: number,
  title: string,
  detail: string,
  errors?: Problem['errors'],
): void {
  response.writeHead(status, { 'Content-Type': 'application/problem+json' });
  response.end(JSON.stringify({ type: 'about:blank', title, status, detail, errors }));
}
