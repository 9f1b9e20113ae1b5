// Measures the page of a sweep in Chromium. Run it in web/, after `npm run build`:
//
//   npx vite-node ../benchmarks/page/measure.ts -- [--trials 10000] [--points 200] [--dist DIR]
//   npx vite-node ../benchmarks/page/measure.ts -- --url http://127.0.0.1:8080 --token TOKEN --sweep s1
//
// Without --url it measures against the mock server of tests/web, and also how soon a report is painted.
// --shot FOLDER saves screenshots. Times are in milliseconds.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { measuredWorld } from '../../tests/web/mock/measured';
import { MockServer, token as mockToken } from '../../tests/web/mock/server';
import type { World } from '../../tests/web/mock/world';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core') as typeof import('playwright-core');
type Page = import('playwright-core').Page;

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' },
    token: { type: 'string', default: mockToken },
    sweep: { type: 'string', default: 'big' },
    trials: { type: 'string', default: '10000' },
    points: { type: 'string', default: '200' },
    asha: { type: 'boolean', default: false },
    dist: { type: 'string', default: fileURLToPath(new URL('../../web/dist', import.meta.url)) },
    shot: { type: 'string' },
    dark: { type: 'boolean', default: false },
  },
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
});
const trials = Number(options.trials);
const waitMs = 120_000;

interface Watch {
  tasks: { start: number; duration: number }[];
  frames: number[];
  marks: Record<string, number>;
}

// Runs in the page before its scripts: notes long tasks, frames, and when something is painted first.
function watchPage(trials: number): void {
  const watch: Watch = { tasks: [], frames: [], marks: {} };
  Object.assign(window, { watch });
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      watch.tasks.push({ start: startTime, duration });
  }).observe({ type: 'longtask', buffered: true });
  const mark = (name: string, is: boolean): void => {
    if (is) watch.marks[name] ??= performance.now();
  };
  const frame = (): void => {
    const now = performance.now();
    watch.frames.push(now);
    const drawn = document.querySelector<HTMLElement>('[data-testid=curves]')?.dataset ?? {};
    const strokes = Number(drawn.strokes ?? drawn.lines ?? 0);
    mark('first row', document.querySelector('tr[data-trial]') !== null);
    mark('best curves', strokes >= Math.min(100, trials));
    mark('all curves', Number(drawn.density || drawn.lines || 0) >= trials);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

const round = (value: number): number => Math.round(value * 10) / 10;

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN);
}

