import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import {
  chromium,
  type Browser,
  type BrowserContextOptions,
  type Locator,
  type Page,
} from 'playwright-core';
import { afterEach, expect } from 'vitest';

import { MockServer, token } from '../mock/server';
import type { World } from '../mock/world';

const pages =
  process.env.ATTUNE_WEB_DIST ?? fileURLToPath(new URL('../../../web/dist', import.meta.url));
const waitMs = 20_000;

// Debian's Chromium loads a page of its own for the address bar of each window, which costs as much as
// the page under test, and keeps a process for the next page. Chromium takes only the last list of
// features, so this one replaces Playwright's; the last two lines are from there.
const disabledFeatures = [
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'SpareRendererForSitePerProcess'],
  ...['AimEnabled', 'NetworkTimeServiceQuerying', 'OptimizationHints', 'PaintHolding'],
  ...['PreconnectToSearch'],
];

/** The Chromium of all test files that this process runs; it ends with the process. */
let browser: Promise<Browser> | undefined;

async function launchBrowser(): Promise<Browser> {
  if (!existsSync(join(pages, 'index.html')))
    throw new Error(`no page in ${pages}: build it first`);
  return chromium.launch({
    executablePath: process.env.ATTUNE_CHROMIUM ?? '/usr/bin/chromium',
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      `--disable-features=${disabledFeatures.join()}`,
    ],
  });
}

/** Opens a server and a page for each test, and closes them after it. */
export class Harness {
  private readonly opened: { close(): Promise<void> }[] = [];
  private complaints: string[] = [];

  constructor() {
    afterEach(async () => {
      for (const each of this.opened.splice(0).reverse()) await each.close();
      // The console shows requests that the Content-Security-Policy blocks, and exceptions.
      expect(this.complaints.splice(0)).toEqual([]);
    });
  }

  async serve(world: World): Promise<MockServer> {
    const server = await MockServer.start(world, pages);
    this.opened.push(server);
    return server;
  }

  /** Opens a page that is signed in and shows a path. */
  async open(server: MockServer, path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.stranger(options);
    const host = new URL(server.url).hostname;
    await page
      .context()
      .addCookies([{ name: server.cookie, value: token, domain: host, path: '/' }]);
    await page.goto(server.url + path);
    return page;
  }

  /** Opens a page in a browser that has no token yet. */
  async stranger(options: BrowserContextOptions = {}): Promise<Page> {
    browser ??= launchBrowser();
    const launched = await browser;
    const context = await launched.newContext({
      viewport: { width: 1440, height: 900 },
      // The turning icon of running trials draws 60 frames a second.
      reducedMotion: 'reduce',
      ...options,
    });
    this.opened.push(context);
    context.setDefaultTimeout(waitMs);
    const page = await context.newPage();
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('console', (message) => {
      // The page shows a refused request, and tests of refusals check the page.
      const expected = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !expected) this.complaints.push(message.text());
    });
    return page;
  }
}

/** The row of a trial in the table. */
export const row = (page: Page, trial: number) => page.locator(`tr[data-trial="${trial}"]`);

/** Returns the numbers of the trials whose rows are in the document. */
export async function rowNumbers(page: Page): Promise<number[]> {
  return page
    .locator('tr[data-trial]')
    .evaluateAll((rows) => rows.map((row) => Number((row as HTMLElement).dataset.trial)));
}

export const curves = (page: Page) => page.getByTestId('curves');

/** Waits until the chart says that it has drawn this number of points. */
export async function waitForPoints(page: Page, points: number): Promise<void> {
  await page.locator(`[data-testid=curves][data-points="${points}"]`).waitFor();
}

export function pointsOf(world: World, sweep: string): number {
  return world.trialsOf(sweep).reduce((sum, trial) => sum + trial.history.length, 0);
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Waits until an element no longer moves, and returns its box. */
export async function settledBox(locator: Locator): Promise<Box> {
  let box: Box | undefined;
  const isSettled = async (): Promise<boolean> => {
    const before = box;
    box = (await locator.boundingBox()) ?? undefined;
    return box !== undefined && JSON.stringify(box) === JSON.stringify(before);
  };
  await expect.poll(isSettled, { timeout: 20_000 }).toBe(true);
  return box as Box;
}

/** Drags along an axis, between shares of its height from above. */
export async function brush(
  page: Page,
  grip: Locator,
  from: number,
  to: number,
  moves = 4,
): Promise<void> {
  const box = await settledBox(grip);
  const x = box.x + box.width / 2;
  await page.mouse.move(x, box.y + from * box.height);
  await page.mouse.down();
  await page.mouse.move(x, box.y + to * box.height, { steps: moves });
  await page.mouse.up();
}

/** Moves the mouse down a drawing, at a share of its width, until it points at a trial. */
export async function pointAtFirst(page: Page, drawing: Locator, column: number): Promise<void> {
  const box = await settledBox(drawing);
  for (let y = box.y + 4; y < box.y + box.height; y += 10) {
    await page.mouse.move(box.x + column * box.width, y);
    if ((await page.locator('.plot-tip, tr.hovered').count()) > 0) return;
  }
  throw new Error('nothing in the drawing answers to the mouse');
}
