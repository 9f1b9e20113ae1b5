import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import type { Config, Sweep } from '../../../web/src/api/contract';
import { brush, Harness, rowNumbers } from './harness';

const binary = process.env.ATTUNE_BINARY;
const startMs = 30_000;

const sweepFile = {
  apiVersion: 'attune/v1',
  kind: 'Sweep',
  name: 'told',
  metric: { name: 'loss', mode: 'min' },
  parameters: {
    optimizer: { values: ['sgd', 'adamw'] },
    lr: { min: 0.001, max: 1, scale: 'log' },
    momentum: { min: 0.5, max: 0.99, when: { optimizer: 'sgd' } },
  },
  searcher: { name: 'random', seed: 1 },
  scheduler: { name: 'fifo', max: 1 },
  failure: { max_restarts: 0 },
  stop: { max_trials: 20 },
};

/** Reads all data from a Unix socket. */
async function readSocket(path: string): Promise<string> {
  let text = '';
  for await (const part of connect(path)) text += String(part);
  return text;
}

/** The real `attune` server with its page, and a sweep whose trials this test runs. */
class Server {
  private constructor(
    readonly url: string,
    readonly token: string,
    private readonly process: ChildProcess,
    private readonly folder: string,
  ) {}

  static async start(path: string): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), 'attune-page-'));
    const ports = ['--port', '0', '--rpc-port', '0'];
    const process = spawn(path, ['serve', '--data-dir', folder, ...ports], { stdio: 'ignore' });
    const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
    const ready = async (): Promise<string> => {
      const answer = await readSocket(join(folder, 'server.sock'));
      const url = (JSON.parse(answer) as { http: string }).http;
      const { ok } = await fetch(`${url}/readyz`);
      if (!ok) throw new Error(`${url} is not ready`);
      return url;
    };
    try {
      const url = await vi.waitFor(ready, { timeout: startMs, interval: 50 });
      return new Server(url, read('token').trim(), process, folder);
    } catch (error) {
      process.kill('SIGKILL');
      throw error;
    }
  }

  async close(): Promise<void> {
    const gone = new Promise((done) => this.process.once('exit', done));
    this.process.kill('SIGTERM');
    await gone;
    rmSync(this.folder, { recursive: true });
  }

  /** The path of a file that is deleted with the server's data. */
  inFolder(name: string): string {
    return join(this.folder, name);
  }

  async post<T>(path: string, body: object = {}): Promise<T> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Asks for a trial and ends it: with a result, or as failed without one. */
  async tell(sweep: string, loss: number | 'nan' | undefined): Promise<Config> {
    const asked = await this.post<{ trial: number; epoch: number; config: Config }>(
      `/sweeps/${sweep}/trials:ask`,
    );
    const tell = `/sweeps/${sweep}/trials/${asked.trial}:tell`;
    const { epoch } = asked;
    if (loss !== undefined) await this.post(tell, { epoch, step: 1, metrics: { loss } });
    const state = loss === undefined ? 'failed' : 'completed';
    await this.post(tell, { epoch, state });
    return asked.config;
  }
}

const harness = new Harness();

describe.skipIf(!binary)('a real server', () => {
  let server: Server;
  beforeAll(async () => {
    server = await Server.start(binary as string);
  });
  afterAll(() => server?.close());

  it('draws its trials in each view, and a brush selects some of them', async () => {
    const { id } = await server.post<Sweep>('/sweeps', sweepFile);
    const configs: Config[] = [];
    for (const loss of [0.5, 0.3, 'nan', 0.4, undefined, 0.2, 0.6, 0.1] as const)
      configs.push(await server.tell(id, loss));

    const page = await harness.stranger();
    await page.goto(`${server.url}/login?token=${server.token}`);
    await page.goto(`${server.url}/sweeps/${id}?sort=number`);
    await page.locator('[data-testid=curves][data-lines="7"]').waitFor();
    await page.getByRole('button', { name: 'History' }).click();
    await page.locator('[data-testid=history][data-dots="8"]').waitFor();
    await page.getByText('1 reported NaN or infinity, 1 failed before a report.').waitFor();
    await page.getByLabel('by').selectOption('time of end');
    await page.locator('[data-testid=history][data-dots="8"]').waitFor();

    await page.getByRole('button', { name: 'Parallel' }).click();
    await page.locator('canvas[data-strands="8"]').waitFor();
    await brush(page, page.locator('.grip[data-axis="config.momentum"]'), 0.99, 0.97);
    await page.getByRole('button', { name: 'Clear momentum absent' }).waitFor();
    const without = configs.flatMap((config, i) => ('momentum' in config ? [] : [i]));
    expect(without.length).toBeGreaterThan(0);
    expect(without.length).toBeLessThan(configs.length);
    await page.locator(`canvas[data-chosen="${without.length}"]`).waitFor();
    expect(await rowNumbers(page)).toEqual(without);

    // Later results appear without a reload.
    await page.getByRole('button', { name: 'Clear momentum absent' }).click();
    await server.tell(id, 0.05);
    await page.locator('canvas[data-strands="9"]').waitFor();
  });

  it('makes a report, which a browser opens as a file', async () => {
    const { id } = await server.post<Sweep>('/sweeps', { ...sweepFile, name: 'a < b </title>' });
    for (const loss of [0.5, 0.3, undefined, 0.4]) await server.tell(id, loss);
    const page = await harness.stranger();
    await page.goto(`${server.url}/login?token=${server.token}`);
    await page.goto(`${server.url}/sweeps/${id}`);
    await page.locator('[data-testid=curves][data-lines="3"]').waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download report' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe(`${id}.html`);
    await page.getByText('a browser opens it without a server').waitFor();

    const report = await harness.stranger();
    const requests: string[] = [];
    report.on('request', (request) => requests.push(request.url()));
    const file = server.inFolder('report.html');
    await download.saveAs(file);
    await report.goto(pathToFileURL(file).href);
    await report.locator('[data-testid=curves][data-lines="3"]').waitFor();
    expect(await report.title()).toMatch(/^a < b <\/title> · Attune \d/);
    await report.getByLabel('Filter trials').fill('failed');
    await report.getByText('1 of 4', { exact: true }).waitFor();
    await report.getByRole('link', { name: 'trial 1' }).first().click();
    await report.getByRole('heading', { name: 'Trial 1' }).waitFor();
    expect(requests).toHaveLength(1);
  });
});
