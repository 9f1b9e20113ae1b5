import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { measuredWorld } from '../mock/measured';
import { conditionalWorld, frontWorld, smallWorld } from '../mock/scenarios';
import { usageWorld } from '../mock/usage';
import type { World } from '../mock/world';
import { Harness } from './harness';

const web = createRequire(new URL('../../../web/package.json', import.meta.url));
const axe = readFileSync(web.resolve('axe-core/axe.min.js'), 'utf8');

const harness = new Harness();

interface Violation {
  id: string;
  nodes: { target: string[] }[];
}

interface Axe {
  run(options: { resultTypes: string[] }): Promise<{ violations: Violation[] }>;
}

/** The rules of axe that the page breaks, each with the elements that break it. */
async function findViolations(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate(() =>
    // Without this option, axe describes every element that breaks no rule.
    (window as unknown as { axe: Axe }).axe.run({ resultTypes: ['violations'] }),
  );
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(', ')}`,
  );
}

function tokensWorld(): World {
  const world = smallWorld();
  world.tokens.push({ name: 'ada', role: 'admin', expires: null, expired: false });
  world.tokens.push({
    name: 'bob',
    role: 'viewer',
    expires: '2026-01-01T00:00:00Z',
    expired: true,
  });
  return world;
}

function deletedSoonWorld(): World {
  const world = smallWorld();
  world.changeSweep('s1', 'completed', 'all trials have ended');
  world.scheduleDeletion('s1', 600);
  return world;
}

const pages: [name: string, world: () => World, path: string, ready: string][] = [
  ['the list of sweeps', smallWorld, '/', 'main tbody tr'],
  ['a sweep', smallWorld, '/sweeps/s1', '[data-testid=curves][data-points]'],
  ['a sweep without matching trials', smallWorld, '/sweeps/s1?q=lr%3E900', '.empty-note'],
  ['the history of a sweep', smallWorld, '/sweeps/s1?view=history', '[data-testid=history]'],
  ['parallel coordinates', conditionalWorld, '/sweeps/s1?view=parallel', 'canvas[data-strands]'],
  ['a front', frontWorld, '/sweeps/s1', '[data-testid=front] tbody tr'],
  ['a sweep file', smallWorld, '/sweeps/s1?tab=file', '[data-testid=file]'],
  ['a trial', smallWorld, '/sweeps/s1/trials/9', '[data-testid=decisions]'],
  ['a failed trial', smallWorld, '/sweeps/s1/trials/8', '.failure-log'],
  ['the executors', smallWorld, '/executors', 'main tbody tr'],
  ['a new sweep', smallWorld, '/new', '.editor-keys button'],
  ['tokens', tokensWorld, '/tokens', 'main tbody tr'],
  ['a sweep that will be deleted', deletedSoonWorld, '/sweeps/s1', '[data-testid=deletion]'],
  ['the queue', usageWorld, '/queue', 'main tbody tr'],
];

// A page is loaded once, because loading takes longer than axe.
describe('axe finds nothing in light and dark, narrow and wide,', () => {
  it.each(pages)('on the page of %s', async (_, world, path, ready) => {
    const page = await harness.open(await harness.serve(world()), path);
    await page.locator(ready).first().waitFor({ state: 'attached' });
    await page.evaluate(axe);
    for (const width of [390, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const violations = await findViolations(page);
        expect({ width, colorScheme, violations }).toEqual({ width, colorScheme, violations: [] });
      }
    }
  });
});

describe('on paper', () => {
  it('a sweep has no controls, and its table is not cut', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.locator('tr[data-trial]').first().waitFor();
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('button', { name: 'Kill…' }).count()).toBe(0);
    expect(await page.locator('header.top').isVisible()).toBe(false);
    const table = page.locator('.trials-scroll');
    expect(await table.evaluate((box) => getComputedStyle(box).overflowY)).toBe('visible');
  });

  it('a dark page is light, and a long table has its first rows', async () => {
    const world = measuredWorld(400, 5);
    const dark = { colorScheme: 'dark' } as const;
    const page = await harness.open(await harness.serve(world), '/sweeps/big', dark);
    await page.locator('[data-testid=curves][data-density="400"]').waitFor();
    await page.emulateMedia({ media: 'print', ...dark });
    await page.getByText('The first 100 of 400 trials.').waitFor();
    expect(await page.locator('tr[data-trial]').count()).toBe(100);
    const ink = await page.locator('h1').evaluate((title) => getComputedStyle(title).color);
    expect(ink).toBe('rgb(0, 0, 0)');
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    expect(height).toBeLessThan(6000);
  });
});
