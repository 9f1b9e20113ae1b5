import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { measuredWorld } from '../mock/measured';
import { smallWorld } from '../mock/scenarios';
import { Harness, row, rowNumbers, settledBox } from './harness';

const harness = new Harness();

const curves = (page: Page, attributes: string) =>
  page.locator(`[data-testid=curves]${attributes}`);

describe('a sweep of many trials', () => {
  it('is read in parts: first rows, best curves, other rows, all curves', async () => {
    const server = await harness.serve(measuredWorld(1500, 20));
    const page = await harness.open(server, '/sweeps/big');
    await curves(page, '[data-density="1500"]').waitFor();
    const reads = server.requests.filter((each) => /\/(trials|curves)\?/.test(each));
    expect(reads.map((each) => each.replace('GET /sweeps/big/', ''))).toEqual([
      'trials?order_by=best&page_size=200',
      'curves?points=256&best=100',
      'trials?page_size=1000',
      expect.stringMatching(/^trials\?page_size=1000&page_token=1000-/),
      'curves?points=64',
      'curves?points=64&page_token=1000',
    ]);
  });

  it('has its curves as a picture with lines above, which a filter splits and sorting does not touch', async () => {
    const world = measuredWorld(1500, 20);
    const page = await harness.open(await harness.serve(world), '/sweeps/big');
    await curves(page, '[data-density="1500"][data-lines="1500"][data-strokes="120"]').waitFor();
    await page.getByText('Lines: 120 trials, the best in accuracy and those that train.').waitFor();
    const sgd = world.trialsOf('big').filter(({ config }) => config.optimizer === 'sgd').length;
    await page.getByLabel('Filter trials').fill('optimizer=sgd');
    await curves(page, `[data-density="1500"][data-lines="${sgd}"]`).waitFor();
    await page.getByRole('columnheader', { name: 'lr' }).getByRole('button').click();
    await page.locator('th[aria-sort=ascending]').getByText('lr').waitFor();
    expect(await curves(page, '').getAttribute('data-density')).toBe('1500');
    // Few trials are lines.
    await page.getByLabel('Filter trials').fill('trial<40');
    await curves(page, '[data-lines="40"][data-strokes="40"]').waitFor();
    await page.getByLabel('log scale').check();
    await curves(page, '[data-density="1500"]').waitFor();
  });

  it('is not higher than its table', async () => {
    const page = await harness.open(await harness.serve(measuredWorld(1500, 5)), '/sweeps/big');
    await page.getByText('1,500', { exact: true }).first().waitFor();
    await curves(page, '[data-density="1500"]').waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(2000);
  });

  it('renders a row again only if its trial has changed', async () => {
    const world = measuredWorld(1500, 5);
    const page = await harness.open(await harness.serve(world), '/sweeps/big?q=running');
    await curves(page, '[data-density="1500"]').waitFor();
    await page.getByTestId('stream').getByText('live').waitFor();
    await row(page, 1499).waitFor();
    await page.evaluate(() => {
      const changed = new Set<string>();
      Object.assign(window, { changed });
      const note = (mutations: MutationRecord[]): void => {
        for (const { target } of mutations) {
          const element = target instanceof Element ? target : target.parentElement;
          changed.add(element?.closest('tr')?.dataset.trial ?? 'the table');
        }
      };
      const options = { subtree: true, childList: true, characterData: true, attributes: true };
      const body = document.querySelector('.trials tbody') as Element;
      new MutationObserver(note).observe(body, options);
    });
    world.report(world.trial('big', 1499), 4, { accuracy: 0.01, loss: 1 });
    await row(page, 1499).getByRole('cell', { name: '4', exact: true }).waitFor();
    const changed = await page.evaluate(() => [
      ...(window as unknown as { changed: Set<string> }).changed,
    ]);
    expect(changed).toEqual(['1499']);
  });

  it('is read in more detail where the user zooms', async () => {
    const server = await harness.serve(measuredWorld(400, 300));
    const page = await harness.open(server, '/sweeps/big');
    await curves(page, '[data-density="400"]').waitFor();
    const over = await settledBox(page.locator('.u-over'));
    const detail = page.waitForRequest(/first_step=\d+&last_step=\d+.*trials=/);
    await page.mouse.move(over.x + 0.4 * over.width, over.y + 50);
    await page.mouse.down();
    await page.mouse.move(over.x + 0.6 * over.width, over.y + 60, { steps: 4 });
    await page.mouse.up();
    const query = new URL((await detail).url()).searchParams;
    expect(query.get('points')).toBe('512');
    expect(Number(query.get('first_step'))).toBeGreaterThan(90);
    expect(Number(query.get('last_step'))).toBeLessThan(210);
  });
});