/** The time from an action until a condition holds and three frames in a row are short. */
function settle(page: Page, act: string, is = 'true'): Promise<number> {
  return page.evaluate(
    ([act, is]) =>
      new Promise<number>((done, fail) => {
        const started = performance.now();
        (0, eval)(act as string);
        let calm = 0;
        let calmAt = 0;
        let before = performance.now();
        const frame = (): void => {
          const now = performance.now();
          if (now - started > 60_000) return fail(new Error(`it does not settle: ${is}`));
          if (now - before < 30 && (0, eval)(is as string)) {
            if (calm === 0) calmAt = now;
            calm += 1;
          } else calm = 0;
          before = now;
          if (calm === 3) done(calmAt - started);
          else requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    [act, is],
  );
}

const watchOf = (page: Page): Promise<Watch> =>
  page.evaluate(() => (window as unknown as { watch: Watch }).watch);

async function longestTask(page: Page, since: number): Promise<number> {
  const { tasks } = await watchOf(page);
  return Math.round(
    tasks
      .filter(({ start }) => start >= since)
      .reduce((most, { duration }) => Math.max(most, duration), 0),
  );
}

const now = (page: Page): Promise<number> => page.evaluate(() => performance.now());

async function measureBrush(page: Page): Promise<Record<string, number>> {
  const grip = page.locator('.grip[data-axis^="config."]').first();
  const box = await grip.boundingBox();
  if (!box) return {};
  const x = box.x + box.width / 2;
  await page.mouse.move(x, box.y + 0.1 * box.height);
  await page.mouse.down();
  const since = await now(page);
  const moves = 60;
  for (let i = 1; i <= moves; i += 1) {
    await page.mouse.move(x, box.y + (0.1 + (0.7 * i) / moves) * box.height);
    await page.waitForTimeout(16);
  }
  await page.mouse.up();
  const { frames } = await watchOf(page);
  const within = frames.filter((at) => at >= since);
  const lengths = within.slice(1).map((at, i) => at - (within[i] as number));
  return {
    'brush: frame, p95': quantile(lengths, 0.95),
    'brush: frame, worst': quantile(lengths, 1),
    'brush: longest task': await longestTask(page, since),
  };
}

async function measureReports(page: Page, world: World): Promise<Record<string, number>> {
  const trial = world.trialsOf('big').findLast(({ state }) => state === 'running');
  if (!trial) return {};
  const times: number[] = [];
  const since = await now(page);
  for (let i = 0; i < 10; i += 1) {
    const painted = page.evaluate(
      (number) =>
        new Promise<number>((done) => {
          const text = (): string =>
            (document.querySelector<HTMLElement>('[data-testid=curves]')?.dataset.points ?? '') +
            (document.querySelector(`tr[data-trial="${number}"]`)?.textContent ?? '');
          const before = text();
          const frame = (): void => {
            if (text() !== before) done(Date.now());
            else requestAnimationFrame(frame);
          };
          requestAnimationFrame(frame);
        }),
      trial.number,
    );
    await page.waitForTimeout(700);
    const sent = Date.now();
    world.report(trial, trial.step + 1, { accuracy: 0.5 + i / 1000, loss: 1 });
    times.push((await painted) - sent);
  }
  return {
    'report to paint, median': quantile(times, 0.5),
    'report to paint, worst': quantile(times, 1),
    'reports: longest task': await longestTask(page, since),
  };
}

async function main(): Promise<void> {
  let world: World | undefined;
  let url = options.url;
  let mock: MockServer | undefined;
  if (!url) {
    world = measuredWorld(trials, Number(options.points), options.asha);
    mock = await MockServer.start(world, options.dist);
    url = mock.url;
  }
  const browser = await chromium.launch({
    executablePath: process.env.ATTUNE_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  const colorScheme = options.dark ? 'dark' : 'light';
  const viewport = { width: 1440, height: 900 };
  // The conditions below are texts, which the policy of the page forbids to evaluate.
  const context = await browser.newContext({ viewport, colorScheme, bypassCSP: true });
  context.setDefaultTimeout(waitMs);
  await context.request.get(`${url}/login?token=${options.token}`);
  const sweep = `${url}/sweeps/${options.sweep}`;

  // The first visit fills the cache of the mock and of the browser's compiler.
  const warm = await context.newPage();
  await warm.addInitScript(watchPage, trials);
  await warm.goto(sweep);
  await warm.waitForFunction('window.watch.marks["all curves"]', undefined, { timeout: waitMs });
  await warm.close();

  const page = await context.newPage();
  await page.addInitScript(watchPage, trials);
  const network = await context.newCDPSession(page);
  await network.send('Network.enable');
  await network.send('Network.setCacheDisabled', { cacheDisabled: true });
  let bytes = 0;
  network.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
  network.on('Network.dataReceived', () => undefined);
  const shot = async (name: string): Promise<void> => {
    if (options.shot)
      await page.screenshot({ path: join(options.shot, `${name}-${colorScheme}.png`) });
  };

  await page.goto(sweep);
  const reached = (mark: string) =>
    page.waitForFunction((name) => (window as never as { watch: Watch }).watch.marks[name], mark);
  await reached('best curves');
  const firstBytes = bytes;
  await reached('all curves');
  await settle(page, '');
  const { marks } = await watchOf(page);
  const result: Record<string, number> = Object.fromEntries(
    Object.entries(marks).map(([name, at]) => [name, Math.round(at)]),
  );
  result['kB until the best curves'] = Math.round(firstBytes / 1000);
  result['kB in all'] = Math.round(bytes / 1000);
  result['loading: longest task'] = await longestTask(page, 0);
  result['height of the page, px'] = await page.evaluate(
    () => document.documentElement.scrollHeight,
  );
  await shot('curves');

  const since = await now(page);
  const density = `(() => { const d = document.querySelector('[data-testid=curves]').dataset; return Number(d.density || d.lines) >= ${trials} })()`;
  const all = `(() => Number(document.querySelector('[data-testid=curves]').dataset.lines) >= ${trials})()`;
  const input = `document.querySelector('.filter input')`;
  const type = (text: string): string =>
    `(() => { const i = ${input}; i.value = ${JSON.stringify(text)}; i.dispatchEvent(new Event('input', { bubbles: true })); })()`;
  const sortBy = (label: string): string =>
    `[...document.querySelectorAll('button.sort')].find((b) => b.textContent.startsWith('${label}')).click()`;
  result['sort a column'] = round(
    await settle(page, sortBy('lr'), `!!document.querySelector('th[aria-sort=ascending]')`),
  );
  result['sort by the reason'] = round(await settle(page, sortBy('reason')));
  result['set a filter'] = round(await settle(page, type('lr<0.01'), `!(${all})`));
  await page.waitForTimeout(300);
  await shot('filtered');
  result['clear a filter'] = round(await settle(page, type(''), all));
  const log = `document.querySelector('.check input').click()`;
  result['log scale'] = round(await settle(page, log, density));
  await shot('log');
  await settle(page, log, density);
  result['actions: longest task'] = await longestTask(page, since);
  if (world) Object.assign(result, await measureReports(page, world));

  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const viewed = await now(page);
  await press('History');
  await settle(
    page,
    '',
    `Number(document.querySelector('[data-testid=history]')?.dataset.dots) > 0`,
  );
  result['history: longest task'] = await longestTask(page, viewed);
  await shot('history');
  const across = await now(page);
  await press('Parallel');
  await settle(page, '', `!!document.querySelector('canvas[data-strands]')`);
  result['parallel: longest task'] = await longestTask(page, across);
  await shot('parallel');
  Object.assign(result, await measureBrush(page));
  await page.waitForTimeout(300);
  await shot('brushed');

  for (const [name, value] of Object.entries(result)) console.log(`${name.padEnd(28)} ${value}`);
  await browser.close();
  await mock?.close();
}

await main();
process.exit(0);
