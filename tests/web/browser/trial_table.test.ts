import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { largeWorld, smallWorld } from '../mock/scenarios';
import { Harness, pointsOf, row, rowNumbers, waitForPoints } from './harness';

const harness = new Harness();

describe('the trials', () => {
  it('begin with the best', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await row(page, 3).waitFor();
    const best = world.trialsOf('s1').map((trial) => trial.best as number);
    const shown = (await rowNumbers(page)).map((number) => best[number] as number);
    const finite = shown.filter(Number.isFinite);
    expect(finite).toEqual([...finite].sort((a, b) => b - a));
    expect(shown.at(-1)).toBe('nan');
  });

  it('are sorted by a click on a header, and reversed by another click', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const header = page.getByRole('columnheader', { name: 'lr' });
    await header.getByRole('button').click();
    await page.locator('th[aria-sort=ascending]').getByText('lr').waitFor();
    const rates = world.trialsOf('s1').map((trial) => trial.config.lr as number);
    const shown = async (): Promise<number[]> =>
      (await rowNumbers(page)).map((number) => rates[number] as number);
    expect(await shown()).toEqual([...rates].sort((a, b) => a - b));
    await header.getByRole('button').click();
    await page.locator('th[aria-sort=descending]').getByText('lr').waitFor();
    expect(await shown()).toEqual([...rates].sort((a, b) => b - a));
    expect(new URL(page.url()).searchParams.get('sort')).toBe('-config.lr');
  });

  it('are sorted from the keyboard', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.getByRole('columnheader', { name: 'trial' }).getByRole('button').focus();
    await page.keyboard.press('Enter');
    await page.locator('th[aria-sort=ascending]').getByText('trial').waitFor();
    expect(await rowNumbers(page)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('show why a trial was stopped', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    const stopped = world.trialsOf('s1').find((trial) => trial.state === 'stopped');
    const reason = row(page, stopped?.number ?? -1).locator('.reason');
    expect(await reason.textContent()).toMatch(
      /^Stopped at step 1: accuracy 0\.\d+ is rank \d of \d at rung 1; the best \d go on \(cutoff 0\.\d+\)\.$/,
    );
  });

  it('show that a trial is stopped while the page is open', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await row(page, 10).getByText('running').waitFor();
    world.change(
      world.trial('s1', 10),
      'stopped',
      'stopped at step 1: accuracy 0.5 is rank 10 of 11',
    );
    await row(page, 10).getByText('Stopped at step 1: accuracy 0.5 is rank 10 of 11.').waitFor();
    await page.getByRole('button', { name: 'stopped 3' }).waitFor();
  });

  it('are selected by j and k, which highlights the line, and opened by Enter', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1?sort=number');
    await row(page, 0).waitFor();
    for (const key of ['j', 'j', 'j', 'k']) await page.keyboard.press(key);
    await page.locator('tr[aria-current=true][data-trial="1"]').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Trial 1' }).waitFor();
    await page.goBack();
    await page.locator('tr[aria-current=true][data-trial="1"]').waitFor();
  });

  it('are filtered by words and by states, in the table and in the chart', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await row(page, 3).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('optimizer=sgd');
    const sgd = world.trialsOf('s1').filter((trial) => trial.config.optimizer === 'sgd').length;
    await page.locator(`[data-testid=curves][data-lines="${sgd}"]`).waitFor();
    expect((await rowNumbers(page)).length).toBe(sgd);
    await page.getByLabel('Filter trials').fill('');
    await page.getByRole('button', { name: 'running 2' }).click();
    await page.locator('[data-testid=curves][data-lines="2"]').waitFor();
    expect((await rowNumbers(page)).sort()).toEqual([10, 9]);
  });
});

describe('a sweep of two thousand trials', () => {
  it('has few rows in the document, and one key shows the last', async () => {
    const world = largeWorld(2000);
    const page = await harness.open(await harness.serve(world), '/sweeps/big?sort=number');
    await row(page, 0).waitFor();
    expect(await page.locator('tr[data-trial]').count()).toBeLessThan(80);
    await page.locator('table.trials[aria-rowcount="2002"]').waitFor();
    await page.keyboard.press('End');
    await row(page, 2000).waitFor();
    expect(await page.locator('tr[data-trial]').count()).toBeLessThan(80);
    await page.keyboard.press('Home');
    await row(page, 0).waitFor();
  });

  it('handles a thousand reports', async () => {
    const world = largeWorld(2000);
    const page = await harness.open(await harness.serve(world), '/sweeps/big');
    await waitForPoints(page, pointsOf(world, 'big'));
    const trial = world.trial('big', 2000);
    for (let step = 1; step <= 1000; step += 1)
      world.report(trial, step, { accuracy: 0.5 + step / 10_000 });
    await waitForPoints(page, pointsOf(world, 'big'));
  });
});

describe('the columns', () => {
  const heads = (page: Page) => page.locator('.trials thead th').allTextContents();

  it('are chosen, ordered by the keyboard, kept, and part of the address', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1');
    await row(page, 9).waitFor();
    await page.getByRole('button', { name: 'Columns…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Columns' });
    await dialog.getByLabel('reason', { exact: true }).uncheck();
    await dialog.getByLabel('attempts', { exact: true }).check();
    await dialog.getByRole('button', { name: 'Move state up' }).press('Enter');
    await dialog.getByRole('button', { name: 'Show these columns' }).click();
    await dialog.waitFor({ state: 'detached' });
    const chosen = await heads(page);
    expect(chosen.slice(0, 2)).toEqual(['state', 'trial']);
    expect(chosen).toContain('attempts');
    expect(chosen).not.toContain('reason');

    await page.goto(`${server.url}/sweeps/s1`);
    await row(page, 9).waitFor();
    expect(await heads(page)).toEqual(chosen);
    // The columns of a link are shown, and the kept ones stay.
    await page.goto(`${server.url}/sweeps/s1?columns=number,metrics.loss`);
    await row(page, 9).waitFor();
    expect(await heads(page)).toEqual(['trial', 'loss']);
    await page.goto(`${server.url}/sweeps/s1`);
    await row(page, 9).waitFor();
    expect(await heads(page)).toEqual(chosen);
  });

  it('are saved with filter and chart as a view, which can be renamed', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(
      server,
      '/sweeps/s1?q=stopped&view=history&columns=number,best',
    );
    await page.locator('[data-testid=history]').waitFor();
    const views = page.getByLabel('Saved views');
    await views.selectOption('Save this view…');
    await page.getByRole('dialog').getByLabel('Name').fill('losers');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await views.locator('option', { hasText: 'Delete “losers”' }).waitFor({ state: 'attached' });

    await page.goto(`${server.url}/sweeps/s1`);
    await row(page, 9).waitFor();
    await views.selectOption('losers');
    await page.locator('[data-testid=history]').waitFor();
    expect(new URL(page.url()).searchParams.get('q')).toBe('stopped');
    expect(await heads(page)).toHaveLength(2);
    await views.selectOption('Rename “losers”…');
    const name = page.getByRole('dialog', { name: 'Rename “losers”' }).getByLabel('Name');
    expect(await name.inputValue()).toBe('losers');
    await name.fill('early ends');
    await page.getByRole('button', { name: 'Rename', exact: true }).click();
    const options = (): Promise<string[]> => views.locator('option').allTextContents();
    await expect.poll(options).toContain('early ends');
    expect(await options()).not.toContain('losers');
    await views.selectOption('Delete “early ends”');
    await expect.poll(options).not.toContain('early ends');
  });
});