describe('a sweep of more trials than the page keeps', () => {
  it('is sorted and filtered by the server, and read as it is scrolled', async () => {
    const world = measuredWorld(12_000, 3);
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/big?sort=number');
    await row(page, 0).waitFor();
    await page.getByText('12,000', { exact: true }).first().waitFor();
    expect(server.requests.filter((each) => each.includes('/trials?')).length).toBeLessThan(4);
    await page
      .getByRole('region', { name: 'Trials;' })
      .evaluate((table) => table.scrollBy(0, 34_000));
    await row(page, 1005).waitFor();
    await page.getByRole('region', { name: 'Trials;' }).evaluate((table) => table.scrollTo(0, 0));
    await row(page, 0).waitFor();

    await page.getByRole('columnheader', { name: 'lr' }).getByRole('button').click();
    await page.locator('th[aria-sort=ascending]').getByText('lr').waitFor();
    const rates = world.trialsOf('big').map(({ config }) => Number(config.lr));
    const lowest = rates.indexOf(Math.min(...rates));
    await row(page, lowest).waitFor();
    const shown = (await rowNumbers(page)).map((number) => rates[number] as number);
    expect(shown).toEqual([...shown].sort((a, b) => a - b));

    await page.getByLabel('Filter trials').fill('width=8 OR width=16');
    const kept = world.trialsOf('big').filter(({ config }) => Number(config.width) <= 16).length;
    await page.getByText(`${kept.toLocaleString('en-GB')} of 12,000`, { exact: true }).waitFor();
    await curves(page, '[data-density="12000"]').waitFor();
  });
});

describe('a filter that cannot be parsed', () => {
  it('has its error below the box, and the last good one stays', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await row(page, 3).waitFor();
    await page.getByLabel('Filter trials').fill('running');
    await page.getByText('2 of 11', { exact: true }).waitFor();
    await page.getByLabel('Filter trials').fill('running (lr<1');
    await page.getByRole('alert').getByText("At position 14: expected ')'").waitFor();
    expect((await rowNumbers(page)).sort()).toEqual([10, 9]);
    await page.getByLabel('Filter trials').fill('running OR failed');
    await page.getByText('3 of 11', { exact: true }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});

describe('a restored backup', () => {
  it('is read again, and what is shown stays meanwhile', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByTestId('stream').getByText('live').waitFor();
    await row(page, 10).getByText('running').waitFor();
    await page.evaluate(() => {
      const counts = { least: Infinity };
      Object.assign(window, { counts });
      const look = (): void => {
        const rows = document.querySelectorAll('tr[data-trial]').length;
        counts.least = Math.min(counts.least, rows);
        requestAnimationFrame(look);
      };
      look();
    });
    // The backup ends before the newest events, and trial 10 was paused in it.
    world.events.splice(-3);
    Object.assign(world.trial('s1', 10), { state: 'paused', reason: 'paused in the backup' });
    server.dropStreams();
    await row(page, 10).getByText('Paused in the backup.').waitFor();
    const { least } = await page.evaluate(
      () => (window as unknown as { counts: { least: number } }).counts,
    );
    expect(least).toBe(11);
  });
});
