import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { conditionalWorld, frontWorld, largeWorld } from '../mock/scenarios';
import { brush, Harness, pointAtFirst, rowNumbers, settledBox } from './harness';

const harness = new Harness();

const history = (page: Page, dots: number) =>
  page.locator(`[data-testid=history][data-dots="${dots}"]`);
const strands = (page: Page, count: number, chosen = count) =>
  page.locator(`canvas[data-strands="${count}"][data-chosen="${chosen}"]`);
const grip = (page: Page, key: string) => page.locator(`.grip[data-axis="${key}"]`);
const sorted = async (page: Page): Promise<number[]> =>
  (await rowNumbers(page)).sort((a, b) => a - b);

async function openParallel(path = '/sweeps/s1?view=parallel'): Promise<Page> {
  const page = await harness.open(await harness.serve(conditionalWorld()), path);
  await page.locator('canvas[data-strands="7"]').waitFor();
  return page;
}

describe('the history', () => {
  it('is one press away, and stays when the page is loaded again', async () => {
    const page = await harness.open(await harness.serve(conditionalWorld()), '/sweeps/s1');
    await page.getByRole('button', { name: 'History' }).click();
    await page.getByRole('heading', { name: 'accuracy by trial' }).waitFor();
    await history(page, 6).waitFor();
    expect(new URL(page.url()).search).toBe('?view=history');
    await page.reload();
    await history(page, 6).waitFor();
  });

  it('says in words what is drawn, and which trials have no value', async () => {
    const page = await harness.open(
      await harness.serve(conditionalWorld()),
      '/sweeps/s1?view=history',
    );
    await page
      .getByText(
        'The best accuracy of 7 trials; the line is the best so far. Best: 0.9000, trial 3. ' +
          '1 reported NaN or infinity, 1 failed before a report. 1 not reported yet.',
      )
      .waitFor();
    expect(await page.getByRole('list', { name: 'Marks' }).locator('li').allTextContents()).toEqual(
      ['completed', 'failed'],
    );
    await page.getByRole('button', { name: 'Table' }).click();
    const table = page.getByRole('region', { name: 'Trials’ values' });
    expect(await table.locator('tbody tr').allTextContents()).toEqual([
      '0completed0.5000',
      '1completed0.8000',
      '2completed0.6000',
      '3completed0.9000',
      expect.stringMatching(/^4completed.*NaN/),
      expect.stringMatching(/^5failed.*failed/),
    ]);
  });

  it('can show trials by their end times', async () => {
    const page = await harness.open(
      await harness.serve(conditionalWorld()),
      '/sweeps/s1?view=history',
    );
    await page.getByLabel('by').selectOption('time of end');
    await page.getByRole('heading', { name: 'accuracy by time of end' }).waitFor();
    await page.getByText('1 not ended yet.').waitFor();
    expect(new URL(page.url()).searchParams.get('x')).toBe('ended');
  });

  it('grows with the events', async () => {
    const world = conditionalWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1?view=history');
    await history(page, 6).waitFor();
    await page.getByTestId('stream').getByText('live').waitFor();
    world.report(world.trial('s1', 6), 1, { accuracy: 0.95 });
    await history(page, 7).waitFor();
    await page.getByText('Best: 0.9500, trial 6.').waitFor();
  });

  it('follows the mouse: a dot shows its trial and value, a click opens its menu', async () => {
    const server = await harness.serve(conditionalWorld());
    const path = '/sweeps/s1?view=history&state=completed&q=trial%3D3';
    const page = await harness.open(server, path);
    await history(page, 1).waitFor();
    // A single point is in the middle.
    await pointAtFirst(page, page.locator('.u-over'), 0.5);
    expect(await page.locator('.plot-tip').textContent()).toBe(
      'trial 3 completed, accuracy 0.9000',
    );
    await page.locator('tr.hovered[data-trial="3"]').waitFor();
    await page.mouse.down();
    await page.mouse.up();
    const menu = page.getByRole('group', { name: 'Trial 3' });
    await menu.waitFor();
    await page.keyboard.press('Escape');
    await menu.waitFor({ state: 'detached' });
    await page.mouse.down();
    await page.mouse.up();
    await menu.getByRole('button', { name: 'Enqueue a copy…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Enqueue a configuration' });
    await dialog.getByText('The values are those of trial 3.').waitFor();
    expect(await dialog.getByLabel('lr').inputValue()).toBe('0.016');
    await dialog.getByRole('button', { name: 'Enqueue' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(server.bodies.at(-1)).toEqual({
      config: { optimizer: 'sgd', lr: 0.016, momentum: 0.65 },
    });
    await pointAtFirst(page, page.locator('.u-over'), 0.5);
    await page.mouse.down();
    await page.mouse.up();
    // The first item has the focus.
    await menu.waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Trial 3' }).waitFor();
  });

  it('draws two metrics against each other, with the front', async () => {
    const page = await harness.open(await harness.serve(frontWorld()), '/sweeps/s1?view=history');
    await page.getByRole('heading', { name: 'latency_ms by accuracy' }).waitFor();
    await history(page, 3).waitFor();
    await page.getByText('Each trial’s newest report; 2 reports on the front.').waitFor();
    expect(await page.getByLabel('by', { exact: true }).count()).toBe(0);
  });
});

describe('parallel coordinates', () => {
  it('have an axis for each parameter, and the metric last', async () => {
    const page = await openParallel();
    expect(await page.locator('.axis-name').allTextContents()).toEqual([
      ...['optimizer', 'lr', 'momentum', 'accuracy'],
    ]);
    await page.getByText('7 trials across 4 axes.').waitFor();
  });

  it('are brushed by dragging along an axis, which filters the table, until a double click', async () => {
    const page = await openParallel();
    await brush(page, grip(page, 'config.lr'), 0.5, -0.1);
    await strands(page, 7, 3).waitFor();
    await page.getByText('3 of 7', { exact: true }).waitFor();
    expect(await sorted(page)).toEqual([4, 5, 6]);
    const chip = page.getByRole('button', { name: /^Clear lr ≥ 0\.03\d*$/ });
    await chip.waitFor();
    await page.reload();
    await strands(page, 7, 3).waitFor();
    await grip(page, 'config.lr').dblclick({ position: { x: 13, y: 10 } });
    await strands(page, 7).waitFor();
    expect(await sorted(page)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(await chip.count()).toBe(0);
  });

  it('select trials without a value by a brush in their lane', async () => {
    const page = await openParallel();
    await brush(page, grip(page, 'config.momentum'), 0.99, 0.97);
    await page.getByRole('button', { name: 'Clear momentum absent' }).waitFor();
    expect(await sorted(page)).toEqual([0, 2, 4, 6]);
    await brush(page, grip(page, 'metrics.accuracy'), 0.4, -0.1);
    await page.getByRole('button', { name: 'Clear accuracy ≥' }).waitFor();
    await page.getByText('No trial matches the filter.').waitFor();
    await page.getByRole('button', { name: 'Clear momentum absent' }).click();
    await strands(page, 7, 2).waitFor();
    expect(await sorted(page)).toEqual([1, 3]);
  });

  it('have brushes that can be moved', async () => {
    const page = await openParallel('/sweeps/s1?view=parallel&brush=config.lr~0.002~0.009');
    await strands(page, 7, 3).waitFor();
    const span = await settledBox(page.locator('.brush'));
    const axis = await settledBox(grip(page, 'config.lr'));
    const middle = (span.y + span.height / 2 - axis.y) / axis.height;
    await brush(page, grip(page, 'config.lr'), middle, middle - 0.45);
    await strands(page, 7, 2).waitFor();
    expect(await sorted(page)).toEqual([5, 6]);
  });

  it('are brushed without a mouse, in their table', async () => {
    const page = await openParallel();
    await page.getByRole('button', { name: 'Table' }).click();
    await page.getByLabel('lr from').fill('0.01');
    await page.getByLabel('lr from').press('Tab');
    await page.getByText('4 of 7', { exact: true }).waitFor();
    await page.getByLabel('optimizer from').selectOption('adamw');
    await page.getByText('2 of 7', { exact: true }).waitFor();
    expect(await sorted(page)).toEqual([4, 6]);
    await page.getByLabel('momentum absent').uncheck();
    await page.getByText('No trial matches the filter.').waitFor();
  });

  it.each(['admin', 'viewer'] as const)(
    'follow the mouse: the nearest line shows its name, a click as %s leads to its trial',
    async (role) => {
      const world = conditionalWorld();
      world.role = role;
      const server = await harness.serve(world);
      const page = await harness.open(server, '/sweeps/s1?view=parallel&q=trial%3D1');
      await strands(page, 1).waitFor();
      await page.getByText(role === 'admin' ? 'Enqueue…' : 'Log out').waitFor();
      await pointAtFirst(page, page.getByTestId('parallel'), 0.55);
      expect(await page.locator('.plot-tip').textContent()).toBe('trial 1 accuracy 0.8000');
      await page.mouse.down();
      await page.mouse.up();
      if (role === 'admin') await page.getByRole('link', { name: 'Open trial 1' }).click();
      await page.getByRole('heading', { name: 'Trial 1' }).waitFor();
    },
  );

  it('open no trial after a drag next to an axis', async () => {
    const server = await harness.serve(conditionalWorld());
    const page = await harness.open(server, '/sweeps/s1?view=parallel&q=trial%3D1');
    await strands(page, 1).waitFor();
    const drawing = page.getByTestId('parallel');
    await pointAtFirst(page, drawing, 0.55);
    const tip = page.locator('.plot-tip');
    await tip.waitFor();
    const box = await settledBox(drawing);
    const column = box.x + 0.55 * box.width;
    // From the end of the drawing to the line: the mouse is over the line when it is released.
    let y = box.y + 4;
    await page.mouse.move(column, y);
    for (; (await tip.count()) === 0; y += 10) await page.mouse.move(column, y);
    await page.mouse.move(column, box.y + box.height - 8);
    await page.mouse.down();
    await page.mouse.move(column, y - 10, { steps: 4 });
    await page.mouse.up();
    expect(new URL(page.url()).pathname).toBe('/sweeps/s1');
    expect(await page.getByRole('heading', { name: 'Trial 1' }).count()).toBe(0);
  });

  it('follow the events', async () => {
    const world = conditionalWorld();
    const page = await harness.open(
      await harness.serve(world),
      '/sweeps/s1?view=parallel&brush=metrics.accuracy~0.85~',
    );
    await strands(page, 7, 1).waitFor();
    await page.getByTestId('stream').getByText('live').waitFor();
    world.report(world.trial('s1', 6), 1, { accuracy: 0.95 });
    await strands(page, 7, 2).waitFor();
    expect(await sorted(page)).toEqual([3, 6]);
  });

  it('scroll if they do not fit, and keep their names visible', async () => {
    const page = await openParallel();
    await page.setViewportSize({ width: 400, height: 860 });
    const axes = page.getByRole('region', { name: 'Axes' });
    await axes.waitFor();
    const widths = await page
      .locator('.axis-name')
      .evaluateAll((names) => names.map((name) => name.clientWidth));
    expect(Math.min(...widths)).toBeGreaterThan(60);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      440,
    );
  });
});

describe('five thousand trials', () => {
  it('are drawn in each view, and a brush follows the mouse', async () => {
    const world = largeWorld(5000);
    const page = await harness.open(await harness.serve(world), '/sweeps/big?view=history');
    await history(page, 5000).waitFor();
    await page.getByRole('button', { name: 'Parallel' }).click();
    await strands(page, 5001).waitFor();
    await brush(page, grip(page, 'config.lr'), 0.5, -0.1, 20);
    await page.getByRole('button', { name: 'Clear lr' }).waitFor();
    const kept = world.trialsOf('big').filter((trial) => Number(trial.config.lr) > 0.03);
    const shown = Number(await page.locator('canvas[data-chosen]').getAttribute('data-chosen'));
    expect(shown).toBeGreaterThan(0.5 * kept.length);
    expect(shown).toBeLessThan(5001);
  });
});
